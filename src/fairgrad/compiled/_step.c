/* fairgrad.dual.step on the CPU, as plain loops. `step` takes a batch of a loss as it comes; `epoch`
   trains linear models for a whole epoch (inner loops in _linear.h). Tensor operations do the same,
   and tests compare both. fairgrad.compiled passes all numbers that Python knows, too, and the
   addresses of tensors; nothing here keeps them alive. */

#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef BUILT_FROM /* the build gives the SHA-256 of the sources */
#define BUILT_FROM ""
#endif
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define PROBLEM "fairgrad.problem" /* names of capsules */
#define MODELS "fairgrad.models"
typedef struct { /* entries of the keys first, first + 1, ...; the first and last are for all others */
    int64_t first, size, entries; /* where they are */
} Table;

typedef struct { int64_t first, size, row, cell; } Diagonal; /* entries; row and cell grow by 1 */
typedef struct { int64_t first, size, block; } Run;          /* levels of one block */

typedef struct { /* names as in fairgrad.dual.Constants and fairgrad.torch.cells.CellLookup */
    int64_t n_cells, n_slots, n_levels, n_sides, n_diagonals, n_runs, n_blocks;
    int64_t n_label_rows, n_problems, n_columns;
    double tiny, borrowed, least_loss;
    double per_rows, horizon, pool; /* of the automatic rate; per_rows is 0 for a constant rate */
    const double *value, *share, *room, *floor, *ceiling, *per_share;
    const double *fairness_rate, *proportional_rate; /* of each level */
    const double *error_memory, *least_weight; /* of each row of labels; of each problem */
    const Diagonal *diagonal;
    const Run *run;
    const Table *label, *joint, *column;
    double *counts, *rates, *sums, *net, *weights; /* scratch, as is what follows */
    int64_t *cells, cells_size;
} Problem;

typedef struct {
    double *rows, *errors, *multipliers, *seen;
} State;

typedef struct { /* of n rows */
    int64_t n, n_classes;
    const int64_t *label, *s;    /* s: n_columns per row */
    const float *scores;         /* n_classes per row; or NULL: */
    const uint8_t *wrong;        /* whether each prediction is wrong */
    const double *sample_weight; /* or NULL for ones */
    const float *losses;         /* log losses, if rows of negative weight are opposed; or NULL */
    int by_class, is_mean, updates; /* by_class: losses are log-probabilities of all classes, and
                                       factors are theirs */
} Batch;

static int64_t look_up(const Table *table, int64_t key) {
    int64_t place = key - table->first;
    return ((const int64_t *)(uintptr_t)table->entries)[place < 0 ? 0 : MIN(place, table->size - 1)];
}

static int64_t group_of(const Problem *p, const int64_t *s) {
    int64_t place = 0;
    for (int64_t c = 0; c < p->n_columns; c++) place += look_up(&p->column[c], s[c]);
    return look_up(p->joint, place);
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

static int is_wrong(const Batch *b, int64_t i) {
    if (!b->scores) return b->wrong[i] != 0;
    return best_class(b->scores + i * b->n_classes, b->n_classes) != b->label[i];
}

/* What takes long is compiled twice: as `name_any`, and for processors with AVX2 and FMA. FMA rounds
   less often; steps leave it out, so that they round as operations on tensors do. */
#if defined(__GNUC__) && !defined(FAIRGRAD_PLAIN_C) /* a test compiles it without extensions */
#define HAS_GNU 1
#define INLINE static inline __attribute__((always_inline))
#elif defined(_MSC_VER)
#define INLINE static __forceinline
#else
#define INLINE static inline
#endif
#if defined(__x86_64__) && defined(HAS_GNU)
#define VERSIONS_OF(cpu, name, parameters, values)                                              \
    __attribute__((target(cpu))) static void name##_avx parameters { name##_any values; }       \
    static void name parameters {                                                               \
        if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) name##_avx values; \
        else name##_any values;                                                                 \
    }
