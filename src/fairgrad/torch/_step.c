/* fairgrad.dual.step on the CPU, as plain loops: `update` takes counts and gives weights.

   `step`, for the losses, takes a batch as it comes (labels, sensitive values, scores), so that it
   also finds each row's cell and whether its prediction is wrong, and gives each row's factor.
   PyTorch computes the loss. Without this module the same is done with tensor operations; the
   tests hold the two against each other. State and constants are tensors, whose addresses the
   caller (fairgrad.torch.compiled) passes; nothing here keeps them alive. */

#define Py_LIMITED_API 0x030A0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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
   remembered rows, errors, multipliers, factors) -> the weight of the rows counted; below 0:
   -1 - 2 * row if the row's label was never seen, -2 - 2 * row if its sensitive value was not.
   Then nothing has changed. */
static PyObject *step(PyObject *module, PyObject *const *args, Py_ssize_t n_args) {
    if (n_args != 14) return PyErr_Format(PyExc_TypeError, "expected 14 arguments, got %zd", n_args);
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
    }
    if (updates) estimate_errors(p, p->counts, kept, errors);
    if (updates || p->has_proportional) find_levels(p, errors);
    ascend(p, multipliers, updates);
    weigh(p, p->weights);
    double divisor = is_mean ? total : 1;
    for (int64_t i = 0; i < n; i++) {
        double weight = p->cells[i] == IGNORED ? 1 : p->weights[p->cells[i]];
        factor[i] = (float)((sample_weight ? weight * sample_weight[i] : weight) / divisor);
    }
    return PyFloat_FromDouble(total);
}

static PyMethodDef methods[] = {
    {"prepare", (PyCFunction)(void (*)(void))prepare, METH_FASTCALL, "A problem from its constants."},
    {"update", (PyCFunction)(void (*)(void))update, METH_FASTCALL, "Counts in, weights out."},
    {"step", (PyCFunction)(void (*)(void))step, METH_FASTCALL, "A batch in, the rows' factors out."},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_step", NULL, -1, methods,
                                        NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__step(void) { return PyModule_Create(&definition); }
