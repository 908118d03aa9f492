/* Starts the exported model, learns events from one file of doubles, answers rows of another, and writes its state. */
#include <stdio.h>
#include <stdlib.h>
#include "gm.h"

static int read_row(FILE *file, double *to, int count) { return fread(to, sizeof *to, (size_t)count, file) == (size_t)count; }

int main(int argc, char **argv) {
    static gm_state state;
    static gm_num x[GM_FEATURES], work[GM_WORK], scores[GM_OUTPUTS];
    static double row[GM_FEATURES + 1];
    FILE *events, *rows, *out;
    long learned = 0;
    int j;
    if (argc != 4) return 2;
    gm_start(&state);
    if (!gm_check(&state, work)) return 3;
    events = fopen(argv[1], "rb"), rows = fopen(argv[2], "rb"), out = fopen(argv[3], "wb");
    if (!events || !rows || !out) return 4;
    while (read_row(events, row, GM_FEATURES + 1)) {
        for (j = 0; j < GM_FEATURES; ++j) x[j] = (gm_num)row[j];
#if defined(GM_CLASSES)
        learned += gm_learn(&state, x, (int)row[GM_FEATURES], work);
#elif defined(GM_NUMBERS)
        learned += gm_learn(&state, x, (gm_num)row[GM_FEATURES], work);
#else
        learned += gm_learn(&state, x, work);
#endif
    }
    while (read_row(rows, row, GM_FEATURES)) {
        for (j = 0; j < GM_FEATURES; ++j) x[j] = (gm_num)row[j];
        if (!gm_scores(&state, x, work, scores)) return 5;
        for (j = 0; j < GM_OUTPUTS; ++j) printf("%.17g ", (double)scores[j]);
#if defined(GM_CLASSES)
        {
            gm_num shares[GM_CLASSES];
            gm_probabilities(&state, x, work, shares);
            for (j = 0; j < GM_CLASSES; ++j) printf("%.17g ", (double)shares[j]);
            printf("%d", gm_predict(&state, x, work));
        }
#elif defined(GM_NUMBERS)
        {
            gm_num half_widths[5];
            gm_half_widths(&state, half_widths);
            for (j = 0; j < 5; ++j) printf("%.17g ", (double)half_widths[j]);
        }
#else
        printf("%d", gm_predict(&state, x, work));
#endif
        printf("\n");
    }
    fwrite(&state, sizeof state, 1, out);
    fclose(out);
    fprintf(stderr, "%ld", learned);
    return 0;
}
