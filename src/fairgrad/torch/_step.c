/* fairgrad.dual.step on the CPU, as plain loops: `update` takes counts and gives weights.

   `step`, for the losses, takes a batch as it comes (labels, sensitive values, scores), so that it
   also finds each row's cell and whether its prediction is wrong, and gives each row's factor.
   PyTorch computes the loss. Without this module the same is done with tensor operations; the
   tests hold the two against each other. State and constants are tensors, whose addresses the
   caller (fairgrad.torch.compiled) passes; nothing here keeps them alive. */

#define Py_LIMITED_API 0x030A0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef BUILT_FROM
#define BUILT_FROM "" /* the build gives the SHA-256 of this file */
#endif
#define TINY 1e-8      /* as in fairgrad.dual, as are the next two */
#define BORROWED 1e-24
#define NOWHERE (1 << 30) /* as in fairgrad.torch.cells: the entry of a value never seen */
#define IGNORED -1
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))

typedef struct { /* entries of the keys first, first + 1, ..., first + size - 1 */
    int64_t first, size;
    const int64_t *entries;
} Table;

typedef struct {
    int64_t n_cells, n_levels, n_sides, n_entries, n_blocks, n_label_rows;
    const double *c0, *value, *share, *bound, *floor, *per_share; /* floor: NULL if all signed */
    const int64_t *row, *cell, *block;
    const double *fairness_rate, *proportional_rate; /* of each level */
    const double *error_memory, *least_weight;       /* of each cell */
    int has_proportional;
    int64_t has_ignore, ignore_index, n_columns;
    Table label, joint, column[8];
    int is_diagonal; /* level j has one coefficient, that of cell j: the usual case, and faster */
    double *counts, *rates, *sums, *net, *weights; /* scratch */
    int64_t *cells, cells_size;
} Problem;

/* -- where the rows of a batch are --------------------------------------------------------- */

static int64_t look_up(const Table *table, int64_t key) {
    int64_t place = key - table->first;
    if (place < 0 || place >= table->size) return NOWHERE;
    return table->entries[place];
}

static int64_t group_of(const Problem *p, const int64_t *s) {
    if (p->n_columns == 1) return look_up(&p->column[0], s[0]);
    int64_t place = 0;
    for (int64_t c = 0; c < p->n_columns; c++) {
        int64_t entry = look_up(&p->column[c], s[c]);
        if (entry >= NOWHERE) return NOWHERE;
        place += entry;
    }
    return look_up(&p->joint, place);
}

static int64_t best_class(const float *scores, int64_t n) { /* the first of the highest, or NaN */
    if (n == 2) return scores[0] == scores[0] && !(scores[1] <= scores[0]); /* without a branch */
    int64_t best = 0;
    for (int64_t c = 0; c < n; c++) {
        if (scores[c] != scores[c]) return c;
        if (scores[c] > scores[best]) best = c;
    }
    return best;
}

/* -- algorithm 1 ----------------------------------------------------------------------------- */

/* The errors of the cells and the rows they rest on, in place, from counts of right and wrong. */
static void estimate_errors(Problem *p, const double *right, double *kept, double *errors) {
    const double *wrong = right + p->n_cells;
    int64_t per_label = p->n_cells / p->n_label_rows;
    for (int64_t l = 0, k = 0; l < p->n_label_rows; l++) {
        double all = 0, all_wrong = 0;
        for (int64_t g = 0; g < per_label; g++) {
            all += right[k + g] + wrong[k + g];
            all_wrong += wrong[k + g];
        }
        for (int64_t end = k + per_label; k < end; k++) {
            double in_batch = right[k] + wrong[k], memory = p->error_memory[k];
            if (in_batch == 0 && kept[k] >= TINY && memory == 0) continue; /* as it was */
            double rows = kept[k] + in_batch + BORROWED * all;
            errors[k] = (kept[k] * errors[k] + wrong[k] + BORROWED * all_wrong) / rows;
            kept[k] = MAX(memory * rows, MIN(rows, TINY));
        }
    }
}

static void find_levels(Problem *p, const double *errors) { /* F = c0 + C e, into rates */
    int64_t n = p->n_levels;
    memset(p->sums, 0, p->n_blocks * sizeof(double));
    if (p->is_diagonal) {
        for (int64_t j = 0; j < n; j++) p->rates[j] = p->value[j] * errors[j];
    } else {
        memset(p->rates, 0, n * sizeof(double));
        for (int64_t e = 0; e < p->n_entries; e++)
            p->rates[p->row[e]] += p->value[e] * errors[p->cell[e]];
    }
    for (int64_t j = 0; j < n; j++) p->sums[p->block[j]] += p->share[j] * p->rates[j];
    for (int64_t j = 0; j < n; j++) p->rates[j] += p->c0[j] - p->sums[p->block[j]];
}

/* Moves the multipliers by the levels in `rates`, and leaves those in use in `net`. */
static void ascend(Problem *p, double *multipliers, int updates) {
    memset(p->net, 0, p->n_levels * sizeof(double));
    for (int64_t side = 0, m = 0; side < p->n_sides; side++) {
        double sign = side ? -1 : 1;
        for (int64_t j = 0; j < p->n_levels; j++, m++) {
            double violation = sign * p->rates[j] - p->bound[m];
            double least = p->floor ? p->floor[m] : -INFINITY;
            if (updates) {
                double moved = multipliers[m] + p->fairness_rate[j] * violation;
                multipliers[m] = MAX(moved, least);
            }
            p->net[j] += sign * multipliers[m];
            if (p->has_proportional)
                p->net[j] += sign * p->proportional_rate[j] * MAX(violation, least);
        }
    }
}

static void weigh(Problem *p, double *weights) { /* w = 1 + (C' net) / p */
    memset(p->sums, 0, p->n_blocks * sizeof(double));
    for (int64_t j = 0; j < p->n_levels; j++) p->sums[p->block[j]] += p->net[j];
    for (int64_t j = 0; j < p->n_levels; j++) p->net[j] -= p->share[j] * p->sums[p->block[j]];
    if (p->is_diagonal) {
        for (int64_t k = 0; k < p->n_cells; k++) weights[k] = p->value[k] * p->net[k];
    } else {
        memset(weights, 0, p->n_cells * sizeof(double));
        for (int64_t e = 0; e < p->n_entries; e++)
            weights[p->cell[e]] += p->value[e] * p->net[p->row[e]];
    }
    for (int64_t k = 0; k < p->n_cells; k++) {
        double weight = 1 + weights[k] * p->per_share[k];
        weights[k] = MAX(weight, p->least_weight[k]);
    }
}

/* -- Python ---------------------------------------------------------------------------------- */

#define POINTER(type, object) ((type *)PyLong_AsVoidPtr(object))

static void free_problem(PyObject *capsule) {
    Problem *p = PyCapsule_GetPointer(capsule, NULL);
    free(p->counts);
    free(p->cells);
    free(p);
}

