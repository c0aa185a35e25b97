"""What a release takes: one version everywhere, workflows that do what they say."""

import importlib.util
import re
import shutil
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def imported(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


release = imported(ROOT / "scripts" / "release.py")


@pytest.fixture
def copy(tmp_path):
    """The files that name the version."""
    for name in (*release.PLACES, "CHANGELOG.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_all_places_name_one_version():
    assert len(set(release.versions().values())) == 1, release.versions()


def test_a_version_is_set_everywhere_and_nowhere_else(copy):
    before = {name: (copy / name).read_text(encoding="utf-8") for name in release.PLACES}
    old = release.versions()["pyproject.toml"]
    release.set_version("7.8.9", copy)
    assert set(release.versions(copy).values()) == {"7.8.9"}
    for name, text in before.items():
        now = (copy / name).read_text(encoding="utf-8")
        lines = zip(text.splitlines(), now.splitlines(), strict=True)
        changed = [(was, now) for was, now in lines if was != now]
        assert len(changed) == 1
        assert changed[0][0].replace(old, "7.8.9") == changed[0][1]


def test_a_tag_fits_or_the_reasons_are_said(copy):
    release.set_version("7.8.9", copy)
    assert release.problems("v7.8.9", copy) == [
        "CHANGELOG.md has no heading '## 7.8.9 (YEAR-MONTH-DAY)'"
    ]
    changes = copy / "CHANGELOG.md"
    changes.write_text(f"## 7.8.9 (2030-01-31)\n{changes.read_text()}")
    assert release.problems("v7.8.9", copy) == []
    assert len(release.problems("v7.9.0", copy)) == 4
    assert release.problems("7.8.9", copy) == [
        "the tag is 7.8.9; a release has a tag such as v1.2.3"
    ]
    with pytest.raises(ValueError, match="got 'seven'"):
        release.set_version("seven", copy)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_run_commands_that_exist(path):
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    commands = " ".join(step.get("run", "") for step in steps)
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"\bmake ([a-z-]+)", commands)) <= set(targets)
    assert all((ROOT / name).is_file() for name in re.findall(r"scripts/\w+\.py", commands))
    needed = {need for job in workflow["jobs"].values() for need in _listed(job.get("needs", []))}
    assert needed <= set(workflow["jobs"])
    assert workflow["permissions"] == {"contents": "read"}  # what a job needs beyond it says so


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_hash_with_their_version_beside(path):
    used = re.findall(r"uses: (.+)", path.read_text(encoding="utf-8"))
    assert used
    for action in used:
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action


def test_a_release_uses_one_index_and_pinned_build_tools():
    (path,) = [path for path in WORKFLOWS if path.stem == "release"]
    assert "INDEX" not in path.read_text(encoding="utf-8").upper()
    for name in ("pyproject.toml", "bench/pyproject.toml"):
        tools = tomllib.loads((ROOT / name).read_text(encoding="utf-8"))["build-system"]["requires"]
        assert all("==" in tool for tool in tools), name


def _listed(value):
    return [value] if isinstance(value, str) else value


def test_tests_run_on_the_versions_that_are_promised():
    (checks,) = [path for path in WORKFLOWS if path.stem == "checks"]
    tested = yaml.safe_load(checks.read_text())["jobs"]["tests"]["strategy"]["matrix"]["python"]
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text) == tested
    assert re.search(r'requires-python = ">=(.+?)"', text)[1] == tested[0]


def test_citation_and_readme_name_the_same_paper():
    said = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    paper, readme = said["preferred-citation"], (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"title = {{{paper['title']}}}" in readme
    assert all(author["family-names"] in readme for author in paper["authors"])
    assert said["license"] == "Apache-2.0"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["urls"]["Paper"] == paper["url"]


def test_the_conda_recipe_asks_for_what_the_package_asks_for():
    text = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    outputs = {
        one["package"]["name"]: one["requirements"]["run"]
        for one in yaml.safe_load(text)["outputs"]
    }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    base = {one.replace(">=", " >=") for one in project["dependencies"]}
    python = f"python {project['requires-python']}"
    assert set(outputs["fairgrad-audit"]) == {*base, python}
    extras = project["optional-dependencies"]
    extra = {one.replace(">=", " >=") for one in (*extras["torch"], *extras["report"])}
    extra = {one.replace("torch ", "pytorch ") for one in extra if "fairgrad" not in one}
    assert {one for one in outputs["fairgrad"] if "pin_subpackage" not in one} == extra
