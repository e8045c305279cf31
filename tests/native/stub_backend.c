/* libcuda and libcudnn in one object, for machines without a GPU: streams that queue, capture and wait, and a backend API
 * whose engines have planted faults. Opened under both names (a link), so that "kernels" of the one reach streams of the
 * other.
 *
 * STUB_ENGINES=N:WHAT[,...]  what engine N does; engines not named are right. There are 12.
 *   plan-handle     queues in the stream of the handle that built the plan (the fault of MXNet PR 21104)
 *   default-stream  queues in the default stream
 *   split           one kernel in the given stream, one in the plan's
 *   dead-handle     reads the plan's handle: crashes when that is destroyed
 *   no-capture      refuses to run in a capture
 *   waits           waits for the given stream before it queues
 *   waits-other     waits, before it queues, for every stream that it was queued in before
 *   race            keeps its output pointer in the plan while it works
 *   segv-shared     crashes where two threads execute a plan at the same time
 *   random          gives other bits each time
 *   drift           gives other bits from its third execution on
 *   other-handle    gives other bits with another handle than the one that built the plan
 *   bad-clone       gives other bits, always the same, in a plan that was built with the given handle
 *   silent          writes nothing
 *   blind           is right, but its kernels are always counted in the given stream (a control that sees nothing)
 *   huge            wants 2 GiB of workspace
 *   unsupported, internal                      status of the engine's finalisation
 *   abort-engine    says what it cannot load, and aborts
 *   segv-engine, segv-build, segv-run, segv-destroyed, hang-run, fault-run
 * STUB_PROPOSED=N            plans that a heuristic proposes: all engines, then again with a knob at 1, at 2 and so on (14)
 * STUB_CROWD=FILE            cudnnCreate fails while another process that locked FILE in the same way is alive
 * STUB_GRAPH=N               status of the operation graph's finalisation
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#ifndef STUB_MAJOR
#define STUB_MAJOR 9
#endif
#define NOT_SUPPORTED (STUB_MAJOR >= 9 ? 3000 : 9)
#define INTERNAL (STUB_MAJOR >= 9 ? 4000 : 4)
#define BAD_PARAM (STUB_MAJOR >= 9 ? 2000 : 3)
enum { ENGINES = 12 };

typedef unsigned long long u64;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int sticky; /* CUDA error of a lost context */

static int does(int engine, const char *what) {
    char wanted[64];
    const char *all = getenv("STUB_ENGINES");
    int n = snprintf(wanted, sizeof wanted, ",%d:%s,", engine, what);
    char padded[1024];
    snprintf(padded, sizeof padded, ",%s,", all ? all : "");
    return n > 0 && strstr(padded, wanted) != NULL;
}

/* ---------------------------------------------------------------- streams */

typedef struct Op {
    int kind; /* 0 fill with a pattern, 1 copy, 2 set, 3 wait for *word >= value, 4 fault */
    void *to;
    const void *from;
    size_t size;
    unsigned value;
    struct Op *next;
} Op;
typedef struct Stream { Op *head, **tail; int capturing, nodes; } Stream;
typedef struct Graph { int nodes; } Graph;
static Stream pool[64], legacy;
static int streams_used, context_word;

static Stream *of(void *s) {
    Stream *stream = s ? s : &legacy;
    if (!stream->tail) stream->tail = &stream->head;
    return stream;
}

static void pump(Stream *s) {
    while (s->head) {
        Op *op = s->head;
        if (op->kind == 3 && *(volatile uint32_t *)op->to < op->value) return;
        if (op->kind == 0) for (size_t i = 0; i < op->size; i++) ((unsigned char *)op->to)[i] = (unsigned char)((i * 7 + op->value) & 0x7f);
        if (op->kind == 1) memcpy(op->to, op->from, op->size);
        if (op->kind == 2) memset(op->to, (int)op->value, op->size);
        if (op->kind == 4) sticky = 700;
        s->head = op->next;
        if (!s->head) s->tail = &s->head;
        free(op);
    }
}

static int enqueue(void *stream, Op op) {
    pthread_mutex_lock(&lock);
    Stream *s = of(stream);
    if (s->capturing) s->nodes++;
    else {
        Op *copy = malloc(sizeof *copy);
        *copy = op;
        copy->next = NULL;
        *s->tail = copy;
        s->tail = &copy->next;
        pump(s);
    }
    pthread_mutex_unlock(&lock);
    return sticky;
}

