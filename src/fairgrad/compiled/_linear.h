/* What takes long in an epoch of linear models, in one precision.

   _step.c includes this file twice: NUMBER is float, then double; BITS is the unsigned integer of
   that size, and OF(name) gives a name of that precision. Scores z stand in planes, one for each
   output. A plane holds for every row of a batch all models side by side, the current ones and then
   the averaged ones, of which one vector takes several. */

#if defined(HAS_GNU)
typedef NUMBER Vector __attribute__((vector_size(32), aligned(sizeof(NUMBER)), may_alias));
#else
typedef struct { NUMBER at[LANES]; } Vector;
#endif

/* exp(-x) for x >= 0, up to the last bits, for loops that are vectorised. */
INLINE NUMBER OF(exp_of_minus)(NUMBER x) {
    const int is_single = sizeof(NUMBER) == 4, digits = is_single ? 23 : 52;
    const NUMBER magic = (NUMBER)(is_single ? 12582912.0 : 6755399441055744.0); /* adding it rounds */
    const NUMBER most = (NUMBER)(is_single ? 87 : 708);
    const NUMBER high = (NUMBER)(is_single ? 0.693359375 : 0.693147180369123816490);
    const NUMBER low = (NUMBER)(is_single ? -2.12194440e-4 : 1.90821492927058770002e-10);
    NUMBER a = x < most ? -x : -most, shifted = a * (NUMBER)1.4426950408889634 + magic;
    NUMBER whole = shifted - magic, r = (a - whole * high) - whole * low, sum = 1, power;
    for (int i = is_single ? 7 : 13; i > 0; i--) sum = 1 + r * (NUMBER)(1.0 / i) * sum;
    BITS bits;
    memcpy(&bits, &shifted, sizeof(bits));
    bits = (bits << digits) + ((BITS)(is_single ? 127 : 1023) << digits); /* 2 to the whole number */
    memcpy(&power, &bits, sizeof(power));
    return sum * power;
}

/* Scores of eight rows, or one, by one vector of models. */
INLINE void OF(score)(const int rows, int64_t d, int64_t stride, const NUMBER *theta,
                      const NUMBER *bias, const NUMBER *const *x, NUMBER *z) {
    Vector sum[8];
    for (int i = 0; i < rows; i++) sum[i] = VECTOR(bias, 0);
    for (int64_t k = 0; k < d; k++)
        for (int i = 0; i < rows; i++) ADD_TIMES(sum[i], VECTOR(theta, k * stride), x[i][k]);
    for (int i = 0; i < rows; i++) VECTOR(z, i * stride) = sum[i];
}

/* Adds residuals times eight features, or four, or one, of some rows to the gradient of one vector. */
INLINE void OF(pull)(const int features, int64_t n, int64_t stride, const NUMBER *r,
                     const NUMBER *const *x, int64_t k, NUMBER *gradient) {
    Vector sum[8];
    for (int f = 0; f < features; f++) sum[f] = VECTOR(gradient, (k + f) * stride);
    for (int64_t i = 0; i < n; i++)
        for (int f = 0; f < features; f++) ADD_TIMES(sum[f], VECTOR(r, i * stride), x[i][k + f]);
    for (int f = 0; f < features; f++) VECTOR(gradient, (k + f) * stride) = sum[f];
}

/* Scores of the rows at hand by the models from `begin` to `end`, whole vectors of them. */
INLINE void OF(score_rows_any)(const Models *s, int64_t begin, int64_t end) {
    int64_t d = s->n_features, stride = s->stride;
    for (int64_t first = 0; first < s->n; first += TILE)
        for (int64_t o = 0; o < s->n_outputs; o++)
            for (int64_t v = begin; v < end; v += LANES) {
                const NUMBER *theta = (const NUMBER *)s->folded + o * d * stride + v;
                const NUMBER *bias = (const NUMBER *)s->bias + o * stride + v;
                const NUMBER *const *x = (const NUMBER *const *)s->row;
                for (int64_t i = first, last = MIN(first + TILE, s->n), rows; i < last; i += rows) {
                    NUMBER *z = PLANE(s, o) + i * stride + v;
                    rows = last - i >= 8 ? 8 : 1;
                    if (rows == 8) OF(score)(8, d, stride, theta, bias, x + i, z);
                    else OF(score)(1, d, stride, theta, bias, x + i, z);
                }
            }
}

/* Of one row's scores: p - y in their place, which models are wrong, and the loss as best + log(sum).
   With one output, scores are margins of the second label. */
INLINE void OF(judge_row)(const Models *s, NUMBER *restrict z, int64_t label, int64_t begin, int64_t end,
                          NUMBER *restrict wrong, NUMBER *restrict best, NUMBER *restrict sum) {
    int64_t n_outputs = s->n_outputs, apart = s->most_rows * s->stride, y = label != 0;
    if (n_outputs == 1) {
        for (int64_t m = begin; m < end; m++) {
            NUMBER above = z[m] > 0 ? z[m] : 0, odds = OF(exp_of_minus)(2 * above - z[m]);
            wrong[m] = (NUMBER)(z[m] > 0 ? 1 - y : y);
            best[m] = above - y * z[m];
            sum[m] = 1 + odds;
            z[m] = (z[m] > 0 ? 1 : odds) / sum[m] - y;
        }
        return;
    }
    for (int64_t m = begin; m < end; m++) best[m] = z[m], wrong[m] = label != 0, sum[m] = 0;
    for (int64_t o = 1; o < n_outputs; o++)
        for (int64_t m = begin; m < end; m++) {
            NUMBER score = z[o * apart + m];
            wrong[m] = score > best[m] ? (NUMBER)(o != label) : wrong[m];
            best[m] = score > best[m] ? score : best[m];
        }
    for (int64_t m = begin; m < end; m++) {
        NUMBER score = z[label * apart + m];
        for (int64_t o = 0; o < n_outputs; o++) {
            z[o * apart + m] = OF(exp_of_minus)(best[m] - z[o * apart + m]);
            sum[m] += z[o * apart + m];
        }
        for (int64_t o = 0; o < n_outputs; o++)
            z[o * apart + m] = z[o * apart + m] / sum[m] - (o == label);
        best[m] -= score; /* by how much the label is behind */
    }
}

