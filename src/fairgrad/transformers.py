"""Hugging Face Transformers integration: ``from fairgrad.transformers import FairTrainer``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import safetensors.torch
import torch
from torch import Tensor
from transformers import EvalPrediction, Trainer
from transformers.trainer_utils import get_last_checkpoint

from fairgrad.columns import UNKNOWN
from fairgrad.evaluate import fairness_levels
from fairgrad.files import write_whole
from fairgrad.torch import FairLoss
from fairgrad.torch.monitor import ADVICE, divergence, numbers_of
from fairgrad.torch.processes import join_processes
from fairgrad.torch.reading import scores_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray
    from torch import nn
    from transformers.trainer_utils import EvalLoopOutput, PredictionOutput, TrainOutput

    from fairgrad.groups import Groups, Ints

__all__ = ["FairTrainer"]

STATE_FILE = "fairness.safetensors"
"""The file with the multipliers in a checkpoint."""

NO_ITEM = -100
"""The label of items that Hugging Face ignores."""


class FairTrainer(Trainer):
    """A `transformers.Trainer` whose classifier is trained with a fair loss.

    - The sensitive column is part of the batch; ``remove_unused_columns`` keeps it. The model
      receives neither this column nor the labels. It returns logits (as "logits" of its output,
      first of a tuple, or alone), and the criterion computes the loss.
    - Evaluation reports the plain loss, "eval_accuracy" and "eval_unfairness", which is the mean
      |F| of the criterion's measure on the evaluation rows. "eval_fair_accuracy" is the accuracy
      if no |F| is above `tolerance`, and negative otherwise: with
      ``metric_for_best_model="fair_accuracy"`` and ``load_best_model_at_end=True`` the most
      accurate checkpoint within the tolerance is kept, or else the nearest to it. Your
      ``compute_metrics`` receives logits and labels as usual, and its values are added.
    - Checkpoints contain the multipliers, so ``resume_from_checkpoint`` continues exactly.
      With ``model_init`` every call of ``train`` starts with new multipliers.
    - With gradient accumulation the multipliers take a step for each micro-batch. The
      gradient is that of the mean over all rows of the accumulated batch, on all processes.
    - Several processes share one set of multipliers.
    - Levels, multipliers, weights and the share of negative weights are logged with the training
      loss, as "fairness/...". Training stops with an error if it diverges.

    Args:
        *args: as in `transformers.Trainer`.
        criterion: a loss of `fairgrad.torch` with ``reduction="mean"``.
        sensitive_columns: the column of the data set with each row's sensitive value, as integers
            (from ``criterion.groups.encode``). Pass several columns, in the order of the
            criterion's attributes, if there are several attributes of integers.
        tolerance: the largest |F| that "eval_fair_accuracy" accepts.
        **kwargs: as in `transformers.Trainer`. Set label smoothing in the criterion.
            ``compute_loss_func``, ``batch_eval_metrics`` and ``eval_do_concat_batches=False`` are
            not supported.

    Raises:
        ValueError: if a setting is not supported or, before training starts, if a batch has no
            sensitive column. Prediction does not need it.
        TypeError: if the criterion is not a fair loss.

    Example:
        >>> import tempfile, torch
        >>> from transformers import BertConfig, BertForSequenceClassification, TrainingArguments
        >>> from fairgrad.torch import CrossEntropyLoss
        >>> y, sex = [0, 1] * 8, [0] * 8 + [1] * 8
        >>> rows = [
        ...     {"input_ids": [2, 5 + y[i], 7 + sex[i], 3], "labels": y[i], "sex": sex[i]}
        ...     for i in range(16)
        ... ]
        >>> model = BertForSequenceClassification(BertConfig(
        ...     vocab_size=10, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
        ...     intermediate_size=8))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     trainer = FairTrainer(
        ...         model,
        ...         TrainingArguments(folder, max_steps=2, report_to="none", disable_tqdm=True,
        ...                           use_cpu=True, logging_strategy="no", save_strategy="no"),
        ...         train_dataset=rows,
        ...         eval_dataset=rows,
        ...         criterion=CrossEntropyLoss(y, sex, "equalized_odds"),
        ...         sensitive_columns="sex",
        ...     )
        ...     _ = trainer.train()
        ...     sorted(trainer.evaluate())
        {'train_runtime': ...
        ['epoch', 'eval_accuracy', 'eval_fair_accuracy', ..., 'eval_unfairness']
    """

    loss_is_scaled_for_ga = True  # by `_share`

    def __init__(
        self,
        *args: Any,
        criterion: FairLoss,
        sensitive_columns: str | Sequence[str],
        tolerance: float = 0.05,
        **kwargs: Any,
    ) -> None:
        if not isinstance(criterion, FairLoss):
            raise TypeError(
                f"criterion: expected a loss of fairgrad.torch, got {type(criterion).__name__}."
            )
        self.criterion = criterion
        names = sensitive_columns
        self.sensitive_columns = (names,) if isinstance(names, str) else tuple(names)
        super().__init__(*args, **kwargs)
        _check_trainer(self)
        if len(self.label_names) > 1:
            raise ValueError(
                f"label_names: expected one label per example, got {list(self.label_names)}. "
                "Choose one with label_names=[...] of TrainingArguments."
            )
        self.label_name = self.label_names[0] if self.label_names else "labels"
        # Trainer keeps labels in `remove_unused_columns` and gathers them over processes with the
        # predictions. Sensitive columns need the same.
        self.label_names = [self.label_name, *self.sensitive_columns]
        self.model_accepts_loss_kwargs = True  # makes Trainer count the items, for `_share`
        self.compute_metrics = fair_metrics(criterion, self.compute_metrics, tolerance)
        join_processes(criterion)
        criterion.to(self.args.device)
        self._first_state = {name: value.clone() for name, value in criterion.state_dict().items()}
        self._may_lack_sensitive = False

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Any:
        """Computes the fair loss of a micro-batch in training, the plain loss in evaluation.

        Raises:
            ValueError: if the batch lacks labels or, in training, a sensitive column.
        """
        inputs = dict(inputs)
        labels = inputs.pop(self.label_name, None)
        if labels is None:
            raise ValueError(f"inputs: expected labels as {self.label_name!r}, got {list(inputs)}.")
        s = self._take_sensitive(inputs) if model.training else None
        logits = scores_in(model(**self._without_sensitive(inputs)), "model", "logits")
        self.criterion.train(model.training)
        loss = self.criterion(logits, labels, s)
        if model.training:
            loss = loss * self._share(labels, num_items_in_batch)
        return (loss, {"logits": logits}) if return_outputs else loss

    def _share(self, labels: Tensor, num_items_in_batch: Tensor | int | None) -> Tensor | float:
        """The share of a micro-batch in the mean over all rows of an optimizer step."""
        if num_items_in_batch is None or self.args.n_gpu > 1:
            return 1 / self.current_gradient_accumulation_steps
        share = labels.ne(NO_ITEM).sum() / num_items_in_batch
        # Gradients are averaged over processes, but the number of items is a sum over them.
        over_all = self.args.average_tokens_across_devices
        return share * self.accelerator.num_processes if over_all else share

    def _take_sensitive(self, inputs: dict[str, Any]) -> Tensor:
        """(N,) or (N, attributes) sensitive values of a batch."""
        missing = [name for name in self.sensitive_columns if inputs.get(name) is None]
        if missing:
            raise ValueError(
                f"sensitive_columns: the batch has no column {missing[0]!r}, only "
                f"{sorted(inputs)}. Check that the data set has it under that name, as integers, "
                "and that the data collator keeps it."
            )
        columns = [inputs[name] for name in self.sensitive_columns]
        return columns[0] if len(columns) == 1 else torch.stack(columns, dim=1)

    def _without_sensitive(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in inputs.items() if name not in self.sensitive_columns}

    def prediction_step(
        self,
        model: nn.Module,
        inputs: dict[str, Any],
        prediction_loss_only: bool,
        ignore_keys: list[str] | None = None,
    ) -> tuple[Tensor | None, Any, Any]:
        """Computes loss, logits and labels of a batch; sensitive columns follow the labels."""
        labels = inputs.get(self.label_name)
        if labels is None:
            inputs = self._prepare_inputs(self._without_sensitive(inputs))
            with torch.no_grad(), self.compute_loss_context_manager():
                logits = scores_in(model(**inputs), "model", "logits")
            return None, None if prediction_loss_only else logits.detach(), None
        if self._may_lack_sensitive:
            unknown = torch.full((len(labels),), UNKNOWN, device=labels.device)
            inputs = {**dict.fromkeys(self.sensitive_columns, unknown), **inputs}
        self._take_sensitive(inputs)  # raises an error if a column is missing
        return super().prediction_step(model, inputs, prediction_loss_only, ignore_keys)

    def evaluation_loop(self, *args: Any, **kwargs: Any) -> EvalLoopOutput:
        """Like Trainer's; returns the labels without sensitive columns."""
        output = super().evaluation_loop(*args, **kwargs)
        if isinstance(output.label_ids, tuple):
            output = output._replace(label_ids=output.label_ids[0])
        return output

    def predict(self, *args: Any, **kwargs: Any) -> PredictionOutput:
        """Like Trainer's; without a sensitive column there is no unfairness."""
        self._may_lack_sensitive = True
        try:
            return super().predict(*args, **kwargs)
        finally:
            self._may_lack_sensitive = False

    def train(
        self,
        resume_from_checkpoint: str | bool | None = None,
        trial: Any = None,
        ignore_keys_for_eval: list[str] | None = None,
    ) -> TrainOutput:
        """Like Trainer's; also restores the multipliers from the checkpoint.

        Raises:
            ValueError: if the checkpoint has no multipliers, or they belong to another problem.
        """
        checkpoint = resume_from_checkpoint
        if checkpoint is True:
            checkpoint = get_last_checkpoint(self.args.output_dir)  # type: ignore[no-untyped-call] # theirs
        if isinstance(checkpoint, str):
            file = Path(checkpoint) / STATE_FILE
            if not file.exists():
                raise ValueError(
                    f"resume_from_checkpoint: {checkpoint} has no {STATE_FILE}, so FairTrainer did "
                    "not write it. Use a checkpoint of FairTrainer."
                )
            self.criterion.load_state_dict(safetensors.torch.load(file.read_bytes()))
        elif self.model_init is not None:
            self.criterion.load_state_dict(self._first_state)
        return super().train(resume_from_checkpoint, trial, ignore_keys_for_eval)

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """Like Trainer's; also saves the multipliers in checkpoints during training."""
        super().save_model(output_dir, _internal_call)
        if self.is_in_train and self.args.should_save:
            state = {
                name: value.detach().cpu().contiguous()
                for name, value in self.criterion.state_dict().items()
            }
            folder = Path(str(output_dir or self.args.output_dir))
            write_whole(folder / STATE_FILE, safetensors.torch.save(state))

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Like Trainer's; also logs fairness with the training loss.

        Raises:
            FloatingPointError: if training has diverged.
        """
        if "loss" in logs and self.criterion.plain_loss is not None:
            problem = divergence(self.criterion.plain_loss, self.criterion)
            if problem is not None:
                step = self.state.global_step
                raise FloatingPointError(f"step {step}: training has diverged: {problem} {ADVICE}")
            numbers = numbers_of(self.criterion)
            logs.update({f"fairness/{name}": number for name, number in numbers.items()})
        super().log(logs, start_time)


def fair_metrics(
    criterion: FairLoss,
    compute_metrics: Callable[[EvalPrediction], dict[str, Any]] | None = None,
    tolerance: float = 0.05,
) -> Callable[[EvalPrediction], dict[str, Any]]:
    """Builds ``compute_metrics`` for a trainer whose labels are followed by sensitive columns.

    Args:
        criterion: the loss, with the measure and the format of predictions.
        compute_metrics: the user's function, which receives the labels only; its values take
            precedence.
        tolerance: the largest |F| that the fair accuracy accepts.
    """

    def metrics(prediction: EvalPrediction) -> dict[str, Any]:
        labels, *columns = prediction.label_ids
        s = np.column_stack(columns)
        measured = measured_on(prediction.predictions, np.asarray(labels).reshape(-1), s)
        if compute_metrics is None:
            return measured
        plain = EvalPrediction(prediction.predictions, labels, prediction.inputs, prediction.losses)
        return {**measured, **compute_metrics(plain)}

    def measured_on(logits: Any, labels: Any, s: Ints) -> dict[str, float]:
        """Accuracy and, if sensitive values are known, |F| by the criterion's measure."""
        predicted = criterion.reading.predict(torch.as_tensor(logits)).reshape(-1).numpy()
        keep = labels != criterion.ignore_index
        predicted, labels, s = predicted[keep].astype(labels.dtype), labels[keep], s[keep]
        accuracy = float((predicted == labels).mean())
        if not (s != UNKNOWN).any():
            return {"accuracy": accuracy}
        measure, desirable = criterion.fairness_measure, criterion.y_desirable
        columns = _attributes(criterion.groups, s)
        levels = fairness_levels(labels, predicted, columns, measure, y_desirable=desirable)
        beyond = float(np.nanmax(levels.gaps)) - tolerance
        fair = accuracy if beyond <= 0 else -beyond
        return {"accuracy": accuracy, "unfairness": levels.unfairness, "fair_accuracy": fair}

    return metrics


def _attributes(groups: Groups, s: Ints) -> dict[str, NDArray[Any]]:
    """Converts the integers that the losses take to named sensitive columns."""
    if groups.takes_integers:
        return {name: s[:, a] for a, name in enumerate(groups.attributes)}
    return {
        name: np.append(groups.column(a), [None])[s.reshape(-1)]
        for a, name in enumerate(groups.attributes)
    }


def _check_trainer(trainer: FairTrainer) -> None:
    """Raises an error for a criterion or for settings of Trainer that would be ignored."""
    criterion, args = trainer.criterion, trainer.args
    if criterion.reduction != "mean":
        raise ValueError(
            f"criterion: expected reduction='mean', got {criterion.reduction!r}; the trainer "
            "scales the means of micro-batches."
        )
    refused = {
        "compute_loss_func": trainer.compute_loss_func,
        "label_smoothing_factor": args.label_smoothing_factor,
        "batch_eval_metrics": args.batch_eval_metrics,
        "eval_do_concat_batches=False": not args.eval_do_concat_batches,
    }
    for name, is_set in refused.items():
        if is_set:
            raise ValueError(
                f"{name}: not supported by FairTrainer. The criterion computes the loss, with its "
                "label_smoothing, and fairness is measured on all rows together."
            )