#else
#define VERSIONS_OF(cpu, name, parameters, values) static void name parameters { name##_any values; }
#endif
#define VERSIONS(cpu, name, parameters, values) VERSIONS_OF(cpu, name, parameters, values)

/* Eight sums side by side, so that no addition waits for the one before it. */
INLINE double sum_of(int64_t n, const double *x) {
    double part[8] = {0}, total = 0;
    int64_t j = 0;
    for (; j + 8 <= n; j += 8)
        for (int u = 0; u < 8; u++) part[u] += x[j + u];
    for (; j < n; j++) total += x[j];
    for (int u = 0; u < 8; u++) total += part[u];
    return total;
}

/* The errors of the cells and the rows they rest on, in place, from counts of right and wrong. */
INLINE void estimate_errors(const Problem *p, const double *right, double n_rows, State s) {
    int64_t size = p->n_cells / p->n_label_rows;
    const double *restrict wrong = right + p->n_cells;
    double *restrict rows = s.rows, *restrict errors = s.errors, tiny = p->tiny;
    for (int64_t l = 0, first = 0; l < p->n_label_rows; l++, first += size) {
        double memory = p->per_rows ? MAX(0, 1 - n_rows / p->pool) : p->error_memory[l];
        double borrowed_wrong = p->borrowed * sum_of(size, wrong + first);
        double borrowed = p->borrowed * sum_of(size, right + first) + borrowed_wrong;
        for (int64_t k = first; k < first + size; k++) {
            double kept = rows[k], now = kept + right[k] + wrong[k] + borrowed, least = MIN(now, tiny);
            errors[k] = (kept * errors[k] + wrong[k] + borrowed_wrong) / now;
            rows[k] = MAX(memory * now, least);
        }
    }
}

/* R, which has the entries, times the numbers in `from`; or its transpose. The result has n numbers. */
INLINE void times(const Problem *p, int transposed, int64_t n, const double *restrict from,
                  double *restrict to) {
    memset(to, 0, n * sizeof(double));
    for (const Diagonal *d = p->diagonal; d < p->diagonal + p->n_diagonals; d++) {
        const double *restrict value = p->value + d->first;
        const double *restrict x = from + (transposed ? d->row : d->cell);
        double *restrict y = to + (transposed ? d->cell : d->row);
        for (int64_t i = 0; i < d->size; i++) y[i] += value[i] * x[i];
    }
}

/* Subtracts from each level the sum of x over its block, times its factor; NULL for ones. */
INLINE void subtract_sums(const Problem *p, const double *x, const double *factor, double *level) {
    memset(p->sums, 0, p->n_blocks * sizeof(double));
    for (const Run *run = p->run; run < p->run + p->n_runs; run++)
        p->sums[run->block] += sum_of(run->size, x + run->first);
    for (const Run *run = p->run; run < p->run + p->n_runs; run++) {
        double sum = p->sums[run->block];
        for (int64_t j = run->first; j < run->first + run->size; j++)
            level[j] -= factor ? factor[j] * sum : sum;
    }
}

/* Moves the multipliers by the levels in `rates`, and leaves those in use in `net`. */
INLINE void ascend(const Problem *p, double n_rows, State s, int updates) {
    int64_t n = p->n_levels;
    double *restrict net = p->net, factor = 1;
    const double *restrict rates = p->rates, *restrict rate = p->fairness_rate;
    const double *restrict most = p->ceiling, *restrict proportional = p->proportional_rate;
    if (updates && p->per_rows) *s.seen += MIN(p->per_rows, n_rows);
    if (p->per_rows) factor = MIN(1, n_rows / p->per_rows) / sqrt(1 + *s.seen / p->horizon);
    memset(net, 0, n * sizeof(double));
    for (int64_t side = 0; side < p->n_sides; side++) {
        double sign = side ? -1 : 1, *restrict own = s.multipliers + side * n;
        const double *restrict room = p->room + side * n, *restrict floor = p->floor + side * n;
        for (int64_t j = 0; updates && j < n; j++) {
            double moved = own[j] + rate[j] * factor * (sign * rates[j] - room[j]);
            moved = MAX(MIN(moved, most[j]), -most[j]);
            own[j] = MAX(moved, floor[j]);
        }
        for (int64_t j = 0; j < n; j++) {
            double violation = sign * rates[j] - room[j];
            net[j] += sign * (own[j] + proportional[j] * MAX(violation, floor[j]));
        }
    }
}