static Table table_from(PyObject *tuple) {
    Table table = {PyLong_AsLongLong(PyTuple_GetItem(tuple, 0)),
                   PyLong_AsLongLong(PyTuple_GetItem(tuple, 1)),
                   POINTER(const int64_t, PyTuple_GetItem(tuple, 2))};
    return table;
}

static PyObject *prepare(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    if (n != 4) return PyErr_Format(PyExc_TypeError, "expected 4 arguments, got %zd", n);
    Problem *p = calloc(1, sizeof(Problem));
    if (!p) return PyErr_NoMemory();
    int64_t *sizes[] = {&p->n_cells, &p->n_levels, &p->n_sides, &p->n_entries, &p->n_blocks,
                        &p->n_label_rows, &p->has_ignore, &p->ignore_index, &p->n_columns};
    for (int i = 0; i < 9; i++) *sizes[i] = PyLong_AsLongLong(PyTuple_GetItem(args[0], i));
    const double **doubles[] = {&p->c0, &p->value, &p->share, &p->bound, &p->floor, &p->per_share,
                                &p->fairness_rate, &p->proportional_rate, &p->error_memory,
                                &p->least_weight};
    for (int i = 0; i < 10; i++) *doubles[i] = POINTER(const double, PyTuple_GetItem(args[1], i));
    const int64_t **ints[] = {&p->row, &p->cell, &p->block};
    for (int i = 0; i < 3; i++) *ints[i] = POINTER(const int64_t, PyTuple_GetItem(args[2], i));
    if (!PyErr_Occurred() && p->n_columns > 0) {
        p->label = table_from(PyTuple_GetItem(args[3], 0));
        p->joint = table_from(PyTuple_GetItem(args[3], 1));
        for (int64_t c = 0; c < p->n_columns && c < 8; c++)
            p->column[c] = table_from(PyTuple_GetItem(args[3], 2 + c));
    }
    p->counts = calloc(3 * p->n_cells + 2 * p->n_levels + p->n_blocks, sizeof(double));
    if (PyErr_Occurred() || !p->counts) {
        free(p->counts);
        free(p);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    p->weights = p->counts + 2 * p->n_cells;
    p->rates = p->weights + p->n_cells;
    p->net = p->rates + p->n_levels;
    p->sums = p->net + p->n_levels;
    p->is_diagonal = p->n_entries == p->n_levels && p->n_entries == p->n_cells;
    for (int64_t e = 0; p->is_diagonal && e < p->n_entries; e++)
        p->is_diagonal = p->row[e] == e && p->cell[e] == e;
    for (int64_t j = 0; j < p->n_levels; j++) p->has_proportional |= p->proportional_rate[j] != 0;
    return PyCapsule_New(p, NULL, free_problem);
}

/* (problem, counts, remembered rows, errors, multipliers, weights): dual.step, in place. */
static PyObject *update(PyObject *module, PyObject *const *args, Py_ssize_t n_args) {
    if (n_args != 6) return PyErr_Format(PyExc_TypeError, "expected 6 arguments, got %zd", n_args);
    Problem *p = PyCapsule_GetPointer(args[0], NULL);
    if (!p) return NULL;
    const double *counts = POINTER(const double, args[1]);
    double *kept = POINTER(double, args[2]), *errors = POINTER(double, args[3]);
    double *multipliers = POINTER(double, args[4]), *weights = POINTER(double, args[5]);
    if (PyErr_Occurred()) return NULL;
    estimate_errors(p, counts, kept, errors);
    find_levels(p, errors);
    ascend(p, multipliers, 1);
    weigh(p, weights);
    Py_RETURN_NONE;
}

/* (problem, rows, labels, sensitive, scores, classes, wrong, sample weights, is a mean, updates,
   remembered rows, errors, multipliers, factors, losses, plain) -> the weight of the rows counted;
   below 0: -1 - 2 * row if the row's label was never seen, -2 - 2 * row if its sensitive value was
   not. Then nothing has changed. If losses are given, the sum of those counted and their weight are
   written to `plain`. */
static PyObject *step(PyObject *module, PyObject *const *args, Py_ssize_t n_args) {
    if (n_args != 16) return PyErr_Format(PyExc_TypeError, "expected 16 arguments, got %zd", n_args);
    Problem *p = PyCapsule_GetPointer(args[0], NULL);
    if (!p) return NULL;
    int64_t n = PyLong_AsLongLong(args[1]), n_classes = PyLong_AsLongLong(args[5]);
    const int64_t *label = POINTER(const int64_t, args[2]), *s = POINTER(const int64_t, args[3]);
    const float *scores = POINTER(const float, args[4]);
    const uint8_t *wrong = POINTER(const uint8_t, args[6]);
    const double *sample_weight = POINTER(const double, args[7]);
    int is_mean = PyObject_IsTrue(args[8]), updates = PyObject_IsTrue(args[9]);
    double *kept = POINTER(double, args[10]), *errors = POINTER(double, args[11]);
    double *multipliers = POINTER(double, args[12]), total = 0;
    float *factor = POINTER(float, args[13]);
    const float *losses = POINTER(const float, args[14]);
    double *plain = POINTER(double, args[15]), sum = 0;
    if (PyErr_Occurred()) return NULL;
    if (!scores && !wrong && n > 0) /* tensors that are not what they seem have no memory */
        return PyErr_Format(PyExc_TypeError, "expected scores or wrong predictions in memory");
    if (n > p->cells_size) {
        int64_t *grown = realloc(p->cells, n * sizeof(int64_t));
        if (!grown) return PyErr_NoMemory();
        p->cells = grown;
        p->cells_size = n;
    }
    memset(p->counts, 0, 2 * p->n_cells * sizeof(double));
    for (int64_t i = 0; i < n; i++) {
        int is_ignored = p->has_ignore && label[i] == p->ignore_index;
        int64_t first = is_ignored ? 0 : look_up(&p->label, label[i]);
        if (first >= NOWHERE) return PyLong_FromLongLong(-1 - 2 * i);
        int64_t group = group_of(p, s + i * p->n_columns);
        if (group >= NOWHERE) return PyLong_FromLongLong(-2 - 2 * i);
        p->cells[i] = is_ignored ? IGNORED : first + group;
        if (is_ignored) continue;
        double weight = sample_weight ? sample_weight[i] : 1;
        int is_wrong = scores ? best_class(scores + i * n_classes, n_classes) != label[i] : wrong[i];
        p->counts[is_wrong * p->n_cells + p->cells[i]] += weight;
        total += weight;
        if (losses) sum += weight * losses[i];
    }
    if (losses) plain[0] = sum, plain[1] = total;
    if (updates) estimate_errors(p, p->counts, kept, errors);
    if (updates || p->has_proportional) find_levels(p, errors);
    ascend(p, multipliers, updates);
    weigh(p, p->weights);
    double divisor = is_mean ? total : 1, of_ignored = 1 / divisor;
    for (int64_t k = 0; k < p->n_cells; k++) p->weights[k] /= divisor;
    for (int64_t i = 0; i < n; i++)
        factor[i] = (float)(p->cells[i] == IGNORED ? of_ignored : p->weights[p->cells[i]]);
    for (int64_t i = 0; sample_weight && i < n; i++) factor[i] *= (float)sample_weight[i];
    return PyFloat_FromDouble(total);
}

/* -- whole epochs of linear models ----------------------------------------------------------- */

#define LANES 8   /* sums that are independent of each other, so that compilers vectorise */
#define WIDTH 4   /* of vectors in double precision, and of half of those in single */
#define PIECE 512 /* rows judged at a time */
#define TILE 32   /* rows that stay in the cache while all models go over them */

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi" /* vectors are passed to functions that are inlined only */
#endif
typedef double Vector __attribute__((vector_size(WIDTH * sizeof(double)), aligned(8), may_alias));
typedef float Singles __attribute__((vector_size(2 * WIDTH * sizeof(float)), aligned(4), may_alias));
typedef float Half __attribute__((vector_size(WIDTH * sizeof(float))));

#ifdef __clang__
#define PICK(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#define PICK_SINGLES(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
typedef int64_t Picked __attribute__((vector_size(WIDTH * sizeof(int64_t))));
typedef int32_t PickedSingles __attribute__((vector_size(2 * WIDTH * sizeof(int32_t))));
#define PICK(a, b, ...) __builtin_shuffle(a, b, (Picked){__VA_ARGS__})
#define PICK_SINGLES(a, b, ...) __builtin_shuffle(a, b, (PickedSingles){__VA_ARGS__})
#endif

/* What takes long is compiled twice: as `name_any`, and for processors with AVX2 and FMA. */
#define INLINE static inline __attribute__((always_inline))
#if defined(__x86_64__) && defined(__GNUC__)
static int has_fma = 0;
#define VERSIONS(type, name, parameters, arguments)                                          \
    __attribute__((target("avx2,fma"))) static type name##_fma parameters {                  \
        return name##_any arguments;                                                         \
    }                                                                                        \
    static type name parameters { return has_fma ? name##_fma arguments : name##_any arguments; }
#else
#define VERSIONS(type, name, parameters, arguments) \
    static type name parameters { return name##_any arguments; }
#endif

typedef struct { int32_t cell, label; } RowPlace; /* of one row */

typedef struct { /* models that see the same rows; inputs: features, the bias, zeros */
    Problem *problem;
    int64_t n_features, n_inputs, n_outputs, n_members, batch_size, n_steps, n_judged, n_cells, n_groups;
    int64_t n_slots, first_averaged, is_single, is_active, n_state; /* n_state: of each slot */
    int64_t is_direct, n_rows; /* is_direct: rows are read where they are in the table */
    int64_t row_size;          /* bytes of a row there */
    const void *X;
    const int64_t *judged, *next; /* next: rows that come after those at hand, n_next of them */
    int64_t n_next;
    const RowPlace *place;
    const double *weight; /* of the rows; NULL if all are 1 */
    const double *offset, *factor; /* of the features: (X - offset) * factor is what models see */
    const double *rate, *decay, *clip, *gain;
    const uint8_t *ignores_labels; /* of each member */
    double *theta; /* as they are, and then as they are shown: averaged, at the end of an epoch */
    double *mean, *rows, *errors, *multipliers, *weights;
    double *judged_counts, *judged_loss, *slots;
    double n_averaged;
    const void **row;      /* where the features of the rows at hand are */
    void *folded; /* weights as they are for these features, scaled or not, in their precision */
    double *bias;
    double *x, *last; /* scaled copies of the rows, if they are not read in the table; its last row */
    double *z, *gradient, *e, *y, *w, *wrong, *mass, *counts; /* scratch, as are the next */
    int64_t *start, *present, n_present;
} Models;

/* exp(-x) for x >= 0, up to the last bit or two, for loops that are vectorised. */
INLINE double exp_of_minus(double x) {
    const double magic = 6755399441055744.0; /* adding it rounds to whole numbers */
    double a = x < 708 ? -x : -708, shifted = a * 1.4426950408889634 + magic;
    double whole = shifted - magic;
    double r = (a - whole * 0.693147180369123816490) - whole * 1.90821492927058770002e-10;
    double even = 1.0 / 479001600, odd = 1.0 / 6227020800, square = r * r;
    even = even * square + 1.0 / 3628800;
    odd = odd * square + 1.0 / 39916800;
    even = even * square + 1.0 / 40320;
    odd = odd * square + 1.0 / 362880;
    even = even * square + 1.0 / 720;
    odd = odd * square + 1.0 / 5040;
    even = even * square + 1.0 / 24;
    odd = odd * square + 1.0 / 120;
    even = even * square + 0.5;
    odd = odd * square + 1.0 / 6;
    even = even * square + 1;
    odd = odd * square + 1;
    int64_t bits;
    memcpy(&bits, &shifted, sizeof(bits));
    bits = (int64_t)((uint64_t)bits << 52) + ((int64_t)1023 << 52); /* 2 to the whole number */
    double power;
    memcpy(&power, &bits, sizeof(power));
    return (odd * r + even) * power;
}

INLINE double dot(int64_t n, const double *a, const double *b) {
    double sums[LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int u = 0; u < LANES; u++) sums[u] += a[i + u] * b[i + u];
    for (; i < n; i++) sum += a[i] * b[i];
    for (int u = 0; u < LANES; u++) sum += sums[u];
    return sum;
}

/* Rows and weights of models are in the precision of the table; all sums end in double precision.
   Vectors of a row may reach beyond its end: there the next row comes, whose weights are 0. */
#define SINGLES(array, k) (*(const Singles *)((const float *)(array) + (k)))
#define DOUBLES(array, k) (*(const Vector *)((const double *)(array) + (k)))

INLINE Vector first_half(Singles x) {
    Half halves[2];
    memcpy(halves, &x, sizeof(halves));
    return __builtin_convertvector(halves[0], Vector);
}

INLINE Vector second_half(Singles x) {
    Half halves[2];
    memcpy(halves, &x, sizeof(halves));
    return __builtin_convertvector(halves[1], Vector);
}

INLINE Vector four_sums(Vector a, Vector b, Vector c, Vector d) { /* of the numbers in each */
    Vector ab = PICK(a, b, 0, 4, 2, 6) + PICK(a, b, 1, 5, 3, 7);
    Vector cd = PICK(c, d, 0, 4, 2, 6) + PICK(c, d, 1, 5, 3, 7);
    return PICK(ab, cd, 0, 1, 4, 5) + PICK(ab, cd, 2, 3, 6, 7);
}

INLINE Vector four_sums_of_singles(Singles a, Singles b, Singles c, Singles d) {
    Singles ab = PICK_SINGLES(a, b, 0, 8, 2, 10, 4, 12, 6, 14) +
                 PICK_SINGLES(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
    Singles cd = PICK_SINGLES(c, d, 0, 8, 2, 10, 4, 12, 6, 14) +
                 PICK_SINGLES(c, d, 1, 9, 3, 11, 5, 13, 7, 15);
    Singles all = PICK_SINGLES(ab, cd, 0, 1, 8, 9, 4, 5, 12, 13) +
                  PICK_SINGLES(ab, cd, 2, 3, 10, 11, 6, 7, 14, 15);
    return first_half(all) + second_half(all);
}

/* z (m x n) = theta (m x d) x' + bias, of one or two models and four rows, or one row. */
INLINE void scores_of(const int is_single, const int models, const int rows, int64_t n, int64_t d,
                      const void *theta, const double *bias, const void *const *x, double *z) {
    Vector sums[2][4] = {{{0}}};
    Singles single[2][4] = {{{0}}};
    for (int64_t k = 0; is_single && k < d; k += 2 * WIDTH)
        for (int i = 0; i < rows; i++) {
            Singles features = SINGLES(x[i], k);
            for (int j = 0; j < models; j++) single[j][i] += SINGLES(theta, j * d + k) * features;
        }
    for (int64_t k = 0; !is_single && k < d; k += WIDTH)
        for (int i = 0; i < rows; i++) {
            Vector features = DOUBLES(x[i], k);
            for (int j = 0; j < models; j++) sums[j][i] += DOUBLES(theta, j * d + k) * features;
        }
    for (int j = 0; j < models; j++) {
        Singles *own = single[j];
        Vector found = bias[j] + (is_single ? four_sums_of_singles(own[0], own[1], own[2], own[3])
                                            : four_sums(sums[j][0], sums[j][1], sums[j][2], sums[j][3]));
        if (rows == 4) *(Vector *)(z + j * n) = found;
        else z[j * n] = found[0];
    }
}

INLINE void scores_of_rows(const int is_single, const int models, int64_t rows, int64_t n, int64_t d,
                           const void *theta, const double *bias, const void *const *x, double *z) {
    int64_t i = 0;
    for (; i + 4 <= rows; i += 4) scores_of(is_single, models, 4, n, d, theta, bias, x + i, z + i);
    for (; i < rows; i++) scores_of(is_single, models, 1, n, d, theta, bias, x + i, z + i);
}

INLINE int find_scores_any(int is_single, int64_t m, int64_t rows, int64_t n, int64_t d,
                           const void *theta, const double *bias, const void *const *x, double *z) {
    int64_t two = 2 * d * (is_single ? sizeof(float) : sizeof(double));
    for (int64_t j = 0; j < m; j += 2, theta = (const char *)theta + two, bias += 2, z += 2 * n) {
        int is_last = j + 1 == m;
        if (is_single && is_last) scores_of_rows(1, 1, rows, n, d, theta, bias, x, z);
        else if (is_single) scores_of_rows(1, 2, rows, n, d, theta, bias, x, z);
        else if (is_last) scores_of_rows(0, 1, rows, n, d, theta, bias, x, z);
        else scores_of_rows(0, 2, rows, n, d, theta, bias, x, z);
    }
    return 0;
}
VERSIONS(int, find_scores, (int is_single, int64_t m, int64_t rows, int64_t n, int64_t d,
                            const void *theta, const double *bias, const void *const *x, double *z),
         (is_single, m, rows, n, d, theta, bias, x, z))

/* gradient (m x d) += r (m x n) x (n x d), of some models and some rows. */
INLINE void gradient_of(const int is_single, const int models, const int rows, int64_t n, int64_t d,
                        const double *r, const void *const *x, double *gradient) {
    double factor[2][8];
    float rounded[2][8];
    for (int j = 0; j < models; j++)
        for (int i = 0; i < rows; i++) rounded[j][i] = (float)(factor[j][i] = r[j * n + i]);
    for (int64_t k = 0; is_single && k < d; k += 2 * WIDTH) {
        Singles sum[2] = {{0}}, other[2] = {{0}}; /* two sums, which do not wait for each other */
        for (int i = 0; i < rows; i++) {
            Singles features = SINGLES(x[i], k);
            for (int j = 0; j < models; j++) {
                if (i % 2) other[j] += rounded[j][i] * features;
                else sum[j] += rounded[j][i] * features;
            }
        }
        for (int j = 0; j < models; j++) {
            Vector *to = (Vector *)(gradient + j * d + k);
            Singles all = sum[j] + other[j];
            to[0] += first_half(all);
            to[1] += second_half(all);
        }
    }
    for (int64_t k = 0; !is_single && k < d; k += WIDTH) {
        Vector sum[2], other[2] = {{0}};
        for (int j = 0; j < models; j++) sum[j] = *(Vector *)(gradient + j * d + k);
        for (int i = 0; i < rows; i++) {
            Vector features = DOUBLES(x[i], k);
            for (int j = 0; j < models; j++) {
                if (i % 2) other[j] += factor[j][i] * features;
                else sum[j] += factor[j][i] * features;
            }
        }
        for (int j = 0; j < models; j++)
            *(Vector *)(gradient + j * d + k) = sum[j] + other[j];
    }
}

INLINE void gradient_of_rows(const int is_single, const int models, const int step, int64_t rows,
                             int64_t n, int64_t d, const double *r, const void *const *x,
                             double *gradient) {
    int64_t i = 0;
    for (; i + step <= rows; i += step)
        gradient_of(is_single, models, step, n, d, r + i, x + i, gradient);
    for (; i < rows; i++) gradient_of(is_single, models, 1, n, d, r + i, x + i, gradient);
}

INLINE int add_gradient_any(int is_single, int64_t m, int64_t rows, int64_t n, int64_t d,
                            const double *r, const void *const *x, double *gradient) {
    for (int64_t j = 0; j < m; j += 2, r += 2 * n, gradient += 2 * d) {
        int is_last = j + 1 == m;
        if (is_single && is_last) gradient_of_rows(1, 1, 8, rows, n, d, r, x, gradient);
        else if (is_single) gradient_of_rows(1, 2, 8, rows, n, d, r, x, gradient);
        else if (is_last) gradient_of_rows(0, 1, 8, rows, n, d, r, x, gradient);
        else gradient_of_rows(0, 2, 4, rows, n, d, r, x, gradient);
    }
    return 0;
}
VERSIONS(int, add_gradient, (int is_single, int64_t m, int64_t rows, int64_t n, int64_t d,
                             const double *r, const void *const *x, double *gradient),
         (is_single, m, rows, n, d, r, x, gradient))

/* A scaled copy of a row in its precision; what comes after its features stays 0. */
INLINE void copy_row(const Models *s, const void *from, void *to) {
    int64_t d = s->n_features;
    const float *single = from;
    const double *twice = from;
    float *x = to;
    double *y = to;
    if (s->is_single)
        for (int64_t k = 0; k < d; k++) x[k] = (float)((single[k] - s->offset[k]) * s->factor[k]);
    else
        for (int64_t k = 0; k < d; k++) y[k] = (twice[k] - s->offset[k]) * s->factor[k];
}

/* Asks the memory for rows of the next batch: where those of this one are, from i up to i + TILE.
   They go to the second cache: the first is too small for a batch. */
INLINE void ask_ahead(const Models *s, int64_t i) {
    int64_t asked = MIN(s->row_size, 512); /* for longer ones processors ask by themselves */
    for (int64_t end = MIN(i + TILE, s->n_next); i < end; i++) {
        const char *features = (const char *)s->X + s->next[i] * s->row_size;
        __builtin_prefetch(s->place + s->next[i]);
        for (int64_t at = 0; at < asked; at += 64) __builtin_prefetch(features + at, 0, 1);
    }
}

/* Takes rows, ordered by cell: cell k has the places from start[2 k] up to start[2 k + 1]. Gives
   the sum of their weights. */
INLINE double gather_any(Models *s, const int64_t *rows, int64_t n) {
    int64_t *start = s->start, last = s->n_rows - 1, row_size = s->row_size;
    int64_t copy_size = s->n_inputs * (s->is_single ? sizeof(float) : sizeof(double));
    double total = 0;
    s->n_present = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t k = s->place[rows[i]].cell;
        if (start[2 * k + 1]++ == 0) s->present[s->n_present++] = k;
    }
    for (int64_t c = 0, place = 0; c < s->n_present; c++) {
        int64_t k = s->present[c], size = start[2 * k + 1];
        start[2 * k] = start[2 * k + 1] = place; /* first, and next to fill */
        s->mass[c] = s->weight ? 0 : size;
        place += size;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t row = rows[i], place = start[2 * s->place[row].cell + 1]++;
        const void *features = (const char *)s->X + row * row_size;
        s->y[place] = s->place[row].label;
        s->w[place] = s->weight ? s->weight[row] : 1;
        s->row[place] = row == last ? s->last : features;
        if (s->is_direct) continue;
        s->row[place] = (char *)s->x + place * copy_size;
        copy_row(s, features, (char *)s->x + place * copy_size);
    }
    for (int64_t c = 0; c < s->n_present; c++) {
        int64_t k = s->present[c];
        for (int64_t i = start[2 * k]; s->weight && i < start[2 * k + 1]; i++)
            s->mass[c] += s->w[i];
        total += s->mass[c];
    }
    return total;
}
VERSIONS(double, gather, (Models *s, const int64_t *rows, int64_t n), (s, rows, n))

/* Multiplies a number of each row at hand by its weight and that of its cell, over the total. */
INLINE int weigh_rows_any(const Models *s, const double *weights, double total, int64_t n,
                          double *z) {
    for (int64_t c = 0; c < s->n_present; c++) {
        int64_t k = s->present[c], end = s->start[2 * k + 1];
        double scale = (weights ? weights[k] : 1) / total;
        for (int64_t i = s->start[2 * k]; i < end; i++) z[i] *= scale;
    }
    for (int64_t i = 0; s->weight && i < n; i++) z[i] *= s->w[i];
    return 0;
}
VERSIONS(int, weigh_rows, (const Models *s, const double *weights, double total, int64_t n,
                           double *z), (s, weights, total, n, z))

/* Scores of the rows at hand, by models of which `first` is the first. */
static void score(Models *s, int64_t first, int64_t m, int64_t n) {
    int64_t d = s->n_inputs, n_features = s->n_features;
    for (int64_t j = 0; j < m; j++) { /* theta ((x - offset) factor) = (theta factor) x - ... */
        const double *theta = s->theta + (first + j) * d;
        double bias = theta[n_features], *folded = (double *)s->folded + j * d;
        float *single = (float *)s->folded + j * d;
        for (int64_t k = 0; k < n_features; k++) {
            double weight = s->is_direct ? theta[k] * s->factor[k] : theta[k];
            if (s->is_single) weight = single[k] = (float)weight;
            else folded[k] = weight;
            if (s->is_direct) bias -= weight * s->offset[k];
        }
        s->bias[j] = bias;
    }
    for (int64_t i = 0; i < n; i += TILE) {
        find_scores(s->is_single, m, MIN(TILE, n - i), n, d, s->folded, s->bias, s->row + i, s->z + i);
        ask_ahead(s, i);
    }
}

/* The gradient by the weights, from that by the scores, which stands in z. */
static void pull(Models *s, int64_t m, int64_t n) {
    int64_t d = s->n_inputs, n_features = s->n_features;
    memset(s->gradient, 0, m * d * sizeof(double));
    for (int64_t i = 0; i < n; i += TILE)
        add_gradient(s->is_single, m, MIN(TILE, n - i), n, d, s->z + i, s->row + i, s->gradient);
    for (int64_t j = 0; j < m; j++) {
        double *g = s->gradient + j * d, sum = 0;
        for (int64_t i = 0; i < n; i++) sum += s->z[j * n + i];
        for (int64_t k = n_features; k < d; k++) g[k] = 0;
        g[n_features] = sum;
        for (int64_t k = 0; s->is_direct && k < n_features; k++)
            g[k] = (g[k] - s->offset[k] * sum) * s->factor[k];
    }
}

static void forget(Models *s) { /* what `gather` noted of the cells */
    for (int64_t c = 0; c < s->n_present; c++) s->start[2 * s->present[c] + 1] = 0;
}

/* The sum of log(1 + e) + max(z, 0) - y z: of the logs, as the log of a product of few factors. */
INLINE double margin_losses(int64_t n, const double *z, const double *e, const double *y) {
    double products[LANES], sums[LANES] = {0}, sum = 0;
    for (int u = 0; u < LANES; u++) products[u] = 1;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int u = 0; u < LANES; u++) {
            products[u] *= 1 + e[i + u];
            sums[u] += (z[i + u] > 0 ? z[i + u] : 0) - y[i + u] * z[i + u];
        }
    for (; i < n; i++) sum += log1p(e[i]) + (z[i] > 0 ? z[i] : 0) - y[i] * z[i];
    for (int u = 0; u < LANES; u++) sum += log(products[u]) + sums[u];
    return sum;
}

/* Of one member's margins: which rows are wrong; and their loss, or in place of the margins p - y. */
INLINE int judge_margins_any(Models *s, double *restrict z, int64_t n, double *loss) {
    double *restrict e = s->e, *restrict wrong = s->wrong;
    const double *restrict y = s->y;
    for (int64_t i = 0; i < n; i++) wrong[i] = fabs((z[i] > 0 ? 1 : 0) - y[i]);
    for (int64_t i = 0; loss && i < n; i++) e[i] = exp_of_minus(fabs(z[i]));
    for (int64_t i = 0; !loss && i < n; i++) {
        double odds = exp_of_minus(fabs(z[i]));
        z[i] = (z[i] > 0 ? 1 : odds) / (1 + odds) - y[i];
    }
    if (loss && s->weight) {
        for (int64_t i = 0; i < n; i++)
            *loss += s->w[i] * (log1p(e[i]) + (z[i] > 0 ? z[i] : 0) - y[i] * z[i]);
    }
    for (int64_t i = 0; loss && !s->weight && i < n; i += PIECE)
        *loss += margin_losses(MIN(PIECE, n - i), z + i, e + i, y + i);
    return 0;
}
VERSIONS(int, judge_margins, (Models *s, double *z, int64_t n, double *loss), (s, z, n, loss))

/* The same of logits (outputs x n). */
INLINE int judge_logits_any(Models *s, double *z, int64_t n, double *loss) {
    double *best = s->e;
    int64_t n_outputs = s->n_outputs;
    for (int64_t i = 0; i < n; i++) {
        int64_t label = (int64_t)s->y[i], highest = 0;
        for (int64_t o = 1; o < n_outputs; o++)
            if (z[o * n + i] > z[highest * n + i]) highest = o;
        s->wrong[i] = highest != label;
        best[i] = z[highest * n + i];
        if (loss) *loss += s->w[i] * (best[i] - z[label * n + i]);
    }
    double *sum = s->e + n;
    memset(sum, 0, n * sizeof(double));
    for (int64_t o = 0; o < n_outputs; o++) {
        for (int64_t i = 0; i < n; i++) z[o * n + i] = exp_of_minus(best[i] - z[o * n + i]);
        for (int64_t i = 0; i < n; i++) sum[i] += z[o * n + i];
    }
    for (int64_t i = 0; loss && i < n; i++) *loss += s->w[i] * log(sum[i]);
    for (int64_t o = 0; o < n_outputs; o++)
        for (int64_t i = 0; i < n; i++) z[o * n + i] = z[o * n + i] / sum[i] - (s->y[i] == o);
    return 0;
}
VERSIONS(int, judge_logits, (Models *s, double *z, int64_t n, double *loss), (s, z, n, loss))

static void judge(Models *s, double *z, int64_t n, double *loss) {
    if (s->n_outputs == 1) judge_margins(s, z, n, loss);
    else judge_logits(s, z, n, loss);
}

/* Adds the rows of a member that are right, and wrong, to those of its cells. */
INLINE int count_any(Models *s, double *right, double *wrong) {
    for (int64_t c = 0; c < s->n_present; c++) {
        int64_t k = s->present[c], first = s->start[2 * k], n = s->start[2 * k + 1] - first;
        double bad = dot(n, s->wrong + first, s->w + first);
        right[k] += s->mass[c] - bad;
        wrong[k] += bad;
    }
    return 0;
}
VERSIONS(int, count, (Models *s, double *right, double *wrong), (s, right, wrong))

static void pool_labels(Models *s, double *counts) { /* cells hold the rows of every label */
    for (int64_t g = 0; g < s->n_groups; g++) {
        double all = 0;
        for (int64_t k = g; k < s->n_cells; k += s->n_groups) all += counts[k];
        for (int64_t k = g; k < s->n_cells; k += s->n_groups) counts[k] = all;
    }
}

/* Counts and losses of the models as they are shown, from their scores of the rows at hand. */
static void take_in(Models *s, double *z, int64_t n, int64_t place) {
    int64_t size = 2 * s->n_cells;
    double *counts = s->judged_counts + place * s->n_members * size;
    double *loss = s->judged_loss + place * s->n_members;
    for (int64_t m = 0; m < s->n_members; m++, counts += size) {
        judge(s, z + m * s->n_outputs * n, n, loss + m);
        count(s, counts, counts + s->n_cells);
    }
}

/* One step; if `place` is not negative, the models shown are judged by these rows on the way. */
static void take_step(Models *s, const int64_t *rows, int64_t n, double factor, int64_t place) {
    int64_t n_all = s->n_members * s->n_cells, size = s->n_outputs * s->n_inputs;
    int64_t n_scores = s->n_members * s->n_outputs;
    double total = gather(s, rows, n), *counts = s->counts;
    score(s, 0, (place < 0 ? 1 : 2) * n_scores, n);
    if (place >= 0) take_in(s, s->z + n_scores * n, n, place);
    memset(counts, 0, 2 * n_all * sizeof(double));
    for (int64_t m = 0; m < s->n_members; m++) {
        double *right = counts + m * s->n_cells, *wrong = right + n_all;
        judge(s, s->z + m * s->n_outputs * n, n, NULL);
        if (!s->is_active) continue;
        count(s, right, wrong);
        if (s->ignores_labels[m]) pool_labels(s, right), pool_labels(s, wrong);
    }
    if (s->is_active) {
        estimate_errors(s->problem, counts, s->rows, s->errors);
        find_levels(s->problem, s->errors);
        ascend(s->problem, s->multipliers, 1);
        weigh(s->problem, s->weights);
    }
    if (total < 1e-30) total = 1e-30;
    for (int64_t r = 0; r < n_scores; r++) {
        const double *weights = s->weights + r / s->n_outputs * s->n_cells;
        weigh_rows(s, s->is_active ? weights : NULL, total, n, s->z + r * n);
    }
    pull(s, n_scores, n);
    for (int64_t m = 0; m < s->n_members; m++) {
        double *theta = s->theta + m * size, *g = s->gradient + m * size, shorter = 1;
        double step = -factor * s->rate[m] * *s->gain, decay = s->decay[m] / *s->gain;
        if (s->clip[m] < INFINITY) {
            double norm = 0;
            for (int64_t i = 0; i < size; i++) norm += g[i] * g[i];
            double allowed = s->clip[m] / (sqrt(norm * *s->gain) + 1e-6);
            shorter = MIN(allowed, 1);
        }
        for (int64_t i = 0; i < size; i++) theta[i] += step * (shorter * g[i] + decay * theta[i]);
    }
    forget(s);
}

static int are_finite(int64_t n, const double *numbers, double largest) {
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(numbers[i]) <= largest)) return 0;
    return 1;
}

