"""Fair decisions as the last layer of a network."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fairgrad.checks import relative_costs
from fairgrad.columns import as_array


class FairDecision(nn.Module):
    """Turns logits of (label, group) cells into scores of the labels whose argmax is fair.

    A network with one output per cell, trained with a plain cross entropy on the cells, estimates
    ``P(y = l, s = r | x)``. The scores are ``sum_r w_(l,r) P(y = l, s = r | x)``: of all rules that
    keep the constraints, the most accurate one (see
    `fairgrad.sklearn.FairDecisionClassifier`). The weights are a buffer: they are saved, moved and
    exported with the network. They are not trained; `tuned` finds them.

    Args:
        weights: (L, G) of the cells. For measures of what is predicted, (L, L, G) what predicting
            each label (the first axis) costs in each cell: the scores are then minus the expected
            costs.

    Raises:
        ValueError: if the weights are neither.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> s = torch.randint(2, (4000,))
        >>> x = torch.randn(4000) + s
        >>> y = (x + torch.randn(4000) > 1).long()
        >>> network = nn.Linear(1, 4)  # of y = 0, s = 0; y = 0, s = 1; y = 1, s = 0; y = 1, s = 1
        >>> optimizer = torch.optim.LBFGS(network.parameters())
        >>> def loss():
        ...     optimizer.zero_grad()
        ...     value = nn.functional.cross_entropy(network(x[:, None]), 2 * y + s)
        ...     value.backward()
        ...     return value
        >>> _ = optimizer.step(loss)
        >>> head = FairDecision.tuned(network(x[:, None]), y, s, "demographic_parity")
        >>> fair = nn.Sequential(network, head)
        >>> predicted = fair(x[:, None]).argmax(1).double()
        >>> gap = predicted[s == 1].mean() - predicted[s == 0].mean()
        >>> bool(gap.abs() < 0.005)
        True
    """

    weights: Tensor

    def __init__(self, weights: Any) -> None:
        super().__init__()
        array = np.array(as_array(weights), dtype=np.float64)
        if array.ndim != 2 and (array.ndim != 3 or array.shape[0] != array.shape[1]):
            raise ValueError(
                "weights: expected (labels, groups), or costs (labels, labels, groups); got shape "
                f"{array.shape}."
            )
        self.register_buffer("weights", torch.from_numpy(array))

    @classmethod
    def tuned(
        cls,
        logits: Any,
        y: Any,
        s: Any,
        fairness_measure: Any = "equalized_odds",
        *,
        epsilon: Any = 0.0,
        y_desirable: Any = None,
        cost_matrix: Any = None,
        sample_weight: Any = None,
    ) -> FairDecision:
        """Finds the weights by rows with labels, best such as the network was not trained on.

        Args:
            logits: (n, L * G) of the cells, label by label.
            y: (n,) labels.
            s: (n,) sensitive values; the groups are their values in sorted order, and after them
                the unknown, if there are any.
            fairness_measure: as in `FairLoss`.
            epsilon: slack of the constraints, one number or one per constraint.
            y_desirable: desirable labels, for measures that need them.
            cost_matrix: what it costs to predict each label (columns) where each is true (rows);
                None for 1 for every mistake.
            sample_weight: (n,) non-negative weights.

        Raises:
            ValueError: if the shapes do not fit the labels and groups, or the measure speaks of
                some of several attributes only.
        """
        from fairgrad.decisions import (  # noqa: PLC0415 - scipy is loaded where it is needed
            DecisionProblem,
            as_costs,
            judged_apart,
            solve,
        )
        from fairgrad.groups import group_rows  # noqa: PLC0415 - as above

        rows = group_rows(y, s, sample_weight)
        shape = rows.groups.mass.shape
        measured = judged_apart(fairness_measure, rows, epsilon=epsilon, y_desirable=y_desirable)
        if any(people.groups.attributes != rows.groups.attributes for _, people in measured):
            raise ValueError(
                "fairness_measure: expected a measure on the groups of all attributes. For single "
                "attributes use fairgrad.sklearn.FairDecisionClassifier."
            )
        tuned = cls(np.ones(shape))
        with torch.no_grad():
            probability = tuned.cell_probabilities(torch.as_tensor(logits))
        probabilities = [probability.cpu().numpy().transpose(1, 2, 0)] * len(measured)
        decision = solve(DecisionProblem(measured, probabilities, cost_matrix))
        if cost_matrix is None and all(pull.ndim == 2 for pull in decision.pulls):
            return cls(1.0 + np.sum(decision.pulls, axis=0))
        costs = relative_costs(cost_matrix, shape[0]).T[:, :, None]
        return cls(costs + np.sum([as_costs(pull) for pull in decision.pulls], axis=0))

    def forward(self, logits: Tensor) -> Tensor:
        """(n, L) the scores of the labels.

        Args:
            logits: (n, L * G) of the cells.
        """
        probability = self.cell_probabilities(logits)
        if self.weights.ndim == 3:
            return -(probability.flatten(1) @ self.weights.flatten(1).T)
        return (probability * self.weights).sum(-1)

    def cell_probabilities(self, logits: Tensor) -> Tensor:
        """(n, L, G) in the precision of the weights.

        Raises:
            ValueError: if the logits are not those of the cells.
        """
        n_labels, n_groups = self.weights.shape[-2:]
        expected = n_labels * n_groups
        if logits.ndim != 2 or logits.shape[1] != expected:
            raise ValueError(
                f"logits: expected (rows, {expected}) for {n_labels} labels and {n_groups} groups, "
                f"got shape {tuple(logits.shape)}."
            )
        return logits.to(self.weights.dtype).softmax(-1).reshape(-1, n_labels, n_groups)

    def extra_repr(self) -> str:
        """Labels and groups, for printing."""
        return f"labels={self.weights.shape[0]}, groups={self.weights.shape[-1]}"
