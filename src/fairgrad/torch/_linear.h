/* What takes long in an epoch of linear models, in one precision.

   _step.c includes this file twice: NUMBER is float, then double; BITS is the unsigned integer of
   that size, and OF(name) gives a name of that precision. A block is a few rows of one label and one
   group: it is scored, judged and taken into the gradient while it is in the cache.

   Scores stand in planes, one for each output of the models as they are and then as they are shown.
   There are two orders. Side by side, a plane holds for every row all models, of which one vector
   takes several; so it is for many models. Else a plane holds for every model all rows, and vectors
   run over features; so it is for few models. */

#define LANES (32 / (int)sizeof(NUMBER))
#define Vector OF(Vector)
#define VECTOR(array, i) (*(Vector *)((NUMBER *)(array) + (i)))

typedef NUMBER Vector __attribute__((vector_size(32), aligned(sizeof(NUMBER)), may_alias));

/* exp(-x) for x >= 0, up to the last bit or two, for loops that are vectorised. */
INLINE NUMBER OF(exp_of_minus)(NUMBER x) {
    const int is_single = sizeof(NUMBER) == 4, digits = is_single ? 23 : 52;
    const NUMBER magic = (NUMBER)(is_single ? 12582912.0 : 6755399441055744.0); /* adding it rounds */
    const NUMBER most = (NUMBER)(is_single ? 87 : 708);
    const NUMBER high = (NUMBER)(is_single ? 0.693359375 : 0.693147180369123816490);
    const NUMBER low = (NUMBER)(is_single ? -2.12194440e-4 : 1.90821492927058770002e-10);
    NUMBER a = x < most ? -x : -most, shifted = a * (NUMBER)1.4426950408889634 + magic;
    NUMBER whole = shifted - magic, r = (a - whole * high) - whole * low, square = r * r;
    NUMBER even = (NUMBER)(1.0 / 720), odd = (NUMBER)(1.0 / 5040);
    if (!is_single) {
        even = (even + square * (NUMBER)(1.0 / 40320)) +
               square * square * ((NUMBER)(1.0 / 3628800) + square * (NUMBER)(1.0 / 479001600));
        odd = (odd + square * (NUMBER)(1.0 / 362880)) +
              square * square * ((NUMBER)(1.0 / 39916800) + square * (NUMBER)(1.0 / 6227020800));
    }
    even = even * square + (NUMBER)(1.0 / 24);
    odd = odd * square + (NUMBER)(1.0 / 120);
    even = even * square + (NUMBER)0.5;
    odd = odd * square + (NUMBER)(1.0 / 6);
    even = even * square + 1;
    odd = odd * square + 1;
    BITS bits;
    memcpy(&bits, &shifted, sizeof(bits));
    bits = (bits << digits) + ((BITS)(is_single ? 127 : 1023) << digits); /* 2 to the whole number */
    NUMBER power;
    memcpy(&power, &bits, sizeof(power));
    return (odd * r + even) * power;
}

/* log(1 + e) for e from 0 to 1: twice the series of the inverse hyperbolic tangent. */
INLINE NUMBER OF(log_of_1_plus)(NUMBER e) {
    const int terms = sizeof(NUMBER) == 4 ? 8 : 17;
    NUMBER s = e / (2 + e), square = s * s, sum = (NUMBER)(1.0 / (2 * terms + 1));
    for (int i = terms - 1; i >= 0; i--) sum = sum * square + (NUMBER)(1.0 / (2 * i + 1));
    return 2 * s * sum;
}

INLINE NUMBER OF(total)(Vector x) {
    NUMBER sums[LANES];
    memcpy(sums, &x, sizeof(x));
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int u = 0; u < half; u++) sums[u] += sums[u + half];
    return sums[0];
}

INLINE void OF(add)(double *to, Vector x) {
    for (int u = 0; u < LANES; u++) to[u] += x[u];
}

/* -- models side by side ------------------------------------------------------------------------ */

