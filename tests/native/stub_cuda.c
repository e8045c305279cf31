/* A libcuda for machines without a GPU: one or two devices whose memory is plain memory, with contexts, streams,
 * captures and faults enough for every state of `reproduce`. It answers otherwise when the environment says so (stub.h).
 *
 * STUB_DEVICES   how many devices (default 1); CUDA_VISIBLE_DEVICES may hide them
 * -DSTUB_OLD     a driver from before cuGetProcAddress_v2 and everything newer
 */
#include "stub.h"

#include <pthread.h>

typedef unsigned long long u64;
enum { OK, INVALID_VALUE, OUT_OF_MEMORY, NOT_INITIALIZED, NO_DEVICE = 100, INVALID_DEVICE, INVALID_CONTEXT = 201, INVALIDATED = 901 };
#define MEMORY (64ull << 20)

struct context { int alive, device, fault; };
struct stream { struct context *context; int alive, capture; }; /* capture: 0 none, 1..3 mode + 1, -1 invalidated */

static struct context primary[2];
static _Thread_local struct context *current;
static struct stream *capturing;
static u64 used;
static pid_t initialised;

static int answer(const char *function) {
    misbehave(function);
    const char *status = setting("STUB_STATUS", function);
    return status ? atoi(status) : 0;
}
#define ANSWER(name) do { int s_ = answer(name); if (s_) return s_; } while (0)

static int devices(void) {
    const char *n = getenv("STUB_DEVICES"), *seen = getenv("CUDA_VISIBLE_DEVICES");
    if (seen && (*seen < '0' || *seen > '9')) return 0;
    return seen && !strchr(seen, ',') ? 1 : n ? atoi(n) : 1;
}
static int usable(void) { return initialised == getpid() ? current && current->fault ? current->fault : OK : NOT_INITIALIZED; }

int cuGetErrorName(int status, const char **name) {
    switch (status) {
    case 0: *name = "CUDA_SUCCESS"; return 0;
    case 100: *name = "CUDA_ERROR_NO_DEVICE"; return 0;
    case 999: *name = "CUDA_ERROR_UNKNOWN"; return 0;
#ifndef STUB_OLD
    case 803: *name = "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"; return 0;
    case 804: *name = "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"; return 0;
#endif
    default: *name = NULL; return 1;
    }
}
int cuGetErrorString(int status, const char **text) { *text = status ? "stub" : "no error"; return 0; }
int cuInit(unsigned flags) {
    (void)flags;
    ANSWER("cuInit");
    if (!devices()) return NO_DEVICE;
    initialised = getpid();
    return OK;
}
int cuDriverGetVersion(int *version) {
    const char *v = getenv("STUB_DRIVER");
    *version = v ? atoi(v) : 13000;
    return answer("cuDriverGetVersion");
}
int cuDeviceGet(int *device, int ordinal) { ANSWER("cuDeviceGet"); *device = ordinal; return ordinal < devices() ? OK : INVALID_DEVICE; }
int cuDeviceGetName(char *name, int size, int device) { snprintf(name, size, "Stub %d", device); return answer("cuDeviceGetName"); }
int cuDeviceGetCount(int *count) { *count = devices(); return answer("cuDeviceGetCount"); }

/* contexts */
int cuDevicePrimaryCtxRetain(struct context **c, int device) {
    ANSWER("cuDevicePrimaryCtxRetain");
    primary[device].alive++;
    primary[device].device = device;
    *c = &primary[device];
    return OK;
}
int cuDevicePrimaryCtxRelease_v2(int device) { primary[device].alive--; return answer("cuDevicePrimaryCtxRelease"); }
int cuDevicePrimaryCtxReset_v2(int device) { primary[device].alive = 0; return answer("cuDevicePrimaryCtxReset"); }
int cuCtxSetCurrent(struct context *c) { current = c; return answer("cuCtxSetCurrent"); }
int cuCtxGetCurrent(struct context **c) { *c = current; return usable(); }
int cuCtxCreate_v2(struct context **c, unsigned flags, int device) {
    (void)flags;
    *c = calloc(1, sizeof **c);
    (*c)->alive = 1;
    (*c)->device = device;
    current = *c;
    return answer("cuCtxCreate");
}
int cuCtxDestroy_v2(struct context *c) { c->alive = 0; if (current == c) current = NULL; return answer("cuCtxDestroy"); }
int cuCtxGetDevice(int *device) { if (!current) return INVALID_CONTEXT; *device = current->device; return OK; }
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) { *flags = 0; *active = primary[device].alive > 0; return OK; }
int cuCtxSynchronize(void) { ANSWER("cuCtxSynchronize"); return usable(); }
int cuCtxGetStreamPriorityRange(int *least, int *greatest) { *least = 0; *greatest = -5; return answer("cuCtxGetStreamPriorityRange"); }

