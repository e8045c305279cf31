/* What is alive: contexts, streams and handles by address, each with the number of the event that made and the one that ended it. */
#ifndef OBJECTS_H
#define OBJECTS_H
#include "system.h"

enum what { CONTEXT = 1, STREAM, HANDLE };
enum { OBJECTS = 8192, PROBES = 32 };

struct object {
    word address; /* with `what` in the lowest two bits, which no object's address uses; 0: a free place */
    word context; /* a stream's or handle's; 0: not known */
    uint64_t created, ended; /* event numbers; 0: not seen, not ended */
    word stream, thread;     /* a handle's last stream; the thread that made it */
    word inside;             /* a handle's: the thread that is in a call with it */
    int32_t tid, device;     /* device: a context's, or -1 */
    uint32_t ends;           /* `endings` when the handle's stream was looked at last */
    uint8_t primary, sets, shared, lucky;
};
static struct object objects[OBJECTS];
static uint32_t endings; /* how many objects have ended: a handle whose pair was fine is looked at again when this moves */

static struct object *find_object(enum what what, word address) {
    word key = (address & ~(word)3) | what, hash = (address >> 4) * 0x9e3779b97f4a7c15u >> 40;
    if (address < 0x1000) return NULL; /* no handle; the streams 0, 1 and 2, which every context has */
    for (unsigned i = 0; i < PROBES; i++) {
        struct object *o = &objects[(hash + i) % OBJECTS];
        word there = __atomic_load_n(&o->address, __ATOMIC_RELAXED);
        if (there == key) return o;
        if (!there) return NULL;
    }
    return NULL;
}
/* A clean place for a new object; the driver uses addresses again. NULL when the neighbourhood is full of living ones. */
static struct object *add_object(enum what what, word address) {
    word key = (address & ~(word)3) | what, hash = (address >> 4) * 0x9e3779b97f4a7c15u >> 40;
    if (address < 0x1000) return NULL;
    struct object *place = find_object(what, address);
    for (unsigned i = 0; i < PROBES && !place; i++) {
        struct object *o = &objects[(hash + i) % OBJECTS];
        word there = __atomic_load_n(&o->address, __ATOMIC_RELAXED);
        if ((!there || o->ended) && __atomic_compare_exchange_n(&o->address, &there, key, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) place = o;
    }
    if (!place) return NULL;
    memset(&place->context, 0, sizeof *place - sizeof place->address);
    place->thread = thread_pointer();
    place->device = -1;
    return place;
}
static void end_object(struct object *object, uint64_t ended) {
    __atomic_store_n(&object->ended, ended, __ATOMIC_RELAXED);
    __atomic_fetch_add(&endings, 1, __ATOMIC_RELAXED);
}
/* The end of a context is the end of its streams and handles. A call that failed after all brings them back: ended 0. */
static void end_context(word context, uint64_t before, uint64_t ended, uint64_t *streams, uint64_t *handles) {
    for (unsigned i = 0; i < OBJECTS; i++) {
        struct object *o = &objects[i];
        enum what what = o->address & 3;
        if (!o->address || o->ended != before) continue;
        if (what == CONTEXT ? (o->address & ~(word)3) != context : o->context != context) continue;
        end_object(o, ended);
        *streams += what == STREAM;
        *handles += what == HANDLE;
    }
}
static struct object *primary_context(int device) { /* device -1: of the only device that has one */
    struct object *found = NULL;
    for (unsigned i = 0; i < OBJECTS; i++) {
        struct object *o = &objects[i];
        if ((o->address & 3) != CONTEXT || !o->primary || (device >= 0 && o->device != device)) continue;
        if (found && device < 0) return NULL;
        found = o;
    }
    return found;
}
#endif
