"""The name and the meaning of each measure in words, for the program, reports and benchmarks.

The functions are in `fairgrad.measures`, under the same names. Nothing large is imported here, so
that the program can list the measures quickly.
"""

from __future__ import annotations

import re
from typing import NamedTuple

BOUNDED_RATES = ("accuracy", "recall", "selection_rate", "false_positive_rate")
"""Rates that can be bounded by `fairgrad.measures.AtLeast` and `AtMost`, or by a text."""

BOUND = re.compile(rf"({'|'.join(BOUNDED_RATES)})\s*(>=|<=)\s*(\d*\.?\d+)")
"""A bound as a text, such as "recall>=0.8" or "selection_rate<=0.3"."""


class Definition(NamedTuple):
    """A measure in words.

    Attributes:
        title: its name.
        short: its abbreviation, for narrow columns.
        question: the question that it asks, and how its level is computed.
    """

    title: str
    short: str
    question: str


DEFINITIONS: dict[str, Definition] = {
    "equalized_odds": Definition(
        "Equalized odds",
        "EOdds",
        "Among people with the same true label, is that label predicted equally often in every "
        "group? The level F of a label in a group is its recall there minus its recall over "
        "everyone. With more than two labels this looks at each label's recall only, not at which "
        "other label was predicted by mistake.",
    ),
    "equality_of_opportunity": Definition(
        "Equality of opportunity",
        "EOpp",
        "Among people with the desirable true label, is that label predicted equally often in "
        "every group? The level F is the group's recall minus the recall over everyone. As in the "
        "FairGrad paper, unfairness is the mean over all labels and groups, with 0 for the other "
        "labels; over the desirable labels alone it would be larger.",
    ),
    "demographic_parity": Definition(
        "Demographic parity",
        "DP",
        "Is each label predicted equally often in every group, whatever the true label? The level "
        "F of a label in a group is its selection rate there minus its selection rate over "
        "everyone.",
    ),
    "accuracy_parity": Definition(
        "Accuracy parity",
        "AP",
        "Are predictions right equally often in every group? The level F of a group is its "
        "accuracy minus the accuracy over everyone.",
    ),
    "four_fifths_rule": Definition(
        "Four-fifths rule",
        "4/5",
        "Is every group's selection rate at least four fifths of every other group's, and so of "
        "the highest? The verdict is about this ratio, smallest over largest. The level F of a "
        "group against another is its rate minus 0.8 of the other's; unfairness is the mean of "
        "what the levels lie below 0.",
    ),
    "equalized_odds_all": Definition(
        "Equalized odds, all predictions",
        "EOdds all",
        "Among people with the same true label, is every label predicted equally often in every "
        "group, mistakes included? The level F of a predicted label, a true label and a group is "
        "its rate there minus its rate over everyone with that true label. With two labels it is "
        "equalized odds.",
    ),
}
"""By name, in the order in which the program lists them."""
