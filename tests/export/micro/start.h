/* What start.c offers to a program. */
#include <stddef.h>
#include <stdint.h>

void save(const char *name, size_t length, const void *bytes, size_t count);
uint32_t ticks(void);