/* Judges the models shown by the rows that are there for it. */
static int judge_shown(Models *s, int64_t place) {
    int64_t n_scores = s->n_members * s->n_outputs;
    for (int64_t first = 0; first < s->n_judged; first += PIECE) {
        int64_t n = MIN(PIECE, s->n_judged - first);
        gather(s, s->judged + first, n);
        s->next = s->judged + first + n, s->n_next = MIN(PIECE, s->n_judged - first - n);
        score(s, n_scores, n_scores, n);
        take_in(s, s->z, n, place);
        forget(s);
    }
    return are_finite(s->n_members, s->judged_loss + place * s->n_members, DBL_MAX);
}

/* All the state of an epoch's end goes into one of the slots, in turn. */
static int keep_epoch(Models *s, int64_t epoch) {
    int64_t n_theta = s->n_members * s->n_outputs * s->n_inputs, n_cells = s->n_members * s->n_cells;
    int64_t n_multipliers = s->problem->n_sides * s->problem->n_levels;
    double *slot = s->slots + epoch % s->n_slots * s->n_state, *to = slot;
    const double *parts[] = {s->theta + n_theta, s->rows, s->errors, s->multipliers, s->weights};
    int64_t sizes[] = {n_theta, n_cells, n_cells, n_multipliers, n_cells};
    for (int i = 0; i < 5; to += sizes[i++]) memcpy(to, parts[i], sizes[i] * sizeof(double));
    return are_finite(s->n_state, slot, s->is_single ? FLT_MAX : DBL_MAX);
}

