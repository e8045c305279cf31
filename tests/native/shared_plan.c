/* The smallest program that shows what CD653 says: one execution plan of cuDNN's backend API, executed by two threads at the
 * same time, each with its own handle, stream, output and workspace, gives other bits than alone; two plans of the same
 * engine configuration, one for each thread, do not. Nothing but libcuda and libcudnn, opened at run time.
 *
 * Build: cc -O1 -o shared_plan shared_plan.c -ldl -lpthread
 * Run:   ./shared_plan LIBCUDNN [ROUNDS]      for each plan of the heuristics (convolution, fp16, NHWC, 8x64x32x32 by
 *                                             64x64x3x3): wrong outputs of 2*ROUNDS with a shared plan, with a plan each
 * Plans that fail outright (EXECUTION_FAILED) count as wrong. A crash or a hang is an answer, too: run it under `timeout`.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void *Any;
typedef unsigned long long Device;
static Any cuda, cudnn;
#define CUDA(name) ((int (*)())dlsym(cuda, name))
#define CUDNN(name) ((int (*)())dlsym(cudnn, name))
#define MUST(call) do { int s_ = (call); if (s_) { printf("%s: status %d\n", #call, s_); exit(2); } } while (0)

enum { HANDLE = 0, DATA_TYPE = 1, BOOLEAN = 2, INT64 = 3, FLOAT = 4, POINTER = 6, MODE = 7, HEUR = 8, DESC = 15 };
enum { X = 1, W = 2, Y = 3, ELEMENTS = 8 * 64 * 32 * 32, FILTER = 64 * 64 * 9, SPACE = 64 << 20, MOST = 64 };

static Any make(int kind) { Any d = 0; MUST(CUDNN("cudnnBackendCreateDescriptor")(kind, &d)); return d; }
static void set(Any d, int name, int type, int64_t n, const void *v) { MUST(CUDNN("cudnnBackendSetAttribute")(d, name, type, n, v)); }
static void finish(Any d) { MUST(CUDNN("cudnnBackendFinalize")(d)); }

static Any tensor(int64_t uid, int64_t n, int64_t c, int64_t h, int64_t w) {
    Any d = make(17);
    int half = 2;
    int64_t dims[] = {n, c, h, w}, strides[] = {c * h * w, 1, w * c, c}, alignment = 16;
    set(d, 901, DATA_TYPE, 1, &half);
    set(d, 902, INT64, 4, dims);
    set(d, 903, INT64, 4, strides);
    set(d, 906, INT64, 1, &uid);
    set(d, 900, INT64, 1, &alignment);
    finish(d);
    return d;
}

static Any graph(Any handle) {
    Any convolution = make(1), operation = make(10), g = make(15);
    Any x = tensor(X, 8, 64, 32, 32), w = tensor(W, 64, 64, 3, 3), y = tensor(Y, 8, 64, 32, 32);
    int64_t dims = 2, ones[] = {1, 1};
    int compute = 0, mode = 1;
    float one = 1, zero = 0;
    set(convolution, 106, INT64, 1, &dims);
    set(convolution, 100, DATA_TYPE, 1, &compute);
    set(convolution, 101, MODE, 1, &mode);
    for (int name = 102; name <= 105; name++) set(convolution, name, INT64, 2, ones);
    finish(convolution);
    set(operation, 702, DESC, 1, &convolution);
    set(operation, 704, DESC, 1, &x);
    set(operation, 703, DESC, 1, &w);
    set(operation, 705, DESC, 1, &y);
    set(operation, 700, FLOAT, 1, &one);
    set(operation, 701, FLOAT, 1, &zero);
    finish(operation);
    set(g, 800, HANDLE, 1, &handle);
    set(g, 801, DESC, 1, &operation);
    finish(g);
    return g;
}

typedef struct { Any handle, stream, plan, pack; Device y; const void *reference; int rounds, wrong; } Side;
static Any context;
static Device x, w;
static pthread_barrier_t start;

static void equip(Side *s) {
    Device space = 0;
    MUST(CUDA("cuStreamCreate")(&s->stream, 1));
    MUST(CUDNN("cudnnCreate")(&s->handle));
    MUST(CUDNN("cudnnSetStream")(s->handle, s->stream));
    MUST(CUDA("cuMemAlloc_v2")(&s->y, (size_t)ELEMENTS * 2));
    MUST(CUDA("cuMemAlloc_v2")(&space, (size_t)SPACE));
    int64_t uids[] = {X, W, Y};
    Device pointers[] = {x, w, s->y};
    s->pack = make(16);
    set(s->pack, 1000, INT64, 3, uids);
    set(s->pack, 1001, POINTER, 3, pointers);
    set(s->pack, 1003, POINTER, 1, &space);
    finish(s->pack);
}

static Any plan_of(Any handle, Any config) { /* 0 where the configuration cannot run here */
    Any plan = make(5);
    int64_t space = 0, n = 0;
    set(plan, 400, HANDLE, 1, &handle);
    set(plan, 401, DESC, 1, &config);
    if (CUDNN("cudnnBackendFinalize")(plan)) return 0;
    MUST(CUDNN("cudnnBackendGetAttribute")(plan, 402, INT64, (int64_t)1, &n, &space));
    return space <= SPACE ? plan : 0;
}

