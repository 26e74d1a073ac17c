// SPDX-License-Identifier: Apache-2.0
/* tensor_names.c - what the parts of a tensor's name say: the key of a subtree, the state of an
 * optimizer, and the prefixes of wrappers, which are no part of the name. */
#include <string.h>

#include "sets.h"

const char *name_below_key(const char *name, size_t *size, const char *key)
{
    size_t key_size = strlen(key);
    if (*size <= key_size || memcmp(name, key, key_size) != 0 || name[key_size] != '.')
        return NULL;
    *size -= key_size + 1;
    return name + key_size + 1;
}

bool subtree_exists(const struct phema_checkpoint *checkpoint, const char *key)
{
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        size_t size = tensors[i].name_size;
        if (name_below_key(tensors[i].name, &size, key))
            return true;
    }
    return false;
}

/* ---- The state of an optimizer ---- */

/* A part of a name up to a dot. */
struct name_part {
    const char *text;
    size_t size;
};

static struct name_part part_at(const char *name, size_t size, size_t at)
{
    const char *dot = at < size ? memchr(name + at, '.', size - at) : NULL;
    return (struct name_part){name + at, dot ? (size_t)(dot - name) - at : size - at};
}

/* "optimizers", "optim_state_dict" */
static bool is_optimizer_key(struct name_part part)
{
    static const char *const keys[] = {"optim", "opt", "opt_state"};
    return phema_bytes_begin(part.text, part.size, "optimizer") ||
           phema_bytes_begin(part.text, part.size, "optim_") ||
           phema_bytes_are_any(part.text, part.size, keys, ARRAY_LEN(keys));
}

bool names_moment(const char *name, size_t size)
{
    static const char *const moments[] = {"exp_avg", "exp_avg_sq", "momentum_buffer"};
    for (size_t at = 0; at < size;) {
        struct name_part part = part_at(name, size, at);
        if (phema_bytes_are_any(part.text, part.size, moments, ARRAY_LEN(moments)))
            return true;
        at += part.size + 1;
    }
    return false;
}

/* Whether a state begins in the first parts of a name, which may be the number or the class of an
 * optimizer: "AdamW.state.conv.weight.exp_avg". */
static bool begins_state(const char *name, size_t size)
{
    enum { MOST_PARTS = 3 };
    size_t at = 0;
    for (unsigned i = 0; i < MOST_PARTS && at < size; i++) {
        struct name_part part = part_at(name, size, at);
        if (phema_bytes_are(part.text, part.size, "state") ||
            phema_bytes_are(part.text, part.size, "param_groups"))
            return true;
        at += part.size + 1;
    }
    return false;
}

bool optimizer_find(size_t *at, const char *name, size_t size)
{
    bool has_moment = names_moment(name, size); /* asked once: names are of any length */
    for (*at = 0; *at < size;) {
        struct name_part part = part_at(name, size, *at);
        size_t behind = *at + part.size + 1;
        if (is_optimizer_key(part) &&
            (*at == 0 ||
             (behind < size && (has_moment || begins_state(name + behind, size - behind)))))
            return true;
        *at = behind;
    }
    return false;
}

bool is_optimizer_state(const char *name, size_t size)
{
    size_t at = 0;
    return optimizer_find(&at, name, size);
}

/* ---- Wrappers ---- */

size_t wrapper_at(const char *name, size_t size, size_t at)
{
    static const char *const wrappers[] = {"_orig_mod.", "_fsdp_wrapped_module.",
                                           "_checkpoint_wrapped_module.", "_forward_module.",
                                           "_fpw_module."};
    for (size_t w = 0; w < ARRAY_LEN(wrappers) && (at == 0 || name[at - 1] == '.'); w++) {
        size_t wrapper_size = strlen(wrappers[w]);
        if (size - at > wrapper_size && memcmp(name + at, wrappers[w], wrapper_size) == 0)
            return wrapper_size;
    }
    return 0;
}

const char *name_without_wrappers(size_t *size, const char *name, struct phema_arena *arena)
{
    char *out = NULL;
    size_t n = 0;
    for (size_t at = 0; at < *size;) {
        size_t skipped = wrapper_at(name, *size, at);
        if (skipped && !out) {
            out = phema_arena_copy(arena, name, *size);
            n = at;
        }
        if (skipped && !out)
            return NULL;
        if (!skipped && out)
            out[n++] = name[at];
        at += skipped ? skipped : 1;
    }
    if (!out)
        return name;
    out[n] = '\0';
    *size = n;
    return out;
}

/* The size of "module." at a place in a name; 0: another part begins there. */
static size_t module_at(const char *name, size_t size, size_t at)
{
    static const char text[] = "module.";
    bool is_here = (at == 0 || name[at - 1] == '.') && size - at >= sizeof(text) - 1 &&
                   memcmp(name + at, text, sizeof(text) - 1) == 0;
    return is_here ? sizeof(text) - 1 : 0;
}

/* The beginning, up to a dot, that the names of all members have; scalars count nothing. */
static struct phema_span find_common_start(const struct phema_tensor_sets *sets)
{
    const struct phema_tensor *tensors = phema_checkpoint_tensors(sets->checkpoint);
    struct phema_span start = {NULL, 0};
    for (size_t i = 0; i < phema_checkpoint_n_tensors(sets->checkpoint); i++) {
        const struct phema_set_member *member = &sets->members[i];
        if (!member->set || tensors[i].rank == 0)
            continue;
        size_t size = 0, most = start.data ? start.size : member->name_size;
        while (size < most && size < member->name_size &&
               (!start.data || member->name[size] == (char)start.data[size]))
            size++;
        while (size > 0 && member->name[size - 1] != '.')
            size--;
        start = (struct phema_span){(const uint8_t *)member->name, size};
    }
    return start;
}

/* false: there is none. is_failed: no memory */
static bool remove_module(bool *is_failed, struct phema_tensor_sets *sets)
{
    struct phema_span start = find_common_start(sets);
    size_t at = 0, skipped = 0;
    while (at < start.size && !(skipped = module_at((const char *)start.data, start.size, at)))
        at++;
    for (size_t i = 0; skipped && i < phema_checkpoint_n_tensors(sets->checkpoint); i++) {
        struct phema_set_member *member = &sets->members[i];
        if (!member->set || member->name_size <= at + skipped ||
            memcmp(member->name, start.data, at + skipped) != 0)
            continue;
        char *name = phema_arena_copy(sets->arena, member->name, member->name_size);
        *is_failed = *is_failed || !name;
        if (!name)
            return false;
        memmove(name + at, name + at + skipped, member->name_size - at - skipped + 1);
        member->name = name;
        member->name_size -= skipped;
    }
    return skipped > 0;
}

/* DataParallel and its like put the whole model below "module.", also twice, which is no part of a
 * name then: of a model with a part of that name, other tensors stand beside it. */
bool names_remove_module(struct phema_tensor_sets *sets)
{
    bool is_failed = false;
    while (remove_module(&is_failed, sets)) {
    }
    return !is_failed;
}
