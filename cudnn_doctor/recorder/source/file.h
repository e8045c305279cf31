/* The event file: what recorder/read.py reads. Little-endian, slots of 1024 bytes, slot 0 is the header.
 *
 * The file is mapped MAP_SHARED, so that what was written is there after SIGKILL, after the program closed all its descriptors,
 * changed its root or its user; a forked child writes into the same file. Its blocks are reserved before it is mapped: a full
 * disk means no recording, never a SIGBUS.
 *
 * Slots [1, KEPT) keep the decisive events and are never overwritten; then come FIRST slots for the first of the usual events
 * (streams, handles), and a ring with the last of them. Whatever finds its place full goes into the ring.
 */
#ifndef FILE_H
#define FILE_H
#include "system.h"

enum { SLOT = 1024, SLOTS = 1024, KEPT = 384, FIRST = 256, RING = SLOTS - KEPT - FIRST, NATIVE = 13, FORMAT = 1 };

enum kind { /* fields by number */
    MODULE = 1,        /* 0 base, 1 group (0: any other library, named for the frames); text: path */
    MODULE_CLOSED,     /* 1 group; text: path */
    CUDA_INITIALISED,
    CONTEXT_CREATED,   /* 0 context, 1 device, 2 how, 4 current */
    CONTEXT_RELEASED,  /* 0 context, 1 device */
    CONTEXT_ENDED,     /* 0 context, 1 device, 2 how, 5 created by, 9 streams, 10 handles that ended with it */
    STREAM_CREATED,    /* 0 stream, 3 its context */
    STREAM_ENDED,      /* 0 stream, 3 its context, 5 created by, 8 had been ended by */
    HANDLE_CREATED,    /* 0 handle, 2 its context */
    HANDLE_ENDED,      /* 0 handle, 3 its context, 5 created by, 8 had been ended by */
    STREAM_SET,        /* 0 handle, 1 stream, 2 handle's context, 3 stream's context, 4 current, 5 handle created by, 6 stream created by, 7 handle ended by, 8 stream ended by, 9 first failure */
    CALL_FAILED,       /* 0 handle, 1 stream, 4 current, 5 context ended by, 6 first failure, 7 handle ended by, 8 stream ended by, 9 requested, 10 free, 11 total */
    HANDLE_SHARED,     /* 0 handle, 1 the other thread's id, 2 at once, 5 created by */
    ENDED_USED,        /* as STREAM_SET: a call by a handle that has ended, or whose stream has */
    FORKED,            /* 0 parent, 1 cuInit had been called */
};
enum how { PRIMARY = 1, CREATED, GREEN, DESTROYED, RESET, RELEASED };
#define UNKNOWN UINT64_MAX /* a device, a size or an address that nobody knows */
#define BUSY UINT64_MAX
enum { RUNNING = INT32_MIN }; /* the status of a call that has not returned */

struct event {
    uint64_t sequence;  /* counts from 1, written last; BUSY while a thread writes; 0: never used */
    uint64_t at;        /* CLOCK_MONOTONIC, ns */
    uint32_t kind;
    int32_t pid, tid, status;
    uint32_t count;     /* how often the call failed in this way */
    uint16_t module, natives;   /* the library of the call; how many native frames */
    uint8_t python, why, exact, spare[5]; /* how many Python frames, else why none; the first native frame is certain */
    uint64_t field[12];
    char function[48];
    char thread[16];
    uint64_t native[NATIVE]; /* (module + 1) << 48 | offset; module 0: an address in no known library */
    char text[SLOT - 312];   /* a path; or Python frames, innermost first, each "file\0function\0line\0" */
};
_Static_assert(sizeof(struct event) == SLOT, "one event, one slot");

struct header {
    char magic[8];
    uint32_t format, slot, slots, kept, first;
    int32_t pid, parent;
    uint32_t audit; /* LAV_CURRENT of this ld.so: 1 before glibc 2.35 */
    uint64_t monotonic, wall; /* when the file was made, ns */
    uint64_t sequence;
    uint32_t kept_used, usual_used, unrecorded, machine;
    char program[512];
};

static char folder[512];
static unsigned audit_version;
static struct header *file; /* NULL: nothing is recorded */
static int32_t owner;       /* the process that wrote last */
static int initialised;     /* cuInit has succeeded */

