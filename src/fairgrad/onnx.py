"""ONNX export: ``from fairgrad.onnx import to_onnx``. Other runtimes can run the fitted models.

A linear model or a perceptron needs a few nodes and boosted trees need one, so the graphs are
written here node by node. They compute in the model's precision, so that a runtime's results equal
those of `predict` and `predict_proba`.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from fairgrad.checks import relative_costs
from fairgrad.decisions import as_costs
from fairgrad.sklearn import FairGradClassifier
from fairgrad.sklearn.cell_models import FoldMean
from fairgrad.tables.encoder import TableEncoder
from fairgrad.tables.features import OTHER, TableFeature

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

__all__ = ["to_onnx"]

OPSETS = {"": 18, "ai.onnx.ml": 5}
IR_VERSION = 10
"""Versions of the operators and of the format that runtimes since 2024 can read."""

DOUBLE = np.dtype(np.float64)

LESS_OR_EQUAL, LESS = 0, 1
"""ONNX's numbers for the comparisons in the nodes of trees."""


def to_onnx(model: Any) -> onnx.ModelProto:
    """Converts a fitted classifier to an ONNX graph.

    Its input is ``X``, (rows, features), as float32 or float64, whichever the model computes in.
    Its outputs are ``label``, (rows,), and ``probabilities``, (rows, classes): those of `predict`
    and `predict_proba`. Write it with ``onnx.save(to_onnx(model), "model.onnx")``. The graph
    contains no multipliers or other values that only training needs.

    `FairDecisionClassifier` is exported if its model is one of those listed below, or logistic
    regression. All may be the last step of a pipeline whose other steps are `StandardScaler`,
    `MinMaxScaler` or `SimpleImputer`, or whose first step is a `TableEncoder` or a
    `ColumnTransformer` of these and `OneHotEncoder`. The graph then has one input per column of the
    table, (rows, 1), with the column's name: texts, or numbers as float64. Empty texts and NaN are
    missing values. A value that did not occur in training belongs to no category.

    Not supported are other steps (convert them with skl2onnx and join the graphs with
    ``onnx.compose``), columns of dates, boosted trees that split on categories, and decisions that
    use sensitive values.

    Args:
        model: a fitted `FairGradClassifier`, `FairGradLGBMClassifier`, `FairGradXGBClassifier` or
            `FairDecisionClassifier`, or a pipeline whose last step is one of these.

    Raises:
        TypeError: if the model has another type.
        ValueError: if ONNX has no counterpart for something in the model.
        sklearn.exceptions.NotFittedError: if the model is not fitted.

    Example:
        >>> import numpy as np, onnxruntime
        >>> from fairgrad.sklearn import FairGradClassifier
        >>> X, y, s = np.eye(4).repeat(5, 0), ["no", "no", "yes", "yes"] * 5, [0, 1] * 10
        >>> model = FairGradClassifier(None, max_iter=1)
        >>> model = model.fit(X, y, sensitive_features=s)
        >>> session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
        >>> label, probabilities = session.run(None, {"X": X})
        >>> bool((label == model.predict(X)).all())
        True
        >>> bool(np.allclose(probabilities, model.predict_proba(X)))
        True
    """
    last = model[-1] if isinstance(model, Pipeline) else model
    if not hasattr(last, "fairness_measure"):
        raise _unsupported(last)
    check_is_fitted(last)
    graph = GraphWriter()
    # In a pipeline the steps before XGBoost compute in double precision.
    dtype = np.dtype(np.float64) if model is not last and _is_xgboost(last) else _precision(last)
    scores = graph.scores(model, "X", dtype)
    if type(last).__name__ != "FairDecisionClassifier":  # it writes its probabilities itself
        graph.probabilities(scores, len(last.classes_), result="probabilities")
    graph.label(scores, np.asarray(last.classes_), _precision(last))
    return graph.finish(model, last, dtype)


def _is_xgboost(model: Any) -> bool:
    return any(cls.__name__ == "FairGradXGBClassifier" for cls in type(model).__mro__)


