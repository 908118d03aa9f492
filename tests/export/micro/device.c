/* Learns EVENTS events that a small generator makes, counts instructions, and saves its state.
   Without MODEL: the same program with nothing in it, to tell what belongs to the model. */
#include "start.h"
#ifdef MODEL
#include "gm.h"
static gm_state state;
static gm_num x[GM_FEATURES], work[GM_WORK];
#endif

static uint32_t seed = 2463534242u;
static int32_t next(void) { /* Marsaglia's xorshift: 24 bits with a sign */
    seed ^= seed << 13, seed ^= seed >> 17, seed ^= seed << 5;
    return (int32_t)seed >> 8;
}

static struct {
    uint64_t predict, learn;
    uint32_t longest, wrong, learned, refused;
} counts;

int main(void) {
    uint32_t event, before;
    (void)event, (void)before, (void)next;
#ifdef MODEL
    gm_start(&state);
    if (!gm_check(&state, work)) return 3;
    for (event = 0; event < EVENTS; ++event) {
        int j, label, answer;
        uint32_t took;
        for (j = 0; j < GM_FEATURES; ++j) x[j] = (gm_num)next() * (gm_num)(1.0 / 4194304);
        label = (x[0] > 0) == (x[1] > 0);
        before = ticks();
        answer = gm_predict(&state, x, work);
        counts.predict += (before - ticks()) & 0xFFFFFF;
        counts.wrong += answer != label;
        before = ticks();
        if (gm_learn(&state, x, label, work)) ++counts.learned;
        else ++counts.refused;
        took = (before - ticks()) & 0xFFFFFF;
        counts.learn += took;
        if (took > counts.longest) counts.longest = took;
    }
    save("state", 5, &state, sizeof state);
#endif
    save("counts", 6, &counts, sizeof counts);
    return 0;
}
