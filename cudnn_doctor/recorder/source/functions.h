/* Every function that is followed. S(name): by a handler of its own in recorder.c. The others are only asked for their status:
 * P(name, stream, flags) has at most six words of arguments; W<words>(...) has more, so the count must be right: fewer would cut
 * off arguments (tests/recorder counts them in NVIDIA's headers). `stream`: which argument is the stream, -1 for none.
 * Not here: queries that fail in healthy programs (cuCtxGetDevice, cuPointerGetAttribute, cudnnBackendGetAttribute).
 */
#ifndef FUNCTIONS_H
#define FUNCTIONS_H

#define FOLLOWED(S) \
    S(cuGetProcAddress) S(cuInit) S(cuCtxCreate) S(cuCtxDestroy) S(cuDevicePrimaryCtxRetain) S(cuDevicePrimaryCtxRelease) \
    S(cuDevicePrimaryCtxReset) S(cuGreenCtxCreate) S(cuGreenCtxDestroy) S(cuGreenCtxStreamCreate) S(cuStreamCreate) \
    S(cuStreamCreateWithPriority) S(cuStreamDestroy) S(cudaDeviceReset) S(cudnnCreate) S(cudnnDestroy) S(cudnnSetStream) \
    S(cublasCreate) S(cublasDestroy) S(cublasSetStream) S(cublasLtCreate) S(cublasLtDestroy)

enum { ALLOCATES = 1 /* the second argument is a size in bytes */, BY_HANDLE = 2 /* the first argument is a handle */ };

#define PLAIN(P) \
    P(cuDeviceGetCount, -1, 0) P(cuCtxSetCurrent, -1, 0) P(cuCtxPushCurrent, -1, 0) P(cuCtxSynchronize, -1, 0) \
    P(cuModuleLoadData, -1, 0) P(cuModuleLoadDataEx, -1, 0) P(cuModuleLoadFatBinary, -1, 0) P(cuLaunchKernelEx, -1, 0) \
    P(cuGraphInstantiate, -1, 0) P(cuGraphInstantiateWithFlags, -1, 0) P(cuGraphLaunch, 1, 0) \
    P(cuMemAlloc, -1, ALLOCATES) P(cuMemAllocManaged, -1, ALLOCATES) P(cuMemAllocHost, -1, ALLOCATES) P(cuMemHostAlloc, -1, ALLOCATES) \
    P(cuMemAllocAsync, 2, ALLOCATES) P(cuMemAllocFromPoolAsync, 3, ALLOCATES) P(cuMemCreate, -1, ALLOCATES) P(cuMemAllocPitch, -1, 0) \
    P(cuMemFree, -1, 0) P(cuMemFreeAsync, 1, 0) P(cuMemFreeHost, -1, 0) P(cuMemHostRegister, -1, 0) P(cuMemMap, -1, 0) P(cuMemSetAccess, -1, 0) \
    P(cuMemcpy, -1, 0) P(cuMemcpyAsync, 3, 0) P(cuMemcpyHtoD, -1, 0) P(cuMemcpyDtoH, -1, 0) P(cuMemcpyDtoD, -1, 0) P(cuMemcpyHtoDAsync, 3, 0) \
    P(cuMemcpyDtoHAsync, 3, 0) P(cuMemcpyDtoDAsync, 3, 0) P(cuMemcpy2DAsync, 1, 0) P(cuMemcpy3DAsync, 1, 0) P(cuMemcpyPeerAsync, 5, 0) \
    P(cuMemsetD8, -1, 0) P(cuMemsetD32, -1, 0) P(cuMemsetD8Async, 3, 0) P(cuMemsetD32Async, 3, 0) P(cuMemsetD2D32Async, 5, 0) \
    P(cuEventCreate, -1, 0) P(cuEventRecord, 1, 0) P(cuEventRecordWithFlags, 1, 0) P(cuEventSynchronize, -1, 0) P(cuEventQuery, -1, 0) \
    P(cuEventElapsedTime, -1, 0) P(cuEventDestroy, -1, 0) P(cuStreamSynchronize, 0, 0) P(cuStreamQuery, 0, 0) P(cuStreamWaitEvent, 0, 0) \
    P(cuStreamBeginCapture, 0, 0) P(cuStreamEndCapture, 0, 0) P(cuLaunchHostFunc, 0, 0) \
    P(cudaGetDevice, -1, 0) P(cudaGetDeviceCount, -1, 0) P(cudaGetLastError, -1, 0) P(cudaPeekAtLastError, -1, 0) P(cudaStreamIsCapturing, 0, 0) \
    P(cudaStreamCreateWithFlags, -1, 0) P(cudaStreamCreateWithPriority, -1, 0) P(cudaEventCreateWithFlags, -1, 0) P(cudaSetDevice, -1, 0) P(cudaDeviceSynchronize, -1, 0) P(cudaStreamSynchronize, 0, 0) P(cudaStreamQuery, 0, 0) P(cudaStreamWaitEvent, 0, 0) \
    P(cudaEventRecord, 1, 0) P(cudaEventSynchronize, -1, 0) P(cudaEventQuery, -1, 0) P(cudaLaunchKernelExC, -1, 0) P(cudaGraphLaunch, 1, 0) \
    P(cudaMalloc, -1, ALLOCATES) P(cudaMallocManaged, -1, ALLOCATES) P(cudaMallocHost, -1, ALLOCATES) P(cudaHostAlloc, -1, ALLOCATES) \
    P(cudaMallocAsync, 2, ALLOCATES) P(cudaMallocFromPoolAsync, 3, ALLOCATES) P(cudaFree, -1, 0) P(cudaFreeAsync, 1, 0) P(cudaMemcpy, -1, 0) \
    P(cudaMemcpyAsync, 4, 0) P(cudaMemset, -1, 0) P(cudaMemsetAsync, 3, 0) \
    P(cudnnBackendFinalize, -1, 0) P(cudnnBackendExecute, -1, BY_HANDLE) P(cublasSetWorkspace, -1, BY_HANDLE)

