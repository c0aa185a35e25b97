"""Fine-tuning of the head alone: one pass over the network, then a whole frontier of heads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from torch import nn

from fairgrad.decisions import as_costs
from fairgrad.dual import check_costs
from fairgrad.finetune.features import (
    LARGE,
    Head,
    compute_features,
    count_outputs,
    find_head,
    new_head,
    with_head,
)
from fairgrad.frontier import Frontier
from fairgrad.sklearn import FairDecisionClassifier, FairGradClassifier
from fairgrad.splitting import unpack_rows
from fairgrad.torch import FairDecision

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pandas as pd
    from numpy.typing import NDArray

    from fairgrad.finetune.rows import Reading

NO_ROWS = -1e4
"""The logit of a cell without rows: its probability is 0 in every precision."""


@dataclass(frozen=True, eq=False)
class HeadFrontier:
    """Heads of one network for many epsilons, judged, and the choice of one.

    Attributes:
        network: the network the features are of; it is never changed.
        head: the name of its head.
        frontier: the heads as linear classifiers on the features, with all that
            `fairgrad.frontier.Frontier` offers: points, audits, charts.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> X, s = torch.randn(400, 4), torch.arange(400) % 2
        >>> y = (X.sum(1) + 0.5 * s > 0).long()
        >>> found = finetune_head(torch.nn.Linear(4, 2), X, y, s, epsilons=3, random_state=0)
        >>> len(found.points), found.module(0)(X).shape
        (3, torch.Size([400, 2]))
    """

    network: nn.Module
    head: str
    frontier: Frontier

    @property
    def points(self) -> pd.DataFrame:
        """One row per head: epsilon, seed, accuracy and unfairness with their intervals."""
        found: pd.DataFrame = self.frontier.points_
        return found

    @property
    def classes(self) -> NDArray[Any]:
        """The labels in the order of the outputs; with one output, above 0 is the second."""
        found: NDArray[Any] = self.frontier.classes_
        return found

    def module(self, position: int) -> nn.Module:
        """A copy of the network with the head of a point: an ordinary module.

        Args:
            position: of the point in `points`.
        """
        model, head = self.frontier.estimators_[position], find_head(self.network, self.head)
        is_linear = isinstance(model, FairGradClassifier)
        layer = _linear_layer(model, head) if is_linear else _decision_layers(model, head)
        return with_head(self.network, self.head, layer)

    def select(
        self, *, max_unfairness: float | None = None, min_accuracy: float | None = None
    ) -> nn.Module:
        """A network chosen by its figures on the validation rows, as `Frontier.select` does.

        Args:
            max_unfairness: takes the most accurate one that is at most so unfair.
            min_accuracy: takes the fairest one that is at least so accurate.

        Raises:
            ValueError: if none qualifies; the message names the best there is.
        """
        position = self.frontier.choose(max_unfairness=max_unfairness, min_accuracy=min_accuracy)
        return self.module(position)


def finetune_head(
    module: nn.Module,
    X: Any,
    y: Any,
    sensitive_features: Any,
    *,
    fairness_measure: Any = "equalized_odds",
    epsilons: Any = 16,
    estimator: FairGradClassifier | FairDecisionClassifier | None = None,
    sample_weight: Any = None,
    validation: Any = None,
    test: Any = None,
    head: str | None = None,
    transform: Callable[[Any], Any] | None = None,
    output: Reading | None = None,
    batch_size: int = 256,
    cache: str | Path | None = None,
    large: int = LARGE,
    verbose: bool | str = "auto",
    **settings: Any,
) -> HeadFrontier:
    """Trains the head of a network for many epsilons in one pass; all other layers stay.

    Every row goes through the network once. The heads, one per epsilon, are then trained as one
    stack on the features, which takes seconds where an epoch of the network takes minutes. Memory:
    one batch to compute the features, then a few copies of those of the training rows.

    Args:
        module: the network, which is left as it is; what it returns must be its head's outputs.
        X: rows, as in `finetune`.
        y: (n,) labels of any kind.
        sensitive_features: (n,) sensitive values, or a table with one column per attribute.
        fairness_measure: as in `fairgrad.torch.FairLoss`.
        epsilons: how many heads, from exact fairness to the plain one; or a list of epsilons.
        estimator: settings of the training; a linear `FairGradClassifier`. Or a
            `FairDecisionClassifier` around logistic regression, its default: the new head is then a
            linear layer with one output per cell, and `fairgrad.torch.FairDecision` behind it,
            whose outputs are scores in double precision. One regression serves all epsilons.
            Its `cost_matrix` says what each mistake costs.
        sample_weight: (n,) non-negative weights.
        validation: (X, y, sensitive_features) to judge and choose on; by default a part of the
            rows is held out, the same share of every label in every group.
        test: (X, y, sensitive_features) to judge on besides.
        head: name of the head; by default the last linear layer.
        transform: applied to every batch.
        output: how to read logits off what the network returns.
        batch_size: rows that go through the network at a time.
        cache: a folder in which features are kept, as in `compute_features`.
        large: bytes of features beyond which they are kept in a file.
        verbose: True shows a progress bar; "auto" on terminals, when it takes long.
        settings: further arguments of `fairgrad.frontier.Frontier`, such as random_state.

    Raises:
        ValueError: if the head is not found, or an argument is not allowed.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> s = torch.arange(2000) % 2
        >>> X = torch.randn(2000, 4) + 0.5 * s[:, None]
        >>> y = (X.sum(1) > 1).long()
        >>> network = torch.nn.Sequential(
        ...     torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 10)
        ... )
        >>> found = finetune_head(
        ...     network, X, y, s, fairness_measure="demographic_parity", epsilons=6, random_state=0
        ... )
        >>> found.points[["epsilon", "validation_unfairness"]].shape
        (6, 2)
        >>> found.select(max_unfairness=0.1)(X).shape
        torch.Size([2000, 2])
    """

    def features(rows: Any) -> NDArray[Any]:
        return compute_features(
            module,
            rows,
            head=head,
            transform=transform,
            output=output,
            batch_size=batch_size,
            cache=cache,
            large=large,
            verbose=verbose,
        )

    def judged(given: Any, name: str) -> Any:
        if given is None:
            return None
        rows, *columns = unpack_rows(given, name)
        return (features(rows), *columns)

    return train_heads(
        module,
        features(X),
        y,
        sensitive_features,
        fairness_measure=fairness_measure,
        epsilons=epsilons,
        estimator=estimator,
        sample_weight=sample_weight,
        validation=judged(validation, "validation"),
        test=judged(test, "test"),
        head=head,
        **settings,
    )


def train_heads(
    module: nn.Module,
    features: Any,
    y: Any,
    sensitive_features: Any,
    *,
    fairness_measure: Any = "equalized_odds",
    epsilons: Any = 16,
    estimator: FairGradClassifier | FairDecisionClassifier | None = None,
    sample_weight: Any = None,
    validation: Any = None,
    test: Any = None,
    head: str | None = None,
    **settings: Any,
) -> HeadFrontier:
    """The same on features that `compute_features` gave before, for other splits or settings.

    The arguments are those of `finetune_head`, with features, (n, features), in the place of rows,
    also in `validation` and `test`; `settings` are further ones of `fairgrad.frontier.Frontier`.

    Raises:
        ValueError: if the features do not fit the head, or the estimator is not linear.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> X, s = torch.randn(400, 4), torch.arange(400) % 2
        >>> y = (X.sum(1) + 0.5 * s > 0).long()
        >>> network = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 2))
        >>> features = compute_features(network, X)
        >>> found = train_heads(network, features, y, s, epsilons=3, random_state=0)
        >>> len(found.points)
        3
    """
    found = find_head(module, head)
    n_features = found.layer.in_features
    if getattr(features, "ndim", None) != 2 or features.shape[1] != n_features:
        raise ValueError(
            f"features: expected shape (rows, {n_features}) as the head takes them, got "
            f"{getattr(features, 'shape', type(features).__name__)}."
        )
    estimator = FairGradClassifier() if estimator is None else estimator
    if not (_is_linear(estimator) or _decides_linearly(estimator)):
        raise ValueError(
            "estimator: expected a linear FairGradClassifier (no hidden_layer_sizes, no module), "
            "or a FairDecisionClassifier around LogisticRegression (joint cells, no sensitive "
            f"value to predict), got {estimator!r}."
        )
    frontier = Frontier(estimator, fairness_measure, epsilons, **settings)
    frontier.fit(
        features,
        y,
        sensitive_features=sensitive_features,
        sample_weight=sample_weight,
        validation=validation,
        test=test,
    )
    if _decides_linearly(estimator) and len(frontier.estimators_[0].cell_models_) > 1:
        raise ValueError(
            "fairness_measure: expected one that speaks of the groups of all attributes, as a head "
            "of fair decisions has one set of cells; use a FairGradClassifier for attributes apart."
        )
    return HeadFrontier(module, found.name, frontier)


def _is_linear(estimator: Any) -> bool:
    is_own = isinstance(estimator, FairGradClassifier)
    return is_own and estimator.module is None and not tuple(estimator.hidden_layer_sizes)


def _decides_linearly(estimator: Any) -> bool:
    """Whether fair decisions are those of one regression, which two layers can hold."""
    return (
        isinstance(estimator, FairDecisionClassifier)
        and (estimator.estimator is None or type(estimator.estimator) is LogisticRegression)
        and estimator.cells in {"auto", "joint"}
        and not estimator.prefit
        and not estimator.use_sensitive
    )


def _decision_layers(model: FairDecisionClassifier, head: Head) -> nn.Sequential:
    """A regression of the cells, and the fair decisions on its probabilities, as layers.

    A cell that no row is in gets a logit far below all others.
    """
    regression, (pull,) = model.cell_models_[0], model.pulls_
    last = regression[-1] if isinstance(regression, Pipeline) else regression
    own_weight, own_bias = last.coef_, last.intercept_
    if last is not regression:  # its features are scaled first
        own_weight = own_weight / regression[0].scale_
        if regression[0].with_mean:
            own_bias = own_bias - own_weight @ regression[0].mean_
    weight, bias = torch.from_numpy(own_weight), torch.from_numpy(own_bias)
    if len(weight) == 1:  # two cells that have rows
        weight, bias = (torch.cat([-part / 2, part / 2]) for part in (weight, bias))
    n_labels, n_groups = pull.shape[-2:]
    layer = new_head(head, n_labels * n_groups)
    with torch.no_grad():
        layer.weight.zero_()
        layer.bias.fill_(NO_ROWS)
        present = torch.from_numpy(last.classes_)
        layer.weight[present] = weight.to(layer.weight)
        layer.bias[present] = bias.to(layer.bias)
    weights = 1.0 + pull
    if pull.ndim == 3 or model.cost_matrix is not None:
        costs = check_costs(model.cost_matrix, n_labels)
        weights = costs.T[:, :, None] + as_costs(pull)
    decision = FairDecision(weights).to(layer.weight.device)
    if count_outputs(head, n_labels) > 1:
        return nn.Sequential(layer, decision)
    margin = nn.Linear(2, 1, bias=False, device=layer.weight.device, dtype=torch.float64)
    with torch.no_grad():
        margin.weight.copy_(torch.tensor([[-1.0, 1.0]]))
    return nn.Sequential(layer, decision, margin.requires_grad_(requires_grad=False))


def _linear_layer(model: FairGradClassifier, head: Head) -> nn.Linear:
    """A fitted linear classifier as a layer, on the device and in the precision of the old head.

    Two classes share a margin z: as logits it is -z/2 and z/2, whose softmax is the same.
    """
    weight, bias = (torch.from_numpy(part) for part in (model.coef_, model.intercept_))
    n = count_outputs(head, len(model.classes_))
    if n == 2:
        weight, bias = (torch.cat([-part / 2, part / 2]) for part in (weight, bias))
    layer = new_head(head, n)
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.copy_(bias)
    return layer