/* Scores of some rows by one vector of models, or two; `stride` models are beside each other. */
INLINE void OF(score_beside)(const int vectors, const int rows, int64_t d, int64_t stride,
                             const NUMBER *const *theta, const NUMBER *const *bias,
                             const void *const *x, NUMBER *const *z) {
    Vector sum[2][4];
    for (int v = 0; v < vectors; v++)
        for (int i = 0; i < rows; i++) sum[v][i] = VECTOR(bias[v], 0);
    for (int64_t k = 0; k < d; k++)
        for (int i = 0; i < rows; i++)
            for (int v = 0; v < vectors; v++)
                sum[v][i] += VECTOR(theta[v], k * stride) * ((const NUMBER *)x[i])[k];
    for (int v = 0; v < vectors; v++)
        for (int i = 0; i < rows; i++) VECTOR(z[v], i * stride) = sum[v][i];
}

/* Adds residuals times features of some rows to the gradient of one vector of models, or two. */
INLINE void OF(pull_beside)(const int vectors, const int features, int64_t n, int64_t stride,
                            const NUMBER *const *r, const void *const *x, int64_t k,
                            NUMBER *const *gradient) {
    Vector sum[2][4];
    for (int v = 0; v < vectors; v++)
        for (int f = 0; f < features; f++) sum[v][f] = VECTOR(gradient[v], (k + f) * stride);
    for (int64_t i = 0; i < n; i++)
        for (int f = 0; f < features; f++)
            for (int v = 0; v < vectors; v++)
                sum[v][f] += VECTOR(r[v], i * stride) * ((const NUMBER *)x[i])[k + f];
    for (int v = 0; v < vectors; v++)
        for (int f = 0; f < features; f++) VECTOR(gradient[v], (k + f) * stride) = sum[v][f];
}

/* The same of one to four features: their sums do not wait for each other. */
INLINE void OF(pull_few_beside)(const int vectors, int features, const Block *b, int64_t stride,
                                const NUMBER *const *r, int64_t k, NUMBER *const *gradient) {
    if (features == 4) OF(pull_beside)(vectors, 4, b->n, stride, r, b->x, k, gradient);
    else if (features == 3) OF(pull_beside)(vectors, 3, b->n, stride, r, b->x, k, gradient);
    else if (features == 2) OF(pull_beside)(vectors, 2, b->n, stride, r, b->x, k, gradient);
    else OF(pull_beside)(vectors, 1, b->n, stride, r, b->x, k, gradient);
}

INLINE void OF(score_all_beside)(const Models *s, const Block *b, int64_t plane, int64_t end) {
    int64_t d = s->n_features, stride = s->stride, per_plane = stride / LANES;
    for (int64_t v = plane * per_plane, n_vectors; v < end * per_plane; v += n_vectors) {
        const NUMBER *theta[2], *bias[2];
        NUMBER *z[2], *to[2];
        n_vectors = MIN(2, end * per_plane - v);
        for (int j = 0; j < n_vectors; j++) {
            int64_t p = (v + j) / per_plane, first = (v + j) % per_plane * LANES;
            theta[j] = (const NUMBER *)s->folded + p * d * stride + first;
            bias[j] = (const NUMBER *)s->bias + p * stride + first;
            z[j] = (NUMBER *)s->z + p * b->n * stride + first;
        }
        for (int64_t i = 0, rows; i < b->n; i += rows) {
            for (int j = 0; j < n_vectors; j++) to[j] = z[j] + i * stride;
            const void *const *x = b->x + i;
            rows = b->n - i >= 4 ? 4 : 1;
            if (n_vectors == 2 && rows == 4) OF(score_beside)(2, 4, d, stride, theta, bias, x, to);
            else if (n_vectors == 2) OF(score_beside)(2, 1, d, stride, theta, bias, x, to);
            else if (rows == 4) OF(score_beside)(1, 4, d, stride, theta, bias, x, to);
            else OF(score_beside)(1, 1, d, stride, theta, bias, x, to);
        }
    }
}

