"""Against a baseline on the same rows: who gained, who lost, and whether anybody gained at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fairgrad.audit.findings import Finding
    from fairgrad.groups import Floats

NEGLIGIBLE = 0.001
"""Changes of a rate up to a tenth of a percentage point count as none."""


@dataclass(frozen=True, eq=False)
class Change:
    """One finding before (the baseline's predictions) and after (those audited).

    Attributes:
        before: on the baseline's predictions.
        after: on the audited predictions.

    Example:
        >>> from fairgrad.audit import Audit
        >>> y, s = [1] * 400, ["a", "b"] * 200
        >>> before, after = [1, 0] * 200, [1, 1, 0, 0] * 100
        >>> audit = Audit(y, after, s, measures="accuracy_parity", baseline=before, labels=[0, 1])
        >>> change = audit.changes[0]
        >>> change.is_fairer, change.gained(), change.lost()
        (True, ['sensitive_features=b'], ['sensitive_features=a'])
    """

    before: Finding
    after: Finding

    @property
    def gains(self) -> Floats:
        """(K,) by how much the people in each cell are better off, NaN where nobody is."""
        comparison = self.after.comparison
        change = comparison.cells.value - self.before.comparison.cells.value
        return np.where(comparison.good == 0, np.nan, comparison.good * change)

    @property
    def is_fairer(self) -> bool:
        """Whether the figure of this measure came down (a ratio: went up)."""
        before, after = self.before, self.after
        if after.tolerance.kind == "level":
            return after.unfairness < before.unfairness
        sign = -1.0 if after.tolerance.kind == "ratio" else 1.0
        return sign * after.judgement.value < sign * before.judgement.value

    @property
    def is_levelling_down(self) -> bool:
        """Fairer though no group is better off and some group is worse off."""
        gains = self.gains[~np.isnan(self.gains)]
        return bool(self.is_fairer and (gains <= NEGLIGIBLE).all() and (gains < -NEGLIGIBLE).any())

    def group_gains(self) -> list[tuple[str, Floats]]:
        """Each group's name with the gains in its cells."""
        cell_group = self.after.comparison.cell_group
        names = self.after.table.groups.names
        return [(name, self.gains[cell_group == g]) for g, name in enumerate(names)]

    def gained(self) -> list[str]:
        """The groups that gained in one of their rates and lost in none."""
        return [name for name, gains in self.group_gains() if _gained(gains) and not _lost(gains)]

    def lost(self) -> list[str]:
        """The groups that lost in one of their rates and gained in none."""
        return [name for name, gains in self.group_gains() if _lost(gains) and not _gained(gains)]

    def mixed(self) -> list[str]:
        """The groups that gained in one of their rates and lost in another."""
        return [name for name, gains in self.group_gains() if _lost(gains) and _gained(gains)]


def _gained(gains: Floats) -> bool:
    return bool((gains > NEGLIGIBLE).any())


def _lost(gains: Floats) -> bool:
    return bool((gains < -NEGLIGIBLE).any())
