"""Monitors: limits that hold at every look, batches counted once, changes with a date."""

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy.special import ndtri

from fairgrad.audit import FAIR, UNDECIDED, UNFAIR, Audit, Monitor
from fairgrad.audit.monitor import lifelong_error
from fairgrad.report import Report


def rows(seed, n=400, women=0.5, men=0.5):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n)
    return {
        "y_pred": (rng.random(n) < np.where(sex == "F", women, men)) * 1,
        "sensitive_features": {"sex": sex},
    }


def test_a_random_walk_rarely_ever_crosses_the_limits():
    steps = np.random.default_rng(0).normal(size=(4000, 400))
    n = np.arange(1, 401)
    walk = steps.cumsum(axis=1) / np.sqrt(n)
    limit = np.array([-ndtri(lifelong_error(0.05, k, 40)) for k in n])
    crossed = (walk > limit).any(axis=1).mean()
    assert 0.01 < crossed < 0.05
    assert (walk > 1.645).any(axis=1).mean() > 0.3  # what looking every day does to a usual limit


def test_the_limits_are_those_of_an_audit_at_another_confidence():
    monitor, batches = Monitor("demographic_parity"), [rows(seed) for seed in range(3)]
    for day, batch in enumerate(batches):
        monitor.update(**batch, batch=f"day {day}")
    together = Audit(
        y_pred=np.concatenate([one["y_pred"] for one in batches]),
        sensitive_features={
            "sex": np.concatenate([one["sensitive_features"]["sex"] for one in batches])
        },
        measures="demographic_parity",
        confidence=1 - 2 * lifelong_error(0.025, 1200, 40 * 400),
    )
    expected = together.to_frame("levels")[["level", "low", "high"]].to_numpy()
    assert np.allclose(monitor.to_frame().tail(4)[["level", "low", "high"]], expected)
    single = Audit(**batches[0], measures="demographic_parity").to_frame("levels")
    first = monitor.to_frame().head(4)
    assert (first["high"] - first["low"]).min() > (single["high"] - single["low"]).max()


@pytest.mark.parametrize(("women", "men", "verdict"), [(0.3, 0.7, UNFAIR), (0.5, 0.5, FAIR)])
def test_verdicts_are_reached_and_dated(women, men, verdict):
    monitor = Monitor("demographic_parity")
    for day in range(8):
        monitor.update(**rows(day, 3000, women, men), batch=f"day {day}")
    assert monitor.verdict == verdict
    reached = [one.verdict for one in monitor.batches].index(verdict)
    assert monitor.since == f"day {reached}"


def test_counts_are_audited_as_their_rows():
    one, other = Monitor("demographic_parity"), Monitor("demographic_parity")
    batch = rows(0)
    one.update(**batch, batch="a")
    keys, n = np.unique(
        np.stack([batch["sensitive_features"]["sex"], batch["y_pred"].astype(str)]),
        axis=1,
        return_counts=True,
    )
    other.update(
        y_pred=keys[1].astype(int), sensitive_features={"sex": keys[0]}, count=n, batch="a"
    )
    assert one.batches[0].counts == other.batches[0].counts
    assert one.to_frame().equals(other.to_frame())


def test_labels_may_come_late():
    monitor, batch = Monitor(["equalized_odds", "demographic_parity"]), rows(1)
    labels = np.random.default_rng(2).integers(0, 2, 400)
    monitor.update(**batch, batch="monday")
    assert (monitor.waiting, monitor.verdict, monitor.n_rows) == (["monday"], UNDECIDED, 0)
    with pytest.raises(ValueError, match="other predictions"):
        monitor.update(labels, 1 - batch["y_pred"], batch["sensitive_features"], batch="monday")
    monitor.update(labels, **batch, batch="monday")
    assert (monitor.waiting, monitor.n_rows, len(monitor.batches)) == ([], 400, 1)


def test_nothing_is_counted_twice():
    monitor = Monitor("demographic_parity")
    monitor.update(**rows(0), batch="monday")
    before = monitor.to_dict()
    with pytest.raises(ValueError, match="'monday' has been counted before"):
        monitor.update(**rows(1), batch="monday")
    with pytest.raises(ValueError, match="are those of 'monday'"):
        monitor.update(**rows(0), batch="tuesday")
    with pytest.raises(ValueError, match="expected the columns"):
        monitor.update(y_pred=[0, 1], sensitive_features={"race": [0, 1]}, batch="wednesday")
    with pytest.raises(ValueError, match="y_pred"):
        monitor.update(sensitive_features={"sex": ["F", "M"]}, batch="wednesday")
    assert monitor.to_dict() == before


def test_a_first_batch_of_one_group_waits_for_others():
    monitor = Monitor("demographic_parity")
    monitor.update(y_pred=[0, 1] * 50, sensitive_features={"sex": ["F"] * 100}, batch="monday")
    assert monitor.verdict == UNDECIDED
    monitor.update(**rows(0), batch="tuesday")
    assert len(monitor.to_frame()) == 4


def test_a_wrong_option_is_an_error_and_changes_nothing():
    monitor = Monitor("equality")
    for _ in range(2):
        with pytest.raises(ValueError, match="equality"):
            monitor.update([0, 1] * 200, **rows(0), batch="monday")
    assert monitor.batches == []


def test_a_change_is_dated_and_told_once():
    monitor = Monitor("demographic_parity")
    for day in range(24):
        women = 0.5 if day < 12 else 0.35
        monitor.update(**rows(day, 1000, women), batch=f"day {day:02}")
    told = [(one.name, one.changes) for one in monitor.batches if one.changes]
    assert len(told) == 1
    assert told[0][0] > "day 12"
    assert all("about day 12" in sentence for sentence in told[0][1])


