"""Models of a frontier fitted one by one, in parallel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from joblib import Parallel, delayed

from fairgrad.frontier.template import Fitted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairgrad.frontier.parts import Part
    from fairgrad.frontier.template import Template
    from fairgrad.groups import Floats


def fit_separately(
    template: Template,
    part: Part,
    measure: Any,
    epsilons: Floats,
    seeds: Sequence[int],
    n_jobs: int | None,
) -> Fitted:
    """One fit per epsilon and seed.

    Raises:
        ValueError: if there are several seeds and the estimator takes none.
    """
    if len(seeds) > 1 and "random_state" not in template.last.get_params(deep=False):
        raise ValueError(
            f"n_seeds: {type(template.last).__name__} has no random_state, so that {len(seeds)} "
            "seeds would give the same model; use 1."
        )
    arguments = template.fit_arguments(
        sensitive_features=part.sensitive_features, sample_weight=part.weight
    )
    variants = [
        template.variant(random_state=int(seed), fairness_measure=measure).set_params(
            **{template.parameter: float(epsilon)}
        )
        for seed in seeds
        for epsilon in epsilons
    ]
    fitted = Parallel(n_jobs=n_jobs)(
        delayed(_fit)(estimator, part.X, part.y, arguments) for estimator in variants
    )
    return Fitted(list(fitted))


def _fit(estimator: Any, X: Any, y: Any, arguments: dict[str, Any]) -> Any:
    return estimator.fit(X, y, **arguments)
