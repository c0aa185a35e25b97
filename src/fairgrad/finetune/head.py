"""Fine-tuning of the head alone: one pass over the network, then a whole frontier of heads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from fairgrad.finetune.network import (
    LARGE,
    Head,
    compute_features,
    count_outputs,
    find_head,
    new_head,
    with_head,
)
from fairgrad.frontier import Frontier
from fairgrad.sklearn import FairGradClassifier
from fairgrad.splitting import unpack_rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pandas as pd
    from numpy.typing import NDArray

    from fairgrad.finetune.network import Reading


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
        return with_head(self.network, self.head, _linear_layer(model, head))

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
    estimator: FairGradClassifier | None = None,
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
    one batch to compute the features, then a few copies of those of the training rows. To train
    heads on features that `compute_features` gave before, pass the head itself as the module.

    Args:
        module: the network, which is left as it is; what it returns must be its head's outputs.
        X: rows, as in `finetune`.
        y: (n,) labels of any kind.
        sensitive_features: (n,) sensitive values, or a table with one column per attribute.
        fairness_measure: as in `fairgrad.torch.FairLoss`.
        epsilons: how many heads, from exact fairness to the plain one; or a list of epsilons.
        estimator: settings of the training; a linear `FairGradClassifier`. For fair decisions on
            the outputs of a network see `fairgrad.torch.FairDecision.tuned`.
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
    estimator = FairGradClassifier() if estimator is None else estimator
    is_linear = isinstance(estimator, FairGradClassifier) and estimator.module is None
    if not is_linear or np.size(estimator.hidden_layer_sizes):
        raise ValueError(
            "estimator: expected a linear FairGradClassifier (no hidden_layer_sizes, no module), "
            f"got {estimator!r}."
        )

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

    frontier = Frontier(estimator, fairness_measure, epsilons, **settings)
    frontier.fit(
        features(X),
        y,
        sensitive_features=sensitive_features,
        sample_weight=sample_weight,
        validation=judged(validation, "validation"),
        test=judged(test, "test"),
    )
    return HeadFrontier(module, find_head(module, head).name, frontier)


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
