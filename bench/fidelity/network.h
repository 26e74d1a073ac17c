/* network.h - layers of small networks, forward and backward. Plain loops; all in float64. */
#ifndef BENCH_FIDELITY_NETWORK_H
#define BENCH_FIDELITY_NETWORK_H

#include <stddef.h>
#include <stdint.h>

/* A dense layer: weights [n_in x n_out] and a row for the bias, at an offset of the parameters. */
struct dense {
    size_t at, n_in, n_out;
};
#define DENSE_PARAMS(n_in, n_out) (((n_in) + 1) * (n_out))

/* Weights of variance 1 / n_in, bias 0. */
void dense_draw(const struct dense *dense, double *params, uint64_t *random);
/* out [rows x n_out] from in [rows x n_in] */
void dense_apply(const struct dense *dense, double *out, const double *in, const double *params,
                 size_t rows);
/* Gradient of the weights, and that of the inputs unless before is NULL. after: of the outputs. */
void dense_back(const struct dense *dense, double *gradient, double *before, const double *after,
                const double *in, const double *params, size_t rows);

/* out = SiLU(in); back: the gradient of out becomes that of in. */
void silu_apply(double *out, const double *in, size_t n);
void silu_back(double *back, const double *in, size_t n);

void softmax(double *row, size_t n);

/* ---- Two hidden layers of SiLU ---- */

#define MLP_ROWS   ((size_t)32) /* examples of a minibatch */
#define MLP_WIDTH  ((size_t)64) /* of both hidden layers */
#define MLP_LAYERS 3
#define MLP_PARAMS(n_in, n_out)                                                                    \
    (DENSE_PARAMS(n_in, MLP_WIDTH) + DENSE_PARAMS(MLP_WIDTH, MLP_WIDTH) +                          \
     DENSE_PARAMS(MLP_WIDTH, n_out))

struct mlp {
    struct dense layers[MLP_LAYERS];
    double inputs[MLP_LAYERS][MLP_ROWS * MLP_WIDTH]; /* of every layer; n_in <= MLP_WIDTH */
    double sums[MLP_LAYERS - 1][MLP_ROWS * MLP_WIDTH];
    double out[MLP_ROWS * MLP_WIDTH];  /* n_out <= MLP_WIDTH */
    double back[MLP_ROWS * MLP_WIDTH]; /* before mlp_back: the gradient of out */
};

/* at: offset of its parameters, which are drawn */
void mlp_init(struct mlp *mlp, size_t at, size_t n_in, size_t n_out, double *params,
              uint64_t *random);
void mlp_forward(struct mlp *mlp, const double *params); /* from inputs[0] to out */
/* before: the gradient of inputs[0], or NULL */
void mlp_back(struct mlp *mlp, double *gradient, double *before, const double *params);

#endif