#define WIDE(W) \
    W(8, cuLibraryLoadData, -1, 0) W(8, cudaLaunchKernel, 7, 0) W(10, cuLaunchCooperativeKernel, 8, 0) W(11, cuLaunchKernel, 8, 0) \
    W(8, cudnnGetConvolutionForwardAlgorithm_v7, -1, BY_HANDLE) W(8, cudnnGetConvolutionBackwardDataAlgorithm_v7, -1, BY_HANDLE) \
    W(8, cudnnGetConvolutionBackwardFilterAlgorithm_v7, -1, BY_HANDLE) W(13, cudnnConvolutionForward, -1, BY_HANDLE) \
    W(13, cudnnConvolutionBackwardData, -1, BY_HANDLE) W(13, cudnnConvolutionBackwardFilter, -1, BY_HANDLE) \
    W(18, cudnnConvolutionBiasActivationForward, -1, BY_HANDLE) W(8, cudnnPoolingForward, -1, BY_HANDLE) W(12, cudnnPoolingBackward, -1, BY_HANDLE) \
    W(9, cudnnSoftmaxForward, -1, BY_HANDLE) W(8, cudnnActivationForward, -1, BY_HANDLE) W(7, cudnnAddTensor, -1, BY_HANDLE) \
    W(12, cudnnReduceTensor, -1, BY_HANDLE) W(7, cudnnTransformTensor, -1, BY_HANDLE) W(20, cudnnRNNForward, -1, BY_HANDLE) \
    W(22, cudnnRNNBackwardData_v8, -1, BY_HANDLE) W(16, cudnnRNNBackwardWeights_v8, -1, BY_HANDLE) W(13, cudnnCTCLoss_v8, -1, BY_HANDLE) \
    W(14, cublasSgemm, -1, BY_HANDLE) W(14, cublasDgemm, -1, BY_HANDLE) W(14, cublasHgemm, -1, BY_HANDLE) W(19, cublasGemmEx, -1, BY_HANDLE) \
    W(17, cublasSgemmEx, -1, BY_HANDLE) W(18, cublasSgemmStridedBatched, -1, BY_HANDLE) W(23, cublasGemmStridedBatchedEx, -1, BY_HANDLE) \
    W(20, cublasGemmBatchedEx, -1, BY_HANDLE) W(16, cublasLtMatmul, 15, 0)

#define A6 word a, word b, word c, word d, word e, word f
#define A7 A6, word g
#define A8 A7, word h
#define A9 A8, word i
#define A10 A9, word j
#define A11 A10, word k
#define A12 A11, word l
#define A13 A12, word m
#define A14 A13, word n
#define A16 A14, word o, word p
#define A17 A16, word q
#define A18 A17, word r
#define A19 A18, word s
#define A20 A19, word t
#define A21 A20, word u
#define A22 A21, word v
#define A23 A22, word w
#define V6 a, b, c, d, e, f
#define V7 V6, g
#define V8 V7, h
#define V9 V8, i
#define V10 V9, j
#define V11 V10, k
#define V12 V11, l
#define V13 V12, m
#define V14 V13, n
#define V16 V14, o, p
#define V17 V16, q
#define V18 V17, r
#define V19 V18, s
#define V20 V19, t
#define V21 V20, u
#define V22 V21, v
#define V23 V22, w
#endif