static int once(Side *s, void *out) { /* 0 when it ran */
    MUST(CUDA("cuMemsetD8Async")(s->y, (unsigned char)0xA5, (size_t)ELEMENTS * 2, s->stream));
    int status = CUDNN("cudnnBackendExecute")(s->handle, s->plan, s->pack);
    MUST(CUDA("cuStreamSynchronize")(s->stream));
    MUST(CUDA("cuMemcpyDtoH_v2")(out, s->y, (size_t)ELEMENTS * 2));
    return status;
}

static void *work(void *argument) {
    Side *s = argument;
    void *out = malloc((size_t)ELEMENTS * 2);
    MUST(CUDA("cuCtxSetCurrent")(context));
    pthread_barrier_wait(&start);
    s->wrong = 0;
    for (int i = 0; i < s->rounds; i++) s->wrong += once(s, out) || memcmp(out, s->reference, (size_t)ELEMENTS * 2);
    free(out);
    return NULL;
}

static int together(Side sides[2]) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, &sides[i]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return sides[0].wrong + sides[1].wrong;
}

int main(int argc, char **argv) {
    if (argc < 2) { fprintf(stderr, "usage: shared_plan LIBCUDNN [ROUNDS]\n"); return 2; }
    cuda = dlopen("libcuda.so.1", RTLD_NOW);
    cudnn = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
    if (!cuda || !cudnn) { fprintf(stderr, "%s\n", dlerror()); return 2; }
    setvbuf(stdout, NULL, _IONBF, 0);
    int device = 0, mode = 3 /* heuristic A */, plans = 0, bad = 0, bad_own = 0;
    MUST(CUDA("cuInit")(0) | CUDA("cuDeviceGet")(&device, 0) | CUDA("cuDevicePrimaryCtxRetain")(&context, device));
    MUST(CUDA("cuCtxSetCurrent")(context));
    MUST(CUDA("cuMemAlloc_v2")(&x, (size_t)ELEMENTS * 2) | CUDA("cuMemAlloc_v2")(&w, (size_t)FILTER * 2));
    unsigned short *host = malloc((size_t)ELEMENTS * 2);
    static const unsigned short value[] = {0, 0x3c00, 0xbc00, 0}; /* 0, 1, -1 in fp16: every sum is exact */
    for (int i = 0, r = 1; i < ELEMENTS; i++, r = r * 1103515245 + 12345) host[i] = value[(r >> 16) & 3];
    MUST(CUDA("cuMemcpyHtoD_v2")(x, host, (size_t)ELEMENTS * 2) | CUDA("cuMemcpyHtoD_v2")(w, host, (size_t)FILTER * 2));
    Side sides[2] = {{0}, {0}};
    pthread_barrier_init(&start, NULL, 2);
    void *reference = malloc((size_t)ELEMENTS * 2);
    for (int i = 0; i < 2; i++) {
        equip(&sides[i]);
        sides[i].reference = reference;
        sides[i].rounds = argc > 2 ? atoi(argv[2]) : 50;
    }
    Any g = graph(sides[0].handle), heuristic = make(4), configs[MOST];
    int64_t found = 0;
    set(heuristic, 201, DESC, 1, &g);
    set(heuristic, 200, HEUR, 1, &mode);
    finish(heuristic);
    for (int i = 0; i < MOST; i++) configs[i] = make(3);
    MUST(CUDNN("cudnnBackendGetAttribute")(heuristic, 202, DESC, (int64_t)MOST, &found, configs));
    printf("cuDNN %zu, %d rounds\n", ((size_t (*)(void))dlsym(cudnn, "cudnnGetVersion"))(), sides[0].rounds);
    for (int64_t c = 0; c < found && c < MOST; c++) {
        Any one = plan_of(sides[0].handle, configs[c]), two = one ? plan_of(sides[1].handle, configs[c]) : 0;
        if (!two) continue;
        sides[0].plan = one;
        if (once(&sides[0], reference)) continue;
        sides[1].plan = two;
        int own = together(sides);
        sides[1].plan = one;
        int shared = together(sides);
        printf("plan %d: wrong with a plan each %d, with a shared plan %d\n", (int)c, own, shared);
        plans++;
        bad += shared > 0;
        bad_own += own > 0;
    }
    printf("%d plans: shared, %d wrong; a plan each, %d wrong\n", plans, bad, bad_own);
    _exit(0);
}
