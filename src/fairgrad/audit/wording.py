"""In words: which convention each figure follows. Mixing them up is the commonest confusion."""

from __future__ import annotations

TITLES = {
    "accuracy_parity": "Accuracy parity",
    "equalized_odds": "Equalized odds",
    "equality_of_opportunity": "Equality of opportunity",
    "demographic_parity": "Demographic parity",
    "four_fifths_rule": "Four-fifths rule",
}

MEASURES = {
    "accuracy_parity": "Are predictions right equally often in every group? The level F of a group "
    "is its accuracy less the accuracy over everyone.",
    "equalized_odds": "Among people with the same true label, is it found equally often in every "
    "group? The level F of a label in a group is its recall there less its recall over everyone. "
    "With more than two labels this looks at each label's recall only, not at which other label a "
    "mistake falls on.",
    "equality_of_opportunity": "Among people who truly have the desirable label, is it found "
    "equally often in every group? The level F is the group's recall less the recall over "
    "everyone. The mean |F| is over all labels and groups, the other labels counting as 0, as in "
    "the FairGrad paper; over the desirable labels alone it would be larger.",
    "demographic_parity": "Is each label predicted equally often in every group, whatever the "
    "truth? The level F of a label in a group is its selection rate there less its selection rate "
    "over everyone.",
    "four_fifths_rule": "Is every group's selection rate at least four fifths of the highest "
    "group's? The verdict is on this ratio, smallest over largest. The level F shown is the rate "
    "less 0.8 of the rate over everyone, the form used in training, which asks for less.",
}

LEVELS = (
    "Levels compare each group with everyone (the overall rate), not with the best-off group: "
    "above 0 a group is better off than average, below 0 worse off. Unfairness is the mean of |F|; "
    "the verdict looks at the largest |F|."
)

FIGURES = {
    "demographic_parity_difference": "largest less smallest selection rate between groups; 0 is "
    "fair",
    "demographic_parity_ratio": "smallest over largest selection rate between groups; 1 is fair",
    "equalized_odds_difference": "the larger of two gaps between groups, in true positive rate and "
    "in false positive rate (worst case, not their mean); 0 is fair",
    "equalized_odds_ratio": "the smaller of two ratios between groups, of true positive rates and "
    "of false positive rates (worst case, not their mean); 1 is fair",
    "equal_opportunity_difference": "largest less smallest true positive rate between groups; 0 is "
    "fair",
    "equal_opportunity_ratio": "smallest over largest true positive rate between groups; 1 is fair",
    "accuracy_difference": "largest less smallest accuracy between groups; 0 is fair",
    "accuracy_ratio": "smallest over largest accuracy between groups; 1 is fair",
}

FIGURES_NOTE = (
    "Differences and ratios compare groups with each other (fairlearn's between_groups), so they "
    "are larger than the levels, which compare with everyone. A group in which a rate is not "
    "defined is left out (fairlearn counts such a rate as 0)."
)

RATES = {
    "base_rate": "how often the label is true",
    "accuracy": "how often the prediction is right",
    "selection_rate": "how often the label is predicted",
    "true_positive_rate": "how often the label is predicted where it is true (recall)",
    "false_positive_rate": "how often the label is predicted where it is not true",
    "precision": "how often the label is true where it is predicted",
}

POINTWISE = (
    "Intervals of single rates are exact (Clopper-Pearson); each holds by itself with {level}."
)
POINTWISE_WEIGHTED = (
    "Intervals of single rates are approximate, because rows have weights: Clopper-Pearson with "
    "Kish's effective number of rows; each holds by itself with about {level}."
)
SIMULTANEOUS = (
    "Intervals of levels, differences and ratios hold for all groups of a comparison at once with "
    "at least {level}: Clopper-Pearson per cell at the Bonferroni level, then interval arithmetic. "
    "How common each group and label is, is taken as given. They do not correct for looking at "
    "several measures."
)
VERDICTS = (
    "Fair within tolerance: the whole interval lies within it. Unfair: the whole interval lies "
    "beyond it. Undecided: the data allow both."
)


def title(measure: str) -> str:
    """A measure's name for people."""
    return TITLES.get(measure, measure.replace("_", " "))


def convention(measure: str) -> str:
    """What a measure asks, and how its level is computed."""
    own = "A measure of your own: levels are c0 + C e, of the error rates e of the cells."
    return MEASURES.get(measure, own)


def intervals(confidence: float, weighted: bool) -> list[str]:
    """How the intervals are to be read."""
    level = f"{100 * confidence:.4g} % confidence"
    single = POINTWISE_WEIGHTED if weighted else POINTWISE
    return [single.format(level=level), SIMULTANEOUS.format(level=level), VERDICTS]
