/* The recorder: an audit library (LD_AUDIT, man 7 rtld-audit) that `cudnn-doctor run` lets the dynamic linker load into the program.
 *
 * ld.so tells an audit library of each library that it loads (la_objopen), and asks it of each function that one library is
 * bound to in another (la_symbind64), by the PLT or by dlsym. The answer is the address that the caller gets: for the functions
 * listed in functions.h, a small function here that makes the real call and answers its result. The CUDA runtime asks the driver
 * itself (cuGetProcAddress); those answers are replaced in the same way.
 *
 * glibc before 2.35: libraries that dlopen binds at once (RTLD_NOW, as Python loads its extension modules) are asked about only for what
 * they find by dlsym or cuGetProcAddress: of PyTorch the contexts and streams are seen, the cuDNN handles are not. And each call by a
 * lazily bound PLT goes through the linker's slow path, 20 ns, whatever an audit library wants (glibc bug 15533; tried on Debian 11).
 *
 * Nothing happens where something is not as expected: no folder given, no file that can be made, an unknown library: then each caller
 * gets the real address, as without us. What is written, and when, is in file.h and calls.h.
 */
#include "calls.h"

#define EXPORT __attribute__((visibility("default")))

static word follow(const char *name, word real, int module);

static int call_cuGetProcAddress(struct target *t, struct place place, A6) {
    (void)place;
    int status = REAL(t, V6);
    /* `a` is the base name (cuCtxCreate); which version the driver chose shows in nothing but the address, and needs not be known */
    if (!status && a && b && *(word *)b) *(word *)b = follow((const char *)a, *(word *)b, t->module);
    return status;
}

/* --- the functions that callers get: one for each copy of each function, since an address says which copy was meant --- */

#define PLACE ((struct place){(word)__builtin_return_address(0), (word)__builtin_frame_address(0)})
#define COPIES_OF(MAKE, ...) MAKE(0, __VA_ARGS__) MAKE(1, __VA_ARGS__) MAKE(2, __VA_ARGS__) MAKE(3, __VA_ARGS__)

