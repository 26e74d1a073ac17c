/* tables.h - tables of all outcomes, in Markdown or as comma-separated values. */
#ifndef BENCH_FIDELITY_TABLES_H
#define BENCH_FIDELITY_TABLES_H

#include "study.h"

void tables_print(const struct study *study);

/* A line for each target of a case. */
void tables_print_csv_header(void);
void tables_print_csv(const struct study_case *one);

#endif