def test_steady_streams_hardly_ever_change():
    """A few of them; `benchmarks/monitor.py` tries thousands."""
    alarms = 0
    for seed in range(3):
        monitor = Monitor("demographic_parity")
        for day in range(12):
            monitor.update(**rows(100 * seed + day, 200), batch=str(day))
        alarms += any(one.changes for one in monitor.batches)
    assert alarms <= 1


def test_the_state_comes_back_from_its_file(tmp_path):
    path = tmp_path / "state.json"
    with Monitor.opened(path, measures="demographic_parity") as monitor:
        monitor.update(**rows(0), batch="monday")
    assert Monitor.load(path).to_dict() == monitor.to_dict()
    with pytest.raises(ValueError, match="tolerance"), Monitor.opened(path, tolerance=0.1):
        pass
    before = path.read_bytes()
    with pytest.raises(ValueError, match="counted before"), Monitor.opened(path) as monitor:
        monitor.update(**rows(0), batch="monday")
    assert path.read_bytes() == before


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "state.json"
    for content in ("", "{}", "[]", json.dumps({"schema": "fairgrad.monitor"})):
        path.write_text(content)
        with pytest.raises(ValueError, match="not the state of a monitor"):
            Monitor.load(path)
    Monitor().save(path)
    path.write_text(path.read_text().replace("0.05", "0.06"))
    with pytest.raises(ValueError, match="changed since"):
        Monitor.load(path)


def test_processes_wait_for_each_other(tmp_path):
    path = tmp_path / "state.json"
    code = (
        "import sys\n"
        "from fairgrad.audit import Monitor\n"
        "for day in range(3):\n"
        "    n = 40 + int(sys.argv[2]) * 10 + day\n"
        "    with Monitor.opened(sys.argv[1]) as monitor:\n"
        "        monitor.update(y_pred=[0, 1] * n, sensitive_features={'s': [0, 1] * n},\n"
        "                       batch=f'{sys.argv[2]} {day}')\n"
    )
    call = [sys.executable, "-c", code, str(path)]
    started = [subprocess.Popen([*call, str(i)]) for i in range(3)]
    assert [one.wait() for one in started] == [0, 0, 0]
    assert len(Monitor.load(path).batches) == 9


def test_changes_do_not_depend_on_the_tolerance():
    """Intervals of an audit end at the tolerance; those that changes rest on do not."""
    told = []
    for tolerance in (0.01, 0.05, 0.5):
        monitor = Monitor("demographic_parity", tolerance)
        for day, women in enumerate((0.5, 0.61)):
            sex = {"sex": np.repeat(["F", "M"], 1000)}
            hired = np.repeat([1, 0, 1, 0], [int(1000 * women), 1000 - int(1000 * women), 500, 500])
            monitor.update(y_pred=hired, sensitive_features=sex, batch=str(day))
        told.append(bool(monitor.batches[-1].changes))
    assert len(set(told)) == 1


def test_days_may_be_alike_by_chance():
    """Few counts often are; many rows in the same order never, nor are large counts."""
    days = {"y_pred": [0, 1, 0, 1], "sensitive_features": {"sex": ["F", "F", "M", "M"]}}
    monitor = Monitor("demographic_parity")
    for day in range(2):
        monitor.update(**days, count=[30, 20, 25, 25], batch=f"few {day}")
        hired = {"y_pred": [0] * 40, "sensitive_features": {"sex": ["F"] * 40}}
        monitor.update(**hired, batch=f"nobody {day}")
    monitor.update(**days, count=[30_000, 20_000, 25_000, 26_000], batch="many")
    with pytest.raises(ValueError, match="the rows of 'again' are those of 'many'"):
        monitor.update(**days, count=[30_000, 20_000, 25_000, 26_000], batch="again")
    turned = {"y_pred": [1, 0, 1, 0], "sensitive_features": {"sex": ["M", "M", "F", "F"]}}
    with pytest.raises(ValueError, match="the rows of 'turned' are those of 'many'"):
        monitor.update(**turned, count=[26_000, 25_000, 20_000, 30_000], batch="turned")
    assert len(monitor.batches) == 5


def test_charts_show_gaps_in_words_and_when_the_verdict_changed():
    monitor = Monitor(["demographic_parity", "accuracy_parity"])
    for day in range(6):
        batch = rows(day, 200, 0.35, 0.65)
        monitor.update(1 - batch["y_pred"], **batch, batch=f"2026-03-0{day + 1}")
    first, second = Report(monitor).figures
    assert "parity" not in first.title + second.title
    turned = [row["batch"] for data in first.spec()["datasets"].values() for row in data
              if "verdict" in row and "level" not in row]  # fmt: skip
    assert turned == monitor.turns["batch"].tolist()[1:]
    assert monitor.since in first.note


def test_changes_name_people_not_columns():
    monitor = Monitor("demographic_parity")
    for day in range(24):
        monitor.update(**rows(day, 1000, 0.5 if day < 12 else 0.3), batch=f"day {day:02}")
    told = [sentence for batch in monitor.batches for sentence in batch.changes]
    assert told
    assert not any("sex=" in sentence or "demographic_parity" in sentence for sentence in told)


def test_a_report_is_text_with_the_verdict_and_every_gap():
    monitor = Monitor("demographic_parity")
    assert monitor.report().endswith("There are no two groups of people to compare yet.")
    for day in range(8):
        monitor.update(**rows(day, 3000, 0.3, 0.7), batch=f"day {day}")
    text = monitor.report(72)
    assert text.startswith(f"{monitor.summary(72)}\n\nDemographic parity by sex\n")
    gaps = monitor.to_frame().tail(4)[["level", "low", "high"]]
    assert all(f"{value:.4f}" in text for value in gaps.to_numpy().ravel())
    assert max(map(len, text.splitlines())) <= 72
