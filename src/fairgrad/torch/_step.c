/* fairgrad.dual.step on the CPU, as plain loops: `update` takes counts and gives weights.

   What needs the step again and again is here too: epochs of linear models (their inner loops are
   in _linear.h), hidden layers of stacks.

   `step`, for the losses, takes a batch as it comes (labels, sensitive values, scores), so that it
   also finds each row's cell and whether its prediction is wrong, and gives each row's factor;
   `usual_step` does it for tensors as they are in most trainings, with little to be done before.
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
    double *counts, *rates, *sums, *net, *weights; /* scratch, as is what follows */
    int64_t *cells, cells_size, *tally;
} Problem;

typedef struct { /* of N rows */
    int64_t n, n_classes;
    const int64_t *label, *s;     /* s: n_columns per row */
    const float *scores;          /* n_classes per row; or NULL: */
    const uint8_t *wrong;         /* whether each prediction is wrong */
    const double *sample_weight;  /* or NULL for ones */
    const float *losses;          /* or NULL; else their sum and the rows' weight are put into */
    double *plain;
    int is_mean, updates;
} Batch;

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

static int is_wrong(const Batch *b, int64_t i) {
    if (!b->scores) return b->wrong[i] != 0;
    return best_class(b->scores + i * b->n_classes, b->n_classes) != b->label[i];
}

/* Counts right and wrong predictions of rows with one sensitive value and no weight each, notes their
   cells and adds up their losses, if any: the loop that nearly all batches need. Gives 0 if it meets a
   row that is in no cell, be it one to be ignored or one of a value never seen. */
