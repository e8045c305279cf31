// Prints each function whose argument words or stream are not as source/functions.h says. The calls are put in by the test.
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cstdio>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <type_traits>

template <class T> constexpr int words() { return std::is_floating_point_v<T> ? 0 : std::is_same_v<T, dim3> ? 2 : 1; }

template <class R, class... A> void show(const char *name, R (*)(A...), int want, bool wide, int stream) {
    int count = (0 + ... + words<A>()), floats = (0 + ... + int(std::is_floating_point_v<A>)), found = -1, at = 0;
    ((found = found < 0 && std::is_same_v<A, CUstream> ? at : found, at += words<A>()), ...);
    if (sizeof(R) != 4 || floats || (wide ? count != want : count > want)) std::printf("%s: %d words, %d floats\n", name, count, floats);
    if (found != stream) std::printf("%s: the stream is argument %d\n", name, found);
}

int main() {
    /* calls */
}