static int reserve(int descriptor) {
    if (SYSTEM(SYS_fallocate, descriptor, 0, 0, SLOT * SLOTS, 0, 0) == 0) return 1;
    static const char zeros[SLOT]; /* a file system without fallocate: write every block */
    for (int i = 0; i < SLOTS; i++)
        if (SYSTEM(SYS_pwrite64, descriptor, zeros, SLOT, i * SLOT, 0, 0) != SLOT) return 0;
    return 1;
}

/* Makes the file, when the first CUDA library is loaded: a program without one costs no file. */
static void open_file(void) {
    char path[560];
    uint64_t limit[2] = {0, 0};
    static int tried;
    if (tried++ || !folder[0]) return;
    /* Above RLIMIT_FSIZE the kernel would send SIGXFSZ. */
    if (SYSTEM(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, limit, 0, 0) || limit[0] < SLOT * SLOTS) return;
    int descriptor = -1;
    for (int n = 0; n < 16 && descriptor < 0; n++) { /* another number after exec, or beside another pid namespace */
        char *end = copy(path, folder, sizeof folder);
        *end++ = '/';
        end = decimal(end, (uint64_t)process_id());
        *end++ = '-';
        copy(decimal(end, (uint64_t)n), ".events", 8);
        long made = SYSTEM(SYS_openat, AT_FDCWD, path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600, 0, 0);
        if (made < 0 && made != -EEXIST) return;
        descriptor = (int)made;
    }
    if (descriptor < 0) return;
    long map = reserve(descriptor) ? SYSTEM(SYS_mmap, 0, SLOT * SLOTS, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0) : -1;
    SYSTEM(SYS_close, descriptor, 0, 0, 0, 0, 0);
    if (map < 0 && map > -4096) {
        SYSTEM(SYS_unlinkat, AT_FDCWD, path, 0, 0, 0, 0);
        return;
    }
    struct header *made = (struct header *)map;
    made->format = FORMAT, made->slot = SLOT, made->slots = SLOTS, made->kept = KEPT, made->first = FIRST;
    made->pid = owner = process_id();
    made->parent = (int32_t)SYSTEM(SYS_getppid, 0, 0, 0, 0, 0, 0);
    made->audit = audit_version, made->machine = MACHINE;
    made->monotonic = nanoseconds(CLOCK_MONOTONIC), made->wall = nanoseconds(CLOCK_REALTIME);
    SYSTEM(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", made->program, sizeof made->program - 1, 0, 0);
    memcpy(made->magic, "cdrecord", 8);
    file = made;
}

/* A slot that is this thread's until finish(). One in which another thread is still writing (it may have been stopped in the middle,
 * while the ring went round) is left alone. */
static struct event *take_slot(int decisive) {
    static struct event scrap; /* for the case that every try failed: counted, not kept */
    struct event *slots = (struct event *)file;
    for (int tries = 0; tries < 64; tries++) {
        uint32_t kept = decisive && !tries ? __atomic_fetch_add(&file->kept_used, 1, __ATOMIC_RELAXED) : KEPT;
        uint32_t n = kept < KEPT - 1 ? 0 : __atomic_fetch_add(&file->usual_used, 1, __ATOMIC_RELAXED);
        struct event *slot = &slots[kept < KEPT - 1 ? 1 + kept : n < FIRST ? KEPT + n : KEPT + FIRST + (n - FIRST) % RING];
        uint64_t before = __atomic_load_n(&slot->sequence, __ATOMIC_RELAXED);
        if (before != BUSY && __atomic_compare_exchange_n(&slot->sequence, &before, BUSY, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return slot;
    }
    return &scrap;
}

static struct event *begin(enum kind kind, int decisive) {
    struct event *event = take_slot(decisive);
    memset(&event->at, 0, SLOT - sizeof event->sequence);
    event->kind = kind;
    event->at = nanoseconds(CLOCK_MONOTONIC);
    event->pid = process_id();
    event->tid = thread_id();
    SYSTEM(SYS_prctl, PR_GET_NAME, event->thread, 0, 0, 0, 0);
    return event;
}
/* Answers the event's number. */
static uint64_t finish(struct event *event) {
    uint64_t sequence = __atomic_add_fetch(&file->sequence, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&event->sequence, sequence, __ATOMIC_RELEASE);
    return sequence;
}

/* A forked child has this file, these tables and the parent's process number in `owner`. */
static void notice_fork(void) {
    int32_t now = process_id(), before = owner;
    if (now == before || !__atomic_compare_exchange_n(&owner, &before, now, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return;
    struct event *event = begin(FORKED, 1);
    event->field[0] = (uint64_t)before;
    event->field[1] = (uint64_t)initialised;
    finish(event);
}
#endif
