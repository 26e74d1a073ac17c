// SPDX-License-Identifier: Apache-2.0
/* fuzz_provenance.c - The bytes as the provenance of an output. */
#include <math.h>
#include <string.h>

#include "fuzz.h"
#include "phema/output.h"

static void check_record(const struct phema_provenance *recorded)
{
    fuzz_require(recorded->program && recorded->command && recorded->accumulator,
                 "a record says what made it");
    fuzz_require(recorded->n_inputs > 0, "and of what");
    for (size_t k = 0; k < recorded->n_inputs; k++) {
        const struct phema_provenance_input *input = &recorded->inputs[k];
        fuzz_require(input->file && isfinite(input->weight), "inputs have names and weights");
    }
    for (size_t r = 0; r < recorded->n_rules; r++) {
        const struct phema_provenance_rule *rule = &recorded->rules[r];
        fuzz_require(rule->pattern && rule->is_copy == !rule->weights,
                     "rules that are no copies have weights");
        for (size_t k = 0; rule->weights && k < recorded->n_inputs; k++)
            fuzz_require(isfinite(rule->weights[k]), "which are numbers");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct phema_provenance *recorded = NULL;
    struct phema_error err = {0};
    if (phema_provenance_parse(&recorded, (struct phema_span){data, size}, &err)) {
        fuzz_require(!recorded, "outputs change only on success");
        fuzz_require(err.message[0] != '\0', "failures say why");
    } else {
        check_record(recorded);
    }
    phema_provenance_close(recorded);
    return 0;
}