static int count_simply(Problem *p, const Batch *b, double *sum) {
    const Table *of_label = &p->label, *of_group = &p->column[0];
    int64_t *tally = p->tally, n_cells = p->n_cells;
    memset(tally, 0, 2 * n_cells * sizeof(int64_t));
    for (int64_t i = 0; i < b->n; i++) {
        uint64_t l = (uint64_t)b->label[i] - (uint64_t)of_label->first;
        uint64_t g = (uint64_t)b->s[i] - (uint64_t)of_group->first;
        if (l >= (uint64_t)of_label->size || g >= (uint64_t)of_group->size) return 0;
        int64_t cell = of_label->entries[l] + of_group->entries[g];
        if (cell >= n_cells) return 0;
        p->cells[i] = cell;
        tally[is_wrong(b, i) * n_cells + cell]++;
        if (b->losses) *sum += b->losses[i];
    }
    for (int64_t k = 0; k < 2 * n_cells; k++) p->counts[k] = (double)tally[k];
    return 1;
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

/* sums[b] = the sum of share * x over the levels of each block b; share: NULL for ones. The levels of
   a block mostly stand together, and memory is slow to add to again and again. */
static void sum_blocks(Problem *p, const double *restrict share, const double *restrict x) {
    const int64_t *restrict block = p->block;
    memset(p->sums, 0, p->n_blocks * sizeof(double));
    for (int64_t j = 0; j < p->n_levels;) {
        int64_t own = block[j];
        double sum = 0;
        for (; j < p->n_levels && block[j] == own; j++) sum += share ? share[j] * x[j] : x[j];
        p->sums[own] += sum;
    }
}

static void find_levels(Problem *p, const double *errors) { /* F = c0 + C e, into rates */
    int64_t n = p->n_levels;
    double *restrict rates = p->rates;
    if (p->is_diagonal) {
        const double *restrict value = p->value;
        for (int64_t j = 0; j < n; j++) rates[j] = value[j] * errors[j];
    } else {
        memset(rates, 0, n * sizeof(double));
        for (int64_t e = 0; e < p->n_entries; e++)
            rates[p->row[e]] += p->value[e] * errors[p->cell[e]];
    }
    sum_blocks(p, p->share, rates);
    const double *restrict c0 = p->c0, *restrict sums = p->sums;
    const int64_t *restrict block = p->block;
    for (int64_t j = 0; j < n; j++) rates[j] += c0[j] - sums[block[j]];
}

/* Moves the multipliers by the levels in `rates`, and leaves those in use in `net`. */
static void ascend(Problem *p, double *multipliers, int updates) {
    int64_t n = p->n_levels;
    double *restrict net = p->net;
    const double *restrict rates = p->rates;
    memset(net, 0, n * sizeof(double));
    for (int64_t side = 0; side < p->n_sides; side++) {
        double sign = side ? -1 : 1, *restrict own = multipliers + side * n;
        const double *restrict bound = p->bound + side * n;
        const double *restrict floor = p->floor ? p->floor + side * n : NULL;
        const double *restrict rate = p->fairness_rate;
        if (updates) /* two loops, as one with a choice in it is slower */
            for (int64_t j = 0; j < n; j++) own[j] += rate[j] * (sign * rates[j] - bound[j]);
        for (int64_t j = 0; updates && floor && j < n; j++) own[j] = MAX(own[j], floor[j]);
        for (int64_t j = 0; j < n; j++) net[j] += sign * own[j];
        for (int64_t j = 0; p->has_proportional && j < n; j++) {
            double violation = sign * rates[j] - bound[j];
            violation = floor ? MAX(violation, floor[j]) : violation;
            net[j] += sign * p->proportional_rate[j] * violation;
        }
    }
}

static void weigh(Problem *p, double *restrict weights) { /* w = 1 + (C' net) / p */
    int64_t n = p->n_levels;
    double *restrict net = p->net;
    const double *restrict share = p->share, *restrict value = p->value;
    const int64_t *restrict block = p->block;
    sum_blocks(p, NULL, net);
    const double *restrict sums = p->sums; /* from here on they do not change */
    for (int64_t j = 0; j < n; j++) net[j] -= share[j] * sums[block[j]];
    if (p->is_diagonal) {
        for (int64_t k = 0; k < p->n_cells; k++) weights[k] = value[k] * net[k];
    } else {
        memset(weights, 0, p->n_cells * sizeof(double));
        for (int64_t e = 0; e < p->n_entries; e++)
            weights[p->cell[e]] += p->value[e] * net[p->row[e]];
    }
    const double *restrict per_share = p->per_share, *restrict least = p->least_weight;
    for (int64_t k = 0; k < p->n_cells; k++) {
        double weight = 1 + weights[k] * per_share[k];
        weights[k] = MAX(weight, least[k]);
    }
}

/* -- Python ---------------------------------------------------------------------------------- */

#define POINTER(type, object) ((type *)PyLong_AsVoidPtr(object))

static void free_problem(PyObject *capsule) {
    Problem *p = PyCapsule_GetPointer(capsule, NULL);
    free(p->counts);
    free(p->cells);
    free(p->tally);
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
    p->tally = calloc(2 * p->n_cells, sizeof(int64_t));
    if (PyErr_Occurred() || !p->counts || !p->tally) {
        free(p->counts);
        free(p->tally);
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

/* A step on a batch, in place; gives 0, or -1 if there is no memory, or 1 if a label or a sensitive
   value was never seen. Then nothing has changed. */
static int take_batch(Problem *p, const Batch *b, double *kept, double *errors, double *multipliers,
                      float *factor) {
    int64_t n = b->n;
    double total = 0, sum = 0;
    if (n > p->cells_size) {
        int64_t *grown = realloc(p->cells, n * sizeof(int64_t));
        if (!grown) return -1;
        p->cells = grown;
        p->cells_size = n;
    }
    if (b->scores && !b->sample_weight && p->n_columns == 1 && p->n_cells <= n &&
        count_simply(p, b, &sum)) {
        total = (double)n;
    } else {
        memset(p->counts, 0, 2 * p->n_cells * sizeof(double));
        sum = 0;
        for (int64_t i = 0; i < n; i++) {
            int is_ignored = p->has_ignore && b->label[i] == p->ignore_index;
            int64_t first = is_ignored ? 0 : look_up(&p->label, b->label[i]);
            int64_t group = group_of(p, b->s + i * p->n_columns);
            if (first >= NOWHERE || group >= NOWHERE) return 1;
            p->cells[i] = is_ignored ? IGNORED : first + group;
            if (is_ignored) continue;
            double weight = b->sample_weight ? b->sample_weight[i] : 1;
            p->counts[is_wrong(b, i) * p->n_cells + p->cells[i]] += weight;
            total += weight;
            if (b->losses) sum += weight * b->losses[i];
        }
    }
    if (b->losses) b->plain[0] = sum, b->plain[1] = total;
    if (b->updates) estimate_errors(p, p->counts, kept, errors);
    if (b->updates || p->has_proportional) find_levels(p, errors);
    ascend(p, multipliers, b->updates);
    weigh(p, p->weights);
    double divisor = b->is_mean ? total : 1, of_ignored = 1 / divisor;
    if (p->n_cells <= n) { /* else fewer rows are divided than cells would be */
        for (int64_t k = 0; k < p->n_cells; k++) p->weights[k] /= divisor;
        divisor = 1;
    }
    for (int64_t i = 0; i < n; i++)
        factor[i] = (float)(p->cells[i] == IGNORED ? of_ignored : p->weights[p->cells[i]] / divisor);
    for (int64_t i = 0; b->sample_weight && i < n; i++) factor[i] *= (float)b->sample_weight[i];
    return 0;
}

/* (problem, rows, labels, sensitive, scores, classes, wrong, sample weights, is a mean, updates,
   remembered rows, errors, multipliers, factors) -> whether all values have been seen before. */
static PyObject *step(PyObject *module, PyObject *const *args, Py_ssize_t n_args) {
    if (n_args != 14) return PyErr_Format(PyExc_TypeError, "expected 14 arguments, got %zd", n_args);
    Problem *p = PyCapsule_GetPointer(args[0], NULL);
    if (!p) return NULL;
    Batch b = {PyLong_AsLongLong(args[1]), PyLong_AsLongLong(args[5]),
               POINTER(const int64_t, args[2]), POINTER(const int64_t, args[3]),
               POINTER(const float, args[4]), POINTER(const uint8_t, args[6]),
               POINTER(const double, args[7]), NULL, NULL,
               PyObject_IsTrue(args[8]), PyObject_IsTrue(args[9])};
    double *kept = POINTER(double, args[10]), *errors = POINTER(double, args[11]);
    double *multipliers = POINTER(double, args[12]);
    float *factor = POINTER(float, args[13]);
    if (PyErr_Occurred()) return NULL;
    if (!b.scores && !b.wrong && b.n > 0) /* tensors that are not what they seem have no memory */
        return PyErr_Format(PyExc_TypeError, "expected scores or wrong predictions in memory");
    int status = take_batch(p, &b, kept, errors, multipliers, factor);
    return status < 0 ? PyErr_NoMemory() : PyBool_FromLong(status == 0);
}

/* Tensors as DLPack describes them (version 1), which PyTorch shows through a table of functions.
   It says in one call what a dozen attributes would. */
typedef struct {
    void *data;
    int32_t device, device_index, n_axes;
    uint8_t kind, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t offset;
} DLTensor;

typedef struct {
    uint32_t major, minor;
    void *older, *allocate, *export, *import;
    int (*describe)(void *object, DLTensor *out);
    void *stream;
} DLFunctions;

enum { DL_CPU = 1, DL_INT = 0, DL_FLOAT = 2 };
static int (*describe)(void *, DLTensor *) = NULL;
static PyTypeObject *tensor_type = NULL;

/* (type of tensors) -> whether `usual_step` can be used: whether they have that table. */
static PyObject *use_tensors(PyObject *module, PyObject *const *args, Py_ssize_t n_args) {
    if (n_args != 1) return PyErr_Format(PyExc_TypeError, "expected 1 argument, got %zd", n_args);
    PyObject *capsule = PyObject_GetAttrString(args[0], "__dlpack_c_exchange_api__");
    DLFunctions *found = capsule ? PyCapsule_GetPointer(capsule, "dlpack_exchange_api") : NULL;
    Py_XDECREF(capsule); /* the type keeps it */
    PyErr_Clear();
    if (!found || found->major != 1 || !found->describe) Py_RETURN_FALSE;
    describe = found->describe;
    tensor_type = (PyTypeObject *)Py_NewRef(args[0]);
    Py_RETURN_TRUE;
}

#define ANY -1

/* The memory of a tensor on the CPU that is contiguous and of this type, has n rows (or any number,
   which is then written there) and, if they are asked for, some columns; or else NULL. */
static void *memory_of(PyObject *object, int kind, int bits, int64_t *n, int64_t *n_columns) {
    DLTensor t;
    if (Py_TYPE(object) != tensor_type) return NULL;
    if (describe(object, &t)) { /* it has no memory */
        PyErr_Clear();
        return NULL;
    }
    if (t.device != DL_CPU || t.kind != kind || t.bits != bits || t.lanes != 1) return NULL;
    if (t.n_axes != (n_columns ? 2 : 1) || !t.strides) return NULL;
    int64_t last = n_columns ? t.shape[1] : 1;
    if (*n == ANY) *n = t.shape[0];
    if (t.shape[0] != *n || (t.shape[0] > 1 && t.strides[0] != last)) return NULL;
    if (n_columns && last > 1 && t.strides[1] != 1) return NULL;
    if (n_columns) *n_columns = last;
    return (char *)t.data + t.offset;
}

/* (problem, list of tensors, labels, sensitive values, scores, losses, remembered rows, errors,
   multipliers, plain), all but the first two tensors -> the rows' factors, in the last tensor of the
   list, which it leaves; or how many rows there are, if that tensor is not of their number; or None if
   a tensor is not of the usual kind or a value was never seen. Only with factors anything changes. */
static PyObject *usual_step(PyObject *module, PyObject *const *args, Py_ssize_t n_args) {
    if (n_args != 10) return PyErr_Format(PyExc_TypeError, "expected 10 arguments, got %zd", n_args);
    Problem *p = PyCapsule_GetPointer(args[0], NULL);
    Py_ssize_t n_spare = PyList_Size(args[1]);
    if (!p || n_spare < 0) return NULL;
    Batch b = {.n = ANY, .is_mean = 1, .updates = 1};
    int64_t n_cells = p->n_cells, n_sides = p->n_sides, n_levels = p->n_levels, two = 2;
    double *kept, *errors, *multipliers;
    if (!describe || p->n_columns != 1 ||
        !(b.label = memory_of(args[2], DL_INT, 64, &b.n, NULL)) || b.n == 0 ||
        !(b.s = memory_of(args[3], DL_INT, 64, &b.n, NULL)) ||
        !(b.scores = memory_of(args[4], DL_FLOAT, 32, &b.n, &b.n_classes)) ||
        !(b.losses = memory_of(args[5], DL_FLOAT, 32, &b.n, NULL)) ||
        !(kept = memory_of(args[6], DL_FLOAT, 64, &n_cells, NULL)) ||
        !(errors = memory_of(args[7], DL_FLOAT, 64, &n_cells, NULL)) ||
        !(multipliers = memory_of(args[8], DL_FLOAT, 64, &n_sides, &n_levels)) ||
        n_levels != p->n_levels || !(b.plain = memory_of(args[9], DL_FLOAT, 64, &two, NULL)))
        Py_RETURN_NONE;
    PyObject *factors = n_spare > 0 ? PyList_GetItem(args[1], n_spare - 1) : NULL;
    float *factor = factors ? memory_of(factors, DL_FLOAT, 32, &b.n, NULL) : NULL;
    if (!factor) return PyLong_FromLongLong(b.n);
    int status = take_batch(p, &b, kept, errors, multipliers, factor);
    if (status < 0) return PyErr_NoMemory();
    if (status > 0) Py_RETURN_NONE;
    Py_INCREF(factors);
    if (PyList_SetSlice(args[1], n_spare - 1, n_spare, NULL)) {
        Py_DECREF(factors);
        return NULL;
    }
    return factors;
}

/* -- whole epochs of linear models ----------------------------------------------------------- */

#define PIECE 512 /* rows judged at a time */
#define TILE 32   /* most rows of a block, which is in the cache while all models go over it */
#define FIRST_CACHE 16384 /* bytes of it that a block may take, if it is not too few rows */
#define SECOND_CACHE 65536 /* bytes that are asked for ahead */
#define ALONG 24  /* what summing up a vector costs, in features: then models are not side by side */

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi" /* vectors are passed to functions that are inlined only */
#endif

/* What takes long is compiled twice: as `name_any`, and for processors with AVX2 and FMA. */
#define INLINE static inline __attribute__((always_inline))
#if defined(__x86_64__) && defined(__GNUC__)
static int has_fma = 0;
#define VERSIONS_OF(type, name, parameters, arguments)                                       \
    __attribute__((target("avx2,fma"))) static type name##_fma parameters {                  \
        return name##_any arguments;                                                         \
    }                                                                                        \
    static type name parameters { return has_fma ? name##_fma arguments : name##_any arguments; }
#else
#define VERSIONS_OF(type, name, parameters, arguments) \
    static type name parameters { return name##_any arguments; }
#endif
#define VERSIONS(type, name, parameters, arguments) VERSIONS_OF(type, name, parameters, arguments)

typedef struct { /* models that see the same rows */
    Problem *problem;
    int64_t n_features, n_outputs, n_members, batch_size, n_steps, n_judged, n_cells, n_groups, n_kinds;
    int64_t n_slots, first_averaged, is_single, is_active, n_state; /* n_state: of each slot */
    int64_t n_apart, n_rows; /* n_apart: numbers from one row of the table to the next */
    int64_t row_size, tile, ahead; /* their bytes; rows of a block; rows asked for ahead */
    int64_t is_beside, stride, width; /* order of the numbers, for _linear.h */
    const void *X;
    const int64_t *judged, *next; /* next: rows that come after those at hand, n_next of them */
    int64_t n_next;
    const int32_t *kind;  /* of the rows: label * n_groups + group */
    const double *weight; /* of the rows; NULL if all are 1 */
    const double *offset, *factor; /* of the features: (X - offset) * factor is what models see */
    const double *rate, *decay, *clip, *gain;
    const uint8_t *ignores_labels; /* of each member */
    double *theta; /* as they are, and then as they are shown: averaged, at the end of an epoch */
    double *mean, *rows, *errors, *multipliers, *weights;
    double *judged_counts, *judged_loss, *slots;
    double n_averaged;
    const void **row;      /* where the features of the rows at hand are, ordered by kind */
    double *row_weight;    /* their weights */
    int64_t *start, *present, n_present; /* where kinds start and end; those at hand */
    void *last;            /* the table's last row */
    void *folded, *bias, *z, *wrong, *gradient; /* in the precision of the features, see _linear.h */
    double *loss, *mass, *kind_wrong, *by_bias, *by_weight, *blend, *counts; /* scratch */
    void *memory; /* in which all this scratch is */
    int64_t used;
} Models;

typedef struct { /* some of the rows at hand, all of one label and one group */
    int64_t n, label;
    const void *const *x;
    const double *weight;            /* NULL if all are 1 */
    double *wrong, *shown_wrong;     /* sums of each model; NULL: not to be trained, or judged */
    double *by_bias;                 /* of each model, not weighted yet */
    void *gradient;                  /* the same, in the precision of the features */
} Block;

#define NUMBER float
#define BITS uint32_t
#define OF(name) single_##name
#include "_linear.h"
#define NUMBER double
#define BITS uint64_t
#define OF(name) double_##name
#include "_linear.h"

static void work(const Models *s, const Block *b) {
    if (s->is_single) single_work(s, b);
    else double_work(s, b);
}

/* Makes the weights of models ready: as they are (0), or as they are shown (1). */
static void fold(Models *s, int64_t shown) {
    const double *theta = s->theta + shown * s->n_members * s->n_outputs * (s->n_features + 1);
    if (s->is_single) single_fold(s, shown * s->n_outputs, theta);
    else double_fold(s, shown * s->n_outputs, theta);
}

/* Asks the memory for the rows that come `ahead` places after the i-th of n, up to the end-th; after
   the rows at hand come those of the next batch. They go to the second cache. */
static void ask_ahead(const Models *s, int64_t i, int64_t end, int64_t n) {
    for (; i < end; i++) {
        int64_t later = i + s->ahead - n; /* its place in the next batch, if not negative */
        if (i < s->n_next) __builtin_prefetch(s->kind + s->next[i]);
        if (later >= s->n_next) continue;
        const char *features = later < 0 ? s->row[i + s->ahead]
                                         : (const char *)s->X + s->next[later] * s->row_size;
        for (int64_t at = 0; at < s->row_size; at += 64) __builtin_prefetch(features + at, 0, 1);
    }
}

/* Takes rows, ordered by kind: kind k has the places from start[2 k] up to start[2 k + 1]. Gives
   the sum of their weights. */
static double gather(Models *s, const int64_t *rows, int64_t n) {
    int64_t *start = s->start, last = s->n_rows - 1, row_size = s->row_size;
    double total = 0;
    s->n_present = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t k = s->kind[rows[i]];
        if (start[2 * k + 1]++ == 0) s->present[s->n_present++] = k;
    }
    for (int64_t c = 0, place = 0; c < s->n_present; c++) {
        int64_t k = s->present[c], size = start[2 * k + 1];
        start[2 * k] = start[2 * k + 1] = place; /* first, and next to fill */
        s->mass[c] = s->weight ? 0 : size;
        place += size;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t row = rows[i], place = start[2 * s->kind[row] + 1]++;
        if (s->weight) s->row_weight[place] = s->weight[row];
        s->row[place] = row == last ? s->last : (const char *)s->X + row * row_size;
    }
    for (int64_t c = 0; c < s->n_present; c++) {
        int64_t k = s->present[c];
        for (int64_t i = start[2 * k]; s->weight && i < start[2 * k + 1]; i++)
            s->mass[c] += s->row_weight[i];
        total += s->mass[c];
    }
    return total;
}

static void forget(Models *s) { /* what `gather` noted of the kinds */
    for (int64_t c = 0; c < s->n_present; c++) s->start[2 * s->present[c] + 1] = 0;
}

static int64_t gradient_size(const Models *s) { /* of one kind of rows */
    return s->n_outputs * (s->is_beside ? s->n_features * s->stride : s->n_members * s->width);
}

/* Goes over the rows at hand, block by block. Sums of the rows of the c-th kind that is present stand
   at c. */
static void go_over(Models *s, int64_t n_rows, int is_trained, int is_judged) {
    int64_t stride = s->stride, n_bias = s->n_outputs * stride;
    int64_t size = gradient_size(s) * (s->is_single ? sizeof(float) : sizeof(double));
    double *shown_wrong = s->kind_wrong + s->n_present * stride;
    memset(s->kind_wrong, 0, 2 * s->n_present * stride * sizeof(double));
    memset(s->loss, 0, stride * sizeof(double));
    if (is_trained) {
        memset(s->by_bias, 0, s->n_present * n_bias * sizeof(double));
        memset(s->gradient, 0, s->n_present * size);
    }
    for (int64_t c = 0; c < s->n_present; c++) {
        int64_t k = s->present[c], end = s->start[2 * k + 1];
        for (int64_t i = s->start[2 * k]; i < end; i += s->tile) {
            int64_t n = MIN(s->tile, end - i);
            Block block = {n, k / s->n_groups, s->row + i, s->weight ? s->row_weight + i : NULL,
                           is_trained ? s->kind_wrong + c * stride : NULL,
                           is_judged ? shown_wrong + c * stride : NULL,
                           s->by_bias + c * n_bias, (char *)s->gradient + c * size};
            work(s, &block);
            ask_ahead(s, i, i + n, n_rows);
        }
    }
}

/* Adds the rows of a member that are right, and wrong, to those of its cells. */
static void count(const Models *s, const double *kind_wrong, double *right, double *wrong) {
    for (int64_t c = 0; c < s->n_present; c++) {
        int64_t cell = s->present[c] % s->n_cells; /* cells are kinds, or groups of any label */
        right[cell] += s->mass[c] - kind_wrong[c * s->stride];
        wrong[cell] += kind_wrong[c * s->stride];
    }
}

static void pool_labels(Models *s, double *counts) { /* cells hold the rows of every label */
    for (int64_t g = 0; g < s->n_groups; g++) {
        double all = 0;
        for (int64_t k = g; k < s->n_cells; k += s->n_groups) all += counts[k];
        for (int64_t k = g; k < s->n_cells; k += s->n_groups) counts[k] = all;
    }
}

/* Counts and losses of the models as they are shown, on the rows at hand. */
static void take_in(Models *s, int64_t place) {
    int64_t size = 2 * s->n_cells;
    const double *wrong = s->kind_wrong + s->n_present * s->stride;
    double *counts = s->judged_counts + place * s->n_members * size;
    for (int64_t m = 0; m < s->n_members; m++, counts += size) {
        s->judged_loss[place * s->n_members + m] += s->loss[m];
        count(s, wrong + m, counts, counts + s->n_cells);
    }
}

/* The gradient of all rows at hand, from those of each kind: by the weights of the cells over the
   total. */
static void blend_kinds(Models *s, double total) {
    int64_t stride = s->stride, n_bias = s->n_outputs * stride;
    for (int64_t c = 0; c < s->n_present; c++) {
        double *blend = s->blend + c * stride;
        int64_t cell = s->present[c] % s->n_cells;
        for (int64_t m = 0; m < s->n_members; m++)
            blend[m] = (s->is_active ? s->weights[m * s->n_cells + cell] : 1) / total;
        for (int64_t i = 0; i < n_bias; i++) {
            double before = c ? s->by_bias[i] : 0;
            s->by_bias[i] = before + blend[i % stride] * s->by_bias[c * n_bias + i];
        }
    }
    if (s->is_single) single_blend(s, s->n_present);
    else double_blend(s, s->n_present);
}

/* Moves one member along its gradient. */
static void descend(Models *s, int64_t m, double factor) {
    int64_t d = s->n_features, size = s->n_outputs * (d + 1), apart = s->is_beside ? s->stride : 1;
    double *theta = s->theta + m * size, *g = s->counts, shorter = 1;
    double step = -factor * s->rate[m] * *s->gain, decay = s->decay[m] / *s->gain;
    for (int64_t o = 0; o < s->n_outputs; o++) {
        const double *own = s->by_weight + (s->is_beside ? o * d * s->stride + m
                                                         : (o * s->n_members + m) * s->width);
        double *to = g + o * (d + 1), by_bias = s->by_bias[o * s->stride + m];
        for (int64_t k = 0; k < d; k++) {
            double by_weight = own[k * apart];
            to[k] = (by_weight - s->offset[k] * by_bias) * s->factor[k];
        }
        to[d] = by_bias;
    }
    if (s->clip[m] < INFINITY) {
        double norm = 0;
        for (int64_t i = 0; i < size; i++) norm += g[i] * g[i];
        double allowed = s->clip[m] / (sqrt(norm * *s->gain) + 1e-6);
        shorter = MIN(allowed, 1);
    }
    for (int64_t i = 0; i < size; i++) theta[i] += step * (shorter * g[i] + decay * theta[i]);
}

/* One step; if `place` is not negative, the models shown are judged by these rows on the way. */
static void take_step(Models *s, const int64_t *rows, int64_t n, double factor, int64_t place) {
    int64_t n_all = s->n_members * s->n_cells;
    double total = gather(s, rows, n), *counts = s->counts;
    fold(s, 0);
    go_over(s, n, 1, place >= 0);
    if (place >= 0) take_in(s, place);
    if (s->is_active) {
        memset(counts, 0, 2 * n_all * sizeof(double));
        for (int64_t m = 0; m < s->n_members; m++) {
            double *right = counts + m * s->n_cells, *wrong = right + n_all;
            count(s, s->kind_wrong + m, right, wrong);
            if (s->ignores_labels[m]) pool_labels(s, right), pool_labels(s, wrong);
        }
        estimate_errors(s->problem, counts, s->rows, s->errors);
        find_levels(s->problem, s->errors);
        ascend(s->problem, s->multipliers, 1);
        weigh(s->problem, s->weights);
    }
    blend_kinds(s, MAX(total, 1e-30));
    for (int64_t m = 0; m < s->n_members; m++) descend(s, m, factor);
    forget(s);
}

static int are_finite(int64_t n, const double *numbers, double largest) {
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(numbers[i]) <= largest)) return 0;
    return 1;
}

/* Judges the models shown by the rows that are there for it. */
static int judge_shown(Models *s, int64_t place) {
    fold(s, 1);
    for (int64_t first = 0; first < s->n_judged; first += PIECE) {
        int64_t n = MIN(PIECE, s->n_judged - first);
        gather(s, s->judged + first, n);
        s->next = s->judged + first + n, s->n_next = MIN(PIECE, s->n_judged - first - n);
        go_over(s, n, 0, 1);
        take_in(s, place);
        forget(s);
    }
    return are_finite(s->n_members, s->judged_loss + place * s->n_members, DBL_MAX);
}

/* All the state of an epoch's end goes into one of the slots, in turn. */
static int keep_epoch(Models *s, int64_t epoch) {
    int64_t n_theta = s->n_members * s->n_outputs * (s->n_features + 1), n_cells = s->n_members * s->n_cells;
    int64_t n_multipliers = s->problem->n_sides * s->problem->n_levels;
    double *slot = s->slots + epoch % s->n_slots * s->n_state, *to = slot;
    const double *parts[] = {s->theta + n_theta, s->rows, s->errors, s->multipliers, s->weights};
    int64_t sizes[] = {n_theta, n_cells, n_cells, n_multipliers, n_cells};
    for (int i = 0; i < 5; to += sizes[i++]) memcpy(to, parts[i], sizes[i] * sizeof(double));
    return are_finite(s->n_state, slot, s->is_single ? FLT_MAX : DBL_MAX);
}

static int run_epoch(Models *s, int64_t epoch, int64_t place, const int64_t *rows, int64_t n,
                     const double *factors) {
    int64_t n_theta = s->n_members * s->n_outputs * (s->n_features + 1);
    if (place >= 0) fold(s, 1);
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
    free(s->memory);
    free(s);
}

/* Room for so many numbers of this size, zeros, in one piece of memory: first counted, then given. */
static void *room(Models *s, int64_t n, int64_t size) {
    char *place = s->memory ? (char *)s->memory + s->used : NULL;
    s->used += (n * size + 63) / 64 * 64;
    return place;
}

static void lay_out(Models *s) {
    int64_t number = s->is_single ? sizeof(float) : sizeof(double), d = s->n_features;
    int64_t b = MAX(s->batch_size, PIECE), kinds = MIN(s->n_kinds, b), models = 2 * s->n_outputs * s->stride;
    int64_t n_numbers = MAX(2 * s->n_members * s->n_cells, s->n_outputs * (d + 1));
    s->used = 0;
    s->last = room(s, s->width, number); /* with zeros after it, where the table has no more memory */
    s->folded = room(s, models * (s->is_beside ? d : s->width), number);
    s->bias = room(s, models, number);
    s->z = room(s, s->tile * models, number);
    s->wrong = room(s, 3 * s->tile * s->stride, number);
    s->row = room(s, b, sizeof(void *));
    s->row_weight = room(s, s->weight ? b : 0, sizeof(double));
    s->start = room(s, 2 * s->n_kinds, sizeof(int64_t));
    s->present = room(s, kinds, sizeof(int64_t));
    s->mass = room(s, kinds, sizeof(double));
    s->loss = room(s, s->stride, sizeof(double));
    s->blend = room(s, kinds * s->stride, sizeof(double));
    s->kind_wrong = room(s, 2 * kinds * s->stride, sizeof(double));
    s->by_bias = room(s, kinds * s->n_outputs * s->stride, sizeof(double));
    s->gradient = room(s, kinds * gradient_size(s), number);
    s->by_weight = room(s, gradient_size(s), sizeof(double));
    s->counts = room(s, n_numbers, sizeof(double)); /* or the gradient of one member */
}

/* (problem, sizes, pointers) -> linear models. Sizes and pointers in the order below. */
static PyObject *prepare_models(PyObject *module, PyObject *const *args, Py_ssize_t n_args) {
    if (n_args != 3) return PyErr_Format(PyExc_TypeError, "expected 3 arguments, got %zd", n_args);
    Models *s = calloc(1, sizeof(Models));
    if (!s) return PyErr_NoMemory();
    s->problem = PyCapsule_GetPointer(args[0], NULL);
    int64_t *sizes[] = {&s->n_features, &s->n_outputs, &s->n_members, &s->batch_size, &s->n_steps,
                        &s->n_judged, &s->n_cells, &s->n_groups, &s->n_kinds, &s->n_slots,
                        &s->first_averaged, &s->is_single, &s->is_active, &s->n_state,
                        &s->n_apart, &s->n_rows};
    for (int i = 0; i < 16; i++) *sizes[i] = PyLong_AsLongLong(PyTuple_GetItem(args[1], i));
    void **pointers[] = {(void **)&s->X, (void **)&s->kind, (void **)&s->judged,
                         (void **)&s->weight, (void **)&s->offset, (void **)&s->factor,
                         (void **)&s->rate, (void **)&s->decay,
                         (void **)&s->clip, (void **)&s->gain, (void **)&s->ignores_labels,
                         (void **)&s->theta, (void **)&s->mean, (void **)&s->rows,
                         (void **)&s->errors, (void **)&s->multipliers, (void **)&s->weights,
                         (void **)&s->judged_counts, (void **)&s->judged_loss,
                         (void **)&s->slots};
    for (int i = 0; i < 20; i++) *pointers[i] = PyLong_AsVoidPtr(PyTuple_GetItem(args[2], i));
    int64_t number = s->is_single ? sizeof(float) : sizeof(double), lanes = 32 / number;
    int64_t filled = (s->n_members + lanes - 1) / lanes * lanes, d = s->n_features;
    s->width = (d + lanes - 1) / lanes * lanes;
    s->is_beside = filled * d <= s->n_members * (s->width + ALONG);
    s->stride = s->is_beside ? filled : s->n_members;
    s->row_size = s->n_apart * number;
    s->tile = s->is_beside ? TILE : MAX(8, MIN(TILE, FIRST_CACHE / MAX(1, s->row_size) / 8 * 8));
    s->ahead = MAX(1, MIN(s->batch_size, SECOND_CACHE / MAX(1, s->row_size)));
    lay_out(s);
    s->memory = PyErr_Occurred() ? NULL : calloc(1, s->used);
    if (!s->memory) {
        free(s);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    lay_out(s);
    if (s->n_rows > 0)
        memcpy(s->last, (const char *)s->X + (s->n_rows - 1) * s->row_size, d * number);
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

/* (rows, columns, whether single precision, table, weights of rows or 0, mean, variance, scratch). */
static PyObject *moments(PyObject *module, PyObject *const *args, Py_ssize_t n_args) {
    if (n_args != 8) return PyErr_Format(PyExc_TypeError, "expected 8 arguments, got %zd", n_args);
    int64_t n = PyLong_AsLongLong(args[0]), d = PyLong_AsLongLong(args[1]);
    int is_single = PyObject_IsTrue(args[2]);
    const void *table = PyLong_AsVoidPtr(args[3]);
    const double *weight = POINTER(const double, args[4]);
    double *mean = POINTER(double, args[5]), *variance = POINTER(double, args[6]);
    double *scratch = POINTER(double, args[7]);
    if (PyErr_Occurred()) return NULL;
    if (is_single) single_moments(n, d, table, weight, mean, variance, scratch);
    else double_moments(n, d, table, weight, mean, variance, scratch);
    Py_RETURN_NONE;
}

/* -- hidden layers of stacks ----------------------------------------------------------------- */

typedef struct { /* of one layer: M members, each with units, each with a number for every row */
    int64_t n_members, n_units, n_rows, n_streams;
    int64_t stride, kept_stride, mask_stride; /* of parameters, of buffers, from stream to stream */
    const float *bias, *scale, *shift, *masks;                          /* masks: NULL for none */
    float *mean, *variance, *centred, *h, *inverse, *slope;
    double kept, momentum, eps; /* kept: 1 / share of the units that are kept */
} Layer;

#define LANES 8 /* sums that are independent of each other, so that compilers vectorise */

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
    {"use_tensors", (PyCFunction)(void (*)(void))use_tensors, METH_FASTCALL, "Of which type."},
    {"usual_step", (PyCFunction)(void (*)(void))usual_step, METH_FASTCALL, "The same, of tensors."},
    {"prepare_models", (PyCFunction)(void (*)(void))prepare_models, METH_FASTCALL, "Linear models."},
    {"epoch", (PyCFunction)(void (*)(void))epoch, METH_FASTCALL, "Trains them for one."},
    {"judge_models", (PyCFunction)(void (*)(void))judge_models, METH_FASTCALL, "How good they are."},
    {"moments", (PyCFunction)(void (*)(void))moments, METH_FASTCALL, "Mean and variance of columns."},
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
