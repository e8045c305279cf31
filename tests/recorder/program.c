/* A program for the recorder to watch: argv[1] names what it does, with the stub libraries.
 *
 * -DLINKED: calls by the PLT; -DBY_DRIVER: libcuda's functions by cuGetProcAddress, as the CUDA runtime asks for them; -DWITHIN: the
 * recorder is linked in and called as ld.so would, so that it can be built with sanitizers; else by dlsym.
 * It prints the statuses that it got, and "errno" when a call that is followed changed errno.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void *Any;
#ifdef LINKED
int cuInit(unsigned), cuDevicePrimaryCtxRetain(Any *, int), cuDevicePrimaryCtxReset_v2(int), cuDevicePrimaryCtxRelease_v2(int);
int cuCtxSetCurrent(Any), cuCtxCreate_v2(), cuCtxDestroy_v2(Any), cuStreamCreate(Any *, unsigned), cuStreamDestroy_v2(Any);
int cuMemAlloc_v2(unsigned long long *, size_t), cuCtxSynchronize(void);
int cudnnCreate(Any *), cudnnDestroy(Any), cudnnSetStream(Any, Any), cudnnConvolutionForward();
#define CUDA(name) name
#define CUDNN(name) name
static void load(const char *path) { (void)path; }
#else
static Any cuda, cudnn;
static void load(const char *path) {
    cuda = dlopen("libcuda.so.1", RTLD_NOW);
    cudnn = dlopen(path ? path : "libcudnn.so.9", RTLD_NOW | RTLD_GLOBAL);
    if (!cuda || !cudnn) { fprintf(stderr, "%s\n", dlerror()); exit(2); }
}
#ifdef WITHIN
#include <link.h>
unsigned la_version(unsigned), la_objopen(struct link_map *, Lmid_t, uintptr_t *);
uintptr_t la_symbind64(Elf64_Sym *, unsigned, uintptr_t *, uintptr_t *, unsigned *, const char *);
static uintptr_t cookie_cuda, cookie_cudnn;
static void tell_libraries(void) {
    struct link_map *map = dlopen(NULL, RTLD_NOW);
    if (!la_version(LAV_CURRENT)) exit(5);
    for (; map; map = map->l_next) {
        uintptr_t cookie = 0;
        la_objopen(map, LM_ID_BASE, &cookie);
        if (map == cuda) cookie_cuda = cookie;
        if (map == cudnn) cookie_cudnn = cookie;
    }
}
static Any within(Any library, uintptr_t *cookie, const char *name) {
    uintptr_t from = 0;
    unsigned flags = 0;
    Elf64_Sym symbol = {.st_value = (uintptr_t)dlsym(library, name)};
    return (Any)la_symbind64(&symbol, 0, &from, cookie, &flags, name);
}
#define CUDA(name) ((int (*)())within(cuda, &cookie_cuda, #name))
#define CUDNN(name) ((int (*)())within(cudnn, &cookie_cudnn, #name))
#elif defined BY_DRIVER
static Any by_driver(const char *name) {
    Any found = NULL;
    char base[64];
    int before = errno; /* the stub asks dlopen */
    snprintf(base, sizeof base, "%s", name);
    if (strstr(base, "_v2")) *strstr(base, "_v2") = 0;
    ((int (*)())dlsym(cuda, "cuGetProcAddress_v2"))(base, &found, 13000, 0ull, NULL);
    errno = before;
    return found;
}
#define CUDA(name) ((int (*)())by_driver(#name))
#else
#define CUDA(name) ((int (*)())dlsym(cuda, #name))
#endif
#ifndef CUDNN
#define CUDNN(name) ((int (*)())dlsym(cudnn, #name))
#endif
#endif

static void show(const char *call, int status) {
    printf("%s %d%s\n", call, status, errno == 77 ? "" : " errno");
    fflush(stdout);
    errno = 77;
}
#define SHOW(call, ...) show(#call, call(__VA_ARGS__))

