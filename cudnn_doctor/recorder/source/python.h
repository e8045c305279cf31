/* The Python line of this thread.
 *
 * Which way is harmless? Calling PyFrame_* or PyThreadState_Get needs the GIL, and most CUDA calls are made with the GIL released
 * (ctypes, cuda.bindings, torch): those functions would then read another thread's state, or abort. So nothing of Python is
 * called but PyGILState_GetThisThreadState, which answers this thread's own state from a thread-local variable, takes no lock
 * and is safe without the GIL and after Py_Finalize (Python/pystate.c). From there this thread's frames are READ: while the thread
 * is here, inside a C call, nobody changes its frames, and each frame owns a reference to its code object, whose file name
 * and line table never change. Every read goes through the kernel (read_memory), and every object's type is compared with the
 * address of PyCode_Type, PyUnicode_Type or PyBytes_Type: with an unknown build the answer is "not readable", never a crash.
 *
 * The offsets are those of CPython's own headers; tests/recorder compiles them against each interpreter that is at hand.
 */
#ifndef PYTHON_H
#define PYTHON_H
#include "modules.h"

enum why { KNOWN, NO_PYTHON, NOT_A_PYTHON_THREAD, OTHER_VERSION, NOT_READABLE, NOT_TAKEN, NO_FRAME };
enum { FRAMES_READ = 100, CODE_SIZE = 208 };

struct layout { /* of one minor version */
    uint16_t minor, from_state, from_link; /* thread state -> frame; before 3.13 by way of a CFrame (3.11, 3.12) */
    uint16_t code, previous, instruction, owner;
    uint16_t first_line, file_name, name, table, bytecode, ascii, compact;
};
static const struct layout layouts[] = {
    {10, 24, 0, 32, 24, 96, 0, 40, 104, 112, 120, 0, 48, 72},
    {11, 56, 8, 32, 48, 56, 69, 72, 112, 128, 136, 184, 48, 72},
    {12, 56, 0, 0, 8, 56, 70, 68, 112, 128, 136, 192, 40, 56},
    {13, 72, 0, 0, 8, 56, 70, 68, 112, 128, 136, 200, 40, 56},
    {14, 72, 0, 0, 8, 56, 74, 68, 112, 128, 136, 208, 40, 56},
};
enum { NO_LINK = 10, LINKED_UNTIL = 12, OWNED_BY_C = 3 };

static struct {
    unsigned modules; /* how many libraries there were when it was looked for */
    int version;      /* 0: no Python */
    const struct layout *layout;
    word state, code_type, text_type, bytes_type;
} python;

static void find_python(void) {
    unsigned count = __atomic_load_n(&module_count, __ATOMIC_ACQUIRE);
    if (python.version || python.modules == count) return;
    for (unsigned i = 0; i < count; i++) {
        struct link_map *map = modules[i].map;
        if (!map || (map->l_name[0] && !find_text(map->l_name, "libpython"))) continue; /* the program itself has no name */
        word state = symbol_in(map, "PyGILState_GetThisThreadState");
        if (!state) continue;
        word version = symbol_in(map, "Py_Version"); /* since 3.11; Py_Is came with 3.10 */
        int minor = version ? (int)(*(const unsigned long *)version >> 16 & 0xff) : symbol_in(map, "Py_Is") ? 10 : 9;
        for (unsigned k = 0; k < sizeof layouts / sizeof *layouts; k++) if (layouts[k].minor == minor) python.layout = &layouts[k];
        python.state = state;
        python.code_type = symbol_in(map, "PyCode_Type");
        python.text_type = symbol_in(map, "PyUnicode_Type");
        python.bytes_type = symbol_in(map, "PyBytes_Type");
        python.version = minor;
        break;
    }
    python.modules = count;
}

static word word_at(const unsigned char *from, unsigned offset) { word value; memcpy(&value, from + offset, sizeof value); return value; }

static char *utf8(char *to, const char *end, uint32_t c) {
    if (c < 0x20 || c == 0x7f) c = '?';
    if (end - to < 4) return to;
    if (c < 0x80) *to++ = (char)c;
    else if (c < 0x800) *to++ = (char)(0xc0 | c >> 6), *to++ = (char)(0x80 | (c & 63));
    else if (c < 0x10000) *to++ = (char)(0xe0 | c >> 12), *to++ = (char)(0x80 | (c >> 6 & 63)), *to++ = (char)(0x80 | (c & 63));
    else *to++ = (char)(0xf0 | c >> 18), *to++ = (char)(0x80 | (c >> 12 & 63)), *to++ = (char)(0x80 | (c >> 6 & 63)), *to++ = (char)(0x80 | (c & 63));
    return to;
}
/* A str as UTF-8; of a long one the last characters, behind "...". NULL: not a str that can be read. */
static char *read_text(word object, char *to, const char *end, unsigned most) {
    unsigned char head[40], part[256];
    if (!read_memory(object, head, sizeof head) || word_at(head, 8) != python.text_type) return NULL;
    word size = word_at(head, 16);
    uint32_t state = (uint32_t)word_at(head, 32), kind = state >> 2 & 7; /* interned:2 kind:3 compact:1 ascii:1 */
    if (!(state & 32) || (kind != 1 && kind != 2 && kind != 4) || size > 1 << 20) return NULL;
    word at = object + (state & 64 ? python.layout->ascii : python.layout->compact), skipped = size > most ? size - most : 0;
    if (skipped) to = copy(to, "...", 4);
    if (most > sizeof part / kind) most = sizeof part / kind; /* a long name in a wide alphabet: less of it */
    if (size > most) skipped = size - most;
    size -= skipped;
    if (!read_memory(at + skipped * kind, part, size * kind)) return NULL;
    for (word i = 0; i < size; i++)
        to = utf8(to, end, kind == 1 ? part[i] : kind == 2 ? (uint32_t)(part[2 * i] | part[2 * i + 1] << 8)
                                                           : (uint32_t)(part[4 * i] | part[4 * i + 1] << 8 | part[4 * i + 2] << 16));
    *to++ = 0;
    return to;
}

