/* What is recorded of each call. Every handler makes the real call, by the address that ld.so or the driver gave, exactly once and
 * with the same arguments, and answers its result. A call that ends or uses something is written down before it is made, with the status
 * RUNNING: if it crashes, the event is there. */
#ifndef CALLS_H
#define CALLS_H
#include "functions.h"
#include "objects.h"
#include "stack.h"

typedef int (*real6)(word, word, word, word, word, word);

struct function { char name[48]; int stream, flags; }; /* no pointer, no relocation */
/* One function of one library: two copies of libcudnn in a process have a target each, and so have the variants of a driver
 * function (cuStreamSynchronize and its _ptsz). */
struct target { word real; const struct function *function; int module, closed; };
struct place { word caller, stack; }; /* where the program called from */
enum { COPIES = 4 };

#define NUMBER_S(name) F_##name,
#define NUMBER_P(name, stream, flags) F_##name,
#define NUMBER_W(words, name, stream, flags) F_##name,
enum { FOLLOWED(NUMBER_S) PLAIN(NUMBER_P) WIDE(NUMBER_W) FUNCTIONS };
#define ROW_S(name) {#name, -1, 0},
#define ROW_P(name, stream, flags) {#name, stream, flags},
#define ROW_W(words, name, stream, flags) {#name, stream, flags},
static const struct function functions[] = {FOLLOWED(ROW_S) PLAIN(ROW_P) WIDE(ROW_W)};
static struct target targets[FUNCTIONS][COPIES];

#define REAL(t, ...) ((real6)(t)->real)(__VA_ARGS__)

/* --- questions to the driver: they change nothing, and are asked only where the answer cannot crash --- */

enum question { CURRENT, STREAM_CONTEXT, MEMORY, DEVICE, PRIMARY_STATE, OF_GREEN, QUESTIONS };
static int ask(enum question question, void *a, void *b, void *c) { /* -1: the driver has no such function */
    static const char names[][32] = {"cuCtxGetCurrent", "cuStreamGetCtx", "cuMemGetInfo_v2", "cuCtxGetDevice", "cuDevicePrimaryCtxGetState", "cuCtxFromGreenCtx"};
    static word found[QUESTIONS];
    word function = __atomic_load_n(&found[question], __ATOMIC_RELAXED);
    if (!function) __atomic_store_n(&found[question], function = symbol_of(CUDA, names[question]), __ATOMIC_RELAXED);
    return function ? ((int (*)(void *, void *, void *))function)(a, b, c) : -1;
}
static word current_context(void) {
    word context = 0;
    return ask(CURRENT, &context, NULL, NULL) ? 0 : context;
}
static int current_device(void) {
    int device = -1;
    return ask(DEVICE, &device, NULL, NULL) ? -1 : device;
}

/* --- events --- */

static struct event *event_of(enum kind kind, int decisive, const struct target *t, int status, struct place place) {
    notice_fork();
    if (t->module >= 0) name_module((unsigned)t->module);
    struct event *event = begin(kind, decisive);
    event->status = status;
    event->count = 1;
    event->module = (uint16_t)t->module;
    copy(event->function, t->function->name, sizeof event->function);
    take_stack(event, place.caller, place.stack, kind == CALL_FAILED || kind == CONTEXT_ENDED);
    return event;
}
static uint64_t ended(const struct object *o) { return o ? __atomic_load_n(&o->ended, __ATOMIC_RELAXED) : 0; }
static void describe_handle(struct event *event, const struct object *handle) {
    event->field[2] = handle ? handle->context : 0;
    event->field[5] = handle ? handle->created : 0;
    event->field[7] = ended(handle);
}

/* --- calls that fail --- */

static int first_failure = 1;

static struct failure { uint64_t key; struct event *event; uint64_t sequence; uint32_t count; } failures[256];
enum { NOT_READY = 600, ALLOCATIONS_WRITTEN = 8 };