INLINE void OF(pull_all_beside)(const Models *s, const Block *b) {
    int64_t d = s->n_features, stride = s->stride, per_plane = stride / LANES;
    for (int64_t v = 0, n_vectors; v < s->n_outputs * per_plane; v += n_vectors) {
        const NUMBER *r[2];
        NUMBER *gradient[2];
        n_vectors = MIN(2, s->n_outputs * per_plane - v);
        for (int j = 0; j < n_vectors; j++) {
            int64_t p = (v + j) / per_plane, first = (v + j) % per_plane * LANES;
            r[j] = (const NUMBER *)s->z + p * b->n * stride + first;
            gradient[j] = (NUMBER *)b->gradient + p * d * stride + first;
        }
        for (int64_t k = 0; k < d; k += 4) {
            int features = (int)MIN(4, d - k);
            if (n_vectors == 2) OF(pull_few_beside)(2, features, b, stride, r, k, gradient);
            else OF(pull_few_beside)(1, features, b, stride, r, k, gradient);
        }
    }
}

/* -- few models, one after the other ---------------------------------------------------------- */

/* Scores of some rows by one model or two. Vectors of a row may reach beyond its end: there the
   next row comes, for which weights are 0. */
INLINE void OF(score_along)(const int models, const int rows, int64_t n, int64_t width,
                            const NUMBER *theta, const NUMBER *bias, const void *const *x,
                            NUMBER *z) {
    Vector sum[2][4];
    for (int j = 0; j < models; j++)
        for (int i = 0; i < rows; i++) sum[j][i] = (Vector){0};
    for (int64_t k = 0; k < width; k += LANES)
        for (int i = 0; i < rows; i++) {
            Vector features = VECTOR(x[i], k);
            for (int j = 0; j < models; j++) sum[j][i] += VECTOR(theta, j * width + k) * features;
        }
    for (int j = 0; j < models; j++)
        for (int i = 0; i < rows; i++) z[j * n + i] = OF(total)(sum[j][i]) + bias[j];
}

INLINE void OF(score_rows_along)(const int models, const Block *b, int64_t width,
                                 const NUMBER *theta, const NUMBER *bias, NUMBER *z) {
    int64_t i = 0, n = b->n;
    for (; i + 4 <= n; i += 4) OF(score_along)(models, 4, n, width, theta, bias, b->x + i, z + i);
    for (; i < n; i++) OF(score_along)(models, 1, n, width, theta, bias, b->x + i, z + i);
}

INLINE void OF(score_all_along)(const Models *s, const Block *b, int64_t plane, int64_t end) {
    int64_t j = plane * s->n_members, n_models = end * s->n_members, width = s->width;
    for (; j < n_models; j += 2) {
        const NUMBER *theta = (const NUMBER *)s->folded + j * width;
        const NUMBER *bias = (const NUMBER *)s->bias + j;
        NUMBER *z = (NUMBER *)s->z + j * b->n;
        if (j + 1 < n_models) OF(score_rows_along)(2, b, width, theta, bias, z);
        else OF(score_rows_along)(1, b, width, theta, bias, z);
    }
}

/* Adds residuals times features, from the k-th on, to the gradient of one model or two. */
INLINE void OF(pull_along)(const int models, const int vectors, int64_t n, int64_t width,
                           const NUMBER *r, const void *const *x, int64_t k, NUMBER *gradient) {
    Vector sum[2][4];
    for (int j = 0; j < models; j++)
        for (int v = 0; v < vectors; v++) sum[j][v] = VECTOR(gradient, j * width + k + v * LANES);
    for (int64_t i = 0; i < n; i++)
        for (int v = 0; v < vectors; v++) {
            Vector features = VECTOR(x[i], k + v * LANES);
            for (int j = 0; j < models; j++) sum[j][v] += features * r[j * n + i];
        }
    for (int j = 0; j < models; j++)
        for (int v = 0; v < vectors; v++) VECTOR(gradient, j * width + k + v * LANES) = sum[j][v];
}