INLINE void weigh(const Problem *p, double *weights) { /* w = 1 + (C' net) / p, normalized */
    const double *per_share = p->per_share;
    double *size = p->rates; /* which is read no more */
    int64_t n = p->n_cells / p->n_problems;
    subtract_sums(p, p->net, p->share, p->net);
    times(p, 1, p->n_cells, p->net, weights);
    for (int64_t i = 0, first = 0; i < p->n_problems; i++, first += n) {
        double least = p->least_weight[i];
        for (int64_t k = first; k < first + n; k++) {
            double weight = 1 + weights[k] * per_share[k];
            weights[k] = MAX(weight, least);
            size[k] = per_share[k] > 0 ? fabs(weights[k]) / per_share[k] : 0;
        }
        double mean = p->per_rows ? sum_of(n, size + first) : 1;
        for (int64_t k = first; mean > 1 && k < first + n; k++) weights[k] /= mean;
    }
}

INLINE void take_counts_any(const Problem *p, const double *counts, double n_rows, State s,
                            double *weights, int updates) {
    if (updates) estimate_errors(p, counts, n_rows, s);
    times(p, 0, p->n_levels, s.errors, p->rates);
    for (int64_t j = 0; j < p->n_levels; j++) p->net[j] = p->share[j] * p->rates[j];
    subtract_sums(p, p->net, NULL, p->rates); /* C e */
    ascend(p, n_rows, s, updates);
    weigh(p, weights);
}
VERSIONS("avx2", take_counts, (const Problem *p, const double *counts, double n_rows, State s,
         double *weights, int updates), (p, counts, n_rows, s, weights, updates))

/* A step on a batch, in place; gives 0, or -1 if there is no memory, or 1 if a label or a sensitive
   value was never seen: then nothing has changed. `offset`: what opposed rows add to the loss. */
static int take_batch(Problem *p, const Batch *b, State s, float *factor, double *offset) {
    int64_t n = b->n, n_cells = p->n_cells, n_counted = 0;
    double total = 0;
    if (n > p->cells_size) {
        int64_t *grown = realloc(p->cells, n * sizeof(int64_t));
        if (!grown) return -1;
        p->cells = grown;
        p->cells_size = n;
    }
    const Table label = *p->label, first = *p->column; /* in registers, as are the next ones */
    int64_t *restrict cells = p->cells, n_columns = p->n_columns, n_slots = p->n_slots;
    double *restrict counts = p->counts, *restrict weights = p->weights;
    memset(counts, 0, 2 * n_cells * sizeof(double));
    for (int64_t i = 0; i < n; i++) {
        int64_t group = n_columns == 1 ? look_up(&first, b->s[i]) : group_of(p, b->s + i * n_columns);
        int64_t cell = look_up(&label, b->label[i]) + group;
        if (cell >= n_slots) return 1;
        if (b->by_class && cell < n_cells && (uint64_t)b->label[i] >= (uint64_t)b->n_classes) return 1;
        cells[i] = cell;
        if (cell >= n_cells) continue; /* to be ignored */
        double weight = b->sample_weight ? b->sample_weight[i] : 1;
        counts[is_wrong(b, i) * n_cells + cell] += weight;
        total += weight;
        n_counted += weight > 0;
    }
    if (b->by_class && !n_counted) return 1; /* all to be ignored */
    double scale = b->sample_weight && total > 0 ? n_counted / total : 1;
    for (int64_t k = 0; scale != 1 && k < 2 * n_cells; k++) counts[k] *= scale;
    take_counts(p, counts, (double)n_counted, s, weights, b->updates);
    double part = b->is_mean ? 1 / total : 1, sign = b->by_class ? -1 : 1;
    int opposes = b->losses && (!b->by_class || p->per_rows);
    if (b->by_class) memset(factor, 0, n * b->n_classes * sizeof(float));
    for (int64_t i = 0; i < n; i++) {
        if (b->by_class && cells[i] >= n_cells) continue;
        int64_t at = b->by_class ? i * b->n_classes + b->label[i] : i;
        double weight = cells[i] < n_cells ? part * weights[cells[i]] : part;
        if (b->sample_weight) weight *= b->sample_weight[i];
        factor[at] = (float)(sign * weight);
        if (!opposes || weight >= 0) continue;
        double loss = MAX(sign * b->losses[at], p->least_loss), own = exp(-loss), others = 1 - own;
        factor[at] = (float)(sign * weight * own / others); /* see fairgrad.dual.opposed */
        *offset += weight * log(others) - sign * factor[at] * loss;
    }
    return 0;
}

