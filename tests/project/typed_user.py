"""A user's script that `make lint` type-checks; the errors that it expects are marked.

mypy reports a marked line that it finds no error in, so wrong names have to fail.
"""

import fairgrad
from fairgrad import Audit, FairGradClassifier, Frontier, Groups, Report, fairness_levels
from fairgrad.torch import CrossEntropyLoss

y, h, s = [0, 1, 0, 1], [0, 1, 1, 1], ["f", "f", "m", "m"]


def right() -> None:
    audit: Audit = Audit(y, h, {"sex": s}, measures="accuracy_parity", tolerance=0.05)
    verdict: str = audit.verdict
    Report(audit).save("report.html")
    groups: Groups = Groups.from_data(y, s)
    levels: fairgrad.Levels = fairness_levels(y, h, s, "accuracy_parity")
    model: FairGradClassifier = FairGradClassifier("equalized_odds", epsilon=0.05, random_state=0)
    version: str = fairgrad.__version__
    criterion = CrossEntropyLoss(y, s, "equalized_odds", epsilon=0.05)
    print(verdict, groups, levels, model, version, criterion)  # noqa: T201 - they are used


def wrong(audit: Audit, groups: Groups) -> None:
    fairgrad.Audti  # type: ignore[attr-defined]  # noqa: B018 - wrong
    fairgrad.audit.Audti  # type: ignore[attr-defined]  # noqa: B018 - wrong
    FairGradClassifier(epsilonn=3)  # type: ignore[call-arg]
    Audit(y, h, s, tolerence=0.05)  # type: ignore[call-arg]
    Frontier(epsilon_s=8)  # type: ignore[call-arg]
    audit.verdikt  # type: ignore[attr-defined]  # noqa: B018 - wrong
    groups.frequencies  # type: ignore[attr-defined]  # noqa: B018 - wrong
    fairness_levels(y, h)  # type: ignore[call-arg]
