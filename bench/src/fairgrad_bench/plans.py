"""The plans that have names."""

from __future__ import annotations

from itertools import product

from fairgrad.bench.plan import Plan

BATCH_SIZES = (8, 16, 32, 64, 128, 256, 512, 1024, 2048)
EPSILONS = (0.0, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.1)
WEIGHT_DECAYS = (0.0, 0.001, 0.01)

PLANS: dict[str, Plan] = {
    plan.name: plan
    for plan in (
        Plan(name="paper"),
        Plan(
            name="smoke",
            datasets=("german", "gaussian:rows=2000"),
            measures=("equalized_odds", "demographic_parity"),
            seeds=(10, 20),
            grid="quick",
            epochs=10,
        ),
        Plan(
            name="batch-size",
            datasets=("celeba",),
            models=("linear",),
            methods=("fairgrad",),
            measures=("equalized_odds",),
            combinations=tuple(
                {"batch_size": size, "weight_decay": decay}
                for size, decay in product(BATCH_SIZES, WEIGHT_DECAYS)
            ),
            varies="batch_size",
        ),
        Plan(
            name="epsilon",
            datasets=("celeba",),
            models=("linear",),
            methods=("fairgrad_epsilon",),
            measures=("accuracy_parity", "equalized_odds", "equality_of_opportunity"),
            combinations=tuple(
                {"batch_size": 512, "weight_decay": decay, "epsilon": epsilon}
                for decay, epsilon in product(WEIGHT_DECAYS, EPSILONS)
            ),
            varies="epsilon",
        ),
    )
}
"""Everything; a quick check of everything; and the two experiments over one setting."""


def plan_of(name: str) -> Plan:
    """A plan by its name.

    Raises:
        ValueError: if there is none of that name.

    Example:
        >>> plan_of("smoke").grid
        'quick'
    """
    if name not in PLANS:
        raise ValueError(f"plan: expected one of {list(PLANS)}, got {name!r}.")
    return PLANS[name]