INLINE void OF(pull_all_along)(const Models *s, const Block *b) {
    int64_t n = b->n, width = s->width, n_models = s->n_outputs * s->n_members;
    for (int64_t j = 0; j < n_models; j += 2) {
        const NUMBER *r = (const NUMBER *)s->z + j * n;
        NUMBER *gradient = (NUMBER *)b->gradient + j * width;
        int is_last = j + 1 == n_models;
        for (int64_t k = 0, vectors; k < width; k += vectors * LANES) {
            vectors = width - k >= 4 * LANES ? 4 : 1;
            if (is_last && vectors == 4) OF(pull_along)(1, 4, n, width, r, b->x, k, gradient);
            else if (is_last) OF(pull_along)(1, 1, n, width, r, b->x, k, gradient);
            else if (vectors == 4) OF(pull_along)(2, 4, n, width, r, b->x, k, gradient);
            else OF(pull_along)(2, 1, n, width, r, b->x, k, gradient);
        }
    }
}

/* -- a block ------------------------------------------------------------------------------------ */

/* Adds the sums over the rows, of a number of each row and model, to those of the models. */
INLINE void OF(add_rows)(const Models *s, const Block *b, const NUMBER *a, double *sums) {
    int64_t n = b->n, stride = s->stride;
    for (int64_t v = 0; s->is_beside && v < stride; v += LANES) {
        Vector sum[4] = {{0}}; /* which do not wait for each other */
        int64_t i = 0;
        for (; i + 4 <= n; i += 4)
            for (int u = 0; u < 4; u++) sum[u] += VECTOR(a, (i + u) * stride + v);
        for (; i < n; i++) sum[0] += VECTOR(a, i * stride + v);
        OF(add)(sums + v, (sum[0] + sum[1]) + (sum[2] + sum[3]));
    }
    for (int64_t m = 0; !s->is_beside && m < stride; m++) {
        Vector sum = {0};
        NUMBER rest = 0;
        int64_t i = 0;
        for (; i + LANES <= n; i += LANES) sum += VECTOR(a, m * n + i);
        for (; i < n; i++) rest += a[m * n + i];
        sums[m] += OF(total)(sum) + rest;
    }
}

/* Multiplies a number of each row and model by the row's weight. */
INLINE void OF(weigh_rows)(const Models *s, const Block *b, NUMBER *a) {
    int64_t n = b->n, stride = s->stride, of_row = s->is_beside ? stride : 1;
    for (int64_t i = 0; i < n; i++)
        for (int64_t m = 0; m < stride; m++)
            a[i * of_row + m * (s->is_beside ? 1 : n)] *= (NUMBER)b->weight[i];
}

/* Of margins z: p - y in their place; which are wrong. */
INLINE void OF(learn_margins)(int64_t n, int is_positive, NUMBER *restrict z,
                              NUMBER *restrict wrong) {
    NUMBER y = (NUMBER)is_positive;
    for (int64_t i = 0; i < n; i++) {
        NUMBER odds = OF(exp_of_minus)(z[i] < 0 ? -z[i] : z[i]);
        wrong[i] = z[i] > 0 ? 1 - y : y;
        z[i] = (z[i] > 0 ? 1 : odds) / (1 + odds) - y;
    }
}

/* Of margins z: their losses in their place, log(1 + exp(z)) - y z; which are wrong. */
INLINE void OF(judge_margins)(int64_t n, int is_positive, NUMBER *restrict z,
                              NUMBER *restrict wrong) {
    NUMBER y = (NUMBER)is_positive;
    for (int64_t i = 0; i < n; i++) {
        NUMBER odds = OF(exp_of_minus)(z[i] < 0 ? -z[i] : z[i]);
        wrong[i] = z[i] > 0 ? 1 - y : y;
        z[i] = OF(log_of_1_plus)(odds) + (z[i] > 0 ? z[i] : 0) - y * z[i];
    }
}