static int run_epoch(Models *s, int64_t epoch, int64_t place, const int64_t *rows, int64_t n,
                     const double *factors) {
    int64_t n_theta = s->n_members * s->n_outputs * s->n_inputs;
    for (int64_t step = 0; step < s->n_steps; step++) {
        int64_t first = step * s->batch_size, left = n - first;
        s->n_next = MAX(0, MIN(left - s->batch_size, s->batch_size));
        s->next = rows + n - MAX(0, left - s->batch_size);
        if (left > 0) take_step(s, rows + first, MIN(left, s->batch_size), factors[step], place);
        if (epoch * s->n_steps + step < s->first_averaged) continue;
        double part = 1 / ++s->n_averaged;
        if (part == 1) memcpy(s->mean, s->theta, n_theta * sizeof(double));
        else for (int64_t i = 0; i < n_theta; i++) s->mean[i] += part * (s->theta[i] - s->mean[i]);
    }
    const double *shown = s->n_averaged ? s->mean : s->theta;
    memcpy(s->theta + n_theta, shown, n_theta * sizeof(double));
    int is_finite = place < 0 || are_finite(s->n_members, s->judged_loss + place * s->n_members, DBL_MAX);
    return keep_epoch(s, epoch) && is_finite;
}

static void free_models(PyObject *capsule) {
    Models *s = PyCapsule_GetPointer(capsule, NULL);
    free(s->x);
    free(s->start);
    free(s->row);
    free(s);
}