static struct failure *failure_of(const struct target *t, int status) {
    uint64_t key = (uint64_t)(t - &targets[0][0] + 1) << 32 | (uint32_t)status, hash = key * 0x9e3779b97f4a7c15u >> 56;
    for (unsigned i = 0; i < 256; i++) {
        struct failure *f = &failures[(hash + i) % 256];
        uint64_t there = __atomic_load_n(&f->key, __ATOMIC_RELAXED);
        if (there == key || (!there && __atomic_compare_exchange_n(&f->key, &there, key, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) || there == key) return f;
    }
    return NULL;
}
/* The first failure of each function with each status; later ones are counted in that event. Of allocations the first eight. */
static __attribute__((noinline, cold)) void failed(const struct target *t, int status, struct place place, const word *arguments) {
    const struct function *function = t->function;
    int allocation = function->flags & ALLOCATES;
    if (status == NOT_READY && starts(function->name, "cu") && !starts(function->name, "cudnn")) return; /* an answer, not a failure */
    struct failure *failure = failure_of(t, status);
    uint32_t before = failure ? __atomic_fetch_add(&failure->count, 1, __ATOMIC_RELAXED) : 0;
    struct event *written = failure ? __atomic_load_n(&failure->event, __ATOMIC_ACQUIRE) : NULL;
    if (written && written->sequence == failure->sequence) __atomic_fetch_add(&written->count, 1, __ATOMIC_RELAXED);
    if (!failure || before >= (allocation ? ALLOCATIONS_WRITTEN : 1)) {
        if (!failure) __atomic_fetch_add(&file->unrecorded, 1, __ATOMIC_RELAXED);
        return;
    }
    struct event *event = event_of(CALL_FAILED, 1, t, status, place);
    word context = current_context();
    struct object *handle = function->flags & BY_HANDLE ? find_object(HANDLE, arguments[0]) : NULL;
    word stream = function->stream >= 0 ? arguments[function->stream] : handle ? handle->stream : 0;
    event->field[0] = function->flags & BY_HANDLE ? arguments[0] : UNKNOWN;
    event->field[1] = function->stream >= 0 || handle ? stream : UNKNOWN;
    describe_handle(event, handle);
    event->field[4] = context;
    event->field[5] = ended(find_object(CONTEXT, context));
    event->field[6] = (uint64_t)__atomic_exchange_n(&first_failure, 0, __ATOMIC_RELAXED);
    event->field[8] = ended(find_object(STREAM, stream));
    event->field[9] = allocation ? arguments[1] : UNKNOWN;
    event->field[10] = event->field[11] = UNKNOWN;
    uint64_t memory[2];
    if (allocation && !ask(MEMORY, &memory[0], &memory[1], NULL)) event->field[10] = memory[0], event->field[11] = memory[1];
    uint64_t sequence = finish(event);
    if (failure && !before) {
        failure->sequence = sequence;
        __atomic_store_n(&failure->event, event, __ATOMIC_RELEASE);
    }
}

/* The status of a call that was written down before it was made; its slot may have gone to a later event meanwhile. */
static void returned(struct event *event, uint64_t sequence, int status) {
    if (__atomic_load_n(&event->sequence, __ATOMIC_RELAXED) == sequence) __atomic_store_n(&event->status, status, __ATOMIC_RELAXED);
}

/* --- contexts --- */

static int call_cuInit(struct target *t, struct place place, A6) {
    static int written;
    int status = REAL(t, V6);
    notice_fork();
    if (!status) initialised = 1;
    if (!__atomic_exchange_n(&written, 1, __ATOMIC_RELAXED) || status) finish(event_of(CUDA_INITIALISED, 1, t, status, place));
    return status;
}
static struct object *context_created(struct target *t, struct place place, word context, enum how how, int device) {
    struct event *event = event_of(CONTEXT_CREATED, 1, t, 0, place);
    event->field[0] = context;
    event->field[1] = (uint64_t)(int64_t)device;
    event->field[2] = how;
    event->field[4] = current_context();
    struct object *object = add_object(CONTEXT, context);
    uint64_t sequence = finish(event);
    if (object) object->created = sequence, object->device = device, object->primary = how == PRIMARY;
    return object;
}
static int call_cuCtxCreate(struct target *t, struct place place, A6) { /* v2 to v4: the context comes first in each */
    int status = REAL(t, V6);
    if (status) failed(t, status, place, (word[]){V6});
    else if (a) context_created(t, place, *(word *)a, CREATED, current_device());
    return status;
}
static int call_cuDevicePrimaryCtxRetain(struct target *t, struct place place, A6) {
    int status = REAL(t, V6);
    if (status) failed(t, status, place, (word[]){V6});
    else if (a) {
        struct object *known = find_object(CONTEXT, *(word *)a);
        if (!known || ended(known)) context_created(t, place, *(word *)a, PRIMARY, (int)b);
    }
    return status;
}
static int call_cuGreenCtxCreate(struct target *t, struct place place, A6) {
    int status = REAL(t, V6);
    word context = 0;
    if (status) failed(t, status, place, (word[]){V6});
    else if (a && !ask(OF_GREEN, &context, *(void **)a, NULL)) {
        context_created(t, place, context, GREEN, (int)c);
        struct object *green = add_object(CONTEXT, *(word *)a); /* its own address leads to the context that streams and handles have */
        if (green) green->context = context;
    }
    return status;
}
static int end_by(struct target *t, struct place place, enum how how, word context, int device, A6) {
    const struct object *object = find_object(CONTEXT, context);
    struct event *event = event_of(CONTEXT_ENDED, 1, t, RUNNING, place);
    uint64_t unused[2] = {0, 0};
    event->field[0] = context;
    event->field[1] = (uint64_t)(int64_t)(object && device < 0 ? object->device : device);
    event->field[2] = how;
    event->field[5] = object ? object->created : 0;
    uint64_t sequence = finish(event);
    if (context) end_context(context, 0, sequence, &event->field[9], &event->field[10]);
    int status = REAL(t, V6);
    returned(event, sequence, status);
    if (status && context) end_context(context, sequence, 0, &unused[0], &unused[1]);
    return status;
}
static word address_of(const struct object *o) { return o ? o->address & ~(word)3 : 0; }
static int call_cuCtxDestroy(struct target *t, struct place place, A6) { return end_by(t, place, DESTROYED, a, -1, V6); }
static int call_cuDevicePrimaryCtxReset(struct target *t, struct place place, A6) {
    return end_by(t, place, RESET, address_of(primary_context((int)a)), (int)a, V6);
}
static int call_cudaDeviceReset(struct target *t, struct place place, A6) {
    int device = current_device();
    return end_by(t, place, RESET, address_of(primary_context(device)), device, V6);
}
static int call_cuGreenCtxDestroy(struct target *t, struct place place, A6) {
    struct object *green = find_object(CONTEXT, a);
    return end_by(t, place, GREEN, green ? green->context : 0, -1, V6);
}
/* Only the last release ends the primary context, and only the driver knows which one is the last. */
static int call_cuDevicePrimaryCtxRelease(struct target *t, struct place place, A6) {
    struct object *object = primary_context((int)a);
    unsigned flags = 0;
    int status = REAL(t, V6), active = 1, over = !status && !ask(PRIMARY_STATE, (void *)a, &flags, &active) && !active;
    struct event *event = event_of(over ? CONTEXT_ENDED : CONTEXT_RELEASED, over, t, status, place);
    event->field[0] = address_of(object);
    event->field[1] = (uint64_t)(int64_t)(int)a;
    event->field[2] = RELEASED;
    event->field[5] = object ? object->created : 0;
    uint64_t sequence = finish(event);
    if (over && object) end_context(address_of(object), 0, sequence, &event->field[9], &event->field[10]);
    return status;
}

/* --- streams --- */

static void stream_created(struct target *t, struct place place, word stream) {
    word context = 0;
    if (ask(STREAM_CONTEXT, (void *)stream, &context, NULL)) context = current_context();
    struct event *event = event_of(STREAM_CREATED, 0, t, 0, place);
    event->field[0] = stream;
    event->field[3] = context;
    struct object *object = add_object(STREAM, stream);
    if (object) object->context = context, object->created = finish(event);
    else finish(event);
}
static int call_cuStreamCreate(struct target *t, struct place place, A6) {
    int status = REAL(t, V6);
    if (status) failed(t, status, place, (word[]){V6});
    else if (a) stream_created(t, place, *(word *)a);
    return status;
}
#define call_cuStreamCreateWithPriority call_cuStreamCreate
#define call_cuGreenCtxStreamCreate call_cuStreamCreate

/* A stream or a handle: written down before the call, taken back if the call fails. */
static int end_one(struct target *t, struct place place, enum kind kind, enum what what, A6) {
    struct object *object = find_object(what, a);
    uint64_t before = ended(object);
    struct event *event = event_of(kind, before != 0, t, RUNNING, place);
    event->field[0] = a;
    event->field[3] = object ? object->context : 0;
    event->field[5] = object ? object->created : 0;
    event->field[8] = before;
    if (!object) object = add_object(what, a);
    uint64_t sequence = finish(event);
    if (object) end_object(object, sequence);
    int status = REAL(t, V6);
    returned(event, sequence, status);
    if (status && object) end_object(object, before);
    return status;
}
static int call_cuStreamDestroy(struct target *t, struct place place, A6) { return end_one(t, place, STREAM_ENDED, STREAM, V6); }

/* --- handles --- */

static struct object *add_handle(word handle, word context) {
    struct object *object = add_object(HANDLE, handle);
    if (object) object->context = context, object->tid = thread_id(), object->ends = endings;
    return object;
}
static void handle_created(struct target *t, struct place place, word handle) {
    /* cudnnCreate may be what makes a context current: ask after the call, else it took the primary one */
    word context = current_context();
    if (!context) context = address_of(primary_context(-1));
    struct event *event = event_of(HANDLE_CREATED, 0, t, 0, place);
    event->field[0] = handle;
    event->field[2] = context;
    struct object *object = add_handle(handle, context);
    uint64_t sequence = finish(event);
    if (object) object->created = sequence;
}
static int call_cudnnCreate(struct target *t, struct place place, A6) {
    int status = REAL(t, V6);
    if (status) failed(t, status, place, (word[]){V6});
    else if (a) handle_created(t, place, *(word *)a);
    return status;
}
#define call_cublasCreate call_cudnnCreate
/* cuBLASLt gives the one handle of a context again and again: once is enough. */
static int call_cublasLtCreate(struct target *t, struct place place, A6) {
    int status = REAL(t, V6);
    if (status) failed(t, status, place, (word[]){V6});
    else if (a && (!find_object(HANDLE, *(word *)a) || ended(find_object(HANDLE, *(word *)a)))) handle_created(t, place, *(word *)a);
    return status;
}
static int call_cudnnDestroy(struct target *t, struct place place, A6) { return end_one(t, place, HANDLE_ENDED, HANDLE, V6); }
#define call_cublasDestroy call_cudnnDestroy
#define call_cublasLtDestroy call_cudnnDestroy

static __attribute__((noinline, cold)) void shared(const struct target *t, struct place place, struct object *handle, int at_once) {
    handle->shared = at_once ? 2 : 1;
    struct event *event = event_of(HANDLE_SHARED, 1, t, 0, place);
    event->field[0] = address_of(handle);
    event->field[1] = (uint64_t)handle->tid;
    event->field[2] = (uint64_t)at_once;
    event->field[5] = handle->created;
    finish(event);
}

static struct event *pair_event(enum kind kind, int decisive, const struct target *t, int status, struct place place,
                                word handle, const struct object *h, word stream, const struct object *s) {
    struct event *event = event_of(kind, decisive, t, status, place);
    event->field[0] = handle;
    event->field[1] = stream;
    describe_handle(event, h);
    event->field[3] = s ? s->context : 0;
    event->field[4] = current_context();
    event->field[6] = s ? s->created : 0;
    event->field[8] = ended(s);
    return event;
}
static int foreign(const struct object *h, const struct object *s) { return h && s && h->context && s->context && h->context != s->context; }

/* An event that is in the file before its call is made. */
struct pending { struct event *event; uint64_t sequence; };
enum { PAIRS_WRITTEN = 8, FAILED_PAIRS_WRITTEN = 32, TROUBLES_WRITTEN = 64 };

/* A handle or stream that has ended, or a pair of two contexts: written down at once, since the library may crash on it. */
static __attribute__((noinline)) struct pending before_set(struct target *t, struct place place, struct object *h, word handle, word stream, uint32_t seen) {
    static uint32_t troubles;
    const struct object *s = find_object(STREAM, stream);
    struct pending pending = {NULL, 0};
    if (!(ended(h) || ended(s) || foreign(h, s)) || (h && h->lucky && h->ends == seen)) return pending;
    if (__atomic_fetch_add(&troubles, 1, __ATOMIC_RELAXED) >= TROUBLES_WRITTEN) return pending;
    pending.event = pair_event(STREAM_SET, 1, t, RUNNING, place, handle, h, stream, s);
    pending.sequence = finish(pending.event);
    return pending;
}
static __attribute__((noinline)) void after_set(struct target *t, struct place place, struct object *h, word handle, word stream, uint32_t seen, struct pending pending, int status) {
    static uint32_t failed_pairs;
    struct object *s = find_object(STREAM, stream);
    if (pending.event) returned(pending.event, pending.sequence, status);
    if (status) {
        uint64_t first = (uint64_t)__atomic_exchange_n(&first_failure, 0, __ATOMIC_RELAXED);
        if (!pending.event && __atomic_fetch_add(&failed_pairs, 1, __ATOMIC_RELAXED) < FAILED_PAIRS_WRITTEN) {
            pending.event = pair_event(STREAM_SET, 1, t, status, place, handle, h, stream, s);
            pending.event->field[9] = first;
            finish(pending.event);
        } else if (pending.event) pending.event->field[9] = first;
        else __atomic_fetch_add(&file->unrecorded, 1, __ATOMIC_RELAXED);
        return;
    }
    /* The library took the pair, so both live: one that was never seen made can be asked for its context. */
    if (!s && stream >= 0x1000 && (s = add_object(STREAM, stream))) ask(STREAM_CONTEXT, (void *)stream, &s->context, NULL);
    if (!h && !(h = add_handle(handle, 0))) return;
    if (pending.event) h->lucky = 1;
    else if (h->sets < PAIRS_WRITTEN && (!h->sets || h->stream != stream)) {
        h->sets++;
        finish(pair_event(STREAM_SET, 0, t, 0, place, handle, h, stream, s));
    }
    if (!h->sets) h->sets = 1;
    h->stream = stream;
    h->ends = seen;
    if (h->thread != thread_pointer() && !h->shared) shared(t, place, h, 0);
}
static int call_cudnnSetStream(struct target *t, struct place place, A6) {
    struct object *h = find_object(HANDLE, a);
    uint32_t seen = __atomic_load_n(&endings, __ATOMIC_RELAXED);
    struct pending pending = {NULL, 0};
    /* thousands of times a second: the same stream again, nothing has ended since, the same thread */
    int usual = h && h->sets && h->stream == b && h->ends == seen && (h->shared || h->thread == thread_pointer());
    if (!usual) pending = before_set(t, place, h, a, b, seen);
    int status = REAL(t, V6);
    if (!usual || status) after_set(t, place, h, a, b, seen, pending, status);
    return status;
}
#define call_cublasSetStream call_cudnnSetStream

/* --- calls that work with a handle --- */

struct use { struct object *handle; struct pending pending; };
static __attribute__((noinline, cold)) struct pending look_again(const struct target *t, struct place place, struct object *h) {
    const struct object *s = find_object(STREAM, h->stream);
    struct pending pending = {NULL, 0};
    h->ends = __atomic_load_n(&endings, __ATOMIC_RELAXED);
    if (!ended(h) && !ended(s)) return pending;
    pending.event = pair_event(ENDED_USED, 1, t, RUNNING, place, address_of(h), h, h->stream, s);
    pending.sequence = finish(pending.event);
    return pending;
}
/* Two threads inside calls with one handle: cuDNN and cuBLAS allow that for none of theirs. */
static struct use enter(const struct target *t, struct place place, word handle) {
    struct use use = {find_object(HANDLE, handle), {NULL, 0}};
    struct object *h = use.handle;
    if (!h) return use;
    word self = thread_pointer(), before = __atomic_exchange_n(&h->inside, self, __ATOMIC_RELAXED);
    if (before && before != self && h->shared < 2) shared(t, place, h, 1);
    if (h->thread != self && !h->shared) shared(t, place, h, 0);
    if (h->ends != __atomic_load_n(&endings, __ATOMIC_RELAXED)) use.pending = look_again(t, place, h);
    return use;
}
static void leave(struct use use, int status) {
    if (use.handle) __atomic_store_n(&use.handle->inside, 0, __ATOMIC_RELAXED);
    if (use.pending.event) returned(use.pending.event, use.pending.sequence, status);
}
#endif