def _precision(model: Any) -> np.dtype[Any]:
    """The precision of a classifier, or of the last step of a pipeline."""
    last = model[-1] if isinstance(model, Pipeline) else model
    if isinstance(last, FairGradClassifier):
        return np.asarray(last.state_["network.parameters"]).dtype
    return np.dtype(np.float32 if _is_xgboost(last) else np.float64)


def _unsupported(model: Any) -> TypeError:
    fair = [name for name in WRITERS if name != "LogisticRegression"]
    return TypeError(f"model: expected one of {', '.join(fair)}, got {type(model).__name__}.")


class GraphWriter:
    """Collects the nodes and constants of a graph.

    The input is called X. If the model reads tables, `columns` has one input per column instead.
    """

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.columns: dict[str, int] = {}

    def constant(self, values: Any) -> str:
        """Adds an array; returns its name."""
        name, array = f"constant{len(self.constants)}", np.ascontiguousarray(values)
        if array.dtype.kind in "OSU":
            array = array.astype(str).astype(object)  # the type that ONNX accepts for texts
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def add(self, operator: str, *inputs: str, result: str = "", **attributes: Any) -> str:
        """Adds a node; returns the name of its result."""
        name = result or f"value{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def scores(self, model: Any, x: str, dtype: np.dtype[Any]) -> str:
        """Adds the scores of a model: (rows, 1) margins of two classes, or (rows, classes) logits.

        Args:
            model: a fitted classifier or pipeline.
            x: the name of its features.
            dtype: their precision; the scores have the precision of the model.
        """
        if isinstance(model, Pipeline):
            for _, step in model.steps[:-1]:
                if isinstance(step, TableEncoder):
                    x = self._encoded(step, dtype)
                elif isinstance(step, ColumnTransformer):
                    x = self._by_column(step, dtype)
                else:
                    x = self._scaled(step, x, dtype)
            model = model[-1]
        kinds = [cls.__name__ for cls in type(model).__mro__ if cls.__name__ in WRITERS]
        if not kinds:
            raise _unsupported(model)
        return WRITERS[kinds[0]](model, self, self.cast(x, dtype, _precision(model)))

    def cast(self, name: str, dtype: np.dtype[Any], wanted: np.dtype[Any]) -> str:
        """Converts a value to another precision."""
        if dtype == wanted:
            return name
        return self.add("Cast", name, to=helper.np_dtype_to_tensor_dtype(wanted))

    def _encoded(self, encoder: TableEncoder, dtype: np.dtype[Any]) -> str:
        """Adds the matrix of a `TableEncoder`; each column of the table is an input."""
        encoded = []
        for block in encoder.blocks():
            feature, kind = block
            if feature.date is not None:
                raise ValueError(
                    f"model: the column {feature.column!r} holds dates, which ONNX cannot read. "
                    "Fit the model to numbers instead."
                )
            if kind == "category":
                value = self._one_hot(feature, len(block.names))
            else:
                value = self._numbers(feature, kind, encoder.scaling(feature))
            encoded.append(self.add("Cast", value, to=onnx.TensorProto.FLOAT))
        return self.cast(self.add("Concat", *encoded, axis=1), np.dtype(np.float32), dtype)

    def _by_column(self, transformer: ColumnTransformer, dtype: np.dtype[Any]) -> str:
        """Adds the matrix of a `ColumnTransformer`; each column of the table is an input."""
        outputs, known = [], transformer.feature_names_in_
        for _, step, chosen in transformer.transformers_:
            names = [str(name) if isinstance(name, str) else str(known[name]) for name in chosen]
            if not names or (isinstance(step, str) and step == "drop"):
                continue
            is_one_hot = type(step).__name__ == "OneHotEncoder"
            if is_one_hot and step.drop is None and not hasattr(step, "infrequent_categories_"):
                hot = []
                for name, values in zip(names, step.categories_, strict=True):
                    texts, is_number = tuple(map(str, values)), values.dtype.kind not in "OSU"
                    feature = TableFeature(name, "category", texts, numbers=is_number)
                    hot.append(self._one_hot(feature, len(texts)))
                outputs += [self.add("Cast", value, to=onnx.TensorProto.DOUBLE) for value in hot]
                continue
            self.columns |= dict.fromkeys(names, onnx.TensorProto.DOUBLE)
            value = self.add("Concat", *names, axis=1)
            for _, inner in step.steps if isinstance(step, Pipeline) else [("", step)]:
                value = self._scaled(inner, value, DOUBLE)
            outputs.append(value)
        return self.cast(self.add("Concat", *outputs, axis=1), DOUBLE, dtype)

    def _one_hot(self, feature: TableFeature, width: int) -> str:
        """(rows, width) the one-hot encoding of a column; an empty text is a missing value."""
        if feature.numbers:
            return self._codes(feature, width)
        self.columns[feature.name] = onnx.TensorProto.STRING
        place = {name: code for code, name in enumerate(feature.values)}
        place.setdefault("", len(feature.values) if feature.has_gaps else width)
        code = self.add(
            "LabelEncoder",
            feature.name,
            domain="ai.onnx.ml",
            keys_strings=list(place),
            values_int64s=list(place.values()),
            default_int64=place.get(OTHER, width),
        )
        return self.add("Equal", code, self.constant(np.arange(width)[None]))

    def _codes(self, feature: Any, width: int) -> str:
        """(rows, width) the one-hot encoding of numbers that are codes of categories."""
        self.columns[feature.name] = onnx.TensorProto.DOUBLE
        known = [name for name in feature.values if name != OTHER]
        numbers = self.constant(np.array([known], dtype=np.float64))
        columns = [self.add("Equal", feature.name, numbers)]
        is_gap = self.add("IsNaN", feature.name)
        if len(known) < len(feature.values):
            as_number = self.add("Cast", columns[0], to=onnx.TensorProto.FLOAT)
            largest = self.add("ReduceMax", as_number, self.constant(np.array([1])))
            is_known = self.add("Cast", largest, to=onnx.TensorProto.BOOL)
            columns.append(self.add("Not", self.add("Or", is_known, is_gap)))
        columns += [is_gap] if width > len(feature.values) else []
        return self.add("Concat", *columns, axis=1) if len(columns) > 1 else columns[0]

    def _numbers(self, feature: Any, kind: str, scaling: tuple[float, float]) -> str:
        """(rows, 1) scaled numbers, or the indicator of missing values."""
        self.columns[feature.name] = onnx.TensorProto.DOUBLE
        is_gap = self.add("IsNaN", feature.name)
        if kind == "missing":
            return self.add("Where", is_gap, *map(self.constant, np.array([[[1.0]], [[-1.0]]])))
        numbers = np.array([feature.median, *scaling])[:, None, None]
        filling, scale, offset = map(self.constant, numbers)
        value = self.add("Where", is_gap, filling, feature.name)
        return self.add("Add", self.add("Mul", value, scale), offset)

    def _scaled(self, step: Any, x: str, dtype: np.dtype[Any]) -> str:
        """Adds a step that scales the features or replaces missing values."""
        kind = step if isinstance(step, str) else type(step).__name__
        if kind == "MinMaxScaler" and not step.clip:
            x = self.add("Mul", x, self.constant(step.scale_.astype(dtype)))
            return self.add("Add", x, self.constant(step.min_.astype(dtype)))
        if kind == "SimpleImputer" and np.isnan(step.missing_values) and not step.add_indicator:
            filled = self.constant(step.statistics_.astype(dtype))
            return self.add("Where", self.add("IsNaN", x), filled, x)
        if kind == "StandardScaler":
            if step.with_mean:
                x = self.add("Sub", x, self.constant(step.mean_.astype(dtype)))
            if step.with_std:
                x = self.add("Div", x, self.constant(step.scale_.astype(dtype)))
        elif kind != "passthrough" and getattr(step, "func", step) is not None:
            raise TypeError(
                "model: expected TableEncoder, ColumnTransformer, StandardScaler, SimpleImputer or "
                f"MinMaxScaler (without clip) before the classifier, got {kind}. "
                "fairgrad.TableEncoder replaces all of them."
            )
        return x

    def probabilities(self, scores: str, n_classes: int, result: str = "") -> str:
        """Adds the probabilities of scores, (rows, classes)."""
        if n_classes > 2:
            return self.add("Softmax", scores, result=result, axis=1)
        both = self.add("Sigmoid", self.add("Neg", scores)), self.add("Sigmoid", scores)
        return self.add("Concat", *both, result=result, axis=1)

    def label(self, scores: str, classes: NDArray[Any], dtype: np.dtype[Any]) -> None:
        """Adds the label; with two classes, the second if the margin is above 0."""
        if len(classes) == 2:
            above = self.add("Greater", scores, self.constant(np.zeros(1, dtype)))
            index = self.add("Cast", above, to=onnx.TensorProto.INT64)
        else:
            index = self.add("ArgMax", scores, axis=1, keepdims=0)
        flat = self.add("Reshape", index, self.constant(np.array([-1])))
        self.add("Gather", self.constant(classes), flat, result="label")

    def finish(self, model: Any, last: Any, dtype: np.dtype[Any]) -> onnx.ModelProto:
        """Builds the ONNX model and checks it."""
        info, kind_of = helper.make_tensor_value_info, helper.np_dtype_to_tensor_dtype
        classes = np.asarray(last.classes_)
        is_text = classes.dtype.kind in "OSU"
        label = onnx.TensorProto.STRING if is_text else kind_of(classes.dtype)
        inputs = [info(name, column, ["rows", 1]) for name, column in self.columns.items()]
        if not inputs:
            inputs = [info("X", kind_of(dtype), ["rows", int(model.n_features_in_)])]
        outputs = [
            info("label", label, ["rows"]),
            info("probabilities", kind_of(_precision(last)), ["rows", len(classes)]),
        ]
        made = helper.make_model(
            helper.make_graph(self.nodes, "fairgrad", inputs, outputs, self.constants),
            producer_name="fairgrad",
            producer_version=version("fairgrad"),
            ir_version=IR_VERSION,
            opset_imports=[helper.make_opsetid(*opset) for opset in OPSETS.items()],
        )
        properties = {"fairness_measure": str(last.fairness_measure), "epsilon": str(last.epsilon)}
        if hasattr(model, "feature_names_in_"):
            properties["features"] = json.dumps([str(name) for name in model.feature_names_in_])
        helper.set_model_props(made, properties)
        onnx.checker.check_model(made)
        return made