/* Judges the rows at hand by the models from `begin` to `end`: wrong rows of each cell into the tally,
   losses of the averaged models into `loss` if there is one. */
INLINE void OF(judge_rows_any)(const Models *s, int64_t begin, int64_t end, double *loss) {
    NUMBER *wrong = s->scratch, *best = wrong + s->stride, *sum = best + s->stride;
    double *product = s->counts; /* of some rows' sums: one logarithm for all of them */
    for (int64_t m = 0; m < s->n_members; m++) product[m] = 1;
    for (int64_t i = 0; i < s->n; i++) {
        double *restrict tally = s->tally + s->at[i] % s->n_cells * s->stride;
        double weight = s->weight ? s->row_weight[i] : 1;
        OF(judge_row)(s, PLANE(s, 0) + i * s->stride, s->at[i] / s->n_groups, begin, end, wrong, best, sum);
        for (int64_t m = begin; m < end; m++) tally[m] += weight * wrong[m];
        int takes_log = s->weight || i % 16 == 15 || i == s->n - 1;
        for (int64_t m = 0, at = s->n_members; loss && m < s->n_members; m++, at++) {
            product[m] *= sum[at];
            loss[m] += weight * (best[at] + (takes_log ? log(product[m]) : 0));
            if (takes_log) product[m] = 1;
        }
    }
}

/* From residuals to the gradient: `blend` has the weight of each cell and model, over the total. */
INLINE void OF(learn_rows_any)(const Models *s, int64_t end) {
    int64_t stride = s->stride, d = s->n_features, apart = s->most_rows * stride;
    const NUMBER least = (NUMBER)s->problem->least_loss;
    memset(s->gradient, 0, s->n_outputs * d * stride * sizeof(NUMBER));
    for (int64_t i = 0; i < s->n; i++) {
        const double *restrict blend = s->blend + s->at[i] % s->n_cells * stride;
        int64_t own = s->n_outputs == 1 ? 0 : s->at[i] / s->n_groups;
        NUMBER *z = PLANE(s, 0) + i * stride, weight = s->weight ? (NUMBER)s->row_weight[i] : 1;
        for (int64_t m = 0; m < end; m++) {
            NUMBER factor = weight * (NUMBER)blend[m], off = z[own * apart + m];
            off = off < 0 ? -off : off; /* 1 - p of the label */
            if (s->opposes && factor < 0) factor *= (1 - off) / (off > least ? off : least);
            for (int64_t o = 0; o < s->n_outputs; o++) {
                z[o * apart + m] *= factor;
                s->by_bias[o * stride + m] += z[o * apart + m];
            }
        }
    }
    for (int64_t first = 0; first < s->n; first += TILE)
        for (int64_t o = 0; o < s->n_outputs; o++)
            for (int64_t v = 0; v < end; v += LANES) {
                const NUMBER *r = PLANE(s, o) + first * stride + v;
                const NUMBER *const *x = (const NUMBER *const *)s->row + first;
                NUMBER *gradient = (NUMBER *)s->gradient + o * d * stride + v;
                int64_t n = MIN(TILE, s->n - first), k = 0;
                for (; k + 8 <= d; k += 8) OF(pull)(8, n, stride, r, x, k, gradient);
                for (; k + 4 <= d; k += 4) OF(pull)(4, n, stride, r, x, k, gradient);
                for (; k < d; k++) OF(pull)(1, n, stride, r, x, k, gradient);
            }
}

/* Weights of models for the features, scaled or not, in the order of the kernels, from `lane` on. */
INLINE void OF(fold_any)(const Models *s, int64_t lane, const double *theta) {
    int64_t d = s->n_features, size = s->n_outputs * (d + 1), stride = s->stride;
    for (int64_t o = 0; o < s->n_outputs; o++)
        for (int64_t m = 0; m < s->n_members; m++) {
            const double *from = theta + m * size + o * (d + 1);
            NUMBER *to = (NUMBER *)s->folded + o * d * stride + lane + m;
            for (int64_t k = 0; k < d; k++) to[k * stride] = (NUMBER)from[k];
            ((NUMBER *)s->bias)[o * stride + lane + m] = (NUMBER)from[d];
        }
}

VERSIONS("avx2,fma", OF(score_rows), (const Models *s, int64_t begin, int64_t end), (s, begin, end))
VERSIONS("avx2,fma", OF(judge_rows), (const Models *s, int64_t begin, int64_t end, double *loss),
         (s, begin, end, loss))
VERSIONS("avx2,fma", OF(learn_rows), (const Models *s, int64_t end), (s, end))
VERSIONS("avx2,fma", OF(fold), (const Models *s, int64_t lane, const double *theta), (s, lane, theta))

#undef NUMBER
#undef BITS
#undef OF