/* The same of logits, n of each output: p - y in the place of each; or losses in that of the first. */
INLINE void OF(judge_logits)(int64_t n, int64_t n_outputs, int64_t label, int is_learning,
                             NUMBER *restrict z, NUMBER *restrict wrong, NUMBER *restrict best,
                             NUMBER *restrict sum) {
    for (int64_t i = 0; i < n; i++) best[i] = z[i], wrong[i] = label != 0, sum[i] = 0;
    for (int64_t o = 1; o < n_outputs; o++)
        for (int64_t i = 0; i < n; i++) {
            wrong[i] = z[o * n + i] > best[i] ? (NUMBER)(o != label) : wrong[i];
            best[i] = z[o * n + i] > best[i] ? z[o * n + i] : best[i];
        }
    if (!is_learning)
        for (int64_t i = 0; i < n; i++) { /* best - z of the label, which the exponents need not */
            NUMBER behind = best[i] - z[label * n + i];
            for (int64_t o = 0; o < n_outputs; o++)
                sum[i] += OF(exp_of_minus)(best[i] - z[o * n + i]);
            z[i] = behind + (NUMBER)log(sum[i]);
        }
    for (int64_t o = 0; is_learning && o < n_outputs; o++)
        for (int64_t i = 0; i < n; i++) {
            z[o * n + i] = OF(exp_of_minus)(best[i] - z[o * n + i]);
            sum[i] += z[o * n + i];
        }
    for (int64_t o = 0; is_learning && o < n_outputs; o++)
        for (int64_t i = 0; i < n; i++) z[o * n + i] = z[o * n + i] / sum[i] - (o == label);
}

/* Which rows are wrong, of the models as they are shown, and their losses. */
INLINE void OF(judge)(const Models *s, const Block *b) {
    int64_t n = b->n * s->stride;
    NUMBER *z = (NUMBER *)s->z + s->n_outputs * n, *wrong = s->wrong;
    if (s->n_outputs == 1) OF(judge_margins)(n, b->label != 0, z, wrong);
    else OF(judge_logits)(n, s->n_outputs, b->label, 0, z, wrong, wrong + n, wrong + 2 * n);
    if (b->weight) OF(weigh_rows)(s, b, wrong), OF(weigh_rows)(s, b, z);
    OF(add_rows)(s, b, wrong, b->shown_wrong);
    OF(add_rows)(s, b, z, s->loss);
}

/* Which rows are wrong, of the models as they are, and the gradient by their weights. */
INLINE void OF(learn)(const Models *s, const Block *b) {
    int64_t n = b->n * s->stride;
    NUMBER *z = s->z, *wrong = s->wrong;
    if (s->n_outputs == 1) OF(learn_margins)(n, b->label != 0, z, wrong);
    else OF(judge_logits)(n, s->n_outputs, b->label, 1, z, wrong, wrong + n, wrong + 2 * n);
    if (b->weight) OF(weigh_rows)(s, b, wrong);
    OF(add_rows)(s, b, wrong, b->wrong);
    for (int64_t o = 0; o < s->n_outputs; o++) {
        if (b->weight) OF(weigh_rows)(s, b, z + o * n);
        OF(add_rows)(s, b, z + o * n, b->by_bias + o * s->stride);
    }
    if (s->is_beside) OF(pull_all_beside)(s, b);
    else OF(pull_all_along)(s, b);
}

INLINE int OF(work_any)(const Models *s, const Block *b) {
    int64_t first = b->wrong ? 0 : s->n_outputs, end = (b->shown_wrong ? 2 : 1) * s->n_outputs;
    if (s->is_beside) OF(score_all_beside)(s, b, first, end);
    else OF(score_all_along)(s, b, first, end);
    if (b->shown_wrong) OF(judge)(s, b);
    if (b->wrong) OF(learn)(s, b);
    return 0;
}

/* Weights of models as they are for the features, scaled or not, in the order of the kernels. */
INLINE int OF(fold_any)(const Models *s, int64_t plane, const double *theta) {
    int64_t d = s->n_features, size = s->n_outputs * (d + 1);
    NUMBER *folded = s->folded, *bias = s->bias;
    for (int64_t o = 0; o < s->n_outputs; o++, plane++)
        for (int64_t m = 0; m < s->n_members; m++) {
            const double *own = theta + m * size + o * (d + 1);
            NUMBER *to = folded + (s->is_beside ? plane * d * s->stride + m
                                                : (plane * s->n_members + m) * s->width);
            int64_t apart = s->is_beside ? s->stride : 1;
            double base = own[d]; /* theta ((x - offset) factor) = (theta factor) x - ... */
            for (int64_t k = 0; k < d; k++) {
                to[k * apart] = (NUMBER)(own[k] * s->factor[k]);
                base -= to[k * apart] * s->offset[k];
            }
            bias[plane * s->stride + m] = (NUMBER)base;
        }
    return 0;
}

