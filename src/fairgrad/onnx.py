"""A leaf for ONNX: ``from fairgrad.onnx import to_onnx``. Fitted models that other runtimes run.

A linear model or a perceptron is a handful of nodes, and boosted trees are one, so the graphs are
written here node by node. They compute in the model's own precision: what a runtime gives equals
what `predict` and `predict_proba` give.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import onnx
from onnx import helper, numpy_helper
from sklearn.utils.validation import check_is_fitted

from fairgrad.training.networks import EPS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

__all__ = ["to_onnx"]

OPSETS = {"": 18, "ai.onnx.ml": 5}
IR_VERSION = 10
"""Versions of the operators and of the format: what runtimes since 2024 read."""

LESS_OR_EQUAL, LESS = 0, 1
"""How a node of a tree compares, as ONNX numbers it."""


def to_onnx(model: Any) -> onnx.ModelProto:
    """A fitted classifier as an ONNX graph.

    Its input is ``X``, (rows, features), as float32 or float64, whichever the model computes in.
    Its outputs are ``label``, (rows,), and ``probabilities``, (rows, classes): those of `predict`
    and `predict_proba`. Write it with ``onnx.save(to_onnx(model), "model.onnx")``. Which label and
    group each multiplier belongs to, and what else is needed to train, is not in it.

    Not supported are pipelines (convert their other steps with skl2onnx and join the graphs with
    ``onnx.compose``), models with ``module=`` (``torch.onnx.export`` takes ``model.module_``), and
    boosted trees that split on categories.

    Args:
        model: a fitted `FairGradClassifier`, `FairGradLGBMClassifier` or `FairGradXGBClassifier`.

    Raises:
        TypeError: if it is another model.
        ValueError: if it has parts that have no counterpart in the graph.
        sklearn.exceptions.NotFittedError: if it is not fitted.

    Example:
        >>> import numpy as np, onnxruntime
        >>> from fairgrad.sklearn import FairGradClassifier
        >>> X, y, s = np.eye(4).repeat(5, 0), ["no", "no", "yes", "yes"] * 5, [0, 1] * 10
        >>> model = FairGradClassifier(compare_plain=False, fairness_rate=0.01, max_iter=1)
        >>> model = model.fit(X, y, sensitive_features=s)
        >>> session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
        >>> label, probabilities = session.run(None, {"X": X})
        >>> bool((label == model.predict(X)).all())
        True
        >>> bool(np.allclose(probabilities, model.predict_proba(X)))
        True
    """
    kinds = [cls.__name__ for cls in type(model).__mro__ if cls.__name__ in WRITERS]
    if not kinds:
        raise TypeError(f"model: expected one of {', '.join(WRITERS)}, got {type(model).__name__}.")
    check_is_fitted(model)
    graph = GraphWriter()
    dtype, scores = WRITERS[kinds[0]](model, graph)
    graph.decide(scores, np.asarray(model.classes_), dtype)
    return graph.finish(model, dtype)


class GraphWriter:
    """Nodes and constants of a graph that is being written; its input is called X."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, values: Any) -> str:
        """The name of an array."""
        name, array = f"constant{len(self.constants)}", np.ascontiguousarray(values)
        if array.dtype.kind in "OSU":
            array = array.astype(str).astype(object)  # what ONNX takes for texts
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def add(self, operator: str, *inputs: str, result: str = "", **attributes: Any) -> str:
        """Adds a node; gives the name of its result."""
        name = result or f"value{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def decide(self, scores: str, classes: NDArray[Any], dtype: NDArray[Any]) -> None:
        """Label and probabilities of scores: (rows, 1) margins of two classes, or (rows, classes).

        The second of two classes is taken where the margin is above 0, as `predict` does.
        """
        if len(classes) == 2:
            both = self.add("Sigmoid", self.add("Neg", scores)), self.add("Sigmoid", scores)
            self.add("Concat", *both, result="probabilities", axis=1)
            above = self.add("Greater", scores, self.constant(np.zeros(1, dtype)))
            index = self.add("Cast", above, to=onnx.TensorProto.INT64)
        else:
            self.add("Softmax", scores, result="probabilities", axis=1)
            index = self.add("ArgMax", scores, axis=1, keepdims=0)
        flat = self.add("Reshape", index, self.constant(np.array([-1])))
        self.add("Gather", self.constant(classes), flat, result="label")

    def finish(self, model: Any, dtype: Any) -> onnx.ModelProto:
        """The whole model, checked."""
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        classes = np.asarray(model.classes_)
        is_text = classes.dtype.kind in "OSU"
        label = (
            onnx.TensorProto.STRING if is_text else helper.np_dtype_to_tensor_dtype(classes.dtype)
        )
        graph = helper.make_graph(
            self.nodes,
            "fairgrad",
            [helper.make_tensor_value_info("X", kind, ["rows", int(model.n_features_in_)])],
            [
                helper.make_tensor_value_info("label", label, ["rows"]),
                helper.make_tensor_value_info("probabilities", kind, ["rows", len(classes)]),
            ],
            self.constants,
        )
        made = helper.make_model(
            graph,
            producer_name="fairgrad",
            producer_version=version("fairgrad"),
            ir_version=IR_VERSION,
            opset_imports=[helper.make_opsetid(*opset) for opset in OPSETS.items()],
        )
        names = getattr(model, "feature_names_in_", None)
        helper.set_model_props(
            made,
            {
                "fairness_measure": str(model.fairness_measure),
                "epsilon": str(model.epsilon),
                **(
                    {} if names is None else {"features": json.dumps([str(name) for name in names])}
                ),
            },
        )
        onnx.checker.check_model(made)
        return made


