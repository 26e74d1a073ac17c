/* input_digests.h - fingerprints of the snapshot data. For each snapshot they are a sum of block
 * hashes (phema/checksum.h) of all data read, which does not depend on tiles, threads, parts or
 * passes. All targets of a run together determine which data are read of a snapshot. So there is
 * one sum for each kind of tensors, and an output adds up the kinds that it was made of. */
#ifndef SYNTH_INPUT_DIGESTS_H
#define SYNTH_INPUT_DIGESTS_H

#include "run.h"

struct worker;

struct input_digests {
    phema_block_hasher add;
    uint64_t *names; /* [n_tensors] hashed */
    /* [kinds x snapshots] of the pass; kinds are averaged tensors by rule, then copied tensors */
    struct phema_hash_sum *sums;
};

/* Whether outputs record them, or --verify compares them, and all data are read. */
bool input_digests_are_wanted(const struct run *run);

/* Size of an array of sums; 0 where no digests are wanted. */
uint64_t input_digests_bytes(const struct run *run);

/* Number of sums in such an array, after input_digests_open; 0 where no digests are wanted. */
size_t input_digests_n_sums(const struct run *run);

/* Memory that all threads share, with the digests of one output. */
uint64_t input_digests_shared_bytes(const struct run *run);

/* *out is NULL where no digests are wanted. */
PHEMA_FALLIBLE input_digests_open(struct input_digests **out, const struct run *run,
                                  struct phema_error *err);
void input_digests_close(struct input_digests *digests); /* takes NULL */

/* An array of zeros, on separate cache lines; NULL without memory. The caller frees it. */
struct phema_hash_sum *input_digests_new_sums(const struct run *run);

/* The kind of a tensor. */
size_t input_digests_kind(const struct run *run, size_t tensor);

/* Adds the worker's tile of snapshot k to its sums, if digests are wanted. */
void input_digests_add(struct worker *worker, size_t k, const uint8_t *data);

/* Adds n sums to others, and clears them. */
void input_digests_move(struct phema_hash_sum *to, struct phema_hash_sum *from, size_t n);

/* Whether an output is made from the data of sum x: a snapshot's tensors of a kind. */
bool input_digests_is_input(const struct run *run, size_t output, size_t x);

/* The digests of an output's inputs: [output's n_digests] */
void input_digests_of_output(struct phema_hash_sum *out, const struct run *run, size_t output);

#endif