/* (problem, sizes, pointers) -> linear models. Sizes and pointers in the order below. */
static PyObject *prepare_models(PyObject *module, PyObject *const *args, Py_ssize_t n_args) {
    if (n_args != 3) return PyErr_Format(PyExc_TypeError, "expected 3 arguments, got %zd", n_args);
    Models *s = calloc(1, sizeof(Models));
    if (!s) return PyErr_NoMemory();
    s->problem = PyCapsule_GetPointer(args[0], NULL);
    int64_t *sizes[] = {&s->n_features, &s->n_inputs, &s->n_outputs, &s->n_members, &s->batch_size, &s->n_steps,
                        &s->n_judged, &s->n_cells, &s->n_groups, &s->n_slots, &s->first_averaged,
                        &s->is_single, &s->is_active, &s->n_state, &s->is_direct, &s->n_rows};
    for (int i = 0; i < 16; i++) *sizes[i] = PyLong_AsLongLong(PyTuple_GetItem(args[1], i));
    void **pointers[] = {(void **)&s->X, (void **)&s->place, (void **)&s->judged,
                         (void **)&s->weight, (void **)&s->offset, (void **)&s->factor,
                         (void **)&s->rate, (void **)&s->decay,
                         (void **)&s->clip, (void **)&s->gain, (void **)&s->ignores_labels,
                         (void **)&s->theta, (void **)&s->mean, (void **)&s->rows,
                         (void **)&s->errors, (void **)&s->multipliers, (void **)&s->weights,
                         (void **)&s->judged_counts, (void **)&s->judged_loss,
                         (void **)&s->slots};
    for (int i = 0; i < 20; i++) *pointers[i] = PyLong_AsVoidPtr(PyTuple_GetItem(args[2], i));
    int64_t b = MAX(s->batch_size, PIECE), outputs = s->n_members * s->n_outputs;
    int64_t copied = (s->is_direct ? 0 : b) * s->n_inputs;
    s->x = calloc(copied + s->n_inputs + 2 * b * outputs + 3 * outputs * s->n_inputs + 2 * outputs +
                   5 * b + s->n_cells + 2 * s->n_members * s->n_cells, sizeof(double));
    s->start = calloc(3 * s->n_cells, sizeof(int64_t));
    s->row = malloc(b * sizeof(void *));
    if (PyErr_Occurred() || !s->x || !s->start || !s->row) {
        free(s->x);
        free(s->start);
        free(s->row);
        free(s);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    s->row_size = s->n_features * (s->is_single ? sizeof(float) : sizeof(double));
    s->last = s->x + copied; /* with zeros after it, where the table has no more memory */
    if (s->n_rows > 0)
        memcpy(s->last, (const char *)s->X + (s->n_rows - 1) * s->row_size, s->row_size);
    s->z = s->last + s->n_inputs;
    s->gradient = s->z + 2 * b * outputs;
    s->folded = s->gradient + outputs * s->n_inputs;
    s->bias = s->gradient + 3 * outputs * s->n_inputs;
    s->e = s->bias + 2 * outputs;
    s->y = s->e + 2 * b;
    s->w = s->y + b;
    s->wrong = s->w + b;
    s->mass = s->wrong + b;
    s->counts = s->mass + s->n_cells;
    s->present = s->start + 2 * s->n_cells;
    return PyCapsule_New(s, NULL, free_models);
}

/* (models, epoch, where to write how good the models shown are, or -1 for nowhere, row numbers in
   their order, how many, factors of the steps' learning rates) -> whether all numbers are finite. */
static PyObject *epoch(PyObject *module, PyObject *const *args, Py_ssize_t n_args) {
    if (n_args != 6) return PyErr_Format(PyExc_TypeError, "expected 6 arguments, got %zd", n_args);
    Models *s = PyCapsule_GetPointer(args[0], NULL);
    if (!s) return NULL;
    int64_t number = PyLong_AsLongLong(args[1]), place = PyLong_AsLongLong(args[2]);
    const int64_t *rows = POINTER(const int64_t, args[3]), n = PyLong_AsLongLong(args[4]);
    const double *factors = POINTER(const double, args[5]);
    if (PyErr_Occurred()) return NULL;
    int is_finite;
    Py_BEGIN_ALLOW_THREADS
    is_finite = run_epoch(s, number, place, rows, n, factors);
    Py_END_ALLOW_THREADS
    return PyBool_FromLong(is_finite);
}

/* (models, where to write how good those shown are) -> whether all numbers are finite. */
static PyObject *judge_models(PyObject *module, PyObject *const *args, Py_ssize_t n_args) {
    if (n_args != 2) return PyErr_Format(PyExc_TypeError, "expected 2 arguments, got %zd", n_args);
    Models *s = PyCapsule_GetPointer(args[0], NULL);
    int64_t place = PyLong_AsLongLong(args[1]);
    if (!s || PyErr_Occurred()) return NULL;
    int is_finite;
    Py_BEGIN_ALLOW_THREADS
    is_finite = judge_shown(s, place);
    Py_END_ALLOW_THREADS
    return PyBool_FromLong(is_finite);
}

/* -- hidden layers of stacks ----------------------------------------------------------------- */

typedef struct { /* of one layer: M members, each with units, each with a number for every row */
    int64_t n_members, n_units, n_rows, n_streams;
    int64_t stride, kept_stride, mask_stride; /* of parameters, of buffers, from stream to stream */
    const float *bias, *scale, *shift, *masks;                          /* masks: NULL for none */
    float *mean, *variance, *centred, *h, *inverse, *slope;
    double kept, momentum, eps; /* kept: 1 / share of the units that are kept */
} Layer;

INLINE float sum_of(int64_t n, const float *a) {
    float sums[2 * LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES)
        for (int u = 0; u < 2 * LANES; u++) sums[u] += a[i + u];
    for (; i < n; i++) sum += a[i];
    for (int u = 0; u < 2 * LANES; u++) sum += sums[u];
    return sum;
}

INLINE float product_of(int64_t n, const float *a, const float *b) {
    float sums[2 * LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES)
        for (int u = 0; u < 2 * LANES; u++) sums[u] += a[i + u] * b[i + u];
    for (; i < n; i++) sum += a[i] * b[i];
    for (int u = 0; u < 2 * LANES; u++) sum += sums[u];
    return sum;
}

/* One unit's numbers are normalised over the rows, scaled, shifted, cut off at 0 and masked. */
INLINE int normalise_any(const Layer *s, int64_t m, int64_t u) {
    int64_t n = s->n_rows, place = m * s->n_units + u, own = m * s->stride + u;
    int64_t kept = m * s->kept_stride + u, stream = m / (s->n_members / s->n_streams);
    float *restrict c = s->centred + place * n, *restrict h = s->h + place * n;
    const float *restrict mask = s->masks ? s->masks + stream * s->mask_stride + u * n : NULL;
    float mean = sum_of(n, c) / n;
    for (int64_t i = 0; i < n; i++) c[i] -= mean;
    float squares = product_of(n, c, c);
    s->mean[kept] += (float)s->momentum * (mean + s->bias[own] - s->mean[kept]);
    s->variance[kept] += (float)s->momentum * (squares / MAX(n - 1, 1) - s->variance[kept]);
    float inverse = 1 / sqrtf((float)s->eps + squares / n);
    float slope = inverse * s->scale[own] * (float)s->kept, shift = s->shift[own] * (float)s->kept;
    s->inverse[place] = inverse;
    s->slope[place] = slope;
    for (int64_t i = 0; i < n; i++) {
        float v = c[i] * slope + shift;
        h[i] = v < 0 ? 0 : v; /* as PyTorch's ReLU, which leaves NaN as it is */
    }
    for (int64_t i = 0; mask && i < n; i++) h[i] *= mask[i];
    return 0;
}
VERSIONS(int, normalise, (const Layer *s, int64_t m, int64_t u), (s, m, u))

/* From the gradient by h of a unit to that before the normalisation, and those by its scale and
   shift: slope (g - mean(g) - v mean(g v)) with v = centred / sqrt(variance + eps). */
INLINE int go_back_any(const Layer *s, int64_t m, int64_t u, float *g, float *by_scale,
                       float *by_shift) {
    int64_t n = s->n_rows, place = m * s->n_units + u;
    float *restrict own = g + place * n;
    const float *restrict c = s->centred + place * n, *restrict h = s->h + place * n;
    float inverse = s->inverse[place], slope = s->slope[place];
    for (int64_t i = 0; i < n; i++) own[i] = h[i] <= 0 ? 0 : own[i];
    float shift = sum_of(n, own), scale = product_of(n, own, c) * inverse;
    float mean = shift / n, along = scale * inverse / n;
    for (int64_t i = 0; i < n; i++) own[i] = (own[i] - along * c[i] - mean) * slope;
    by_scale[place] = scale * (float)s->kept;
    by_shift[place] = shift * (float)s->kept;
    return 0;
}
VERSIONS(int, go_back, (const Layer *s, int64_t m, int64_t u, float *g, float *by_scale,
                        float *by_shift), (s, m, u, g, by_scale, by_shift))

static int layer_from(PyObject *const *args, Layer *s) {
    int64_t *sizes[] = {&s->n_members, &s->n_units, &s->n_rows, &s->n_streams, &s->stride,
                        &s->kept_stride, &s->mask_stride};
    for (int i = 0; i < 7; i++) *sizes[i] = PyLong_AsLongLong(PyTuple_GetItem(args[0], i));
    double *numbers[] = {&s->kept, &s->momentum, &s->eps};
    for (int i = 0; i < 3; i++) *numbers[i] = PyFloat_AsDouble(PyTuple_GetItem(args[1], i));
    void **pointers[] = {(void **)&s->bias, (void **)&s->scale, (void **)&s->shift,
                         (void **)&s->mean, (void **)&s->variance, (void **)&s->centred,
                         (void **)&s->h, (void **)&s->inverse, (void **)&s->slope,
                         (void **)&s->masks};
    for (int i = 0; i < 10; i++) *pointers[i] = PyLong_AsVoidPtr(PyTuple_GetItem(args[2], i));
    return PyErr_Occurred() ? -1 : 0;
}

/* (sizes, numbers, pointers): batch norm, ReLU and dropout of a layer, in single precision. */
static PyObject *activate(PyObject *module, PyObject *const *args, Py_ssize_t n_args) {
    if (n_args != 3) return PyErr_Format(PyExc_TypeError, "expected 3 arguments, got %zd", n_args);
    Layer s;
    if (layer_from(args, &s)) return NULL;
    for (int64_t m = 0; m < s.n_members; m++)
        for (int64_t u = 0; u < s.n_units; u++) normalise(&s, m, u);
    Py_RETURN_NONE;
}

/* (sizes, numbers, pointers, gradient by h, by scale, by shift): the way back from `activate`. */
static PyObject *deactivate(PyObject *module, PyObject *const *args, Py_ssize_t n_args) {
    if (n_args != 6) return PyErr_Format(PyExc_TypeError, "expected 6 arguments, got %zd", n_args);
    Layer s;
    if (layer_from(args, &s)) return NULL;
    float *g = POINTER(float, args[3]), *by_scale = POINTER(float, args[4]);
    float *by_shift = POINTER(float, args[5]);
    if (PyErr_Occurred()) return NULL;
    for (int64_t m = 0; m < s.n_members; m++)
        for (int64_t u = 0; u < s.n_units; u++) go_back(&s, m, u, g, by_scale, by_shift);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"prepare", (PyCFunction)(void (*)(void))prepare, METH_FASTCALL, "A problem from its constants."},
    {"update", (PyCFunction)(void (*)(void))update, METH_FASTCALL, "Counts in, weights out."},
    {"step", (PyCFunction)(void (*)(void))step, METH_FASTCALL, "A batch in, the rows' factors out."},
    {"prepare_models", (PyCFunction)(void (*)(void))prepare_models, METH_FASTCALL, "Linear models."},
    {"epoch", (PyCFunction)(void (*)(void))epoch, METH_FASTCALL, "Trains them for one."},
    {"judge_models", (PyCFunction)(void (*)(void))judge_models, METH_FASTCALL, "How good they are."},
    {"activate", (PyCFunction)(void (*)(void))activate, METH_FASTCALL, "A hidden layer."},
    {"deactivate", (PyCFunction)(void (*)(void))deactivate, METH_FASTCALL, "The way back."},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_step", NULL, -1, methods,
                                        NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__step(void) {
#if defined(__x86_64__) && defined(__GNUC__)
    has_fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
    PyObject *module = PyModule_Create(&definition);
    if (module && PyModule_AddStringConstant(module, "BUILT_FROM", BUILT_FROM)) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
