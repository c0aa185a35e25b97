"""Lightning integration: ``from fairgrad.lightning import FairnessMonitor``.

A fair loss is a module, so a `LightningModule` needs two lines: the loss as an attribute, and its
call in ``training_step``. The multipliers are then in every checkpoint, and a resumed run continues
as if it had not been interrupted; ``validation_step`` gets the plain loss from
``self.criterion(logits, y)``, as Lightning has called ``eval()``::

    class Model(LightningModule):
        def __init__(self, y_train, s_train):
            ...
            self.criterion = CrossEntropyLoss(y_train, s_train, "equalized_odds")

        def training_step(self, batch, batch_idx):
            x, y, s = batch
            return self.criterion(self(x), y, s)

If checkpoints are to be loaded where the training data are not (``load_from_checkpoint``), let the
module take ``counts = dict(Counter(zip(y_train.tolist(), s_train.tolist())))``, call
``self.save_hyperparameters()`` and make the loss from ``Groups.from_counts(counts)``.

With several processes (DDP) add a `FairnessMonitor`: Lightning starts the processes after the loss
was made, and the callback lets them share one set of multipliers. With gradient accumulation each
micro-batch is a separate step for the multipliers.
"""

# ruff: noqa: ARG002 - the arguments of hooks are Lightning's
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lightning.pytorch import Callback

from fairgrad.torch import FairLoss, join_processes
from fairgrad.torch.monitor import ADVICE, divergence, numbers_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lightning.pytorch import LightningModule, Trainer
    from torch import Tensor

__all__ = ["FairnessMonitor"]

WHEN = ("step", "epoch")


class FairnessMonitor(Callback):
    """Logs where fairness stands, stops when training diverges, shares multipliers over processes.

    Logged are, to whatever loggers the trainer has and in ``trainer.callback_metrics``,
    "fairness/level/...", "fairness/multiplier/...", "fairness/weight/..." for each constraint or
    cell, and "fairness/negative_share", the share of the training rows whose weight is below 0. If
    the module has several fair losses, the name of the loss stands after "fairness/".

    Args:
        every: "epoch" logs the mean of the levels over the epoch's batches, and multipliers and
            weights as they are at its end. "step" logs all of them after every batch, as often as
            the trainer's ``log_every_n_steps`` says.
        stop_on_divergence: whether a loss or multiplier that is infinite or not a number ends
            training with a `FloatingPointError`, in all processes. On an accelerator this waits for
            the device after every batch.

    Raises:
        ValueError: if `every` is something else, or, when fitting starts, if the module has no fair
            loss, or processes have different training data.

    Example:
        >>> import torch
        >>> from lightning.pytorch import LightningModule, Trainer
        >>> from fairgrad.torch import CrossEntropyLoss
        >>> class Linear(LightningModule):
        ...     def __init__(self, y, s):
        ...         super().__init__()
        ...         self.layer = torch.nn.Linear(3, 2)
        ...         self.criterion = CrossEntropyLoss(y, s, "accuracy_parity")
        ...     def training_step(self, batch, batch_idx):
        ...         x, y, s = batch
        ...         return self.criterion(self.layer(x), y, s)
        ...     def configure_optimizers(self):
        ...         return torch.optim.SGD(self.parameters(), lr=0.1)
        >>> x, y, s = torch.randn(40, 3), torch.arange(40) % 2, torch.arange(40) // 20
        >>> loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y, s), 8)
        >>> trainer = Trainer(max_epochs=2, accelerator="cpu", callbacks=[FairnessMonitor()],
        ...                   logger=False, enable_checkpointing=False,
        ...                   enable_progress_bar=False, enable_model_summary=False)
        >>> trainer.fit(Linear(y, s), loader)
        >>> [name for name in trainer.callback_metrics if "level" in name]
        ['fairness/level/s=0', 'fairness/level/s=1']
    """

    def __init__(self, every: str = "epoch", *, stop_on_divergence: bool = True) -> None:
        if every not in WHEN:
            raise ValueError(f"every: expected one of {list(WHEN)}, got {every!r}.")
        self.every = every
        self.stop_on_divergence = stop_on_divergence
        self._losses: dict[str, FairLoss] = {}
        self._levels: dict[str, Tensor] = {}  # sums over the batches of the epoch
        self._n_batches = 0

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Finds the fair losses; the processes, if there are several, are running by now.

        Raises:
            ValueError: if the module has no fair loss.
        """
        losses = {
            k: module for k, module in pl_module.named_modules() if isinstance(module, FairLoss)
        }
        if not losses:
            raise ValueError(
                f"pl_module: expected a fair loss among the submodules of "
                f"{type(pl_module).__name__}, such as self.criterion = CrossEntropyLoss(...) from "
                f"fairgrad.torch; got {[name for name, _ in pl_module.named_children()]}."
            )
        for criterion in losses.values():
            join_processes(criterion)
        alone = len(losses) == 1
        self._losses = {
            "fairness" if alone else f"fairness/{name}": loss for name, loss in losses.items()
        }

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Starts the means of the levels anew."""
        self._levels, self._n_batches = {}, 0

    def on_train_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Tensor | Mapping[str, Any] | None,
        batch: Any,
        batch_idx: int,
    ) -> None:
        """Looks for divergence; logs, or remembers the levels for the end of the epoch."""
        if self.stop_on_divergence:
            self._check_finite(trainer, outputs)
        if self.every == "step":
            for name, criterion in self._losses.items():
                self._log(pl_module, name, numbers_of(criterion), on_step=True, on_epoch=False)
            return
        self._n_batches += 1
        for name, criterion in self._losses.items():
            self._levels[name] = self._levels.get(name, 0) + criterion.levels

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Logs what belongs to the epoch."""
        if self.every == "step" or not self._n_batches:
            return
        for name, criterion in self._losses.items():
            numbers = numbers_of(criterion, self._levels[name] / self._n_batches)
            # They are equal in all processes, but Lightning warns if it is not told to see to it.
            self._log(pl_module, name, numbers, on_epoch=True, sync_dist=trainer.world_size > 1)

    def _log(
        self, module: LightningModule, prefix: str, numbers: dict[str, float], **options: Any
    ) -> None:
        module.log_dict({f"{prefix}/{name}": number for name, number in numbers.items()}, **options)

    def _check_finite(self, trainer: Trainer, outputs: Any) -> None:
        """Raises in all processes if training has diverged in any of them."""
        loss = outputs.get("loss", 0.0) if isinstance(outputs, dict) else outputs
        loss = 0.0 if loss is None else loss  # of a training_step that optimises by hand
        problems = [divergence(loss, criterion) for criterion in self._losses.values()]
        problem = next((problem for problem in problems if problem is not None), None)
        is_broken = problem is not None
        if trainer.world_size > 1:
            is_broken = trainer.strategy.reduce_boolean_decision(is_broken, all=False)
        if is_broken:
            raise FloatingPointError(
                f"step {trainer.global_step}: training has diverged: "
                f"{problem or 'another process reported it.'} {ADVICE}"
            )
