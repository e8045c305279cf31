/* Of Linux's and glibc's headers only what is used here, so that the compiler alone is enough to build: system calls (Linux,
 * arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h), ELF (man 5 elf), the linker's interface to audit libraries
 * (man 7 rtld-audit, glibc elf/link.h). All of these are fixed for ever: programs are compiled against them. */
#ifndef ABI_H
#define ABI_H
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
enum {
    SYS_close = 3, SYS_mmap = 9, SYS_pwrite64 = 18, SYS_getpid = 39, SYS_getppid = 110, SYS_prctl = 157, SYS_gettid = 186, SYS_clock_gettime = 228,
    SYS_openat = 257, SYS_unlinkat = 263, SYS_readlinkat = 267, SYS_fallocate = 285, SYS_prlimit64 = 302, SYS_process_vm_readv = 310,
};
enum { MACHINE = 62 /* EM_X86_64 */, O_NOFOLLOW = 0400000 };
#elif defined(__aarch64__)
enum {
    SYS_unlinkat = 35, SYS_fallocate = 47, SYS_openat = 56, SYS_close = 57, SYS_pwrite64 = 68, SYS_readlinkat = 78, SYS_clock_gettime = 113, SYS_prctl = 167,
    SYS_getpid = 172, SYS_getppid = 173, SYS_gettid = 178, SYS_mmap = 222, SYS_prlimit64 = 261, SYS_process_vm_readv = 270,
};
enum { MACHINE = 183 /* EM_AARCH64 */, O_NOFOLLOW = 0100000 };
#else
#error "the recorder knows x86-64 and aarch64"
#endif
enum { AT_FDCWD = -100, O_RDWR = 2, O_CREAT = 0100, O_EXCL = 0200, O_CLOEXEC = 02000000 };
enum { PROT_READ = 1, PROT_WRITE = 2, MAP_SHARED = 1, CLOCK_REALTIME = 0, CLOCK_MONOTONIC = 1, RLIMIT_FSIZE = 1, PR_GET_NAME = 16, EEXIST = 17 };

enum { DT_NULL = 0, DT_HASH = 4, DT_STRTAB = 5, DT_SYMTAB = 6, DT_GNU_HASH = 0x6ffffef5, PT_LOAD = 1 };
typedef struct { int64_t d_tag; union { uint64_t d_val, d_ptr; } d_un; } Elf64_Dyn;
typedef struct { uint32_t st_name; unsigned char st_info, st_other; uint16_t st_shndx; uint64_t st_value, st_size; } Elf64_Sym;
typedef struct { uint32_t p_type, p_flags; uint64_t p_offset, p_vaddr, p_paddr, p_filesz, p_memsz, p_align; } Elf64_Phdr;
typedef struct {
    unsigned char e_ident[16];
    uint16_t e_type, e_machine;
    uint32_t e_version;
    uint64_t e_entry, e_phoff, e_shoff;
    uint32_t e_flags;
    uint16_t e_ehsize, e_phentsize, e_phnum, e_shentsize, e_shnum, e_shstrndx;
} Elf64_Ehdr;

struct link_map { uint64_t l_addr; char *l_name; Elf64_Dyn *l_ld; struct link_map *l_next, *l_prev; };
enum { LA_FLG_BINDTO = 1, LA_FLG_BINDFROM = 2 };
#endif