/* Reads a bytes object piece by piece. */
struct table { word at, size, next; unsigned char part[128]; };
static int table_byte(struct table *table) { /* -1: no more */
    if (table->next >= table->size) return -1;
    unsigned inside = table->next % sizeof table->part;
    if (!inside) {
        word left = table->size - table->next;
        if (!read_memory(table->at + table->next, table->part, left < sizeof table->part ? left : sizeof table->part)) return -1;
    }
    table->next++;
    return table->part[inside];
}
static long table_number(struct table *table) { /* svarint of Objects/locations.md */
    unsigned long value = 0;
    int byte, shift = 0;
    do {
        byte = table_byte(table);
        if (byte < 0 || shift > 30) return 0;
        value |= (unsigned long)(byte & 63) << shift;
        shift += 6;
    } while (byte & 64);
    return value & 1 ? -(long)(value >> 1) : (long)(value >> 1);
}
/* 3.11 on: Objects/locations.md. `unit` counts instructions of two bytes; -1 is a frame that has not begun. */
static long line_311(struct table *table, long unit, long line) {
    for (long at = 0;;) {
        int byte = table_byte(table);
        if (byte < 0) return 0;
        int code = byte >> 3 & 15;
        long next = at + (byte & 7) + 1;
        if (code == 13 || code == 14) line += table_number(table);
        else if (code >= 10 && code <= 12) line += code - 10;
        if (unit < next) return code == 15 ? 0 : line;
        at = next;
        for (word behind = table->next;; behind = table->next) { /* an entry's first byte has its top bit set */
            byte = table_byte(table);
            if (byte < 0) return 0;
            if (byte & 128) { table->next = behind; break; }
        }
    }
}
/* 3.10: Objects/lnotab_notes.txt, pairs of (bytes of code, lines), -128 for "no line". */
static long line_310(struct table *table, long unit, long line) {
    for (long at = 0;;) {
        int bytes = table_byte(table), lines = table_byte(table);
        if (bytes < 0 || lines < 0) return 0;
        if (lines != 128) line += (signed char)lines;
        at += bytes;
        if (2 * unit < at) return lines == 128 ? 0 : line;
    }
}
static long line_of(word code_object, const unsigned char *code, const unsigned char *frame) {
    const struct layout *l = python.layout;
    unsigned char head[32];
    struct table table = {word_at(code, l->table), 0, 0, {0}};
    if (!read_memory(table.at, head, sizeof head) || word_at(head, 8) != python.bytes_type) return 0;
    table.size = word_at(head, 16);
    table.at += 32;
    long first = (long)(uint32_t)word_at(code, l->first_line);
    if (l->minor == 10) return line_310(&table, (int32_t)word_at(frame, l->instruction), first);
    return line_311(&table, (long)(word_at(frame, l->instruction) - (code_object + l->bytecode)) / 2, first);
}

/* Neither the interpreter's own library nor an installed package: most likely the user's file. */
static int users(const char *path) {
    return *path != '<' && !find_text(path, "/site-packages/") && !find_text(path, "/dist-packages/") && !find_text(path, "/lib/python3");
}
/* Writes the innermost two frames and then the user's own ones, while there is room. */
static void take_python(struct event *event) {
    event->why = NO_PYTHON;
    find_python();
    const struct layout *l = python.layout;
    if (!python.version) return;
    event->why = OTHER_VERSION;
    if (!l) return;
    event->why = NOT_A_PYTHON_THREAD;
    word state = (word)((void *(*)(void))python.state)();
    if (!state) return;
    event->why = NOT_READABLE;
    word frame = 0;
    if (!read_memory(state + l->from_state, &frame, sizeof frame)) return;
    if (l->minor > NO_LINK && l->minor <= LINKED_UNTIL && !read_memory(frame + l->from_link, &frame, sizeof frame)) return;
    if (!frame) event->why = NO_FRAME; /* a thread of a framework that Python has met before, or Python's own end */
    char *to = event->text;
    const char *end = event->text + sizeof event->text - 24;
    for (int depth = 0; frame && depth < FRAMES_READ; depth++) {
        unsigned char f[104], code[CODE_SIZE];
        if (!read_memory(frame, f, sizeof f)) break;
        word at = word_at(f, l->code) & ~(word)3; /* 3.14 marks borrowed references in the lowest bits */
        frame = word_at(f, l->previous);
        if (l->minor >= 12 && f[l->owner] >= OWNED_BY_C) continue; /* stands for a C function that called Python */
        if (!read_memory(at, code, sizeof code) || word_at(code, 8) != python.code_type) break;
        if (end - to < 270) break;
        char *start = to, *next = read_text(word_at(code, l->file_name), to, end, 160);
        if (!next) break;
        if (event->python >= 2 && !users(start)) continue;
        next = read_text(word_at(code, l->name), next, end, 60);
        if (!next) break;
        to = decimal(next, (uint64_t)line_of(at, code, f)) + 1;
        event->python++;
        event->why = KNOWN;
    }
    *to = 0;
}
#endif