def _write_network(model: Any, graph: GraphWriter, x: str) -> str:
    """Adds a linear model or perceptron: the scaling, then the layers."""
    flat = np.asarray(model.state_["network.parameters"])[0]
    scaling = [graph.constant(term.astype(flat.dtype)) for term in (model.offset_, model.scale_)]
    value = graph.add("Div", graph.add("Sub", x, scaling[0]), scaling[1])
    n_classes = len(model.classes_)
    sizes = (len(model.scale_), *model.hidden_, 1 if n_classes == 2 else n_classes)
    for layer, (inputs, units) in enumerate(pairwise(sizes)):
        weight, bias, flat = np.split(flat, [units * inputs, units * inputs + units])
        if layer:
            value = graph.add("Relu", value)
        linear = [graph.constant(term) for term in (weight.reshape(units, inputs), bias)]
        value = graph.add("Gemm", value, *linear, transB=1)
    return value


def _write_lightgbm(model: Any, graph: GraphWriter, x: str) -> str:
    trees = model.booster_.dump_model(num_iteration=model.best_iteration_)["tree_info"]
    roots = [_lightgbm_node(tree["tree_structure"]) for tree in trees]
    base = np.zeros(1 if len(model.classes_) == 2 else len(model.classes_))
    return _write_trees(graph, x, roots, base, LESS_OR_EQUAL, np.float64)


