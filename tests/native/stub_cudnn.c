/* A libcudnn for machines without a GPU: it answers what the environment tells it to (stub.h), and
 *
 * STUB_VERSION      is cudnnGetVersion (default: by STUB_MAJOR at build, 8907 or 91900)
 * STUB_LAST_ERROR   is the text of cudnnGetLastErrorString (major 9)
 * STUB_STATUS=wrong:1 makes one value of the convolution wrong
 */
#include "stub.h"

#ifndef STUB_MAJOR
#define STUB_MAJOR 9
#endif

static int answer(const char *function) {
    misbehave(function);
    const char *status = setting("STUB_STATUS", function);
    return status ? atoi(status) : 0;
}

#define HANDLE_MEMORY (1 << 20) /* of device memory, a handle */
#define BY_MAJOR(eight, nine) (STUB_MAJOR == 8 ? (eight) : (nine))

struct handle { void *context, *stream; };

/* A function of the stub libcuda in this process; NULL when another libcuda, or none, is loaded. */
static void *cuda(const char *name) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return library ? dlsym(library, name) : NULL;
}
#define CUDA(name) ((int (*)())cuda(name))

size_t cudnnGetVersion(void) {
    misbehave("cudnnGetVersion");
    const char *version = getenv("STUB_VERSION");
    return version ? (size_t)atol(version) : STUB_MAJOR == 8 ? 8907 : 91900;
}
size_t cudnnGetCudartVersion(void) { misbehave("cudnnGetCudartVersion"); return STUB_MAJOR == 8 ? 12020 : 13000; }

const char *cudnnGetErrorString(int status) {
    switch (status) {
    case 0: return "CUDNN_STATUS_SUCCESS";
#if STUB_MAJOR == 8
    case 1: return "CUDNN_STATUS_NOT_INITIALIZED";
    case 2: return "CUDNN_STATUS_ALLOC_FAILED";
    case 3: return "CUDNN_STATUS_BAD_PARAM";
    case 4: return "CUDNN_STATUS_INTERNAL_ERROR";
    case 7: return "CUDNN_STATUS_MAPPING_ERROR";
#else
    case 1001: return "CUDNN_STATUS_NOT_INITIALIZED";
    case 2000: return "CUDNN_STATUS_BAD_PARAM";
    case 2007: return "CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH";
    case 4000: return "CUDNN_STATUS_INTERNAL_ERROR";
    case 4004: return "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED";
#endif
    default: return "CUDNN_UNKNOWN_STATUS";
    }
}
#if STUB_MAJOR != 8
void cudnnGetLastErrorString(char *text, size_t size) {
    const char *last = getenv("STUB_LAST_ERROR");
    snprintf(text, size, "%s", last ? last : "");
}
#endif

int cudnnCreate(struct handle **handle) {
    int status = answer("cudnnCreate");
    *handle = NULL;
    if (status) return status;
    int trouble = cuda("stubCreateTrouble") ? CUDA("stubCreateTrouble")() : 100;
    if (trouble == 100) return BY_MAJOR(1, 1001);
    if (trouble == 901) return BY_MAJOR(2, 4004);
    if (trouble) return BY_MAJOR(4, 4000);
    *handle = calloc(1, sizeof **handle);
    CUDA("cuCtxGetCurrent")(&(*handle)->context);
    CUDA("stubTake")((long)HANDLE_MEMORY);
    return 0;
}
int cudnnDestroy(struct handle *handle) {
    if (handle) handle->context = NULL; /* stays readable: the next cudnnSetStream finds nothing in it */
    if (handle && cuda("stubTake")) CUDA("stubTake")((long)-HANDLE_MEMORY);
    return answer("cudnnDestroy");
}
int cudnnSetStream(struct handle *handle, void *stream) {
    if (!handle) return BY_MAJOR(3, 2000);
    int status = answer("cudnnSetStream");
    if (status) return status;
    if (!handle->context || CUDA("stubStreamTrouble")(stream, handle->context)) return BY_MAJOR(7, 2007);
    handle->stream = stream;
    return 0;
}
int cudnnGetStream(struct handle *handle, void **stream) {
    if (!handle) return BY_MAJOR(3, 2000);
    *stream = handle->stream;
    return answer("cudnnGetStream");
}
int cudnnGetProperty(int which, int *value) { *value = which == 0 ? STUB_MAJOR : 0; return answer("cudnnGetProperty"); }
#define DESCRIPTOR(name) \
    int cudnnCreate##name##Descriptor(void **d) { static int one; *d = &one; return answer("cudnnCreate" #name "Descriptor"); } \
    int cudnnDestroy##name##Descriptor(void *d) { (void)d; return answer("cudnnDestroy" #name "Descriptor"); }
DESCRIPTOR(Tensor)
DESCRIPTOR(Filter)
DESCRIPTOR(Convolution)
int cudnnSetTensor4dDescriptor(void *d, int f, int t, int n, int c, int h, int w) { (void)d; (void)f; (void)t; (void)n; (void)c; (void)h; (void)w; return answer("cudnnSetTensor4dDescriptor"); }
int cudnnSetFilter4dDescriptor(void *d, int t, int f, int k, int c, int h, int w) { (void)d; (void)t; (void)f; (void)k; (void)c; (void)h; (void)w; return answer("cudnnSetFilter4dDescriptor"); }
int cudnnSetConvolution2dDescriptor(void *d, int a, int b, int c, int e, int f, int g, int m, int t) { (void)d; (void)a; (void)b; (void)c; (void)e; (void)f; (void)g; (void)m; (void)t; return answer("cudnnSetConvolution2dDescriptor"); }
int cudnnConvolutionForward(void *h, const void *alpha, void *xd, const float *x, void *wd, const float *w, void *cd, int algorithm, void *space, size_t size, const void *beta, void *yd, float *y) {
    (void)h; (void)alpha; (void)xd; (void)wd; (void)cd; (void)algorithm; (void)space; (void)size; (void)beta; (void)yd;
    int status = answer("cudnnConvolutionForward");
    if (status) return status;
    /* "Device" memory is the stub libcuda's: plain memory. 1x8x16x16 by 8x8x3x3, cross-correlation, padding 1. */
    int off = setting("STUB_STATUS", "wrong") != NULL;
    for (int k = 0; k < 8; k++)
        for (int i = 0; i < 16; i++)
            for (int j = 0; j < 16; j++) {
                float sum = 0;
                for (int c = 0; c < 8; c++)
                    for (int r = 0; r < 3; r++)
                        for (int s = 0; s < 3; s++) {
                            int a = i + r - 1, b = j + s - 1;
                            if (a >= 0 && a < 16 && b >= 0 && b < 16)
                                sum += x[c * 256 + a * 16 + b] * w[((k * 8 + c) * 3 + r) * 3 + s];
                        }
                y[k * 256 + i * 16 + j] = sum + (off && k == 3 && i == 2 && j == 1);
            }
    return 0;
}
