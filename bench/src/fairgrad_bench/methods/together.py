"""Fits of many learners made together: what would be trained one after the other is one stack.

Some algorithms fit a plain learner again and again, each time to other weights. Their rounds must
follow each other, but the rounds of several seeds and settings need not: every algorithm runs in a
thread of its own, and whenever all of them wait for a fit, the fits that they wait for are trained
as one stack. The algorithms themselves are left as they are.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from fairgrad.training import Member, TrainingPlan, TrainingTable, train
from fairgrad_bench.methods.models import (
    LAYERS,
    MOST_MEMBERS,
    members_network,
    own_network,
    predicted_labels,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from fairgrad.groups import Floats, Ints
    from fairgrad.training import Network

    Result = TypeVar("Result")

STEPS = 300
"""Steps of gradient descent that a fit takes, unless that is more than the epochs asked for."""

FEW_ROWS, BATCH_SIZES = 10_000, (64, 512)
"""Tables of fewer rows are trained in the smaller batches; both sizes are the paper's."""

ADAM_RATE = 0.01
"""At the start; it falls to 0 by the last step, so that few steps are enough."""


@dataclass(eq=False)
class AwaitedFit:
    """What one thread waits for: weighted rows in, a network out."""

    seed: int
    X: NDArray[np.float32]
    y: Ints
    weight: Floats
    network: Network | None = None


class StackedFits:
    """The place where algorithms that fit learners meet.

    Args:
        hidden: whether the learners have the paper's hidden layers; else they are linear.
        epochs: the most passes over the rows that a fit may take.
    """

    def __init__(self, *, hidden: bool, epochs: int) -> None:
        self.layers = LAYERS if hidden else {}
        self.epochs = epochs
        self.fits = 0
        self._changed = threading.Condition()
        self._awaited: list[AwaitedFit] = []
        self._running = 0
        self._error: BaseException | None = None

    def run(self, algorithms: Sequence[Callable[[], Result]]) -> list[Result]:
        """What every algorithm returns; all fits are made in the calling thread.

        Args:
            algorithms: functions that fit `StackedLearner`s of this place.

        Raises:
            Exception: the first that an algorithm raised, after all of them have ended.
        """
        results: list[Any] = [None] * len(algorithms)
        self._running = len(algorithms)

        def follow(position: int) -> None:
            try:
                results[position] = algorithms[position]()
            except BaseException as error:  # noqa: BLE001 - raised again in the calling thread
                self._error = self._error or error
            finally:
                with self._changed:
                    self._running -= 1
                    self._changed.notify_all()

        threads = [
            threading.Thread(target=follow, args=(i,), daemon=True) for i in range(len(algorithms))
        ]
        for thread in threads:
            thread.start()
        while self._round():
            pass
        for thread in threads:
            thread.join()
        if self._error is not None:
            raise self._error
        return results

    def fit(self, awaited: AwaitedFit) -> Network:
        """Waits until the network is trained, together with those of all other algorithms.

        Raises:
            RuntimeError: if another algorithm failed, or the training did.
        """
        with self._changed:
            self._awaited.append(awaited)
            self._changed.notify_all()
            self._changed.wait_for(lambda: awaited.network is not None or self._error is not None)
            if awaited in self._awaited:  # it will not be made any more
                self._awaited.remove(awaited)
        if awaited.network is None:
            raise RuntimeError("fits: another fit of the same unit failed.")
        return awaited.network

    def _round(self) -> bool:
        """Trains what is waited for once nobody works any more; False when all have ended."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._awaited) == self._running)
            waiting, self._awaited = self._awaited, []
            if not waiting:
                return False
        networks: list[Network | None] = [None] * len(waiting)
        try:
            if self._error is None:
                for start in range(0, len(waiting), MOST_MEMBERS):
                    own = slice(start, start + MOST_MEMBERS)
                    networks[own] = self._trained(waiting[own])
        except BaseException as error:  # noqa: BLE001 - raised again when all threads have ended
            self._error = error
        with self._changed:
            for awaited, network in zip(waiting, networks, strict=True):
                awaited.network = network
            self.fits += 1
            self._changed.notify_all()
        return True

    def _trained(self, waiting: Sequence[AwaitedFit]) -> list[Network | None]:
        """The network of every fit: all of them are members of one stack."""
        edges = np.cumsum([0, *(len(fit.y) for fit in waiting)])
        X, y, weight = (
            np.concatenate([getattr(fit, name) for fit in waiting]) for name in ("X", "y", "weight")
        )
        table = TrainingTable.from_data(X, y, None, weight)
        members = [
            Member(
                seed=fit.seed,
                rows=np.arange(edges[i], edges[i + 1]),
                validation=np.arange(edges[i], edges[i] + 1),  # epochs are judged by nobody
                learning_rate=ADAM_RATE,
            )
            for i, fit in enumerate(waiting)
        ]
        n_rows = max(len(fit.y) for fit in waiting)
        batch_size = BATCH_SIZES[n_rows >= FEW_ROWS]
        enough = -(-STEPS // -(-n_rows // batch_size))
        plan = TrainingPlan(
            epochs=min(self.epochs, enough),
            batch_size=batch_size,
            solver="adam",
            schedule="cosine",
            keep=1,
            **self.layers,
        )
        training = train(table, members, plan)
        (state,) = training.kept.values()
        make = own_network(training)
        return [members_network(state, [member], make) for member in range(len(waiting))]


class StackedLearner:
    """A classifier of two labels, 0 and 1, whose `fit` waits for those of others.

    As scikit-learn's in what algorithms that reweight rows use of it.

    Args:
        place: where the fits meet.
        seed: of initial weights and shuffling.
    """

    def __init__(self, place: StackedFits, seed: int) -> None:
        self.place, self.seed = place, seed

    def __sklearn_clone__(self) -> StackedLearner:
        """An unfitted one at the same place."""
        return StackedLearner(self.place, self.seed)

    def fit(self, X: Any, y: Any, sample_weight: Any) -> StackedLearner:
        """Trains a network on weighted rows, together with the others."""
        awaited = AwaitedFit(
            self.seed,
            np.asarray(X, dtype=np.float32),
            np.asarray(y, dtype=np.int64),
            np.asarray(sample_weight, dtype=np.float64),
        )
        self.network = self.place.fit(awaited)
        return self

    def predict(self, X: Any) -> Ints:
        """The label of each row."""
        found: Ints = predicted_labels(self.network, np.asarray(X, np.float32), np.arange(2))[0]
        return found
