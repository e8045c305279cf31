/* Where a call came from: the C frames and the Python lines of the thread that makes it. */
#ifndef STACK_H
#define STACK_H
#include "python.h"

enum { SCAN = 4096, PIECE = 512, STACKS_AT_ONCE = 1024, STACK_EVERY = 50000000 /* ns */ };

/* A return address has a call instruction before it. */
static int after_call(word address) {
    unsigned char b[7];
    if (!read_memory(address - 7, b, sizeof b)) return 0;
#if defined(__x86_64__)
    static const unsigned char at[] = {0, 1, 3, 4, 5}; /* call r/m64 (ff /2) is 2, 3, 4, 6 or 7 bytes long */
    for (unsigned i = 0; i < sizeof at; i++) if (b[at[i]] == 0xff && (b[at[i] + 1] & 0x38) == 0x10) return 1;
    return b[2] == 0xe8; /* call rel32 */
#else
    uint32_t instruction = b[3] | b[4] << 8 | b[5] << 16 | (uint32_t)b[6] << 24;
    return instruction >> 26 == 0x25 || (instruction & 0xfffffc1f) == 0xd63f0000; /* bl; blr */
#endif
}
static uint64_t native_frame(word address, int index) {
    if (index < 0) return address & 0xffffffffffff;
    name_module((unsigned)index);
    word base = modules[index].map ? modules[index].map->l_addr : 0;
    return (uint64_t)(index + 1) << 48 | ((address - base) & 0xffffffffffff);
}

/* CUDA's and cuDNN's libraries have no frame pointers, and calling the program's unwinder could take locks or allocate. The caller is
 * certain; the rest are those words on the stack that point behind a call instruction: some may be left over from earlier calls. */
static void take_native(struct event *event, word caller, word stack) {
    word piece[PIECE / sizeof(word)];
    event->native[0] = native_frame(caller, module_at(caller));
    event->natives = event->exact = 1;
    word last = caller;
    for (word at = stack & ~(word)7; at < stack + SCAN && event->natives < NATIVE; at += PIECE) {
        if (!read_memory(at, piece, PIECE)) return;
        for (unsigned i = 0; i < PIECE / sizeof(word) && event->natives < NATIVE; i++) {
            word address = piece[i];
            if (address < 0x10000 || address >> 47 || address == caller || address == last) continue;
            int index = module_at(address);
            if (index < 0 || !after_call(address)) continue;
            event->native[event->natives++] = native_frame(address, index);
            last = address;
        }
    }
}

/* A stack costs about 50 microseconds: 1,024 are free, then 20 a second, so that a loop of rare events stays cheap. */
static void take_stack(struct event *event, word caller, word stack, int always) {
    static uint32_t taken;
    uint64_t allowed = STACKS_AT_ONCE + (event->at - file->monotonic) / STACK_EVERY;
    event->why = NOT_TAKEN;
    if (!always && __atomic_load_n(&taken, __ATOMIC_RELAXED) >= allowed) return;
    __atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED);
    take_native(event, caller, stack);
    take_python(event);
}
#endif