/* The gradient of all rows at hand from those of each kind, times `blend` of the kind and model. */
INLINE int OF(blend_any)(const Models *s, int64_t n_kinds) {
    int64_t stride = s->stride, n_outputs = s->n_outputs, d = s->n_features;
    int64_t size = n_outputs * (s->is_beside ? d * stride : s->n_members * s->width);
    for (int64_t c = 0; c < n_kinds; c++) {
        const NUMBER *restrict gradient = (const NUMBER *)s->gradient + c * size;
        const double *restrict blend = s->blend + c * stride;
        double *restrict by_weight = s->by_weight;
        for (int64_t i = 0; s->is_beside && i < size; i += stride)
            for (int64_t m = 0; m < stride; m++)
                by_weight[i + m] = (c ? by_weight[i + m] : 0) + blend[m] * gradient[i + m];
        for (int64_t j = 0, i = 0; !s->is_beside && i < size; j++)
            for (int64_t end = i + s->width; i < end; i++)
                by_weight[i] = (c ? by_weight[i] : 0) + blend[j % stride] * gradient[i];
    }
    return 0;
}

/* Mean and variance of each column, in one pass over pieces that stay in the cache. A piece with
   weight q and mean m adds q (m - mean)^2 and its own variance to what was found before (Chan, Golub
   and LeVeque, 1983). `scratch` has room for two numbers of each column. */
INLINE int OF(moments_any)(int64_t n, int64_t d, const void *table, const double *weight,
                           double *restrict mean, double *restrict variance,
                           double *restrict scratch) {
    int64_t piece = MAX(16, FIRST_CACHE / (int64_t)(MAX(1, d) * sizeof(NUMBER)));
    double *restrict centre = scratch, *restrict squares = scratch + d, total = 0;
    memset(mean, 0, d * sizeof(double));
    memset(variance, 0, d * sizeof(double));
    for (int64_t first = 0; first < n; first += piece) {
        int64_t end = MIN(first + piece, n);
        double q = 0;
        memset(scratch, 0, 2 * d * sizeof(double));
        for (int64_t i = first; i < end; i++) {
            const NUMBER *restrict x = (const NUMBER *)table + i * d;
            double w = weight ? weight[i] : 1;
            for (int64_t k = 0; k < d; k++) centre[k] += w * x[k];
            q += w;
        }
        if (q == 0) continue;
        for (int64_t k = 0; k < d; k++) centre[k] /= q;
        for (int64_t i = first; i < end; i++) {
            const NUMBER *restrict x = (const NUMBER *)table + i * d;
            double w = weight ? weight[i] : 1;
            for (int64_t k = 0; k < d; k++) squares[k] += w * (x[k] - centre[k]) * (x[k] - centre[k]);
        }
        for (int64_t k = 0; k < d; k++) {
            double step = centre[k] - mean[k];
            variance[k] += squares[k] + step * step * (total * q / (total + q));
            mean[k] += step * (q / (total + q));
        }
        total += q;
    }
    for (int64_t k = 0; k < d; k++) variance[k] /= total;
    return 0;
}

VERSIONS(int, OF(moments), (int64_t n, int64_t d, const void *table, const double *weight, double *mean,
                            double *variance, double *scratch),
         (n, d, table, weight, mean, variance, scratch))
VERSIONS(int, OF(blend), (const Models *s, int64_t n_kinds), (s, n_kinds))
VERSIONS(int, OF(work), (const Models *s, const Block *b), (s, b))
VERSIONS(int, OF(fold), (const Models *s, int64_t plane, const double *theta), (s, plane, theta))

#undef LANES
#undef Vector
#undef VECTOR
#undef NUMBER
#undef BITS
#undef OF
