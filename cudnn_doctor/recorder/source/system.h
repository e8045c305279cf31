/* System calls made directly, and the few functions that a C compiler may call by itself.
 *
 * Why no libc: ld.so puts an audit library into a namespace of its own. With a libc of its own there it would have a second
 * malloc and a second errno, would cost each short child about a millisecond, and would run on no glibc older than the one
 * it was built with. Without a libc it can do none of the program's state any harm: there is no errno that it could set, no
 * heap, no lock and no thread-local variable.
 */
#ifndef SYSTEM_H
#define SYSTEM_H
#include "abi.h"

typedef uintptr_t word;

#if defined(__x86_64__)
static inline long system_call(long number, word a, word b, word c, word d, word e, word f) {
    long result;
    register word r10 __asm__("r10") = d;
    register word r8 __asm__("r8") = e;
    register word r9 __asm__("r9") = f;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
    return result;
}
/* An address that no two living threads share: a thread's identity without a system call. */
static inline word thread_pointer(void) { word self; __asm__("mov %%fs:0, %0" : "=r"(self)); return self; }
#elif defined(__aarch64__)
static inline long system_call(long number, word a, word b, word c, word d, word e, word f) {
    register word x8 __asm__("x8") = (word)number;
    register word x0 __asm__("x0") = a;
    register word x1 __asm__("x1") = b;
    register word x2 __asm__("x2") = c;
    register word x3 __asm__("x3") = d;
    register word x4 __asm__("x4") = e;
    register word x5 __asm__("x5") = f;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return (long)x0;
}
static inline word thread_pointer(void) { word self; __asm__("mrs %0, tpidr_el0" : "=r"(self)); return self; }
#endif

#define SYSTEM(number, a, b, c, d, e, f) system_call(number, (word)(a), (word)(b), (word)(c), (word)(d), (word)(e), (word)(f))

/* The compiler turns loops and struct assignments into calls of these. */
void *memcpy(void *to, const void *from, size_t size) {
    volatile char *t = to;
    for (const char *f = from; size; size--) *t++ = *f++;
    return to;
}
void *memset(void *to, int value, size_t size) {
    volatile char *t = to;
    for (; size; size--) *t++ = (char)value;
    return to;
}

static int equal(const char *a, const char *b) { while (*a && *a == *b) a++, b++; return *a == *b; }
static int starts(const char *text, const char *start) { while (*start) if (*text++ != *start++) return 0; return 1; }
static const char *find_text(const char *text, const char *part) {
    for (; *text; text++) if (starts(text, part)) return text;
    return NULL;
}
/* Copies at most size - 1 characters; answers the end of the copy. */
static char *copy(char *to, const char *from, size_t size) {
    while (size > 1 && *from) *to++ = *from++, size--;
    *to = 0;
    return to;
}
static char *decimal(char *to, uint64_t number) {
    char digits[20];
    int n = 0;
    do digits[n++] = (char)('0' + number % 10); while (number /= 10);
    while (n) *to++ = digits[--n];
    *to = 0;
    return to;
}

static uint64_t nanoseconds(int clock) {
    struct { long seconds, nanoseconds; } now = {0, 0};
    SYSTEM(SYS_clock_gettime, clock, &now, 0, 0, 0, 0);
    return (uint64_t)now.seconds * 1000000000u + (uint64_t)now.nanoseconds;
}
static int32_t process_id(void) { return (int32_t)SYSTEM(SYS_getpid, 0, 0, 0, 0, 0, 0); }
static int32_t thread_id(void) { return (int32_t)SYSTEM(SYS_gettid, 0, 0, 0, 0, 0, 0); }

/* Reads this process's own memory through the kernel: an address that is not mapped gives 0 instead of a SIGSEGV. Every pointer
 * that is not certain (the program's stack, Python's frames) is followed this way only. No file is opened: a program that
 * closes all descriptors meanwhile meets nothing of ours. Where a sandbox forbids the call, nothing is read. */
static int read_memory(word address, void *to, size_t size) {
    struct { void *base; size_t size; } local = {to, size}, remote = {(void *)address, size};
    return SYSTEM(SYS_process_vm_readv, process_id(), &local, 1, &remote, 1, 0) == (long)size;
}
static word read_word(word address) { word value = 0; return read_memory(address, &value, sizeof value) ? value : 0; }
#endif