#define POINTER(type, object) ((type *)PyLong_AsVoidPtr(object))
static void free_problem(PyObject *capsule) {
    Problem *p = PyCapsule_GetPointer(capsule, PROBLEM);
    free(p->counts);
    free(p->cells);
    free(p);
}

/* (sizes, numbers, addresses) -> problem, each in the order below. */
static PyObject *prepare(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    if (n != 3) return PyErr_Format(PyExc_TypeError, "expected 3 arguments, got %zd", n);
    Problem *p = calloc(1, sizeof(Problem));
    if (!p) return PyErr_NoMemory();
    PyObject *capsule = PyCapsule_New(p, PROBLEM, free_problem);
    int64_t *sizes[] = {&p->n_cells, &p->n_slots, &p->n_levels, &p->n_sides, &p->n_diagonals, &p->n_runs,
                        &p->n_blocks, &p->n_label_rows, &p->n_problems, &p->n_columns};
    for (int i = 0; i < 10; i++) *sizes[i] = PyLong_AsLongLong(PyTuple_GetItem(args[0], i));
    double *numbers[] = {&p->tiny, &p->borrowed, &p->least_loss, &p->per_rows, &p->horizon, &p->pool};
    for (int i = 0; i < 6; i++) *numbers[i] = PyFloat_AsDouble(PyTuple_GetItem(args[1], i));
    int64_t most = MAX(p->n_cells, p->n_levels);
    void *at[13] = {NULL};
    for (int i = 0; i < 13; i++) at[i] = PyLong_AsVoidPtr(PyTuple_GetItem(args[2], i));
    p->value = at[0], p->share = at[1], p->room = at[2], p->floor = at[3], p->ceiling = at[4];
    p->per_share = at[5], p->fairness_rate = at[6], p->proportional_rate = at[7];
    p->error_memory = at[8], p->least_weight = at[9], p->diagonal = at[10], p->run = at[11];
    p->label = at[12], p->joint = p->label + 1, p->column = p->label + 2;
    if (!PyErr_Occurred()) p->counts = calloc(2 * most + p->n_cells + p->n_blocks, sizeof(double));
    if (!p->counts) {
        Py_XDECREF(capsule);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    p->rates = p->counts; /* which are read no more */
    p->net = p->rates + most;
    p->weights = p->net + most;
    p->sums = p->weights + p->n_cells;
    return capsule;
}

/* (problem, rows, classes, is a mean, updates, labels, sensitive, scores, wrong, sample weights,
   losses, remembered rows, errors, multipliers, seen, factors, by class), addresses from `labels` to
   `factors` -> what to add to the loss; None if a label or a sensitive value was never seen. */
static PyObject *step(PyObject *module, PyObject *const *args, Py_ssize_t n_args) {
    (void)module;
    if (n_args != 17) return PyErr_Format(PyExc_TypeError, "expected 17 arguments, got %zd", n_args);
    Problem *p = PyCapsule_GetPointer(args[0], PROBLEM);
    if (!p) return NULL;
    Batch b = {.n = PyLong_AsLongLong(args[1]), .n_classes = PyLong_AsLongLong(args[2]),
               .label = POINTER(const int64_t, args[5]), .s = POINTER(const int64_t, args[6]),
               .scores = POINTER(const float, args[7]), .wrong = POINTER(const uint8_t, args[8]),
               .sample_weight = POINTER(const double, args[9]),
               .losses = POINTER(const float, args[10]),
               .is_mean = PyObject_IsTrue(args[3]), .updates = PyObject_IsTrue(args[4]),
               .by_class = PyObject_IsTrue(args[16])};
    State s = {POINTER(double, args[11]), POINTER(double, args[12]), POINTER(double, args[13]),
               POINTER(double, args[14])};
    float *factor = POINTER(float, args[15]);
    double offset = 0;
    if (PyErr_Occurred()) return NULL;
    if (!b.scores && !b.wrong && b.n > 0) /* tensors that are not what they seem have no memory */
        return PyErr_Format(PyExc_TypeError, "expected scores or wrong predictions in memory");
    int status = take_batch(p, &b, s, factor, &offset);
    if (status < 0) return PyErr_NoMemory();
    if (status > 0) Py_RETURN_NONE;
    return PyFloat_FromDouble(offset);
}

/* -- whole epochs of linear models ------------------------------------------------------------ */

#define TILE 32 /* rows that stay in the cache while all models go over them */

typedef struct { /* models that see the same rows; they stand side by side, `stride` of them,
                    the current ones and then the averaged ones */
    Problem *problem;
    int64_t n_features, n_outputs, n_members, stride, batch_size, n_steps, n_judged, n_cells, n_groups;
    int64_t n_slots, first_averaged, is_single, is_active, n_state; /* n_state: of each slot */
    int64_t row_bytes, most_rows; /* of one row of the table; of a batch */
    int64_t end_current, begin_averaged; /* of the vectors with current models, and averaged ones */
    const char *X;
    const int64_t *judged;
    const int32_t *kind;  /* of the rows: label * n_groups + group */
    const double *weight; /* of the rows; NULL if all are 1 */
    const double *rate, *decay, *clip, *gain;
    double *theta; /* current, and then averaged, as it is at the end of an epoch */
    double *mean, *weights, *judged_counts, *judged_loss, *slots;
    State state;
    void *folded, *bias, *z, *gradient, *scratch; /* in the precision of the features */
    double *tally, *blend, *by_bias, *counts; /* tally: wrong rows of cells, then all rows */
    const void **row;   /* of the rows at hand: where their features are, */
    double *row_weight; /* their weights, */
    int64_t *at, n, n_weighed; /* their kinds, their number, and that of those with a weight */
    double n_averaged;
    int opposes;
} Models;

#define LANES (32 / (int)sizeof(NUMBER)) /* NUMBER and OF are those of the file that follows */
#define Vector OF(Vector)
#define VECTOR(array, i) (*(Vector *)((NUMBER *)(array) + (i)))
#define PLANE(s, o) ((NUMBER *)(s)->z + (o) * (s)->most_rows * (s)->stride)
#if defined(HAS_GNU)
#define PREFETCH(address) __builtin_prefetch(address)
#define ADD_TIMES(sum, v, number) ((sum) += (v) * (number))
#else
#define PREFETCH(address) ((void)(address))
#define ADD_TIMES(sum, v, number) \
    do { for (int u_ = 0; u_ < LANES; u_++) (sum).at[u_] += (v).at[u_] * (number); } while (0)
#endif
#define NUMBER float
#define BITS uint32_t
#define OF(name) single_##name
#include "_linear.h"
#define NUMBER double
#define BITS uint64_t
#define OF(name) double_##name
#include "_linear.h"
#define EITHER(s, call) do { if ((s)->is_single) single_##call; else double_##call; } while (0)

static int64_t n_theta(const Models *s) { return s->n_members * s->n_outputs * (s->n_features + 1); }
/* Makes the weights of models ready: current (0), or averaged (1). */
static void fold(Models *s, int64_t shown) {
    EITHER(s, fold(s, shown * s->n_members, s->theta + shown * n_theta(s)));
}

/* Takes rows; gives the sum of their weights. Rows of each cell are summed after its wrong ones. */
static double gather(Models *s, const int64_t *rows, int64_t n) {
    double total = 0, *all = s->tally + s->n_cells * s->stride;
    memset(s->tally, 0, (s->stride + 1) * s->n_cells * sizeof(double));
    s->n = n, s->n_weighed = 0;
    for (int64_t i = 0; i < n; i++) {
        double weight = s->weight ? s->weight[rows[i]] : 1;
        const char *row = s->X + rows[i] * s->row_bytes;
        for (int64_t at = 0; at < MIN(s->row_bytes, 512); at += 64) PREFETCH(row + at);
        s->row[i] = row;
        s->at[i] = s->kind[rows[i]];
        s->row_weight[i] = weight;
        all[s->at[i] % s->n_cells] += weight; /* cells are kinds, or groups of any label */
        total += weight;
        s->n_weighed += weight > 0;
    }
    return total;
}

/* The models from `begin` to `end`, whole vectors of them, score the rows at hand; if `place` is not
   negative, how good the averaged ones are is added there. */
static void score_and_judge(Models *s, int64_t begin, int64_t end, int64_t place) {
    double *loss = place < 0 ? NULL : s->judged_loss + place * s->n_members;
    EITHER(s, score_rows(s, begin, end));
    EITHER(s, judge_rows(s, begin, end, loss));
    if (place < 0) return;
    const double *tally = s->tally + s->n_members, *all = s->tally + s->n_cells * s->stride;
    double *counts = s->judged_counts + 2 * place * s->n_members * s->n_cells;
    for (int64_t m = 0; m < s->n_members; m++, counts += 2 * s->n_cells)
        for (int64_t k = 0; k < s->n_cells; k++) {
            counts[k] += all[k] - tally[k * s->stride + m];
            counts[s->n_cells + k] += tally[k * s->stride + m];
        }
}

/* The weights of the cells, from the rows at hand, over their total. */
static void weigh_cells(Models *s, double total) {
    int64_t n_cells = s->n_cells, n_all = s->n_members * n_cells;
    const double *all = s->tally + n_cells * s->stride;
    double n_rows = (double)s->n_weighed, scale = s->weight ? n_rows / total : 1;
    for (int64_t m = 0; s->is_active && m < s->n_members; m++) {
        double *right = s->counts + m * n_cells, *wrong = right + n_all;
        for (int64_t k = 0; k < n_cells; k++) {
            wrong[k] = scale * s->tally[k * s->stride + m];
            right[k] = scale * all[k] - wrong[k];
        }
    }
    if (s->is_active) take_counts(s->problem, s->counts, n_rows, s->state, s->weights, 1);
    for (int64_t m = 0; m < s->n_members; m++)
        for (int64_t k = 0; k < n_cells; k++)
            s->blend[k * s->stride + m] = (s->is_active ? s->weights[m * n_cells + k] : 1) / total;
}

/* Moves one member along its gradient. */
static void descend(Models *s, int64_t m, double factor) {
    int64_t d = s->n_features, size = s->n_outputs * (d + 1);
    double *theta = s->theta + m * size, *g = s->counts, shorter = 1;
    double step = -factor * s->rate[m] * *s->gain, decay = s->decay[m] / *s->gain;
    for (int64_t o = 0; o < s->n_outputs; o++) {
        double *to = g + o * (d + 1);
        for (int64_t k = 0; k < d; k++) {
            int64_t at = (o * d + k) * s->stride + m;
            to[k] = s->is_single ? ((float *)s->gradient)[at] : ((double *)s->gradient)[at];
        }
        to[d] = s->by_bias[o * s->stride + m];
    }
    if (s->clip[m] < INFINITY) {
        double norm = 0;
        for (int64_t i = 0; i < size; i++) norm += g[i] * g[i];
        double allowed = s->clip[m] / (sqrt(norm * *s->gain) + 1e-6);
        shorter = MIN(allowed, 1);
    }
    for (int64_t i = 0; i < size; i++) theta[i] += step * (shorter * g[i] + decay * theta[i]);
}

/* One step; if `place` is not negative, the averaged models are judged by these rows on the way. */
static void take_step(Models *s, const int64_t *rows, int64_t n, double factor, int64_t place) {
    double total = gather(s, rows, n);
    fold(s, 0);
    score_and_judge(s, 0, place < 0 ? s->end_current : s->stride, place);
    weigh_cells(s, total > 0 ? total : 1);
    memset(s->by_bias, 0, s->n_outputs * s->stride * sizeof(double));
    EITHER(s, learn_rows(s, s->end_current));
    for (int64_t m = 0; m < s->n_members; m++) descend(s, m, factor);
}

static int are_finite(int64_t n, const double *numbers, double largest) {
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(numbers[i]) <= largest)) return 0;
    return 1;
}

