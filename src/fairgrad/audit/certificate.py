"""Certificates: a model that is fair on new people with a stated confidence, or none.

The best verdict of many models is too good: it was chosen. So models are compared on one part of
the held-out rows. The most accurate one that is likely to pass is then judged on the other part,
the *fresh* rows, by an ordinary audit. If nothing before depended on the fresh rows, "fair" is
wrong with at most ``1 - confidence`` probability. At a confidence of 95 %, an unfair model is
certified for at most 5 % of all tables. Nothing is promised about the share among certified ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from fairgrad.audit import words
from fairgrad.audit.audit import Audit
from fairgrad.audit.comparisons import DEFAULT_TOLERANCE
from fairgrad.audit.counts import mean_costs
from fairgrad.audit.sections import deciding, severity
from fairgrad.audit.seen_rows import SeenRows, row_digests
from fairgrad.audit.verdicts import FAIR, attainable_tolerance
from fairgrad.checks import check_count, check_number
from fairgrad.columns import as_array, counted, sensitive_columns
from fairgrad.groups import MIN_GROUP
from fairgrad.measures import on_groups
from fairgrad.splitting import unpack_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fairgrad.audit.verdicts import Finding
    from fairgrad.groups import Floats

LIKELY = 0.8
"""The chance of passing from which on accuracy decides among models."""

SMALL = 1e-12
"""Costs that differ by less are equal."""
LOOK = 0.8
"""Share of the remaining error that each look of a series uses."""


class Candidacy(NamedTuple):
    """The model to be judged on the fresh rows; by default the only one.

    Attributes:
        position: its place among the models compared.
        chance: about how likely it is to pass.
        n_models: how many were compared.
        n_rows: on how many rows.
        groups: the groups that these rows have.

    Example:
        >>> Candidacy(position=3, chance=0.9, n_models=16, n_rows=800).n_models
        16
    """

    position: int = 0
    chance: float = float("nan")
    n_models: int = 1
    n_rows: int = 0
    groups: tuple[str, ...] = ()


def likeliest(audits: Sequence[Audit], n_fresh: int, costs: Any = None) -> Candidacy:
    """Which of some models to judge on fresh rows, by their audits on other rows.

    The most accurate (with costs, the cheapest) of those whose chance to pass is at least 0.8; if
    there is none, the one with the best chance. Models that are no more accurate than one label for
    everybody do not count.

    Args:
        audits: of each model, on the same rows, with the tolerance and confidence asked for.
        n_fresh: how many fresh rows there are.
        costs: (L, L) of predictions (columns) of each true label; None if all mistakes cost alike.

    Raises:
        ValueError: if no model is more accurate than one label for everybody.

    Example:
        >>> from fairgrad.audit import Audit
        >>> y, s = [0, 1] * 400, ["a", "a", "b", "b"] * 200
        >>> all_yes, right = Audit(y, [1] * 800, s), Audit(y, y, s)
        >>> likeliest([all_yes, right], n_fresh=800).position
        1
    """
    n_labels = len(audits[0].labels)
    each = 1.0 - np.eye(n_labels) if costs is None else np.asarray(costs)
    merit = -mean_costs(np.array([audit.table.mass.sum(axis=0) for audit in audits]), each)
    chance = np.array([chance_to_pass(a.asked, a.table.n_rows, n_fresh) for a in audits])
    truth = audits[0].table.mass.sum(axis=(0, 2))
    alike = -mean_costs(truth[:, None] * np.eye(n_labels)[:, None], each)
    useful = merit > alike.max() + SMALL
    if not useful.any():
        label, best = audits[0].labels[int(alike.argmax())], float(alike.max())
        better, rate = "more accurate", f"{100 * (1 + best):.1f} %"
        if costs is not None:
            better, rate = "cheaper", f"a mean cost of {-best:.4f}"
        raise ValueError(
            f"certify: no model is {better} than predicting {label} for everybody ({rate}) on the "
            "rows that they are chosen by; there is nothing to certify."
        )
    position = best_candidate(np.where(useful, merit, -np.inf), np.where(useful, chance, -1.0))
    views, n_rows = audits[0].views, audits[0].table.n_rows
    asked = dict.fromkeys(f.attribute for f in audits[0].asked if f.attribute in views)
    names = tuple(name for attribute in asked for name in views[attribute].groups.names)
    return Candidacy(position, float(chance[position]), len(audits), n_rows, names)


def best_candidate(merit: Floats, chance: Floats) -> int:
    """The position of the best model that is likely to pass, or else of the likeliest."""
    likely = chance >= LIKELY
    order = np.lexsort((chance, np.where(likely, merit, chance), likely))
    return int(order[-1])


def chance_to_pass(findings: Iterable[Finding], n_rows: int, n_fresh: int) -> float:
    """About how likely findings on n_rows are to be fair on n_fresh new rows, all of them.

    The least of their chances. It only helps to choose; the certificate does not rest on it.
    """
    chance, q = 1.0, np.sqrt(n_rows / max(n_fresh, 1))
    for finding in findings:
        value, low, high, _ = finding.judgement
        is_ratio, limit = finding.tolerance.kind == "ratio", finding.tolerance.value
        room, reach = (value - limit, value - low) if is_ratio else (limit - value, high - value)
        if np.isnan(value):
            return 0.0
        chance = min(chance, float(passing(room, reach, q, finding.alpha)))
    return chance


def passing(room: Any, reach: Any, q: float, alpha: float) -> Floats:
    """About how likely a figure is to pass on fresh rows.

        Phi((room - q reach) / (reach / z * sqrt(1 + q^2))),      z = Phi^-1(1 - alpha / 2),

    as both figures vary, the one at hand and the one to come: `room` is by how much the figure at
    hand is fairer than the limit, `reach` how far its interval goes towards the limit, and q by how
    much intervals shrink on the fresh rows.
    """
    noise = np.maximum(reach, 1e-9) / ndtri(1.0 - alpha / 2) * np.sqrt(1.0 + q**2)
    chance: Floats = ndtr((room - q * reach) / noise)
    return chance


@dataclass(frozen=True, eq=False)
class Certificate:
    """What was found when one model was judged on fresh rows, once.

    Attributes:
        audit: of that model on the fresh rows.
        candidacy: how it was chosen.
        model: the model; None if it is not certified.
        overlap: how many of the fresh rows equal a training row, and how many would by chance;
            None if that was not compared.
        look: the number of this look in a series of looks at the model, which share one error;
            None for the only look.

    Example:
        >>> from fairgrad.audit import Audit
        >>> y, s = [0, 1] * 400, ["a", "a", "b", "b"] * 200
        >>> audit = Audit(y, y, s, measures="accuracy_parity", tolerance=0.05)
        >>> certificate = Certificate(audit, Candidacy(3, 0.9, 16, 800), model="the fourth")
        >>> certificate.is_certified
        True
        >>> print(certificate.sentence)  # doctest: +NORMALIZE_WHITESPACE
        Certified with 95 % confidence: fair by accuracy parity, groups by sensitive_features. The
        largest |F| is 0.000 (at most 0.005); fair is at most 0.05. It was judged on 800 rows stated
        to be new. The model was chosen from 16 models on 800 other rows.
    """

    audit: Audit
    candidacy: Candidacy
    model: Any = None
    overlap: tuple[int, int] | None = None
    look: int | None = None

    @property
    def is_certified(self) -> bool:
        """Whether the model is fair within the tolerance on new people, with the confidence."""
        return self.audit.verdict == FAIR

    @property
    def confidence(self) -> float:
        """Of the certificate, and of all others of its series together."""
        return 1 - (1 - self.audit.confidence) / look_share(self.look)

    @property
    def not_covered(self) -> tuple[str, ...]:
        """Groups and people the certificate says nothing about, with their number of rows."""
        audit, groups, seen = self.audit, [], set()
        for name in dict.fromkeys(finding.attribute for finding in audit.asked):
            if name not in audit.views:  # attributes of some measures alone
                continue
            view, judged = audit.views[name], audit.judged[name]
            sized = zip(view.groups.names, view.size.astype(int), judged, strict=True)
            groups += [f"{group} ({counted(n, 'row')})" for group, n, ok in sized if not ok]
            seen |= set(view.groups.names)
            unknown = audit.table.n_rows - view.n_rows
            if unknown:
                groups.append(f"people whose {name} is not known ({counted(unknown, 'row')})")
        groups += [f"{group} (no rows)" for group in self.candidacy.groups if group not in seen]
        return tuple(dict.fromkeys(groups))

    @property
    def sentence(self) -> str:
        """What is certified, on which rows; or why not, and what it would take."""
        audit, n_models = self.audit, self.candidacy.n_models
        decisive, worst = deciding(audit)
        names = dict.fromkeys(words.in_the_middle(finding.measure) for finding in decisive)
        grouped = dict.fromkeys(finding.attribute for finding in decisive)
        verdict = "fair" if self.is_certified else audit.verdict
        head = "Certified" if self.is_certified else "Not certified"
        look = chosen = overlap = not_covered = ""
        if self.look is not None:
            look = (
                f" (look {self.look} at this model; the confidence is that of all looks together)"
            )
        if n_models > 1:
            rows = f"{self.candidacy.n_rows:,} other rows"
            chosen = f" The model was chosen from {n_models:,} models on {rows}."
        if self.overlap is not None:
            equal, expected = self.overlap
            equals = f"{counted(equal, 'row')} equal{'s' * (equal == 1)}"
            overlap = f" {equals} a training row in all features; by chance {expected:,} would."
        if self.not_covered:
            not_covered = f" Not covered: {words.listed(list(self.not_covered), most=6)}."
        weighted = " Rows have weights: the confidence is approximate." if audit.is_weighted else ""
        figure = (
            f"The {words.judged([worst])} is {_at_most(worst)}; fair is {words.in_words(worst)}."
        )
        return (
            f"{head} with {100 * self.confidence:.4g} % confidence: {verdict} by "
            f"{words.conjoined(list(names))}, groups by {words.conjoined(list(grouped))}. {figure} "
            f"It was judged on {counted(audit.table.n_rows, 'row')} stated to be new{look}."
            f"{chosen}{overlap}{not_covered}{self._needed(worst)}{weighted}"
        )

    def _needed(self, worst: Finding) -> str:
        """For a model that is not certified: the rows, or the tolerance, it would take."""
        if self.is_certified:
            return ""
        if severity(worst) > 0:
            rows = " The observed figure is beyond the limit: use a fairer model, not more rows."
        else:
            advice = words.advice(worst)
            rows = f" {advice} They must be new rows." if advice else ""
        tolerance = self.attainable
        if tolerance is None:
            return rows
        return f"{rows} It would have passed at a tolerance of {tolerance:.3f}."

    @property
    def attainable(self) -> float | None:
        """The least tolerance, rounded up, that would have passed; None if levels do not decide."""
        return attainable_tolerance(self.audit.asked)

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        audit, candidacy = self.audit, self.candidacy
        return {
            "certified": self.is_certified,
            "sentence": self.sentence,
            "verdict": audit.verdict,
            "confidence": self.confidence,
            "measures": list(dict.fromkeys(finding.measure for finding in audit.asked)),
            "groups_by": list(dict.fromkeys(finding.attribute for finding in audit.asked)),
            "tolerance": {f.measure: f.tolerance.value for f in audit.asked},
            "attainable_tolerance": self.attainable,
            "fresh_rows": audit.table.n_rows,
            "chosen_from": candidacy.n_models,
            "chosen_on_rows": candidacy.n_rows,
            "chance_to_pass": None if np.isnan(candidacy.chance) else candidacy.chance,
            "not_covered": list(self.not_covered),
            "overlap": None if self.overlap is None else list(self.overlap),
            "look": self.look,
        }


def look_share(look: int | None) -> float:
    """The share of the error that a look may use: 0.8, 0.16, 0.032, ...; the only look all."""
    return 1.0 if look is None else LOOK * (1 - LOOK) ** (look - 1)


def _at_most(finding: Finding) -> str:
    """The figure, and the end of its interval that decides."""
    value, low, high, _ = finding.judgement
    if np.isnan(value):
        return "not defined"
    if finding.verdict != FAIR:
        return f"{value:.3f} ({low:.3f} to {high:.3f})"
    end = f"at least {low:.3f}" if finding.tolerance.kind == "ratio" else f"at most {high:.3f}"
    return f"{value:.3f} ({end})"


def certify(
    models: Any,
    fresh: Any,
    compared: Any = None,
    *,
    fairness_measure: Any = None,
    tolerance: Any = DEFAULT_TOLERANCE,
    confidence: float = 0.95,
    y_desirable: Any = None,
    min_group: float = MIN_GROUP,
    cost_matrix: Any = None,
    trained_on: Any = None,
    look: int | None = None,
) -> Certificate:
    """Judges one fitted model, the best of several, on new rows: certified to be fair, or not.

    Of several models it takes the most accurate that is likely to pass, by the rows to compare
    them on. The certificate holds if the fresh rows are new, as the caller states. With
    `trained_on` this is checked as far as possible. If you may judge the same models again on other
    rows or by another measure, number these looks: all certificates then share one error.

    Args:
        models: a fitted classifier, or a list of several.
        fresh: (X, y, sensitive_features), or with sample weights as a fourth: rows that no model
            was trained on or chosen by.
        compared: other such rows, to choose among several models by.
        fairness_measure: by default the models' own, or "equalized_odds".
        tolerance: what is still fair, as in `fairgrad.audit.Audit`: the largest |F|,
            "80%", or a mapping from measures to either.
        confidence: of the certificate.
        y_desirable: the desirable labels; by default the models' own.
        min_group: groups with fewer fresh rows are not covered; below 1 a share of the rows.
        cost_matrix: takes the cheapest model instead of the most accurate one.
        trained_on: features of the rows that the models were trained on, or their `SeenRows`.
        look: the number of this look at the model, from 1. Each look may use 80 % of the error that
            earlier ones left. None if it is the only one.

    Raises:
        ValueError: if there are several models and no rows to compare them on, or none of them is
            more accurate than one label for everybody, or far more of the fresh rows equal a
            training row than chance explains. The fresh rows were not looked at then.

    Example:
        >>> from fairgrad.sklearn import FairGradClassifier
        >>> rng = np.random.default_rng(0)
        >>> sex = rng.choice(["F", "M"], 20_000)
        >>> X = rng.normal(size=(20_000, 3)) + np.outer(sex == "M", [1.0, 0.0, 0.0])
        >>> y = (X.sum(1) + rng.normal(size=20_000) > 0.5).astype(int)
        >>> model = FairGradClassifier("demographic_parity", epsilon=0.02, random_state=0)
        >>> model = model.fit(X[:12_000], y[:12_000], sensitive_features=sex[:12_000])
        >>> fresh = X[12_000:], y[12_000:], sex[12_000:]
        >>> certify(model, fresh, tolerance=0.1).is_certified
        True
    """
    from fairgrad.aware import to_predict  # noqa: PLC0415 - audits alone need no scikit-learn

    check_number("confidence", confidence, above=0, below=1)
    if look is not None:
        check_count("look", look)
    models = list(models) if isinstance(models, (list, tuple)) else [models]
    if not models or (len(models) > 1 and compared is None):
        raise ValueError(
            f"compared: required to choose among {len(models)} models; pass (X, y, "
            "sensitive_features) of rows other than the fresh ones."
        )
    first = models[0]
    own_measure = getattr(first, "fairness_measure", None) or "equalized_odds"
    measure = own_measure if fairness_measure is None else fairness_measure
    desirable = (getattr(first, "desirable_", None) or None) if y_desirable is None else y_desirable

    def judge(model: Any, rows: Any, argument: str) -> Audit:
        X, y, s, weight = unpack_rows(rows, argument)
        columns = sensitive_columns(s, len(as_array(y)), argument, "its y")
        return Audit(
            y,
            model.predict(X, **to_predict(model, s)),
            columns,
            on_groups(measure, tuple(columns)),
            tolerance,
            confidence if argument == "compared" else 1 - (1 - confidence) * look_share(look),
            sample_weight=weight,
            y_desirable=desirable,
            labels=model.classes_,
            min_group=min_group,
        )

    X_fresh, y_fresh, *_ = unpack_rows(fresh, "fresh")
    overlap, candidacy = None, Candidacy()
    if trained_on is not None:
        seen = trained_on if isinstance(trained_on, SeenRows) else SeenRows.of(trained_on)
        overlap = seen.overlap(row_digests(X_fresh))
    if compared is not None:
        audits = [judge(model, compared, "compared") for model in models]
        candidacy = likeliest(audits, len(as_array(y_fresh)), cost_matrix)
    chosen = models[candidacy.position]
    audit = judge(chosen, fresh, "fresh")
    model = chosen if audit.verdict == FAIR else None
    return Certificate(audit, candidacy, model, overlap, look)
