/* module.h - parsed PTX. Every operand is a register: %tid.x and the like, declared ones,
 * constants. */
#ifndef TESTS_PTX_MODULE_H
#define TESTS_PTX_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PTX_MAX_PARAMS  8
#define PTX_NO_REGISTER UINT16_MAX

enum ptx_kind { PTX_COMPUTE, PTX_LOAD, PTX_STORE, PTX_ATOM_ADD, PTX_BRANCH, PTX_BARRIER, PTX_END };
enum ptx_space { PTX_PARAM, PTX_SHARED, PTX_GLOBAL };

/* d = operation(a, b, c) for n lanes; lanes: their numbers, NULL for [0, n) */
typedef void ptx_compute(uint64_t *d, const uint64_t *a, const uint64_t *b, const uint64_t *c,
                         const uint16_t *lanes, size_t n);
/* NULL if the operation is not known. n_sources: how many operands it reads. */
ptx_compute *ptx_compute_named(const char *mnemonic, size_t *n_sources);

struct ptx_instruction {
    enum ptx_kind kind;
    enum ptx_space space;
    ptx_compute *compute;
    uint16_t guard, d[4], sources[3]; /* sources[0] of accesses is the address */
    size_t n_sources;
    bool guard_is_negated;
    uint8_t bytes, n_elements; /* of accesses: 2 elements for .v2 */
    int64_t offset;            /* of accesses */
    uint32_t target;           /* of branches: an instruction */
    uint32_t line;
};

/* tid, ntid, ctaid, nctaid: x, y, z of each */
#define PTX_N_SPECIAL 12

struct ptx_kernel {
    char *name;
    struct ptx_instruction *code;
    size_t n_code;
    /* registers: special ones, declared ones, constants */
    size_t n_registers, n_declared, n_constants;
    uint64_t *constants;
    uint64_t param_offsets[PTX_MAX_PARAMS], param_bytes[PTX_MAX_PARAMS], params_size;
    size_t n_params;
    uint64_t shared_bytes;
    uint32_t max_threads; /* 0: none given */
};

struct ptx_module {
    struct ptx_kernel *kernels;
    size_t n_kernels;
};

/* memory.c: while held, nothing is allocated or freed. */
void ptx_memory_hold(void);
void ptx_memory_release(void);

#endif
