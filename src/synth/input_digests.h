/* input_digests.h - by what the data of the snapshots are known again: of each snapshot a sum over
 * blocks (phema/checksum.h) of all that was read of it, which is the same whatever the tiles,
 * threads, parts and passes are. What a run reads of a snapshot depends on all its targets, so that
 * there is a sum for each kind of tensors, and an output takes those that it was made of. */
#ifndef SYNTH_INPUT_DIGESTS_H
#define SYNTH_INPUT_DIGESTS_H

#include "run_state.h"

struct worker;

struct input_digests {
    phema_block_hasher add;
    uint64_t *names;             /* [n_tensors] hashed */
    size_t n_kinds, n_snapshots; /* tensors that are averaged by rule, the last are copied */
    struct phema_hash_sum *sums; /* [n_kinds * n_snapshots] of the pass */
};

/* Whether outputs have a place for them, and all data are read. */
bool input_digests_are_wanted(const struct run *run);

/* Of one such array of sums; 0 where none are wanted. */
uint64_t input_digests_bytes(const struct run *run);

/* How many there are in it, once digests are open; likewise. */
size_t input_digests_n_sums(const struct run *run);

/* What all threads share, and what is made of it for an output. */
uint64_t input_digests_shared_bytes(const struct run *run);

/* NULL where none are wanted. */
PHEMA_FALLIBLE input_digests_open(struct input_digests **out, const struct run *run,
                                  struct phema_error *err);
void input_digests_close(struct input_digests *digests); /* takes NULL */

/* An array of zeros, on cache lines of its own; NULL without memory. */
struct phema_hash_sum *input_digests_new_sums(const struct run *run);

/* Of a tensor. */
size_t input_digests_kind(const struct run *run, size_t tensor);

/* The tile in snapshot k, to the worker's sums; where none are wanted, nothing. */
void input_digests_add(struct worker *worker, size_t k, const struct tile_range *piece,
                       const uint8_t *data);

/* The array `from`, or its sums of one kind, go over into another one. */
void input_digests_move(const struct input_digests *digests, struct phema_hash_sum *to,
                        struct phema_hash_sum *from);
void input_digests_move_kind(const struct input_digests *digests, size_t kind,
                             struct phema_hash_sum *to, struct phema_hash_sum *from);

/* Whether an output is made of what was read of snapshot k of a kind of tensors. */
bool input_digests_is_input(const struct run *run, size_t output, size_t kind, size_t k);

/* Those of the snapshots that its target may use: [output's n_digests] */
void input_digests_of_output(struct phema_hash_sum *out, const struct run *run, size_t output);

#endif
