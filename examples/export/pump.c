/* A pump's vibration alarm: every reading is judged, then learned; no heap, no file but pump.h.
   Here the readings come from standard input, and the state goes to the file that is named, as it would go over a wire. */
#include <stdio.h>
#include "pump.h"

static pump_state state;           /* all that changes */
static pump_num work[PUMP_WORK];

int main(int argc, char **argv) {
    pump_num x[PUMP_FEATURES];
    double reading[PUMP_FEATURES];
    unsigned long event = 0;
    pump_start(&state);
    if (!pump_check(&state, work)) return 1; /* this machine computes something else than the library */
    while (scanf("%lf %lf %lf %lf", &reading[0], &reading[1], &reading[2], &reading[3]) == PUMP_FEATURES) {
        int j;
        for (j = 0; j < PUMP_FEATURES; ++j) x[j] = (pump_num)reading[j];
        if (pump_predict(&state, x, work) < 0) printf("%lu\n", event);
        pump_learn(&state, x, work);
        ++event;
    }
    if (argc > 1) {
        FILE *file = fopen(argv[1], "wb");
        if (!file || fwrite(&state, sizeof state, 1, file) != 1 || fclose(file) != 0) return 2;
    }
    return 0;
}
