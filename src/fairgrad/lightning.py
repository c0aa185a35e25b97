"""Lightning integration: ``from fairgrad.lightning import FairnessMonitor``.

A fair loss is a module, so a `LightningModule` needs two lines: the loss as an attribute, and its
call in ``training_step``. Every checkpoint then contains the multipliers, and an interrupted run
can be resumed exactly. In ``validation_step``, ``self.criterion(logits, y)`` returns the plain
loss, because Lightning has called ``eval()``::

    class Model(LightningModule):
        def __init__(self, y_train, s_train):
            ...
            self.criterion = CrossEntropyLoss(y_train, s_train, "equalized_odds")

        def training_step(self, batch, batch_idx):
            x, y, s = batch
            return self.criterion(self(x), y, s)

To load checkpoints without the training data (``load_from_checkpoint``), let the module take
``counts = dict(Counter(zip(y_train.tolist(), s_train.tolist())))``, call
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
    """Logs fairness, stops training that diverges, and shares multipliers between processes.

    It logs "fairness/level/...", "fairness/multiplier/..." and "fairness/weight/..." for each
    constraint or cell, and "fairness/negative_share", the share of the training rows whose weight
    is below 0, to the trainer's loggers and ``trainer.callback_metrics``. If the module has several
    fair losses, the name of the loss follows "fairness/".

    Args:
        every: "epoch" logs, after each epoch, the mean of the levels over its batches and the
            current multipliers and weights. "step" logs all of them after a batch, as often as
            the trainer's ``log_every_n_steps`` requires.
        stop_on_divergence: whether training stops with a `FloatingPointError`, in all processes, if
            a loss or multiplier is infinite or not a number. On an accelerator this waits for the
            device after every batch.

    Raises:
        ValueError: if `every` is neither of the two, or, when fitting starts, if the module has no
            fair loss or the processes have different training data.

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
        """Finds the fair losses and joins the processes, which are running by now.

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
        is_single = len(losses) == 1
        self._losses = {
            "fairness" if is_single else f"fairness/{name}": loss for name, loss in losses.items()
        }

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Resets the means of the levels."""
        self._levels, self._n_batches = {}, 0

    def on_train_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Tensor | Mapping[str, Any] | None,
        batch: Any,
        batch_idx: int,
    ) -> None:
        """Checks for divergence; logs, or adds the levels to the means of the epoch."""
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
        """Logs the figures of the epoch."""
        if self.every == "step" or not self._n_batches:
            return
        for name, criterion in self._losses.items():
            numbers = numbers_of(criterion, self._levels[name] / self._n_batches)
            # They are equal in all processes, but Lightning warns without sync_dist.
            self._log(pl_module, name, numbers, on_epoch=True, sync_dist=trainer.world_size > 1)

    def _log(
        self, module: LightningModule, prefix: str, numbers: dict[str, float], **options: Any
    ) -> None:
        module.log_dict({f"{prefix}/{name}": number for name, number in numbers.items()}, **options)

    def _check_finite(self, trainer: Trainer, outputs: Any) -> None:
        """Raises in all processes if training has diverged in any of them."""
        loss = outputs.get("loss", 0.0) if isinstance(outputs, dict) else outputs
        loss = 0.0 if loss is None else loss  # a training_step with manual optimization
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
