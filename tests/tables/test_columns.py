"""What a column is for: dates, identifiers, constants; and columns that say too much."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from fairgrad.tables.column import date_format, why_left_out
from fairgrad.tables.features import TableFeature, as_days, read_features, read_groups
from fairgrad.tables.hints import auc, rank_auc
from fairgrad.tables.reading import read_table
from fairgrad.tables.roles import ColumnRoles

N = 400
ROLES = ColumnRoles("y", ("sex",))


@pytest.fixture
def people():
    chance = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "x": chance.normal(size=N),
            "sex": chance.choice(["f", "m"], N),
            "y": chance.choice(["no", "yes"], N),
        }
    )


FORMS = {
    "2020-03-31": "ISO8601", "2020-03-31 10:20": "ISO8601", "2020-03-31T10:20:30Z": "ISO8601",
    "2020/03/31": "%Y/%m/%d", "31.03.2020": "%d.%m.%Y", "31/03/2020": "%d/%m/%Y",
    "03/31/2020": "%m/%d/%Y", "3/31/20": "%m/%d/%y", "31-Mar-2020": "%d-%b-%Y",
    "Mar 31, 2020": "%b %d, %Y", "31 March 2020": "%d %B %Y", "31.03.2020 10:20": "%d.%m.%Y %H:%M",
}  # fmt: skip


@pytest.mark.parametrize("text", FORMS)
def test_forms_of_dates(text):
    assert date_format([text])[0] == FORMS[text]
    day = as_days(pd.Series([text]), FORMS[text])[0]
    assert np.floor(day) == (pd.Timestamp("2020-03-31") - pd.Timestamp("1970-01-01")).days


def test_texts_that_are_no_dates():
    for texts in (["2020-03-31", "soon"], ["12:30"], ["1-2"], ["31.31.2020"], ["abc"], []):
        assert date_format(texts) == ("", "")
    assert date_format(["01/02/2020"]) == ("%m/%d/%Y", "%d/%m/%Y")


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y"])
def test_dates_become_year_month_weekday_and_age(people, tmp_path, form):
    chance = np.random.default_rng(1)
    days = pd.Series(pd.Timestamp("2019-01-01") + pd.to_timedelta(chance.integers(0, 900, N), "D"))
    texts = days.dt.strftime(form).mask(chance.random(N) < 0.1, "NA")
    path = tmp_path / "dated.csv"
    people.assign(since=texts).to_csv(path, index=False)
    frame = read_table(path)
    table = ROLES.apply(frame)
    known = (texts != "NA").to_numpy()
    found = table.features[known].reset_index(drop=True)
    days = days[known].reset_index(drop=True)
    assert found["since (year)"].tolist() == days.dt.year.tolist()
    assert found["since (month)"].tolist() == days.dt.month_name().tolist()
    assert found["since (weekday)"].tolist() == days.dt.day_name().tolist()
    assert found["since (age in days)"].tolist() == (days.max() - days).dt.days.tolist()
    assert f"since {N - known.sum()} ('NA')" in " ".join(table.notes)
    encoder = table.encoder
    later = pd.DataFrame({"x": [0.0] * 3, "since": [days[0].strftime(form), "", "NA"]})
    read, odd = encoder.read(later)
    assert read["since (age in days)"].iloc[0] == (days.max() - days[0]).days
    assert read["since (month)"].iloc[0] == days[0].month_name()
    assert not odd
    with pytest.raises(ValueError, match="'since' holds values that are not dates"):
        encoder.read(later.assign(since="soon"))


def test_identifiers_and_constants_are_left_out_and_listed(people, labelled):
    chance = np.random.default_rng(2)
    odd = people.assign(
        shuffled=chance.permutation(N),  # drawn numbers would repeat
        customer_id=chance.integers(10**9, size=N),  # as its name says
        PersonID=chance.integers(10**9, size=N).astype(float),
        income=chance.integers(10**9, size=N),  # sparse, but a quantity
        visits=chance.integers(30, size=N),
        same=7,
        word="x",
    )
    data = labelled(odd, target="y")
    assert list(data.features) == ["x", "income", "visits"]
    listed = next(note for note in data.notes if note.startswith("Left out"))
    for name in ("shuffled", "customer_id", "PersonID"):
        assert f"{name} (it looks like an identifier)" in listed
    assert "same (one value only); word (one value only)" in listed
    kept = labelled(odd, target="y", keep=["shuffled", "same"])
    assert {"shuffled", "same"} <= set(kept.features)
    assert np.isfinite(kept.encoder.encode(kept.features)).all()


@pytest.mark.parametrize("seed", range(5))
def test_drawn_numbers_are_no_identifiers(seed):
    """Of any spread: those that are sparse enough to differ may be a quantity."""
    chance = np.random.default_rng(seed)
    for spread in (10, 1_000, 100_000, 10**7):
        drawn = pd.Series(chance.normal(0, spread, 300).round(), name="income")
        assert not why_left_out(drawn)


VARIANTS = {
    "case": (["Yes", "yes", "YES", "No", "no"], ["yes", "no"], True),
    "spaces": (["not hired", "not  hired", "hired"], ["not hired", "hired"], True),
    "accents": (["réussi", "reussi", "non"], ["réussi", "non"], True),
    "letters": (["y", "yes", "n", "no"], ["yes", "no"], False),
    "decimals": (["0", "0.0", "1", "1.0", "a", "b", "c"], ["0", "1", "a", "b", "c"], False),
}


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("part", ["y", "sex"])
def test_values_that_differ_in_spelling_alone_stop(people, name, part):
    values, _, is_case = VARIANTS[name]
    odd = people.assign(**{part: np.resize(values, N)})
    roles = ColumnRoles("y", ("sex",))
    with pytest.raises(ValueError, match=f"'{part}' has values that differ in spelling") as error:
        roles.apply(odd)
    assert f"({(odd[part] == values[0]).sum()} rows)" in str(error.value)
    assert ("--ignore-case" in str(error.value)) == is_case
    shown = str(error.value).split('--map "')[1].split('"')[0].split(",")
    pairs = dict(pair.split("=") for pair in shown)
    mapped = replace(roles, value_map=pairs).apply(odd)
    column = mapped.label if part == "y" else mapped.sensitive[part]
    assert len(column.cat.categories) == len(VARIANTS[name][1])
    if is_case:
        merged = replace(roles, ignore_case=True).apply(odd)
        column = merged.label if part == "y" else merged.sensitive[part]
        assert len(column.cat.categories) == len(VARIANTS[name][1])


def test_ignoring_case_where_nothing_differs_is_refused(people):
    ignoring = replace(ROLES, ignore_case=True)
    with pytest.raises(ValueError, match="--ignore-case has no effect"):
        ignoring.apply(people)
    # Another table, or another day, may have other spellings.
    assert len(ignoring.apply(people, is_only=False)) == N
    assert len(replace(ignoring, is_part=True).merged(people)) == N


def test_a_point_among_numbers_is_a_missing_value(people, tmp_path):
    chance = np.random.default_rng(2)
    points = {name: chance.random(N) < 0.1 for name in ("x", "place", "y")}
    odd = people.assign(place=chance.choice(["a", "b"], N), y=(people["y"] == "yes").astype(int))
    for name, rows in points.items():
        odd[name] = odd[name].astype(object).where(~rows, ".")
    odd.to_csv(tmp_path / "sas.csv", index=False)
    table = ROLES.apply(read_table(tmp_path / "sas.csv"))
    known = ~points["y"]
    notes = " ".join(table.notes)
    np.testing.assert_array_equal(table.features["x"].isna(), points["x"][known])
    assert f"x {points['x'][known].sum()} ('.')" in notes
    assert f"{points['y'].sum()} rows left out (no y ('.'))" in notes
    assert (table.features["place"] == ".").sum() == points["place"][known].sum()
    assert f"place: '.' ({points['place'].sum()} rows) is read as text" in notes


def test_a_list_of_columns_is_answered_with_what_to_type(people):
    with pytest.raises(ValueError, match="use --drop x --drop sex"):
        ColumnRoles("y", ("sex",), drop=("x, sex",)).apply(people)


def test_values_that_stand_for_themselves_stay_apart(people):
    odd = people.assign(sex=np.resize(["ms", "MS", "mr"], N))
    kept = replace(ROLES, value_map={"MS": "MS"}).apply(odd)
    assert set(kept.sensitive["sex"].cat.categories) == {"ms", "MS", "mr"}


def test_values_that_may_mean_missing_are_told_and_kept(people):
    chance = np.random.default_rng(5)
    odd = people.assign(
        wage=np.where(chance.random(N) < 0.1, -99, chance.integers(900, 5_000, N)),
        age=np.where(chance.random(N) < 0.1, 999, chance.integers(18, 90, N)),
        old=chance.integers(20, 100, N),  # 99 is an age here
        change=chance.integers(-3, 4, N),  # -1 is a change
        city=chance.choice(["Rome", "Bonn", "Don't know"], N),
        since=np.where(
            chance.random(N) < 0.1,
            "1900-01-01",
            pd.Series(chance.integers(10, 29, N)).map("2024-03-{}".format),
        ),
    )
    table = ROLES.apply(odd.assign(since=pd.to_datetime(odd["since"])))
    told = [note for note in table.notes if "may mean a missing value" in note]
    assert [note.split(":")[0] for note in told] == ["wage", "age", "city", "since"]
    assert f"-99 ({(odd['wage'] == -99).sum()} rows)" in told[0]
    assert "--missing -99" in told[0]
    assert '--missing "Don\'t know"' in told[2]
    assert (table.features["wage"] == -99).any()


def test_a_label_that_may_mean_missing_is_told(people):
    labels = np.resize(["no", "yes", "?", "yes"], N)
    told = ROLES.apply(people.assign(y=labels)).notes
    assert f"y: ? ({N // 4} rows) may mean a missing value; then use --missing ?." in told
    two = ROLES.apply(people.assign(y=np.where(labels == "?", "unknown", "known"))).notes
    assert not [note for note in two if "may mean a missing value" in note]


def test_copies_of_rows_are_told_and_stay_together(people):
    copied = pd.concat([people, people.head(12)], ignore_index=True)
    table = ROLES.apply(copied)
    assert any("12 of 412 rows are exact copies of another row" in note for note in table.notes)
    for parts in (table.split(0), *table.folds(0, 5)):
        side = np.empty(len(copied))
        for number, rows in enumerate(parts):
            side[rows] = number
        assert (side[:12] == side[N:]).all()
        assert sum(map(len, parts)) == len(copied)
    few = pd.DataFrame({"x": np.arange(N) % 4, "sex": np.resize(["f", "m", "m"], N)})
    few["y"] = np.resize(["no", "yes", "no", "no", "yes"], N)
    assert ROLES.apply(few).copies is None


def test_identifiers_that_repeat_suggest_clusters(people):
    visits = people.assign(person_id=np.random.default_rng(0).permutation(N) // 3)
    notes = " ".join(ROLES.apply(visits).notes)
    assert "person_id has 134 different values in 400 rows" in notes
    assert "--cluster person_id" in notes


def test_a_leak_of_one_of_several_labels_is_told(people, labelled):
    odd = people.assign(y=np.resize(["low", "middle", "high", "low", "high"], N))
    odd["is_high"] = (odd["y"] == "high").astype(int)
    notes = labelled(odd, target="y").notes
    assert any(n.startswith("is_high (AUC 1.00) alone predicts a value of y") for n in notes)


def test_hints_of_leaks_and_proxies(people, labelled):
    chance = np.random.default_rng(3)
    flip = chance.random(N) < 0.05
    odd = people.assign(
        outcome=np.where(people["y"] == "yes", 1, 0),
        title=np.where((people["sex"] == "f") ^ flip, "Mrs", "Mr"),
    )
    notes = labelled(odd, target="y").notes
    assert any(n.startswith("outcome (AUC 1.00) alone predicts y almost perfectly") for n in notes)
    proxy = next(
        note for note in notes if note.startswith("sex can be predicted from title (AUC 0.9")
    )
    assert "x" not in proxy.split("title")[1]
    assert not any("can be told" in n for n in labelled(people, target="y").notes)


def test_auc_is_that_of_scikit_learn():
    """Of one feature with the scores of the other half; a feature by chance has about a half."""
    chance = np.random.default_rng(4)
    codes, is_one = chance.integers(5, size=4000), chance.random(4000) < 0.3
    assert auc(codes, is_one) == pytest.approx(0.5, abs=0.05)
    unique = np.arange(4000)  # a name of each row tells nothing of the next
    assert auc(unique, is_one) == pytest.approx(0.5, abs=0.03)
    strong = np.where(is_one, chance.integers(2, 5, 4000), chance.integers(0, 3, 4000))
    share = pd.Series(is_one).groupby(strong).transform("mean")
    assert auc(strong, is_one) == pytest.approx(roc_auc_score(is_one, share), abs=0.01)


def test_values_far_outside_the_training_range_are_counted():
    feature = TableFeature("age", "number", median=40.0, low=18.0, high=80.0)
    _, odd = read_features(pd.DataFrame({"age": ["30", "999", "-500", "90"]}), [feature])
    assert odd.sentences() == [
        "age: 2 values far outside the range of the training rows (18 to 80)."
    ]
    read, _ = read_features(pd.DataFrame({"age": [30, 999]}), [feature], missing=["999"])
    assert read["age"].tolist() == [30.0, 40.0]


def test_texts_that_mean_missing_are_no_group_of_an_aware_model():
    groups = [
        TableFeature("age", "number", has_gaps=True),
        TableFeature("race", "category", ("Black", "White"), has_gaps=True),
    ]
    frame = pd.DataFrame({"age": [30, 999, 70], "race": ["White", "not said", "Black"]})
    values, odd = read_groups(frame, groups, {"age": [50.0]}, ["999", "not said"])
    assert values.isna().to_numpy().tolist() == [[False, False], [True, True], [False, False]]
    assert odd.sentences() == []
    values, odd = read_groups(frame, groups, {"age": [50.0]})
    assert values["age"].notna().all()
    assert "never seen in training" in odd.sentences()[0]


def test_a_category_named_none_is_known_when_predicting():
    feature = TableFeature("religion", "category", ("Jewish", "None"), has_gaps=True)
    frame = pd.DataFrame({"religion": ["None", "NA", "", "Jewish "]})
    read, odd = read_features(frame, [feature])
    assert read["religion"].astype(object).tolist() == ["None", np.nan, np.nan, "Jewish"]
    assert not odd


def test_a_number_that_gives_the_target_away_is_told():
    """Its AUC is 1, although its parts of equal size mix the labels at the border."""
    rng = np.random.default_rng(0)
    y = rng.random(3_000) < 0.3
    frame = pd.DataFrame(
        {"x": rng.normal(size=3_000), "leak": np.where(y, 1, -1) * rng.random(3_000)}
    )
    frame = frame.assign(y=np.where(y, "yes", "no"), sex=rng.choice(["F", "M"], 3_000))
    table = ColumnRoles("y", ("sex",)).apply(frame)
    assert any("leak (AUC 1.00)" in note for note in table.notes)
    assert not any("x (AUC" in note for note in table.notes)
    scores = np.round(rng.normal(size=500), 1)
    is_one = rng.random(500) < 0.4
    exact = roc_auc_score(is_one, scores)
    assert rank_auc(scores, is_one) == pytest.approx(max(exact, 1 - exact))