static Any primary, handle, stream;
static void begin(void) {
    errno = 77;
    CUDA(cuInit)(0);
    CUDA(cuDevicePrimaryCtxRetain)(&primary, 0);
    CUDA(cuCtxSetCurrent)(primary);
    CUDNN(cudnnCreate)(&handle);
    CUDA(cuStreamCreate)(&stream, 1);
    show("cudnnSetStream", CUDNN(cudnnSetStream)(handle, stream));
}
static void *reset(void *unused) {
    errno = 77;
    show("cuDevicePrimaryCtxReset", CUDA(cuDevicePrimaryCtxReset_v2)(0));
    return unused;
}
static void *thread(void *unused) {
    Any own = NULL, s = NULL;
    CUDA(cuCtxSetCurrent)(primary);
    CUDNN(cudnnCreate)(&own);
    CUDA(cuStreamCreate)(&s, 1);
    if (own && s) CUDNN(cudnnSetStream)(own, s); /* else too many threads are here at once for the stub's memory */
    if (s) CUDA(cuStreamDestroy_v2)(s);
    if (own) CUDNN(cudnnDestroy)(own);
    return unused;
}
static void *convolve(void *unused) {
    CUDNN(cudnnConvolutionForward)(handle, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, (size_t)0, NULL, NULL, NULL);
    return unused;
}
static void in_threads(void *(*work)(void *), int count) {
    pthread_t *ids = malloc((size_t)count * sizeof *ids);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    for (int i = 0; i < count; i++)
        if (pthread_create(&ids[i], &small, work, NULL)) { printf("no thread %d\n", i); exit(3); }
    for (int i = 0; i < count; i++) pthread_join(ids[i], NULL);
    free(ids);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "healthy";
    Any other = NULL, second = NULL;
    load(NULL);
#ifdef WITHIN
    tell_libraries();
#endif
    if (!strcmp(what, "load")) return 0;
    begin();
    if (!strcmp(what, "foreign")) {
        CUDA(cuCtxCreate_v2)(&other, 0, 0, 0); /* v4 has one more */
        CUDA(cuStreamCreate)(&second, 1);
        show("cudnnSetStream", CUDNN(cudnnSetStream)(handle, second));
    } else if (!strcmp(what, "reset")) {
        in_threads(reset, 1);
        show("cudnnSetStream", CUDNN(cudnnSetStream)(handle, stream));
    } else if (!strcmp(what, "release")) {
        CUDA(cuDevicePrimaryCtxRetain)(&other, 0);
        show("cuDevicePrimaryCtxRelease", CUDA(cuDevicePrimaryCtxRelease_v2)(0));
        show("cuDevicePrimaryCtxRelease", CUDA(cuDevicePrimaryCtxRelease_v2)(0));
        show("cudnnSetStream", CUDNN(cudnnSetStream)(handle, stream));
    } else if (!strcmp(what, "stream-destroyed")) {
        CUDA(cuStreamDestroy_v2)(stream);
        show("cudnnSetStream", CUDNN(cudnnSetStream)(handle, stream));
        convolve(NULL);
    } else if (!strcmp(what, "handle-destroyed")) {
        CUDNN(cudnnDestroy)(handle);
        show("cudnnSetStream", CUDNN(cudnnSetStream)(handle, stream));
    } else if (!strcmp(what, "allocate")) {
        unsigned long long memory;
        for (int i = 0; i < 20; i++) show("cuMemAlloc", CUDA(cuMemAlloc_v2)(&memory, (size_t)1 << 30));
    } else if (!strcmp(what, "fork")) {
        if (!fork()) {
            show("cudnnSetStream", CUDNN(cudnnSetStream)(handle, stream));
            _exit(0);
        }
        wait(NULL);
        show("cudnnSetStream", CUDNN(cudnnSetStream)(handle, stream));
    } else if (!strcmp(what, "killed")) {
        raise(SIGKILL);
    } else if (!strcmp(what, "closed")) {
        for (int i = 3; i < 1024; i++) close(i);
        if (chdir("/")) return 4;
        clearenv();
        in_threads(reset, 1);
    } else if (!strcmp(what, "threads")) {
        in_threads(thread, 2000);
    } else if (!strcmp(what, "many")) {
        for (int i = 0; i < 5000; i++) CUDA(cuStreamCreate)(&second, 1), CUDA(cuStreamDestroy_v2)(second);
        in_threads(reset, 1);
    } else if (!strcmp(what, "shared")) {
        pthread_t id; /* STUB_DO lets the first thread hang inside the call */
        pthread_create(&id, NULL, convolve, NULL);
        usleep(300000);
        show("cudnnConvolutionForward", 0);
        pthread_create(&id, NULL, convolve, NULL);
        usleep(300000);
        _exit(0);
    } else if (!strcmp(what, "exec")) {
        execl(argv[0], argv[0], "foreign", NULL);
    }
    return 0;
}