#define MAKE_S(n, name) static int name##_##n(A6) { return call_##name(&targets[F_##name][n], PLACE, V6); }
#define MAKE_W(n, words, name, stream, flags) \
    static int name##_##n(A##words) { \
        struct target *target = &targets[F_##name][n]; \
        struct use use = {NULL, {NULL, 0}}; \
        if ((flags) & BY_HANDLE) use = enter(target, PLACE, a); \
        int status = ((int (*)(A##words))target->real)(V##words); \
        if ((flags) & BY_HANDLE) leave(use, status); \
        if (__builtin_expect(status != 0, 0)) failed(target, status, PLACE, (const word[]){V##words}); \
        return status; \
    }
#define ALL_S(name) COPIES_OF(MAKE_S, name)
#define ALL_P(name, stream, flags) COPIES_OF(MAKE_W, 6, name, stream, flags)
#define ALL_W(words, name, stream, flags) COPIES_OF(MAKE_W, words, name, stream, flags)
FOLLOWED(ALL_S)
PLAIN(ALL_P)
WIDE(ALL_W)

/* A switch, not a table: each address in a table is a relocation, which every short child would pay for. */
#define CASE(n, name) case F_##name * COPIES + n: return (word)name##_##n;
#define CASES_S(name) COPIES_OF(CASE, name)
#define CASES_P(name, stream, flags) COPIES_OF(CASE, name)
#define CASES_W(words, name, stream, flags) COPIES_OF(CASE, name)
#ifndef __clang__
__attribute__((optimize("no-tree-switch-conversion"))) /* gcc would make the table after all */
#endif
static word wrapper(unsigned f, unsigned n) {
    switch (f * COPIES + n) {
        FOLLOWED(CASES_S)
        PLAIN(CASES_P)
        WIDE(CASES_W)
    }
    return 0;
}

/* "cuCtxCreate_v4", "cuStreamSynchronize_ptsz" and what cuGetProcAddress calls by the base name are one function here. */
static int is_function(const char *symbol, const char *name) {
    while (*name) if (*symbol++ != *name++) return 0;
    if (starts(symbol, "_v") && symbol[2] >= '1' && symbol[2] <= '9' && !symbol[3]) return 1;
    if (starts(symbol, "_v") && symbol[2] >= '1' && symbol[2] <= '9') symbol += 3;
    return !*symbol || equal(symbol, "_ptsz") || equal(symbol, "_ptds");
}
/* The address that the caller gets instead of `real`. */
static word follow(const char *name, word real, int module) {
    if (!real || name[0] != 'c' || name[1] != 'u') return real;
    for (unsigned f = 0; f < FUNCTIONS; f++) {
        if (!is_function(name, functions[f].name)) continue;
        for (unsigned n = 0; n < COPIES; n++) if (targets[f][n].real == real && !targets[f][n].closed) return wrapper(f, n);
        for (unsigned n = 0; n < COPIES; n++) if (real == wrapper(f, n)) return real; /* asked through one of ours already */
        for (unsigned n = 0; n < COPIES; n++) {
            struct target *t = &targets[f][n];
            word free = 0;
            if (t->closed) __atomic_store_n(&t->real, 0, __ATOMIC_RELAXED);
            if (!__atomic_compare_exchange_n(&t->real, &free, real, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) continue;
            t->function = &functions[f];
            t->module = module;
            t->closed = 0;
            return wrapper(f, n);
        }
        return real; /* more copies than we have places for */
    }
    return real;
}

/* --- what ld.so calls --- */

/* glibc gives constructors of shared objects the program's arguments and environment. The folder is copied: the program may
 * change its environment later. */
static __attribute__((constructor)) void remember_folder(int count, char **arguments, char **environment) {
    (void)count;
    (void)arguments;
    for (; environment && *environment; environment++)
        if (starts(*environment, "CUDNN_DOCTOR_EVENTS=/")) copy(folder, *environment + 20, sizeof folder);
}

EXPORT unsigned la_version(unsigned version) {
    audit_version = version;
    return folder[0] ? version < 2 ? version : 2 : 0; /* 0: ld.so unloads us without a word */
}

EXPORT unsigned la_objopen(struct link_map *map, long space, uintptr_t *cookie) {
    (void)space;
    enum group group = group_of(map->l_name);
    *cookie = 0;
    if (group != OTHER) open_file();
    unsigned index = module_count; /* ld.so holds its lock: nobody else is here */
    for (unsigned i = 0; i < module_count && index == MODULES; i++) if (!modules[i].map) index = i;
    if (index < MODULES) {
        struct module *module = &modules[index];
        module->start = module->end = 0;
        module->group = group;
        module->named = 0;
        __atomic_store_n(&module->map, map, __ATOMIC_RELEASE);
        *cookie = index + 1;
        if (index == module_count) __atomic_store_n(&module_count, index + 1, __ATOMIC_RELEASE);
        if (group != OTHER && file) name_module(index);
    }
    return group != OTHER && file && *cookie ? LA_FLG_BINDTO | LA_FLG_BINDFROM : LA_FLG_BINDFROM;
}

EXPORT unsigned la_objclose(uintptr_t *cookie) {
    if (!*cookie) return 0;
    int index = (int)*cookie - 1;
    struct module *module = &modules[index];
    if (module->group != OTHER && file) {
        struct event *event = begin(MODULE_CLOSED, 0);
        event->module = (uint16_t)index;
        event->field[1] = module->group;
        copy(event->text, path_of(module), sizeof event->text);
        finish(event);
        for (unsigned f = 0; f < FUNCTIONS; f++)
            for (unsigned n = 0; n < COPIES; n++)
                if (targets[f][n].real && targets[f][n].module == index) targets[f][n].closed = 1;
    }
    __atomic_store_n(&module->map, NULL, __ATOMIC_RELEASE);
    return 0;
}

EXPORT uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned number, uintptr_t *from, uintptr_t *to, unsigned *flags, const char *name) {
    (void)number;
    (void)flags;
    word real = symbol->st_value;
    if (!file || !*to) return real;
    enum group user = *from ? modules[*from - 1].group : OTHER;
    if (user == modules[*to - 1].group) return real; /* among the parts of one library (libcudnn.so.9 and libcudnn_graph.so.9) */
    return follow(name, real, (int)*to - 1);
}