/* All the state of an epoch's end goes into one of the slots, in turn. */
static int keep_epoch(Models *s, int64_t epoch) {
    int64_t n_cells = s->n_members * s->n_cells;
    int64_t n_multipliers = s->problem->n_sides * s->problem->n_levels;
    double *slot = s->slots + epoch % s->n_slots * s->n_state, *to = slot;
    const double *parts[] = {s->theta + n_theta(s), s->state.rows, s->state.errors,
                             s->state.multipliers, s->weights, s->state.seen};
    int64_t sizes[] = {n_theta(s), n_cells, n_cells, n_multipliers, n_cells, 1};
    for (int i = 0; i < 6; to += sizes[i++]) memcpy(to, parts[i], sizes[i] * sizeof(double));
    return are_finite(s->n_state, slot, s->is_single ? FLT_MAX : DBL_MAX);
}

static int run_epoch(Models *s, int64_t epoch, int64_t place, const int64_t *rows, int64_t n,
                     const double *factors) {
    int64_t size = n_theta(s);
    if (place >= 0) fold(s, 1);
    for (int64_t step = 0; step < s->n_steps; step++) {
        int64_t first = step * s->batch_size, left = n - first;
        if (left > 0) take_step(s, rows + first, MIN(left, s->batch_size), factors[step], place);
        if (epoch * s->n_steps + step < s->first_averaged) continue;
        double part = 1 / ++s->n_averaged;
        if (part == 1) memcpy(s->mean, s->theta, size * sizeof(double));
        else for (int64_t i = 0; i < size; i++) s->mean[i] += part * (s->theta[i] - s->mean[i]);
    }
    memcpy(s->theta + size, s->n_averaged ? s->mean : s->theta, size * sizeof(double));
    return keep_epoch(s, epoch);
}