def _write_network(model: Any, graph: GraphWriter) -> tuple[Any, str]:
    """Precision and scores of a linear model or perceptron: scaling, then layer after layer."""
    shape = model.shape_
    if shape is None:
        raise ValueError(
            "model: a network given as module= is not exported here; use torch.onnx.export of "
            "model.module_."
        )
    flat = np.asarray(model.state_["network.parameters"])[0]
    dtype = flat.dtype
    parts = np.split(flat, np.cumsum(shape.sizes)[:-1])
    pieces = {
        name: part.reshape(size)
        for (name, size), part in zip(shape.pieces.items(), parts, strict=True)
    }
    scaling = [graph.constant(part.astype(dtype)) for part in (model.offset_, model.scale_)]
    value = graph.add("Div", graph.add("Sub", "X", scaling[0]), scaling[1])
    for layer in range(len(shape.hidden) + 1):
        linear = [graph.constant(pieces[f"{name}{layer}"]) for name in ("weight", "bias")]
        value = graph.add("Gemm", value, *linear, transB=1)
        if layer == len(shape.hidden):
            break
        if shape.batch_norm:
            running = [model.state_[f"buffers.{name}{layer}"][0] for name in ("mean", "variance")]
            learnt = [pieces[f"{name}{layer}"] for name in ("scale", "shift")]
            constants = [graph.constant(part) for part in (*learnt, *running)]
            value = graph.add("BatchNormalization", value, *constants, epsilon=EPS)
        value = graph.add("Relu", value)
    return dtype, value


class SplitNode(NamedTuple):
    """A node of a tree: rows with ``X[feature] <= value`` (or ``<``) go to `left`.

    `left` and `right` are nodes, or numbers: the scores of leaves. `missing_left` says where a
    missing value goes.
    """

    feature: int
    value: float
    missing_left: bool
    left: Any
    right: Any


def _write_lightgbm(model: Any, graph: GraphWriter) -> tuple[Any, str]:
    trees = model.booster_.dump_model(num_iteration=model.best_iteration_)["tree_info"]
    roots = [_lightgbm_node(tree["tree_structure"]) for tree in trees]
    base = np.zeros(1 if len(model.classes_) == 2 else len(model.classes_))
    return np.float64, _write_trees(graph, roots, base, LESS_OR_EQUAL, np.float64)


def _lightgbm_node(node: Mapping[str, Any]) -> Any:
    if "leaf_value" in node:
        return float(node["leaf_value"])
    if node["decision_type"] != "<=":
        raise ValueError("model: splits on categories are not exported; encode them as numbers.")
    if node["missing_type"] == "Zero":
        raise ValueError("model: zero_as_missing=True is not exported.")
    value = float(node["threshold"])
    # Where there was no missing value in training, LightGBM takes one for 0.
    missing_left = node["default_left"] if node["missing_type"] == "NaN" else value >= 0
    children = [_lightgbm_node(node[side]) for side in ("left_child", "right_child")]
    return SplitNode(int(node["split_feature"]), value, bool(missing_left), *children)


def _write_xgboost(model: Any, graph: GraphWriter) -> tuple[Any, str]:
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
    said = json.loads(learner["learner_model_param"]["base_score"])
    base = np.broadcast_to(np.asarray(said, dtype=np.float32), (n_scores,))
    if n_scores == 1:
        base = np.log(base / (1 - base))  # it is kept as a probability
    roots = [_xgboost_node(tree, 0) for tree in trees]
    return np.float32, _write_trees(graph, roots, base, LESS, np.float32)


def _xgboost_node(tree: Mapping[str, Sequence[Any]], place: int) -> Any:
    value, left = tree["split_conditions"][place], tree["left_children"][place]
    if left < 0:
        return float(value)
    children = [
        _xgboost_node(tree, tree[side][place]) for side in ("left_children", "right_children")
    ]
    feature, missing_left = tree["split_indices"][place], tree["default_left"][place]
    return SplitNode(int(feature), float(value), bool(missing_left), *children)


def _write_trees(
    graph: GraphWriter, roots: Sequence[Any], base: NDArray[Any], mode: int, dtype: Any
) -> str:
    """(rows, scores) sums of the trees' leaves and the base; tree i adds to score i mod scores."""
    nodes: list[tuple[int, float, bool, int, int, int, int]] = []
    leaves: list[tuple[int, float]] = []

    def place(node: Any, score: int) -> tuple[int, int]:
        """Number of a node or leaf, and whether it is a leaf."""
        if not isinstance(node, SplitNode):
            leaves.append((score, node))
            return len(leaves) - 1, 1
        here = len(nodes)
        nodes.append((node.feature, node.value, node.missing_left, 0, 0, 0, 0))
        left, right = place(node.left, score), place(node.right, score)
        nodes[here] = (*nodes[here][:3], *left, *right)
        return here, 0

    tree_roots = []
    for number, root in enumerate(roots):
        # A tree of one leaf is a split whose sides are alike.
        split = (
            root
            if isinstance(root, SplitNode)
            else SplitNode(0, 0.0, missing_left=True, left=root, right=root)
        )
        tree_roots.append(place(split, number % len(base))[0])
    feature, value, missing, *sides = map(list, zip(*nodes, strict=True))
    targets, weights = zip(*leaves, strict=True)
    sums = graph.add(
        "TreeEnsemble",
        "X",
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


WRITERS: dict[str, Callable[[Any, GraphWriter], tuple[Any, str]]] = {
    "FairGradClassifier": _write_network,
    "FairGradLGBMClassifier": _write_lightgbm,
    "FairGradXGBClassifier": _write_xgboost,
}
"""Of each class (by name, as not all of their libraries need be installed) what writes its scores.

A writer adds the nodes that lead from X to the scores, and gives precision and name of the scores.
"""
