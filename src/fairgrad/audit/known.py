"""Groups known for only some rows: prediction-powered counts of rows by group and labels.

Labels and predictions are known for all rows, groups for some. Every row gets probabilities m of
its groups from some model, however bad. Within a stratum of N rows with the same labels and
predictions, n of which have a known group, the rows of group g are estimated as

    N * (power * mean of m_g over all rows + mean of (1[s = g] - power * m_g) over the known rows).

The second mean, the rectifier, corrects the model (prediction-powered inference: Angelopoulos et
al., Science 382, 2023; `power` is tuned as in PPI++, Angelopoulos, Duchi and Zrnic, 2023). The
estimate is a sum over rows of ``u_g = power m_g + (N / n) [known] (1[s = g] - power m_g)``, so u is
a sample weight that may be negative. The variance of a rate follows from ``sum u_g^2``, as it does
for all weights; that of differences between groups from ``sum u_g u_h``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fairgrad.checks import check_number
from fairgrad.columns import UNKNOWN
from fairgrad.groups import count_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairgrad.audit.counts import CountTable
    from fairgrad.groups import Floats, GroupedRows, Ints
    from fairgrad.membership import Membership, PartlyKnown

LEAST_KNOWN = 10
"""Strata with fewer rows of known group are taken together."""


class SoftCells(NamedTuple):
    """What a table of counts has besides if groups are known for only some rows.

    Attributes:
        attribute: the one that some rows lack.
        products: (G + 1, G + 1, L, L) sums of ``u_g u_h`` over the rows of each true and predicted
            label; the last group is all of them together.
        unknown: (G, L, L) rows of unknown group that may be in each group.
        difference: by how much shares of groups among them may differ from those of known rows.
    """

    attribute: str
    products: Floats
    unknown: Floats
    difference: float

    def regrouped(self, index: Ints, n_groups: int) -> SoftCells:
        """The same with the group at each index; without groups whose new index is -1."""
        kept = np.flatnonzero(index >= 0)
        sums = np.zeros((len(kept), n_groups))
        sums[np.arange(len(kept)), index[kept]] = 1.0
        products = np.einsum("ab...,ag,bh->gh...", self.products[np.ix_(kept, kept)], sums, sums)
        unknown = np.einsum("a...,ag->g...", self.unknown[kept], sums)
        return self._replace(products=with_everyone(products), unknown=unknown)

    def take(self, chosen: NDArray[np.bool_]) -> SoftCells:
        """Some of the groups; everyone is still all of them."""
        places = np.append(np.flatnonzero(chosen), len(chosen))
        products = self.products[np.ix_(places, places)]
        return self._replace(products=products, unknown=self.unknown[chosen])

    @property
    def squares(self) -> Floats:
        """(G, L, L) sums of ``u_g^2``."""
        return np.moveaxis(np.diagonal(self.products), -1, 0)[:-1].copy()

    def drift(self, hits: Floats, total: Floats, masks: list[Floats]) -> tuple[Floats, Floats]:
        """(R, G) how far each rate, hits / total, may lie below and above by `difference`.

        The masks, (R, L * L), are the labels that have the property, and that could have it.
        """
        unknown = self.unknown.reshape(len(self.unknown), -1).T
        more, all_more = (self.difference * mask @ unknown for mask in masks)
        misses, less = np.maximum(total - hits, 0.0), all_more - more
        value = hits / np.where(total > 0, total, 1.0)

        def rate(up: Floats, down: Floats) -> Floats:
            return np.divide(up, up + down, out=np.zeros_like(up), where=up + down > 0)

        low = rate(np.maximum(hits - more, 0.0), misses + less)
        high = rate(np.maximum(hits, 0.0) + more, np.maximum(misses - less, 0.0))
        return np.maximum(value - low, 0.0), np.maximum(high - value, 0.0)

    def correlation(self, hits: NDArray[np.bool_], group: Ints, row: Ints, rate: Floats) -> Floats:
        """(K, K) of rates, each of a group (G for everyone) and a row of hits, (R, L, L)."""
        could = np.broadcast_to(hits.any(axis=-1, keepdims=True), hits.shape)
        off = hits[row] - rate[:, None, None] * could[row]
        products = self.products[group[:, None], group]
        covariance = np.einsum("kyp,lyp,klyp->kl", off, off, products)
        scale = np.sqrt(np.maximum(np.diagonal(covariance), 1e-300))
        correlations: Floats = np.clip(covariance / np.outer(scale, scale), -1.0, 1.0)
        return correlations


def with_everyone(products: Floats) -> Floats:
    """(G + 1, G + 1, ...) sums of products of G groups, and of all of them together."""
    both = np.concatenate([products, products.sum(axis=0, keepdims=True)])
    return np.concatenate([both, both.sum(axis=1, keepdims=True)], axis=1)


def member_weights(
    partly: PartlyKnown, membership: Membership, stratum: Ints, weight: Floats
) -> tuple[Floats, Floats]:
    """(N, V) what each row counts in each group; and the same for variances."""
    code, m = partly.code, partly.probability
    known = code != UNKNOWN
    n_known = count_rows(stratum[known], stratum.max() + 1)
    few = n_known < LEAST_KNOWN
    if few.any():  # with the smallest of the others, if they are too few together
        order = np.argsort(n_known, kind="stable")
        most = np.searchsorted(np.cumsum(n_known[order]), LEAST_KNOWN) + 1
        few[order[: max(int(most), int(few.sum()))]] = True
    is_pooled = few[stratum]
    stratum = np.where(is_pooled, len(few), stratum)

    def sums(values: Floats) -> Floats:
        summed: Floats = count_rows(stratum, len(few) + 1, values)
        return summed

    stands_for = np.where(known, membership.weight_of_known(len(code)), 0.0)
    of_known = sums(weight * stands_for)
    times = stands_for * (sums(weight) / np.where(of_known > 0, of_known, 1.0))[stratum]

    def centred(values: Floats) -> Floats:
        """What differs from the mean of the known rows of the stratum."""
        total = sums(weight * times)
        means = [sums(weight * times * x) / np.where(total > 0, total, 1.0) for x in values.T]
        return values - np.stack(means, axis=1)[stratum]

    is_member = (code[:, None] == np.arange(m.shape[1])).astype(np.float64)
    spread, x = centred(m), (weight * times)[:, None] ** 2  # the least variance of all groups
    variance = float((x * spread**2).sum())
    power = float((x * spread * is_member).sum()) / variance if variance > 0 else 0.0
    error = is_member - power * m
    corrected = power * m + times[:, None] * error
    around = centred(error)
    n = np.maximum(count_rows(stratum[known], len(few) + 1), 2)[stratum][:, None]
    sharp = power * m + (error - around) + times[:, None] * around * np.sqrt(n / (n - 1))
    return corrected, np.where(is_pooled[:, None], corrected, sharp)


def soft_counts(
    table: CountTable,
    rows: GroupedRows,
    predicted: Ints,
    partly: PartlyKnown,
    membership: Membership,
    also: Ints | None = None,
) -> tuple[CountTable, GroupedRows]:
    """The table with every row in all groups it may be in, and those rows, once per group.

    In the table given, rows of unknown value are groups of their own. Strata are also by the
    predictions of another model to compare with (`also`).
    """
    groups, n_labels = rows.groups, table.n_labels
    place, n_values = groups.attributes.index(partly.attribute), len(partly.values)
    others = np.delete(groups.codes, place, axis=1)
    kin = np.unique(others, axis=0, return_inverse=True)[1].ravel()
    # The group of each value with the same other attributes, the last for unknown ones. A value
    # that no known row has there counts as unknown, or if there is no such group as another one.
    of_value = np.full((kin.max() + 1, n_values + 1), UNKNOWN)
    of_value[kin, groups.codes[:, place]] = np.arange(groups.n_groups)
    of_value[:, -1] = np.where(of_value[:, -1] < 0, of_value.max(axis=1), of_value[:, -1])
    of_value = np.where(of_value < 0, of_value[:, -1:], of_value)[:, :-1]
    label, rest = rows.label.astype(np.int64), kin[rows.group]
    cell = (rest * n_labels + label) * n_labels + predicted
    stratum = cell if also is None else cell * n_labels + also
    stratum = np.unique(stratum, return_inverse=True)[1].ravel()
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    counted, sharp = member_weights(partly, membership, stratum, weight)
    mass, unknown = np.zeros(table.mass.shape), np.zeros(table.mass.shape)
    products = np.zeros((groups.n_groups, *table.mass.shape))
    for number in np.unique(cell):
        members = np.flatnonzero(cell == number)
        k, y, p = np.unravel_index(number, (len(of_value), n_labels, n_labels))
        g, w = of_value[k], weight[members, None]
        np.add.at(mass[:, y, p], g, (w * counted[members]).sum(axis=0))
        unknown[g, y, p] = weight[members][partly.code[members] == UNKNOWN].sum()
        np.add.at(products[:, :, y, p], np.ix_(g, g), (w * sharp[members]).T @ (w * sharp[members]))
    check_number("difference", membership.difference)
    soft = SoftCells(partly.attribute, with_everyone(products), unknown, membership.difference)
    own_groups = replace(groups, mass=mass.sum(axis=2).T)
    softened = replace(table, groups=own_groups, mass=mass, squares=soft.squares, soft=soft)
    everywhere = replace(
        rows,
        groups=own_groups,
        label=np.repeat(rows.label, n_values),
        group=of_value[rest].ravel(),
        weight=(weight[:, None] * counted).ravel(),
    )
    return softened, everywhere
