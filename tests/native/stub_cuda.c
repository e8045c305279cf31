/* A libcuda for machines without a GPU: one device whose memory is plain memory. It answers what the environment tells
 * it to (stub.h). Built with -DSTUB_OLD it is a driver from before cuGetProcAddress_v2 and everything newer.
 */
#include "stub.h"

typedef unsigned long long u64;

static int answer(const char *function) {
    misbehave(function);
    const char *status = setting("STUB_STATUS", function);
    return status ? atoi(status) : 0;
}

static int context, streams[64], used;

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
int cuInit(unsigned flags) { (void)flags; return answer("cuInit"); }
int cuDriverGetVersion(int *version) {
    const char *v = getenv("STUB_DRIVER");
    *version = v ? atoi(v) : 13000;
    return answer("cuDriverGetVersion");
}
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return ordinal ? 101 : answer("cuDeviceGet"); }
int cuDeviceGetCount(int *count) { *count = 1; return answer("cuDeviceGetCount"); }
int cuDevicePrimaryCtxRetain(void **c, int device) { (void)device; *c = &context; return answer("cuDevicePrimaryCtxRetain"); }
int cuDevicePrimaryCtxRelease_v2(int device) { (void)device; return answer("cuDevicePrimaryCtxRelease"); }
int cuCtxSetCurrent(void *c) { (void)c; return answer("cuCtxSetCurrent"); }
int cuStreamCreate(void **stream, unsigned flags) { (void)flags; *stream = &streams[used++ % 64]; return answer("cuStreamCreate"); }
int cuStreamDestroy_v2(void *stream) { (void)stream; return answer("cuStreamDestroy"); }
int cuStreamSynchronize(void *stream) { (void)stream; return answer("cuStreamSynchronize"); }
int cuCtxSynchronize(void) { return answer("cuCtxSynchronize"); }
int cuMemAlloc_v2(u64 *memory, size_t size) { *memory = (u64)calloc(1, size); return answer("cuMemAlloc"); }
int cuMemFree_v2(u64 memory) { free((void *)memory); return answer("cuMemFree"); }
int cuMemcpyHtoDAsync_v2(u64 to, const void *from, size_t size, void *stream) { (void)stream; memcpy((void *)to, from, size); return answer("cuMemcpyHtoDAsync"); }
int cuMemcpyDtoHAsync_v2(void *to, u64 from, size_t size, void *stream) { (void)stream; memcpy(to, (void *)from, size); return answer("cuMemcpyDtoHAsync"); }

#ifndef STUB_OLD
int cuGetProcAddress_v2(const char *symbol, void **function, int version, u64 flags, int *result) {
    (void)version;
    (void)flags;
    char name[128];
    Dl_info self;
    if (!dladdr((void *)cuGetProcAddress_v2, &self)) return 999;
    void *library = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    snprintf(name, sizeof name, "%s_v2", symbol);
    *function = dlsym(library, name);
    if (!*function) *function = dlsym(library, symbol);
    if (result) *result = *function ? 0 : 1;
    return *function ? 0 : 500;
}
#endif
