// SPDX-License-Identifier: Apache-2.0
/* twin_evidence.c - which of two sets looks back at the other, over a sample of two times. */
#include "twins.h"

#include <math.h>
#include <string.h>

#include "sparse_read.h"

#define MOST_SAMPLED ((size_t)64) /* tensors */
#define MOST_RUN     ((size_t)32) /* elements of each */

bool twin_is_parameter(const struct phema_tensor *tensor)
{
    return tensor->kind != PHEMA_KIND_ATTRIBUTE && tensor->rank > 0 &&
           phema_dtype_is_float(tensor->dtype) &&
           !is_optimizer_state(tensor->name, tensor->name_size) &&
           !names_moment(tensor->name, tensor->name_size);
}

static const struct phema_tensor *find_twin(struct phema_strbuf *name,
                                            const struct phema_checkpoint *checkpoint,
                                            struct phema_span prefix, struct phema_span inner)
{
    name->size = 0;
    phema_strbuf_append(name, (const char *)prefix.data, prefix.size);
    phema_strbuf_append(name, (const char *)inner.data, inner.size);
    return name->is_failed ? NULL : phema_checkpoint_find(checkpoint, name->data, name->size);
}

/* Reads MOST_RUN elements in the middle of a tensor, or fewer. */
static enum phema_status read_run(double *out, struct phema_reader *reader,
                                  const struct phema_tensor *tensor, uint64_t n,
                                  struct phema_error *err)
{
    _Alignas(PHEMA_INPUT_ALIGNMENT) uint8_t scratch[2 * PHEMA_INPUT_ALIGNMENT + 16 * MOST_RUN];
    const uint8_t *data = NULL;
    enum phema_status status =
        phema_reader_read(&data, reader, tensor, (tensor->n_elems - n) / 2, n, scratch, err);
    for (uint64_t i = 0; i < n && !status; i++)
        out[i] = phema_element_widen(tensor->dtype, data, i);
    return status;
}

static bool can_be_read(const struct phema_tensor *tensor, const struct phema_tensor *like)
{
    return tensor && tensor->n_elems == like->n_elems && !tensor->scaling &&
           (tensor->dtype == PHEMA_F64 || tensor->dtype == PHEMA_F32 ||
            tensor->dtype == PHEMA_F16 || tensor->dtype == PHEMA_BF16);
}

/* The checkpoints of two times that hold the sets, earlier first. */
struct sources {
    const struct phema_checkpoint *checkpoints[2][2]; /* time, set */
    struct phema_reader *readers[2][2];
};

/* Adds the evidence of one name. */
static enum phema_status add_evidence(struct twin_evidence *evidence, struct phema_strbuf *name,
                                      const struct sources *sources, const struct twin_pair *pair,
                                      struct phema_span inner, struct phema_error *err)
{
    double values[2][2][MOST_RUN]; /* time, set */
    const struct phema_tensor *like =
        find_twin(name, sources->checkpoints[0][0], pair->first, inner);
    if (!like || like->n_elems == 0)
        return PHEMA_OK;
    uint64_t n = like->n_elems < MOST_RUN ? like->n_elems : MOST_RUN;
    for (unsigned time = 0; time < 2; time++)
        for (unsigned set = 0; set < 2; set++) {
            const struct phema_tensor *tensor = find_twin(name, sources->checkpoints[time][set],
                                                          set ? pair->second : pair->first, inner);
            if (!can_be_read(tensor, like))
                return PHEMA_OK;
            enum phema_status status =
                read_run(values[time][set], sources->readers[time][set], tensor, n, err);
            if (status)
                return status;
        }
    for (uint64_t i = 0; i < n; i++) {
        double forward = values[1][1][i] - values[0][0][i];
        double backward = values[1][0][i] - values[0][1][i];
        double apart = values[1][0][i] - values[1][1][i];
        double before = values[0][0][i] - values[0][1][i];
        if (!isfinite(forward) || !isfinite(backward) || !isfinite(apart) || !isfinite(before))
            continue; /* a mask of attention, or damage, tells nothing */
        for (unsigned set = 0; set < 2; set++) {
            double moved = values[1][set][i] - values[0][set][i];
            evidence->moved[set] += moved * moved;
        }
        evidence->forward += forward * forward;
        evidence->backward += backward * backward;
        evidence->apart += apart * apart;
        evidence->before += before * before;
        evidence->sizes[0] += values[1][0][i] * values[1][0][i];
        evidence->sizes[1] += values[1][1][i] * values[1][1][i];
    }
    return PHEMA_OK;
}

enum phema_status twin_evidence_read(struct twin_evidence *evidence,
                                     struct phema_checkpoint *const checkpoints[4],
                                     const struct twin_pair *pair, struct phema_error *err)
{
    struct sources sources = {.readers = {{NULL, NULL}, {NULL, NULL}}};
    struct phema_strbuf name = {0};
    enum phema_status status = PHEMA_OK;
    for (unsigned i = 0; i < 4 && !status; i++) {
        sources.checkpoints[i % 2][i / 2] = checkpoints[i];
        status = sparse_reader_open(&sources.readers[i % 2][i / 2], checkpoints[i], err);
    }
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoints[0]);
    size_t seen = 0, every = pair->n_shared / MOST_SAMPLED + 1;
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoints[0]) && !status; i++) {
        struct phema_span inner = {(const uint8_t *)tensors[i].name + pair->first.size,
                                   tensors[i].name_size - pair->first.size};
        if (!twin_is_parameter(&tensors[i]) || tensors[i].name_size <= pair->first.size ||
            (pair->first.size &&
             memcmp(tensors[i].name, pair->first.data, pair->first.size) != 0) ||
            seen++ % every != 0)
            continue;
        status = add_evidence(evidence, &name, &sources, pair, inner, err);
    }
    for (unsigned i = 0; i < 4; i++)
        phema_reader_close(sources.readers[i % 2][i / 2]);
    phema_strbuf_clear(&name);
    return status;
}