static void free_models(PyObject *capsule) { free(PyCapsule_GetPointer(capsule, MODELS)); }

/* (problem, sizes, addresses) -> linear models, in the order below. */
static PyObject *prepare_models(PyObject *module, PyObject *const *args, Py_ssize_t n_args) {
    (void)module;
    if (n_args != 3) return PyErr_Format(PyExc_TypeError, "expected 3 arguments, got %zd", n_args);
    Models *s = calloc(1, sizeof(Models));
    if (!s) return PyErr_NoMemory();
    s->problem = PyCapsule_GetPointer(args[0], PROBLEM);
    int64_t *sizes[] = {&s->n_features, &s->n_outputs, &s->n_members, &s->stride, &s->batch_size,
                        &s->n_steps, &s->n_judged, &s->n_cells, &s->n_groups, &s->n_slots,
                        &s->first_averaged, &s->is_single, &s->is_active, &s->n_state,
                        &s->row_bytes, &s->most_rows, &s->end_current, &s->begin_averaged};
    for (int i = 0; i < 18; i++) *sizes[i] = PyLong_AsLongLong(PyTuple_GetItem(args[1], i));
    void *at[30] = {NULL};
    for (int i = 0; i < 30; i++) at[i] = PyLong_AsVoidPtr(PyTuple_GetItem(args[2], i));
    s->X = at[0], s->kind = at[1], s->judged = at[2], s->weight = at[3];
    s->rate = at[4], s->decay = at[5], s->clip = at[6], s->gain = at[7];
    s->theta = at[8], s->mean = at[9], s->state.rows = at[10], s->state.errors = at[11];
    s->state.multipliers = at[12], s->weights = at[13], s->state.seen = at[14];
    s->judged_counts = at[15], s->judged_loss = at[16], s->slots = at[17];
    s->folded = at[18], s->bias = at[19], s->z = at[20], s->gradient = at[21], s->scratch = at[22];
    s->tally = at[23], s->blend = at[24], s->by_bias = at[25], s->counts = at[26];
    s->row = at[27], s->row_weight = at[28], s->at = at[29];
    s->opposes = s->problem && s->problem->per_rows > 0;
    if (!PyErr_Occurred()) return PyCapsule_New(s, MODELS, free_models);
    free(s);
    return NULL;
}

