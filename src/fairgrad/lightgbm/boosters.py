"""Boosters as LightGBM would have made them, had its own objective been used."""

from __future__ import annotations

from lightgbm import Booster


def objective_line(n_classes: int) -> str:
    """How LightGBM's files name the log loss."""
    return "binary sigmoid:1" if n_classes == 2 else f"multiclass num_class:{n_classes}"


def with_probabilities(booster: Booster, n_classes: int) -> Booster:
    """The same trees in a booster that knows its objective, so that it predicts probabilities.

    LightGBM forgets what the scores mean when gradients come from a function. The name of the
    objective in its text format says it again, to whatever program reads the file.
    """
    text = booster.model_to_string(num_iteration=-1)
    head, names, rest = text.partition("\nfeature_names=")
    named = Booster(model_str=f"{head}\nobjective={objective_line(n_classes)}{names}{rest}")
    named.best_iteration, named.best_score = booster.best_iteration, booster.best_score
    return named
