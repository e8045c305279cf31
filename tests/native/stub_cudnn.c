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

static struct { void *stream; } the_handle;

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
    case 3: return "CUDNN_STATUS_BAD_PARAM";
    case 4: return "CUDNN_STATUS_INTERNAL_ERROR";
    case 7: return "CUDNN_STATUS_MAPPING_ERROR";
#else
    case 1001: return "CUDNN_STATUS_NOT_INITIALIZED";
    case 2000: return "CUDNN_STATUS_BAD_PARAM";
    case 2007: return "CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH";
    case 4000: return "CUDNN_STATUS_INTERNAL_ERROR";
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

int cudnnCreate(void **handle) {
    int status = answer("cudnnCreate");
    *handle = status ? NULL : &the_handle;
    return status;
}
int cudnnDestroy(void *handle) { (void)handle; return answer("cudnnDestroy"); }
int cudnnSetStream(void *handle, void *stream) {
    if (!handle) return STUB_MAJOR == 8 ? 3 : 2000;
    int status = answer("cudnnSetStream");
    if (!status) the_handle.stream = stream;
    return status;
}
int cudnnGetStream(void *handle, void **stream) {
    if (!handle) return STUB_MAJOR == 8 ? 3 : 2000;
    *stream = the_handle.stream;
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
