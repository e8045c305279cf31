/* The libraries of the program, as ld.so reports them (la_objopen, la_objclose), and what can be looked up in one. */
#ifndef MODULES_H
#define MODULES_H
#include "file.h"

enum group { OTHER, CUDA, CUDART, CUDNN, CUBLAS, GROUPS };
enum { MODULES = 1024 };

struct module {
    struct link_map *map; /* NULL: closed, or not there yet */
    word start, end;      /* addresses; 0 until somebody asks */
    enum group group;
    int named;            /* its path is in the file */
};
static struct module modules[MODULES];
static unsigned module_count;

/* By the file's name: "libcudnn.so.9", "libcudnn_graph.so.9", "libcudart-d0da41ae.so.11.0" (a copy that auditwheel renamed). */
static enum group group_of(const char *path) {
    static const struct { char start[12]; enum group group; } known[] = {
        {"libcuda.so", CUDA}, {"libcuda-", CUDA}, {"libcudart", CUDART}, {"libcudnn", CUDNN}, {"libcublas", CUBLAS}};
    const char *name = path;
    for (const char *c = path; *c; c++) if (*c == '/') name = c + 1;
    for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
        if (starts(name, known[i].start) && find_text(name, ".so")) return known[i].group;
    return OTHER;
}

static const char *path_of(const struct module *module) {
    const char *path = module->map ? module->map->l_name : "";
    return *path ? path : file->program; /* ld.so gives the program itself no name */
}
static void name_module(unsigned index) {
    struct module *module = &modules[index];
    if (module->named) return;
    module->named = 1;
    struct event *event = begin(MODULE, 1);
    event->module = (uint16_t)index;
    event->field[0] = module->map ? module->map->l_addr : 0;
    event->field[1] = module->group;
    copy(event->text, path_of(module), sizeof event->text);
    finish(event);
}

/* The program headers lie behind the ELF header, which is at the load address (at 0x400000 in a program that is not PIE). */
static void measure(struct module *module) {
    word base = module->map->l_addr;
    Elf64_Ehdr head;
    Elf64_Phdr part;
    word at = base ? base : 0x400000, end = at + 1;
    if (read_memory(at, &head, sizeof head) && head.e_ident[0] == 0x7f && head.e_ident[1] == 'E' && head.e_phnum < 64)
        for (unsigned i = 0; i < head.e_phnum; i++)
            if (read_memory(at + head.e_phoff + i * sizeof part, &part, sizeof part) && part.p_type == PT_LOAD && base + part.p_vaddr + part.p_memsz > end)
                end = base + part.p_vaddr + part.p_memsz;
    module->start = at;
    __atomic_store_n(&module->end, end, __ATOMIC_RELEASE);
}
static int module_at(word address) { /* -1: in none */
    unsigned count = __atomic_load_n(&module_count, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < count; i++) {
        struct module *module = &modules[i];
        if (!module->map) continue;
        if (!__atomic_load_n(&module->end, __ATOMIC_ACQUIRE)) measure(module);
        if (address >= module->start && address < module->end) return (int)i;
    }
    return -1;
}

/* A symbol's address in one loaded library, from its own tables: what dlsym would say, but without calling into the program's
 * ld.so. 0: it has none. */
static word symbol_in(const struct link_map *map, const char *name) {
    const Elf64_Sym *symbols = NULL;
    const char *names = NULL;
    const uint32_t *gnu = NULL, *sysv = NULL;
    for (const Elf64_Dyn *d = map->l_ld; d && d->d_tag != DT_NULL; d++) {
        word at = d->d_un.d_ptr < map->l_addr ? d->d_un.d_ptr + map->l_addr : d->d_un.d_ptr; /* glibc has relocated most */
        if (d->d_tag == DT_SYMTAB) symbols = (const void *)at;
        if (d->d_tag == DT_STRTAB) names = (const void *)at;
        if (d->d_tag == DT_GNU_HASH) gnu = (const void *)at;
        if (d->d_tag == DT_HASH) sysv = (const void *)at;
    }
    if (!symbols || !names) return 0;
    if (gnu) {
        uint32_t hash = 5381, buckets = gnu[0], bias = gnu[1], bloom = gnu[2];
        for (const char *c = name; *c; c++) hash = hash * 33 + (unsigned char)*c;
        const uint32_t *bucket = gnu + 4 + bloom * (sizeof(word) / 4), *chain = bucket + buckets;
        uint32_t i = buckets ? bucket[hash % buckets] : 0;
        for (; i >= bias && i; i++) {
            uint32_t other = chain[i - bias];
            if ((other | 1) == (hash | 1) && symbols[i].st_shndx && equal(names + symbols[i].st_name, name)) return map->l_addr + symbols[i].st_value;
            if (other & 1) return 0;
        }
    } else if (sysv) {
        for (uint32_t i = 1; i < sysv[1]; i++)
            if (symbols[i].st_shndx && equal(names + symbols[i].st_name, name)) return map->l_addr + symbols[i].st_value;
    }
    return 0;
}
/* The same in the first loaded library of a group that has it. */
static word symbol_of(enum group group, const char *name) {
    unsigned count = __atomic_load_n(&module_count, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < count; i++) {
        struct link_map *map = modules[i].map;
        word found = map && modules[i].group == group ? symbol_in(map, name) : 0;
        if (found) return found;
    }
    return 0;
}
#endif