/* (models, epoch, where to write how good the averaged models are, or -1 for nowhere, row numbers in
   their order, how many, factors of the steps' learning rates) -> whether all numbers are finite.
   Without rows nothing is trained, and the models are judged by the rows that are there for it. */
static PyObject *epoch(PyObject *module, PyObject *const *args, Py_ssize_t n_args) {
    (void)module;
    if (n_args != 6) return PyErr_Format(PyExc_TypeError, "expected 6 arguments, got %zd", n_args);
    Models *s = PyCapsule_GetPointer(args[0], MODELS);
    if (!s) return NULL;
    int64_t number = PyLong_AsLongLong(args[1]), place = PyLong_AsLongLong(args[2]);
    const int64_t *rows = POINTER(const int64_t, args[3]), n = PyLong_AsLongLong(args[4]);
    const double *factors = POINTER(const double, args[5]);
    if (PyErr_Occurred()) return NULL;
    int is_finite = 1;
    Py_BEGIN_ALLOW_THREADS
    if (rows) is_finite = run_epoch(s, number, place, rows, n, factors);
    else fold(s, 1);
    for (int64_t first = 0; !rows && first < s->n_judged; first += s->most_rows) {
        gather(s, s->judged + first, MIN(s->most_rows, s->n_judged - first));
        score_and_judge(s, s->begin_averaged, s->stride, place);
    }
    if (place >= 0) is_finite &= are_finite(s->n_members, s->judged_loss + place * s->n_members, DBL_MAX);
    Py_END_ALLOW_THREADS
    return PyBool_FromLong(is_finite);
}

#define METHOD(name, what) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, what}
static PyMethodDef methods[] = {
    METHOD(prepare, "A problem from its constants."),
    METHOD(step, "A batch in, the rows' factors out."),
    METHOD(prepare_models, "Linear models."),
    METHOD(epoch, "Trains or judges linear models."),
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "_step", .m_size = -1,
                                        .m_methods = methods};

PyMODINIT_FUNC PyInit__step(void) {
    PyObject *module = PyModule_Create(&definition);
    if (!module || !PyModule_AddStringConstant(module, "BUILT_FROM", BUILT_FROM)) return module;
    Py_DECREF(module);
    return NULL;
}