int cuInit(unsigned flags) { (void)flags; const char *v = getenv("CUDA_VISIBLE_DEVICES"); return v && strcmp(v, "0") ? 100 : 0; }
int cuGetErrorName(int status, const char **name) { *name = status == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : status == 100 ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR"; return 0; }
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return ordinal ? 101 : 0; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDeviceGetName(char *name, int length, int device) { (void)device; snprintf(name, (size_t)length, "Stub GPU"); return 0; }
int cuDevicePrimaryCtxRetain(void **c, int device) { (void)device; *c = &context_word; return 0; }
int cuCtxSetCurrent(void *c) { (void)c; return 0; }
int cuStreamCreate(void **stream, unsigned flags) { (void)flags; *stream = of(&pool[streams_used++ % 64]); return sticky; }
int cuStreamSynchronize(void *stream) {
    for (;;) {
        pthread_mutex_lock(&lock);
        Stream *s = of(stream);
        pump(s);
        int left = s->head != NULL;
        pthread_mutex_unlock(&lock);
        if (!left) return sticky;
        usleep(200);
    }
}
int cuStreamBeginCapture_v2(void *stream, int mode) { (void)mode; of(stream)->capturing = 1; of(stream)->nodes = 0; return 0; }
int cuStreamEndCapture(void *stream, void **graph) {
    Graph *g = malloc(sizeof *g);
    g->nodes = of(stream)->nodes;
    of(stream)->capturing = of(stream)->nodes = 0;
    *graph = g;
    return sticky;
}
int cuGraphGetNodes(void *graph, void **nodes, size_t *n) {
    if (nodes) for (size_t i = 0; i < *n; i++) nodes[i] = graph;
    *n = (size_t)((Graph *)graph)->nodes;
    return 0;
}
int cuGraphNodeGetType(void *node, int *type) { (void)node; *type = 0; return 0; }
int cuGraphDestroy(void *graph) { free(graph); return 0; }
int cuStreamWaitValue32_v2(void *stream, u64 word, unsigned value, unsigned flags) {
    (void)flags;
    if (getenv("STUB_NO_WAIT")) return 801;
    return enqueue(stream, (Op){.kind = 3, .to = (void *)word, .value = value});
}
int cuMemAlloc_v2(u64 *memory, size_t size) { *memory = (u64)malloc(size); return sticky; }
int cuMemFree_v2(u64 memory) { free((void *)memory); return sticky; }
int cuMemHostAlloc(void **memory, size_t size, unsigned flags) { (void)flags; *memory = calloc(1, size); return 0; }
int cuMemHostGetDevicePointer_v2(u64 *device, void *host, unsigned flags) { (void)flags; *device = (u64)host; return 0; }
int cuMemcpyHtoDAsync_v2(u64 to, const void *from, size_t size, void *stream) { return enqueue(stream, (Op){.kind = 1, .to = (void *)to, .from = from, .size = size}); }
int cuMemcpyDtoHAsync_v2(void *to, u64 from, size_t size, void *stream) { return enqueue(stream, (Op){.kind = 1, .to = to, .from = (void *)from, .size = size}); }
int cuMemcpyHtoD_v2(u64 to, const void *from, size_t size) { memcpy((void *)to, from, size); return sticky; }
int cuMemcpyDtoH_v2(void *to, u64 from, size_t size) { memcpy(to, (void *)from, size); return sticky; }
int cuMemsetD8Async(u64 to, unsigned char value, size_t size, void *stream) { return enqueue(stream, (Op){.kind = 2, .to = (void *)to, .value = value, .size = size}); }
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

/* ---------------------------------------------------------------- handles and descriptors */

typedef struct Handle { void *stream; int alive; } Handle;
typedef struct Attribute { int name, type; int64_t count; void *data; struct Attribute *next; } Attribute;
typedef struct Descriptor { int kind, finalised; Attribute *attributes; void *state; } Descriptor;
enum { ENGINE = 2, ENGINECFG = 3, ENGINEHEUR = 4, PLAN = 5, KNOB_CHOICE = 7, GRAPH = 15, DESCRIPTOR_TYPE = 15 };

size_t cudnnGetVersion(void) { return STUB_MAJOR >= 9 ? 91900 : 8907; }
const char *cudnnGetErrorString(int status) {
    if (status == 0) return "CUDNN_STATUS_SUCCESS";
    if (status == NOT_SUPPORTED) return "CUDNN_STATUS_NOT_SUPPORTED";
    if (status == INTERNAL) return "CUDNN_STATUS_INTERNAL_ERROR";
    if (status == BAD_PARAM) return "CUDNN_STATUS_BAD_PARAM";
    if (status == 1008) return "CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED";
    return "CUDNN_UNKNOWN_STATUS";
}
#if STUB_MAJOR >= 9
void cudnnGetLastErrorString(char *text, size_t size) { snprintf(text, size, "a reason"); }
#endif
int cudnnCreate(Handle **handle) {
    static int crowd = -1;
    if (getenv("STUB_CROWD") && crowd < 0) {
        crowd = open(getenv("STUB_CROWD"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (flock(crowd, LOCK_EX | LOCK_NB)) { close(crowd); crowd = -1; return INTERNAL; }
    }
    *handle = calloc(1, sizeof **handle); (*handle)->alive = 1;
    return 0;
}
int cudnnDestroy(Handle *handle) { handle->alive = 0; return 0; }
int cudnnSetStream(Handle *handle, void *stream) { handle->stream = stream; return 0; }

static int width(int type) {
    switch (type) {
    case 0: case 3: case 5: case 6: case 15: return 8; /* handle, int64, double, pointer, descriptor */
    case 2: return 1;
    default: return 4;
    }
}
static Attribute *find(Descriptor *d, int name) {
    for (Attribute *a = d ? d->attributes : NULL; a; a = a->next) if (a->name == name) return a;
    return NULL;
}
static void put(Descriptor *d, int name, int type, int64_t count, const void *data) {
    Attribute *a = calloc(1, sizeof *a);
    *a = (Attribute){name, type, count, malloc((size_t)(count * width(type)) + 1), d->attributes};
    memcpy(a->data, data, (size_t)(count * width(type)));
    d->attributes = a;
}
static Descriptor *inner(Descriptor *d, int name) { Attribute *a = find(d, name); return a ? *(Descriptor **)a->data : NULL; }
static int64_t number(Descriptor *d, int name) { Attribute *a = find(d, name); return a ? *(int64_t *)a->data : -1; }
static int engine_of(Descriptor *plan) { return (int)number(inner(inner(plan, 401), 300), 1301); }

int cudnnBackendCreateDescriptor(int kind, Descriptor **d) {
    if (kind == 41 && STUB_MAJOR < 9) return NOT_SUPPORTED;
    *d = calloc(1, sizeof **d);
    (*d)->kind = kind;
    return 0;
}
int cudnnBackendDestroyDescriptor(Descriptor *d) { d->finalised = -1; return 0; } /* kept: copies share attributes */
int cudnnBackendSetAttribute(Descriptor *d, int name, int type, int64_t count, const void *data) {
    if (d->finalised) return BAD_PARAM;
    if (type == DESCRIPTOR_TYPE) { /* keep copies, as the real one may: the caller destroys its own */
        Descriptor *copies[64];
        for (int64_t i = 0; i < count; i++) {
            Descriptor *from = ((Descriptor *const *)data)[i];
            if (from->finalised != 1) return BAD_PARAM;
            copies[i] = malloc(sizeof **copies);
            *copies[i] = *from;
        }
        put(d, name, type, count, copies);
    } else put(d, name, type, count, data);
    return 0;
}
static int refusal(Descriptor *d) {
    const char *graph = getenv("STUB_GRAPH");
    if (d->kind == GRAPH && graph) return atoi(graph);
    if (d->kind == ENGINE) {
        int64_t n = number(d, 1301);
        if (does((int)n, "abort-engine")) {
            fputs("Unable to load any of {libcublasLt.so.12}\n", stderr);
            abort();
        }
        if (does((int)n, "segv-engine")) { volatile int *nowhere = NULL; *nowhere = 1; }
        if (does((int)n, "unsupported")) return NOT_SUPPORTED;
        if (does((int)n, "internal")) return INTERNAL;
        return n < 0 || n >= ENGINES ? BAD_PARAM : 0;
    }
    if (d->kind == PLAN && does(engine_of(d), "segv-build")) { volatile int *nowhere = NULL; *nowhere = 1; }
    if (d->kind == PLAN && does(engine_of(d), "unsupported")) return NOT_SUPPORTED;
    if (d->kind == PLAN && does(engine_of(d), "internal")) return INTERNAL;
    return 0;
}
int cudnnBackendFinalize(Descriptor *d) {
    int status = refusal(d);
    if (!status) d->finalised = 1;
    return status;
}
static Descriptor *made(int kind) { Descriptor *d = calloc(1, sizeof *d); d->kind = kind; d->finalised = 1; return d; }
static void propose(Descriptor *config, Descriptor *graph, int64_t i) { 
    int64_t index = i % ENGINES, value = i / ENGINES;
    int knob = 2;
    Descriptor *engine = made(ENGINE), *choice = made(KNOB_CHOICE);
    put(engine, 1301, 3, 1, &index);
    put(engine, 1300, DESCRIPTOR_TYPE, 1, &graph);
    put(choice, 600, 9, 1, &knob);
    put(choice, 601, 3, 1, &value);
    put(config, 300, DESCRIPTOR_TYPE, 1, &engine);
    if (i >= ENGINES) put(config, 302, DESCRIPTOR_TYPE, 1, &choice);
    config->finalised = 1;
}
int cudnnBackendGetAttribute(Descriptor *d, int name, int type, int64_t wanted, int64_t *count, void *data) {
    int64_t engines = ENGINES, one = 1;
    if (d->finalised != 1) return BAD_PARAM;
    if (name == 802) { *(int64_t *)data = engines; *count = 1; return 0; }
    if (name == 402) { *(int64_t *)data = does(engine_of(d), "huge") ? 2LL << 30 : 1024; *count = 1; return 0; }
    if (name == 1305 || name == 1303) { /* engine 1 compiles, engine 2 uses tensor cores */
        *count = 0;
        if (number(d, 1301) == (name == 1305 ? 1 : 2) && wanted > 0) { *(int *)data = 0; *count = one; }
        return 0;
    }
    if (name == 202) {
        *count = getenv("STUB_PROPOSED") ? atoi(getenv("STUB_PROPOSED")) : 14;
        for (int64_t i = 0; i < wanted && i < *count; i++) propose(((Descriptor **)data)[i], inner(d, 201), i);
        return 0;
    }
    Attribute *a = find(d, name);
    if (!a || (name == 302 && !wanted)) { *count = 0; return name == 302 ? 0 : BAD_PARAM; }
    if (a->type != type) return BAD_PARAM;
    *count = a->count;
    for (int64_t i = 0; i < wanted && i < a->count; i++) {
        if (type == DESCRIPTOR_TYPE) *((Descriptor **)data)[i] = *((Descriptor **)a->data)[i];
        else memcpy((char *)data + i * width(type), (char *)a->data + i * width(type), (size_t)width(type));
    }
    return 0;
}

/* ---------------------------------------------------------------- execution */

static void output_of(Descriptor *plan, Descriptor *pack, void **to, size_t *size) {
    static const int names[] = {753, 705, 710, 715, 1522, 2803};
    Attribute *ops = find(inner(inner(inner(plan, 401), 300), 1300), 801);
    Descriptor *last = ((Descriptor **)ops->data)[ops->count - 1], *tensor = NULL;
    for (unsigned i = 0; i < sizeof names / sizeof *names && !tensor; i++) tensor = inner(last, names[i]);
    Attribute *dims = find(tensor, 902), *uids = find(pack, 1000), *pointers = find(pack, 1001);
    static const int sizes[] = {4, 8, 2, 1, 4, 4, 1, 4, 32, 2};
    *size = (size_t)sizes[*(int *)find(tensor, 901)->data];
    for (int64_t i = 0; i < dims->count; i++) *size *= (size_t)((int64_t *)dims->data)[i];
    for (int64_t i = 0; i < uids->count; i++)
        if (((int64_t *)uids->data)[i] == number(tensor, 906)) *to = ((void **)pointers->data)[i];
}

int cudnnBackendExecute(Handle *handle, Descriptor *plan, Descriptor *pack) {
    static unsigned count;
    Handle *built = *(Handle **)find(plan, 400)->data;
    int engine = engine_of(plan);
    void *stream = handle->stream, *to = NULL;
    size_t size = 0;
    unsigned seed = 3;
    output_of(plan, pack, &to, &size);
    if (does(engine, "segv-run") || (does(engine, "segv-destroyed") && !built->alive)) { volatile int *nowhere = NULL; *nowhere = 1; }
    if (does(engine, "hang-run")) for (;;) pause();
    if (does(engine, "fault-run")) return enqueue(stream, (Op){.kind = 4}) ? 0 : 0;
    if (does(engine, "no-capture") && of(stream)->capturing) return NOT_SUPPORTED;
    if (does(engine, "plan-handle")) stream = built->stream;
    if (does(engine, "dead-handle") && !built->alive) return INTERNAL;
    if (does(engine, "default-stream")) stream = NULL;
    if (does(engine, "random") || (does(engine, "drift") && ++count > 2)) seed = ++count + 3;
    if (does(engine, "other-handle") && handle != built) seed = 4;
    if (does(engine, "bad-clone") && built->stream == &pool[2]) seed = 4;
    if (does(engine, "waits") && !of(stream)->capturing) cuStreamSynchronize(stream);
    if (does(engine, "waits-other") && !of(stream)->capturing)
        for (int i = 1; i < streams_used; i++) if (&pool[i] != stream) cuStreamSynchronize(&pool[i]);
    if (does(engine, "race") || does(engine, "segv-shared")) {
        plan->state = to;
        usleep(300);
        if (does(engine, "segv-shared") && to != plan->state) raise(SIGSEGV);
        to = plan->state;
    }
    if (does(engine, "blind") && of(stream)->capturing) { /* stream 2 of the pool belongs to the given handle */
        stream = &pool[2];
    }
    if (does(engine, "split")) enqueue(built->stream, (Op){.kind = 0, .to = to, .size = size / 2, .value = seed});
    enqueue(stream, (Op){.kind = 0, .to = to, .size = does(engine, "silent") ? 0 : size, .value = seed});
    return 0;
}