/* streams */
int cuStreamCreate(struct stream **s, unsigned flags) {
    (void)flags;
    ANSWER("cuStreamCreate");
    if (used >= MEMORY) return OUT_OF_MEMORY;
    *s = calloc(1, sizeof **s);
    (*s)->context = current;
    (*s)->alive = 1;
    return OK;
}
int cuStreamCreateWithPriority(struct stream **s, unsigned flags, int priority) { (void)priority; return cuStreamCreate(s, flags); }
int cuStreamDestroy_v2(struct stream *s) { s->alive = 0; return answer("cuStreamDestroy"); }
int cuStreamGetCtx(struct stream *s, struct context **c) { *c = s->context; return OK; }
int cuStreamSynchronize(struct stream *s) { (void)s; return answer("cuStreamSynchronize"); }
/* For the stub libcudnn: 0 when the stream lives in the context, else why not. */
int stubStreamTrouble(struct stream *s, struct context *c) {
    if (usable()) return usable();
    if (!c->alive) return INVALID_CONTEXT;
    if ((u64)s <= 2) return OK;
    return s->alive && s->context == c ? OK : INVALID_VALUE; /* a wild pointer crashes here, as in the driver */
}
/* For cudnnCreate: 0, or why a handle cannot be made. */
int stubCreateTrouble(void) {
    if (initialised != getpid() || !devices()) return NO_DEVICE;
    if (usable()) return usable();
    if (used >= MEMORY) return OUT_OF_MEMORY;
    if (capturing && capturing->capture != 3) { capturing->capture = -1; return INVALIDATED; }
    return OK;
}
int cuStreamBeginCapture_v2(struct stream *s, int mode) { s->capture = mode + 1; capturing = s; return answer("cuStreamBeginCapture"); }
int cuStreamEndCapture(struct stream *s, void **graph) {
    int broken = s->capture < 0;
    s->capture = 0;
    capturing = NULL;
    *graph = broken ? NULL : s;
    return broken ? INVALIDATED : answer("cuStreamEndCapture");
}
int cuGraphDestroy(void *graph) { (void)graph; return answer("cuGraphDestroy"); }

/* memory and kernels */
int cuMemAlloc_v2(u64 *memory, size_t size) {
    ANSWER("cuMemAlloc");
    if (used + size > MEMORY) return OUT_OF_MEMORY;
    u64 *block = calloc(1, size + 16);
    block[0] = size;
    used += size;
    *memory = (u64)(block + 2);
    return OK;
}
int cuMemFree_v2(u64 memory) { u64 *block = (u64 *)memory - 2; used -= block[0]; free(block); return answer("cuMemFree"); }
int cuMemGetInfo_v2(size_t *free_, size_t *total) { *free_ = MEMORY - used; *total = MEMORY; return answer("cuMemGetInfo"); }
void stubTake(long bytes) { used += bytes; }
int cuMemcpyHtoDAsync_v2(u64 to, const void *from, size_t size, void *s) { (void)s; memcpy((void *)to, from, size); return answer("cuMemcpyHtoDAsync"); }
int cuMemcpyDtoHAsync_v2(void *to, u64 from, size_t size, void *s) { (void)s; memcpy(to, (void *)from, size); return answer("cuMemcpyDtoHAsync"); }
int cuModuleLoadData(int **module, const char *ptx) {
    static int fault;
    fault = strstr(ptx, "__assertfail") ? 710 : strstr(ptx, "st.global") ? 700 : strstr(ptx, "trap;") ? 719 : 0;
    *module = &fault;
    return answer("cuModuleLoadData");
}
int cuModuleGetFunction(int **function, int *module, const char *name) { (void)name; *function = module; return answer("cuModuleGetFunction"); }
int cuLaunchKernel(int *function) { current->fault = *function; return answer("cuLaunchKernel"); }

#ifndef STUB_OLD
int cuCtxCreate_v4(struct context **c, void *parameters, unsigned flags, int device) { (void)parameters; return cuCtxCreate_v2(c, flags, device); }
int cuDeviceGetDevResource(int device, void *resource, int type) { (void)device; (void)resource; (void)type; return 801; }
int cuGetProcAddress_v2(const char *symbol, void **function, int version, u64 flags, int *result) {
    (void)version;
    (void)flags;
    char name[128];
    Dl_info self;
    if (!dladdr((void *)cuGetProcAddress_v2, &self)) return 999;
    void *library = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    *function = NULL;
    for (const char **suffix = (const char *[]){"_v4", "_v2", "", NULL}; *suffix && !*function; suffix++) {
        snprintf(name, sizeof name, "%s%s", symbol, *suffix);
        *function = dlsym(library, name);
    }
    if (result) *result = *function ? 0 : 1;
    return *function ? 0 : 500;
}
#endif
