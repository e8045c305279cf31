/* The floor of the live check: the driver and cuDNN calls that it makes, without Python around them.
 *
 *   cc -std=gnu17 -O2 -o floor tests/bench/floor.c -ldl
 *   ./floor LIBCUDNN          up to cudnnSetStream
 *   ./floor LIBCUDNN conv     and a convolution of ones (fp32, 8 channels of 16x16, 3x3 filter) on that stream
 *
 * Prints the milliseconds of each stage as one line of JSON; exit code 0 when every call succeeded and the convolution
 * gave 8 * 9 = 72 inside the border. Serves cuDNN 7 to 9.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NON_BLOCKING = 1, NCHW = 0, FLOAT = 0, CONVOLUTION = 0, IMPLICIT_GEMM = 0 };
enum { CHANNELS = 8, SIDE = 16, TAPS = 9, IMAGE = CHANNELS * SIDE * SIDE, FILTER = CHANNELS * CHANNELS * TAPS };

typedef unsigned long long address;
typedef int (*call)();

static void *driver, *cudnn;
static int failures;
static float ones[IMAGE];

static call find(void *library, const char *name) {
    call found = (call)dlsym(library, name);
    if (!found) fprintf(stderr, "no %s\n", name), exit(1);
    return found;
}

static void check(int status, const char *name) {
    if (status) fprintf(stderr, "%s: %d\n", name, status), failures++;
}
#define CU(name, ...) check(find(driver, name)(__VA_ARGS__), name)
#define DNN(name, ...) check(find(cudnn, name)(__VA_ARGS__), name)

static void stage(const char *name) {
    static double first, last;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double ms = now.tv_sec * 1e3 + now.tv_nsec / 1e6;
    if (!name) first = last = ms;
    else if (!strcmp(name, "total")) printf("\"total\": %.1f}\n", ms - first);
    else printf("%s\"%s\": %.1f, ", last == first ? "{" : "", name, ms - last), last = ms;
}

static void convolve(void *handle, void *stream) {
    void *x, *y, *w, *convolution;
    DNN("cudnnCreateTensorDescriptor", &x);
    DNN("cudnnCreateTensorDescriptor", &y);
    DNN("cudnnCreateFilterDescriptor", &w);
    DNN("cudnnCreateConvolutionDescriptor", &convolution);
    DNN("cudnnSetTensor4dDescriptor", x, NCHW, FLOAT, 1, CHANNELS, SIDE, SIDE);
    DNN("cudnnSetTensor4dDescriptor", y, NCHW, FLOAT, 1, CHANNELS, SIDE, SIDE);
    DNN("cudnnSetFilter4dDescriptor", w, FLOAT, NCHW, CHANNELS, CHANNELS, 3, 3);
    DNN("cudnnSetConvolution2dDescriptor", convolution, 1, 1, 1, 1, 1, 1, CONVOLUTION, FLOAT);
    address input, filter, output;
    CU("cuMemAlloc_v2", &input, (size_t)4 * IMAGE);
    CU("cuMemAlloc_v2", &filter, (size_t)4 * FILTER);
    CU("cuMemAlloc_v2", &output, (size_t)4 * IMAGE);
    for (int i = 0; i < IMAGE; i++) ones[i] = 1;
    CU("cuMemcpyHtoDAsync_v2", input, ones, (size_t)4 * IMAGE, stream);
    CU("cuMemcpyHtoDAsync_v2", filter, ones, (size_t)4 * FILTER, stream);
    float one = 1, zero = 0, inside = 0;
    DNN("cudnnConvolutionForward", handle, &one, x, (void *)input, w, (void *)filter, convolution, IMPLICIT_GEMM, (void *)0,
        (size_t)0, &zero, y, (void *)output);
    CU("cuMemcpyDtoHAsync_v2", &inside, output + 4 * (SIDE + 1), sizeof inside, stream);
    CU("cuStreamSynchronize", stream);
    check(inside != CHANNELS * TAPS, "the convolution's value");
}

int main(int count, char **words) {
    if (count < 2) return fprintf(stderr, "usage: floor LIBCUDNN [conv]\n"), 2;
    stage(NULL);
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    cudnn = driver ? dlopen(words[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
    if (!cudnn) return fprintf(stderr, "%s\n", dlerror()), 1;
    stage("dlopen");
    CU("cuInit", 0);
    stage("cuInit");
    int device = 0;
    void *context, *stream, *handle;
    CU("cuDeviceGet", &device, 0);
    CU("cuDevicePrimaryCtxRetain", &context, device);
    CU("cuCtxSetCurrent", context);
    CU("cuStreamCreate", &stream, NON_BLOCKING);
    stage("context");
    DNN("cudnnCreate", &handle);
    stage("cudnnCreate");
    DNN("cudnnSetStream", handle, stream);
    stage("cudnnSetStream");
    if (count > 2) {
        convolve(handle, stream);
        stage("convolution");
    }
    stage("total");
    return failures != 0;
}
