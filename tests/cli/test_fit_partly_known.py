"""`fairgrad fit` on a table whose groups are known for only some rows."""

import numpy as np
import pandas as pd
import pytest


@pytest.mark.parametrize("model", ["network", "lightgbm"])
def test_rows_of_unknown_group_count_by_probabilities(program, tmp_path, model):
    rng = np.random.default_rng(0)
    n = 3000
    sex = rng.choice(["F", "M"], n)
    hired = rng.random(n) < np.where(sex == "F", 0.3, 0.5)
    frame = pd.DataFrame(
        {
            "height": rng.normal(165, 6, n) + 15 * (sex == "M"),
            "grade": rng.normal(size=n) + 1.5 * hired,
            "sex": np.where(rng.random(n) < 0.15, sex, None),
            "hired": np.where(hired, "yes", "no"),
        }
    )
    frame.to_csv(tmp_path / "people.csv", index=False)
    arguments = ("--target", "hired", "--sensitive", "sex", "--model", model)
    ran = program("fit", tmp_path / "people.csv", "--out", tmp_path / "m", "--json", *arguments)
    told = ran.check().out
    assert "The group (sex) is known for" in told
    assert "random sample" in told
    again = program("audit", tmp_path / "m", tmp_path / "people.csv", "--held-out", "--json")
    assert "The group (sex) is known for" in again.check().out