def _lightgbm_node(node: Mapping[str, Any]) -> Any:
    """A node of a tree as `_write_trees` takes it."""
    if "leaf_value" in node:
        return float(node["leaf_value"])
    if node["decision_type"] != "<=":
        raise ValueError("model: splits on categories are not exported; encode them as numbers.")
    if node["missing_type"] == "Zero":
        raise ValueError("model: zero_as_missing=True is not exported.")
    value = float(node["threshold"])
    # Without missing values in training, LightGBM treats them as 0.
    missing_left = node["default_left"] if node["missing_type"] == "NaN" else value >= 0
    children = [_lightgbm_node(node[side]) for side in ("left_child", "right_child")]
    return int(node["split_feature"]), value, bool(missing_left), *children


def _write_xgboost(model: Any, graph: GraphWriter, x: str) -> str:
    learner = json.loads(bytes(model.get_booster().save_raw("json")))["learner"]
    booster = learner["gradient_booster"]
    if booster["name"] != "gbtree" or not np.isnan(model.missing):
        raise ValueError("model: only booster='gbtree' with missing=nan is exported.")
    trees = booster["model"]["trees"]
    if any(tree["categories_nodes"] for tree in trees):
        raise ValueError("model: splits on categories are not exported; encode them as numbers.")
    n_scores = 1 if len(model.classes_) == 2 else len(model.classes_)
    if getattr(model, "early_stopping_rounds", None):
        trees = trees[: (model.best_iteration + 1) * n_scores * (model.num_parallel_tree or 1)]
    base_score = json.loads(learner["learner_model_param"]["base_score"])
    base = np.broadcast_to(np.asarray(base_score, dtype=np.float32), (n_scores,))
    if n_scores == 1:
        base = np.log(base / (1 - base))  # stored as a probability
    roots = [_xgboost_node(tree, 0) for tree in trees]
    return _write_trees(graph, x, roots, base, LESS, np.float32)


