"""Fine-tuning of a whole network with the fair loss."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.utils import check_random_state

from fairgrad.checks import check_number
from fairgrad.finetune.criterion import Criterion
from fairgrad.finetune.heads import find_head, n_outputs, new_head, with_head
from fairgrad.finetune.judging import judge_of
from fairgrad.finetune.loop import Loop
from fairgrad.finetune.rows import labelled
from fairgrad.measures import desirable_labels
from fairgrad.sklearn.rows import unpack_rows
from fairgrad.training import TrainingPlan
from fairgrad.training.evaluation import as_rule, last

if TYPE_CHECKING:
    from torch import nn

    from fairgrad.finetune.loop import FineTuned
    from fairgrad.finetune.outputs import Reading
    from fairgrad.finetune.rows import Labelled

MakeOptimizer = Callable[..., torch.optim.Optimizer]


def finetune(
    module: nn.Module,
    X: Any,
    y: Any,
    sensitive_features: Any = None,
    *,
    fairness_measure: Any = "equalized_odds",
    epsilon: Any = 0.0,
    fairness_rate: float = 0.05,
    proportional_rate: float = 0.0,
    error_memory: float = 0.9,
    y_desirable: Any = None,
    head: str | None = None,
    transform: Callable[[Any], Any] | None = None,
    output: Reading | None = None,
    optimizer: MakeOptimizer = torch.optim.AdamW,
    learning_rate: float = 1e-4,
    schedule: str = "cosine",
    clip_norm: float | None = None,
    epochs: int = 3,
    batch_size: int = 64,
    validation: Any = None,
    selection: Any = "last",
    checkpoint: str | Path | None = None,
    random_state: Any = None,
    progress: bool | None = None,
) -> FineTuned:
    """Trains all layers of a network that require a gradient, with the fair loss.

    The network is copied and left as it is. If its head does not have one output per class (or one
    for two classes), it is replaced by a linear layer with fresh weights; otherwise it is kept.

    Args:
        module: gives logits: a tensor, or something with an entry or attribute ``logits``.
        X: rows: a tensor or array (n, ...); a mapping of these, passed by name; anything with a
            method ``batch(rows)``, as the images of `fairgrad.datasets`; or a sequence of examples
            (a PyTorch data set of inputs, a list of texts).
        y: (n,) labels of any kind.
        sensitive_features: (n,) sensitive values, or a table with one column per attribute;
            missing values and -1 are unknown and in no constraint.
        fairness_measure: as in `fairgrad.torch.FairLoss`; None trains with the plain loss.
        epsilon: slack of the constraints; 0 is exact fairness.
        fairness_rate: step size of the multipliers; 0 is the plain loss.
        proportional_rate: adds this times the current violation to the multipliers in use.
        error_memory: share of earlier batches kept in the error estimates, so that cells with few
            rows per batch pool over batches.
        y_desirable: labels that some measures speak of; by default the second of two classes.
        head: name of the head; by default the last linear layer.
        transform: applied to every batch of X, such as a normalisation or a tokeniser.
        output: from what the network returns to its logits, if these are found nowhere.
        optimizer: a function of parameters and ``lr`` that gives a PyTorch optimiser.
        learning_rate: the learning rate at the start.
        schedule: "cosine" lets the learning rate fall to 0 by the last step, "constant" keeps it.
        clip_norm: the gradient's largest norm; None for none.
        epochs: passes over the rows.
        batch_size: rows per step.
        validation: (X, y, sensitive_features) to judge every epoch on.
        selection: which epoch's weights to return, judged on the validation rows: "last", or a
            rule of `fairgrad.training`, such as "fairest_of_accurate".
        checkpoint: a file written after every epoch, from which the same call goes on.
        random_state: seed of the new head, the shuffling and the dropout.
        progress: True shows a bar, None only when it takes long and on a terminal.

    Raises:
        ValueError: if an argument is missing or not allowed; nothing has been computed then.
        TypeError: if the network returns something no logits can be read off.
        FloatingPointError: if the loss stops being a finite number.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> s = torch.arange(600) % 2
        >>> X = torch.randn(600, 4) + s[:, None]
        >>> y = (X.sum(1) > 2).long()
        >>> network = torch.nn.Sequential(
        ...     torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)
        ... )
        >>> tuned = finetune(
        ...     network, X, y, s, fairness_measure="demographic_parity", learning_rate=0.01,
        ...     random_state=0,
        ... )
        >>> tuned.module(X).shape
        torch.Size([600, 2])
    """
    rows = labelled(X, y, sensitive_features, transform)
    judged = _validation(validation, transform, rows)
    if fairness_measure is not None and sensitive_features is None:
        raise ValueError(
            "sensitive_features: required, one value per row; or fairness_measure=None for the "
            "plain loss."
        )
    plan = TrainingPlan(epochs=epochs, batch_size=batch_size, schedule=schedule)
    _check(learning_rate, clip_norm, selection, judged)
    seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    found = find_head(module, head)
    outputs = n_outputs(found, len(rows.classes))
    desirable = desirable_labels(rows.classes, y_desirable) or None
    criterion = Criterion(
        rows,
        fairness_measure,
        single=outputs == 1,
        epsilon=epsilon,
        fairness_rate=fairness_rate,
        proportional_rate=proportional_rate,
        error_memory=error_memory,
        y_desirable=desirable,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        keeps = found.layer.out_features == outputs
        layer = copy.deepcopy(found.layer) if keeps else new_head(found, outputs)
        tuned = with_head(module, found.name, layer)
        trainable = [p for p in tuned.parameters() if p.requires_grad]
        if not trainable:
            raise ValueError("module: expected parameters that require a gradient, got none.")
        loop = Loop(
            tuned,
            rows,
            criterion,
            optimizer(trainable, lr=learning_rate),
            learning_rate=learning_rate,
            plan=plan,
            clip_norm=clip_norm,
            output=output,
            seed=seed,
        )
        loop.judge = judge_of(judged, output, batch_size, fairness_measure, desirable)
        if checkpoint is not None:
            measure = getattr(fairness_measure, "__qualname__", fairness_measure)
            rates = (fairness_rate, proportional_rate, error_memory)
            loop.use_checkpoint(Path(checkpoint), measure, epsilon, rates)
        loop.go(progress)
    return loop.outcome(as_rule(selection), rows.classes)


def _validation(given: Any, transform: Any, rows: Labelled) -> Labelled | None:
    if given is None:
        return None
    X, y, s, _ = unpack_rows(given, "validation")
    return labelled(X, y, s, transform, rows.classes)


def _check(
    learning_rate: float, clip_norm: float | None, selection: Any, judged: Labelled | None
) -> None:
    check_number("learning_rate", learning_rate)
    if clip_norm is not None and not clip_norm > 0:
        raise ValueError(f"clip_norm: expected a number above 0 or None, got {clip_norm!r}.")
    if as_rule(selection) is not last and judged is None:
        raise ValueError(
            f"validation: required to choose an epoch by {selection!r}; or selection='last'."
        )
