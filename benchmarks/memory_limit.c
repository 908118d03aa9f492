/* What the memory of a machine allows a keyed fleet at most: records of `lines` cache lines are found by one look at a table,
 * read as a whole and written in one line, in random order, all asked for some events ahead, and nothing is worked out.
 * benchmarks/fleet.py compiles it and divides by its time. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { LINE = 64, PAGE = 1 << 21, RECORDS = 8, CELLS = 24 };

struct cell {
    uint64_t key;
    uint32_t record, unused;
};

static uint64_t mixed(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void *on_large_pages(size_t bytes) {
    bytes = (bytes + PAGE - 1) / PAGE * PAGE;
    void *p = aligned_alloc(PAGE, bytes);
    if (!p) return NULL;
    madvise(p, bytes, MADV_HUGEPAGE);
    memset(p, 0, bytes);
    return p;
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct memory {
    size_t keys, lines, cells;
    struct cell *table;
    char *records;
    uint64_t sum, turn;
};

struct memory *memory_make(size_t keys, size_t lines) {
    struct memory *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    m->keys = keys, m->lines = lines;
    for (m->cells = 16; 10 * keys > 7 * m->cells;) m->cells *= 2;
    m->table = on_large_pages(m->cells * sizeof *m->table);
    m->records = on_large_pages(keys * lines * LINE);
    if (!m->table || !m->records) return NULL;
    for (size_t i = 0; i < m->cells; ++i) m->table[i].record = (uint32_t)(mixed(i + 1) % keys);
    return m;
}

void memory_free(struct memory *m) {
    free(m->table), free(m->records), free(m);
}

/* Seconds of processor time that so many events take. */
double memory_time(struct memory *m, size_t events) {
    const uint64_t first = m->turn++ * events;
    const double start = seconds();
    uint64_t sum = 0;
#define CELL(e) (&m->table[mixed(first + (e)) & (m->cells - 1)])
#define RECORD(e) (m->records + (size_t)CELL(e)->record * m->lines * LINE)
    for (size_t e = 0; e < events; ++e) {
        __builtin_prefetch(CELL(e + CELLS));
        const char *next = RECORD(e + RECORDS);
        for (size_t l = 0; l < m->lines; ++l) __builtin_prefetch(next + l * LINE, 0, 2);
        uint64_t *at = (uint64_t *)RECORD(e);
        for (size_t i = 0; i < m->lines * LINE / sizeof *at; ++i) sum += at[i];
        at[0] = e;
    }
    m->sum += sum;
    return seconds() - start;
}