def _xgboost_node(tree: Mapping[str, Sequence[Any]], place: int) -> Any:
    """A node of a tree as `_write_trees` takes it."""
    value, left = tree["split_conditions"][place], tree["left_children"][place]
    if left < 0:
        return float(value)
    children = [
        _xgboost_node(tree, tree[side][place]) for side in ("left_children", "right_children")
    ]
    feature, missing_left = tree["split_indices"][place], tree["default_left"][place]
    return int(feature), float(value), bool(missing_left), *children


def _write_trees(
    graph: GraphWriter, x: str, roots: Sequence[Any], base: NDArray[Any], mode: int, dtype: Any
) -> str:
    """Adds the sums of the trees' leaves and `base`; tree i belongs to score i mod scores.

    A node is the score of a leaf, or (feature, value, whether missing values go left, left, right):
    rows with ``X[feature] <= value`` (or ``<``) go to the left node, others to the right node.
    """
    nodes: list[tuple[int, float, bool, int, int, int, int]] = []
    leaves: list[tuple[int, float]] = []

    def place(node: Any, score: int) -> tuple[int, int]:
        """Stores a node or leaf; returns its number and whether it is a leaf."""
        if not isinstance(node, tuple):
            leaves.append((score, node))
            return len(leaves) - 1, 1
        here = len(nodes)
        nodes.append((*node[:3], 0, 0, 0, 0))
        left, right = (place(child, score) for child in node[3:])
        nodes[here] = (*node[:3], *left, *right)
        return here, 0

    tree_roots = []
    for number, root in enumerate(roots):
        # A tree with a single leaf becomes a split with two equal leaves.
        split = root if isinstance(root, tuple) else (0, 0.0, True, root, root)
        tree_roots.append(place(split, number % len(base))[0])
    feature, value, missing, *sides = map(list, zip(*nodes, strict=True))
    targets, weights = zip(*leaves, strict=True)
    sums = graph.add(
        "TreeEnsemble",
        x,
        domain="ai.onnx.ml",
        n_targets=len(base),
        aggregate_function=1,
        post_transform=0,
        tree_roots=tree_roots,
        nodes_featureids=feature,
        nodes_splits=numpy_helper.from_array(np.array(value, dtype)),
        nodes_modes=numpy_helper.from_array(np.full(len(nodes), mode, np.uint8)),
        nodes_missing_value_tracks_true=[int(left) for left in missing],
        nodes_truenodeids=sides[0],
        nodes_trueleafs=sides[1],
        nodes_falsenodeids=sides[2],
        nodes_falseleafs=sides[3],
        leaf_targetids=targets,
        leaf_weights=numpy_helper.from_array(np.array(weights, dtype)),
    )
    return graph.add("Add", sums, graph.constant(base.astype(dtype)))


