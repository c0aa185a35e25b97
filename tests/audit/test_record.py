"""The record of an audit: its published schema, the hash of its rows, and the card made of it."""

import json

import jsonschema
import numpy as np
import pytest

from fairgrad import On
from fairgrad.audit import Audit, audit_schema


def validator():
    schema = audit_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def audits():
    rng = np.random.default_rng(0)
    y, pred, s = rng.integers(0, 2, 300), rng.integers(0, 2, 300), rng.integers(-1, 4, 300)
    words = np.array(["no", "yes"])
    both = {"a": s, "b": rng.choice(["x", "y", None], 300)}
    yield Audit(y, pred, s)
    yield Audit(
        words[y], words[pred], both, baseline=words[y], measures=[On("a", "accuracy_parity")]
    )
    yield Audit(y, pred, s, sample_weight=rng.random(300), tolerance={"demographic_parity": "80%"})
    yield Audit(y_pred=words[pred], sensitive_features=both)
    yield Audit(
        rng.integers(0, 4, 300), rng.integers(0, 4, 300), s, baseline=rng.integers(0, 4, 300)
    )
    score = rng.random(300).round(2)
    scored = Audit(y, (score >= 0.5) * 1, s, y_score=score, measures="equalized_odds")
    scored.worst_subgroups({"town": rng.choice(["x", "y"], 300), "age": rng.normal(size=300)})
    yield scored
    yield Audit(
        rng.integers(0, 3, 300), rng.integers(0, 3, 300), s, y_score=rng.dirichlet([1, 1, 1], 300)
    )
    yield Audit(
        y,
        pred,
        s,
        measures=[(np.zeros(1), np.array([[1.0, -1.0, 0, 0, 0, 0, 0, 0]]))],
        others="four_fifths_rule",
    )


@pytest.mark.parametrize("audit", list(audits()), ids=repr)
def test_every_record_fits_the_schema(audit):
    check = validator()
    record = json.loads(json.dumps(audit.record(), allow_nan=False))
    check.validate(record)
    check.validate(json.loads(audit.to_json()))
    assert record["provenance"]["versions"]["fairgrad"] == record["fairgrad_version"]
    assert record["asked"]["measures"]
    broken = {**record, "verdict": "perhaps"}
    with pytest.raises(jsonschema.ValidationError, match="perhaps"):
        check.validate(broken)
    with pytest.raises(jsonschema.ValidationError, match="is a required property"):
        check.validate({key: value for key, value in record.items() if key != "asked"})


def undescribed(value, schema, path=""):
    """Keys of a record that the schema says nothing about."""
    if isinstance(value, list):
        for part in value:
            yield from undescribed(part, schema.get("items", {}), f"{path}[]")
    if not isinstance(value, dict):
        return
    options = [schema, *schema.get("oneOf", [])]
    known = next((one for one in options if "object" in one.get("type", ())), {})
    free = known.get("additionalProperties")
    for key, part in value.items():
        if key in known.get("properties", {}):
            yield from undescribed(part, known["properties"][key], f"{path}.{key}")
        elif not isinstance(free, dict):
            yield f"{path}.{key}"


def test_the_schema_describes_every_key_there_is():
    schema, found = audit_schema(), [audit.record() for audit in audits()]
    assert {key for one in found for key in undescribed(one, schema)} == set()
    # And each list of it is tried by some audit.
    lists = [key for key, part in schema["properties"].items() if part.get("type") == "array"]
    assert [key for key in lists if not any(one.get(key) for one in found)] == []
    assert any("subgroup_search" in one for one in found)
    assert list(undescribed({**found[0], "new": 1}, schema)) == [".new"]


def test_the_hash_is_that_of_the_rows(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    y, s = np.tile([0, 1], 100), np.repeat(["a", "b"], 100)

    def digest(*given, **more):
        record = Audit(*given, **more).record()
        assert record["provenance"]["date"] == "1970-01-01T00:00:00Z"
        return record["provenance"]["data"][0]["sha256"]

    first = digest(y, y, s)
    assert first == digest(y.astype("int8"), list(y), list(s), tolerance=0.1)
    others = [
        digest(y, 1 - y, s),
        digest(1 - y, y, s),
        digest(y, y, s[::-1]),
        digest(y, y, s, sample_weight=np.arange(200) + 1.0),
        digest(y_pred=y, sensitive_features=s),
    ]
    assert len({first, *others}) == 6


def test_risks_name_who_is_treated_unequally_and_what_is_not_known():
    y, s = np.tile([0, 1], 400), np.repeat(["a", "b", "c|d"], [400, 390, 10])
    pred = np.where(s == "a", y, 0)
    told = " ".join(Audit(y, pred, s, measures="demographic_parity").risks)
    assert "Clearly beyond the tolerance: a predicted" in told
    assert "c|d (10)" in told
    decided = Audit(y_pred=pred, sensitive_features=s)
    assert "True labels are not known" in " ".join(decided.risks)


def test_what_was_asked_for_is_told_from_the_rest():
    y, s = np.tile([0, 1], 500), np.repeat(["a", "b"], 500)
    pred = np.where(s == "a", y, 1 - y)  # as many are selected, and none of them rightly
    told = " ".join(Audit(y, pred, s, "demographic_parity", others="equalized_odds").risks)
    assert "beyond the tolerance, by measures that were not asked for: a with y 0" in told
    assert "(equalized odds)" in told
    assert "beyond the tolerance:" not in told