def _write_regression(model: Any, graph: GraphWriter, x: str) -> str:
    """Adds a logistic regression of scikit-learn, the default model of fair decisions."""
    if getattr(model, "multi_class", "auto") == "ovr" and len(model.classes_) > 2:
        raise ValueError("model: multi_class='ovr' is not exported.")
    terms = (model.coef_, model.intercept_)
    coefficients = [graph.constant(values.astype(np.float64)) for values in terms]
    return graph.add("Gemm", x, *coefficients, transB=1)


def _write_decisions(model: Any, graph: GraphWriter, x: str) -> str:
    """Adds fair decisions: minus the expected cost of each label, ``-sum_k a[k, l] P(k | x)``.

    The sum is over the cells k of all sets of attributes; each set has its share of the costs. The
    graph's second output are the labels' probabilities, averaged over the sets.
    """
    if model.use_sensitive or model.lottery_:
        raise ValueError(
            "model: decisions that use sensitive values or a lottery are not exported."
        )
    n_labels, n_sets = len(model.classes_), len(model.cell_models_)
    costs, label = (
        relative_costs(model.cost_matrix, n_labels),
        _doubled(model.label_model_, graph, x),
    )
    graph.add("Identity", label, result="probabilities")
    chances = [
        graph.add("Gather", label, graph.constant(np.array([place])), axis=1)
        for place in range(n_labels)
    ]
    scores = []
    if model.fairness_measure is None:
        scores = [graph.add("MatMul", label, graph.constant(-costs))]
    for models, extra in zip(model.cell_models_, model.pulls_, strict=False):  # no models: no loop
        by_label = costs.T[:, :, None] / n_sets + as_costs(extra)  # (L, L, G): l, y, r
        for place, within in enumerate(models):
            worth = graph.constant(-by_label[:, place, within.classes_].T)
            factor = graph.add("MatMul", _doubled(within, graph, x), worth)
            scores.append(graph.add("Mul", chances[place], factor))
    total = graph.add("Sum", *scores)
    if n_labels > 2:
        return total
    return graph.add("MatMul", total, graph.constant(np.array([[-1.0], [1.0]])))


def _doubled(model: Any, graph: GraphWriter, x: str) -> str:
    """Adds the probabilities of a model within fair decisions, in double precision."""
    if isinstance(model, DummyClassifier):  # all rows of a label belong to one group
        return graph.constant(model.class_prior_[None])
    if isinstance(model, FoldMean):
        classes, fold_probabilities = model.classes_, []
        for fold_model in model:
            share = (fold_model.classes_[:, None] == classes) / len(model)
            inner = _doubled(fold_model, graph, x)
            fold_probabilities.append(graph.add("MatMul", inner, graph.constant(share)))
        return graph.add("Sum", *fold_probabilities)
    probabilities = graph.probabilities(graph.scores(model, x, DOUBLE), len(model.classes_))
    return graph.cast(probabilities, _precision(model), DOUBLE)


WRITERS: dict[str, Callable[[Any, GraphWriter, str], str]] = {
    "FairGradClassifier": _write_network,
    "FairGradLGBMClassifier": _write_lightgbm,
    "FairGradXGBClassifier": _write_xgboost,
    "FairDecisionClassifier": _write_decisions,
    "LogisticRegression": _write_regression,
}
"""The function that writes the scores of each class.

Classes are given by name because not all of their libraries need to be installed. A writer adds the
nodes from x, in the model's precision, to the scores, and returns their name.
"""
