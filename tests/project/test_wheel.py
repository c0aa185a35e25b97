"""The wheel, built and installed into an environment where this repository is not."""

import contextlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from email.parser import Parser
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import SimpleNamespace
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PARTS = ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE")
ABOUT = """
import json, fairgrad, fairgrad.torch
said = {"file": fairgrad.__file__, "version": fairgrad.__version__}
print(json.dumps({**said, "compiled": bool(fairgrad.torch.is_compiled)}))
"""
pytestmark = [
    pytest.mark.wheel,
    pytest.mark.skipif(os.name == "nt", reason="the dependencies are links"),
]


def run(*command, code=0, **options):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "COV"))}
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, env=environment, **options,
        check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built in a copy: the build writes the compiled file beside its source, which is in use."""
    copy = tmp_path_factory.mktemp("source")
    for name in PARTS:
        shutil.copy(ROOT / name, copy)
    ignored = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd")
    shutil.copytree(ROOT / "src", copy / "src", ignore=ignored)
    earlier = copy / "src" / "fairgrad" / "compiled" / "_step.abi3.so"
    earlier.write_bytes(b"loaded by somebody")
    with earlier.open("rb") as loaded:
        run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "made", cwd=copy)
        # Processes that have loaded the file crash if it changes under them.
        assert loaded.read() == b"loaded by somebody"
    (made,) = (copy / "made").glob("*.whl")
    return made


@pytest.fixture(scope="module")
def contents(wheel):
    with ZipFile(wheel) as archive:
        (metadata,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
        return archive.namelist(), Parser().parsestr(archive.read(metadata).decode())


def test_it_holds_the_package_and_nothing_else(contents):
    names, metadata = contents
    assert {name.partition("/")[0] for name in names} == {
        "fairgrad", f"fairgrad-{metadata['Version']}.dist-info",
    }  # fmt: skip
    assert {"fairgrad/py.typed", "fairgrad/datasets/files/adult.csv.xz"} <= set(names)
    assert not [name for name in names if name.endswith((".pyc", ".c")) and "_step.c" not in name]


def test_it_says_what_it_is(contents):
    _, metadata = contents
    assert metadata["Name"] == "fairgrad"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert any(entry.startswith("Paper, ") for entry in metadata.get_all("Project-URL"))


def needed(requirements, extra):
    """Distributions that these requirements ask for, and those that they ask for."""
    found, waiting = {}, [Requirement(one) for one in requirements]
    while waiting:
        wanted = waiting.pop()
        name = wanted.name.lower().replace("_", "-")
        if name in found or (wanted.marker and not wanted.marker.evaluate({"extra": extra})):
            continue
        if name == "fairgrad":  # an extra that has another one
            for other in wanted.extras:
                found |= needed(requirements, other)
            continue
        with contextlib.suppress(PackageNotFoundError):  # of another system
            found[name] = distribution(name)
            waiting += [Requirement(one) for one in found[name].requires or []]
    return found


def made_environment(folder, wheel, metadata, extra=""):
    """An empty environment with the wheel and what it depends on, and nothing else.

    The dependencies are links to those of the tests' own environment: nothing is downloaded.
    """
    venv.create(folder, with_pip=False, symlinks=True)
    python, paths = folder / "bin" / "python", {"base": str(folder), "platbase": str(folder)}
    own = Path(sysconfig.get_path("purelib", "venv", vars=paths))
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps",
        "--no-index", wheel)  # fmt: skip
    for one in needed(metadata.get_all("Requires-Dist"), extra).values():
        home = Path(one.locate_file(""))
        tops = {file.parts[0] for file in one.files} - {"..", "__pycache__"}
        for top in tops:
            if not (own / top).exists():
                (own / top).symlink_to(home / top)
    return python


@pytest.fixture(scope="module")
def environment(wheel, contents, tmp_path_factory):
    """What ``pip install 'fairgrad[torch]'`` gives."""
    return made_environment(tmp_path_factory.mktemp("whole"), wheel, contents[1], "torch")


@pytest.fixture(scope="module")
def audit_only(wheel, contents, tmp_path_factory):
    """What ``pip install fairgrad`` gives."""
    return made_environment(tmp_path_factory.mktemp("audit"), wheel, contents[1])


@pytest.fixture(scope="module")
def demo(environment, tmp_path_factory):
    """What the demo left, and what is installed."""
    place = tmp_path_factory.mktemp("user")
    run(environment.parent / "fairgrad", "demo", cwd=place)
    about = run(environment, "-c", ABOUT, cwd=place)
    return place / "fairgrad-demo", json.loads(about.stdout)


def test_the_demo_runs_from_the_wheel_with_its_dependencies_alone(demo, contents, environment):
    folder, about = demo
    assert Path(about["file"]).is_relative_to(environment.parent.parent)
    assert about["version"] == contents[1]["Version"]
    assert {"report.html", "audit.json", "MODEL_CARD.md"} <= {f.name for f in folder.iterdir()}


@pytest.mark.parametrize("name", ["lightgbm", "pyarrow", "pytest", "polars", "fairgrad_bench"])
def test_what_is_no_dependency_is_not_there(environment, tmp_path, name):
    code = f"import importlib.util as u, sys; sys.exit(u.find_spec({name!r}) is not None)"
    run(environment, "-c", code, cwd=tmp_path)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler")
def test_the_step_is_compiled_where_there_is_a_compiler(demo):
    assert demo[1]["compiled"]


def test_an_audit_needs_no_pytorch_and_a_fit_says_what_to_install(audit_only, tmp_path):
    rows = "y,h,s\n" + "".join(f"{i % 2},{i // 2 % 2},{'fm'[i // 3 % 2]}\n" for i in range(300))
    (tmp_path / "t.csv").write_text(rows)
    program, named = audit_only.parent / "fairgrad", ("--target", "y", "--sensitive", "s")
    run(audit_only, "-c", "import torch", code=1, cwd=tmp_path)
    audit = (program, "audit", "t.csv", *named, "--prediction", "h")
    run(*audit, "-o", "audit.json", cwd=tmp_path)
    assert (tmp_path / "audit.json").stat().st_size > 10_000
    said = run(*audit, "--report", "r.html", code=2, cwd=tmp_path).stderr
    assert "pip install 'fairgrad[report]'" in said
    assert not (tmp_path / "r.html").exists()
    said = run(program, "fit", "t.csv", *named, "-o", "model", code=2, cwd=tmp_path).stderr
    assert "pip install 'fairgrad[torch]'" in said
    code = """
import fairgrad
print(fairgrad.__version__, fairgrad.Audit, fairgrad.Frontier)
rows = [[0], [1]] * 80, [0, 1] * 80, [0, 0, 1, 1] * 40
fit = lambda: fairgrad.FairGradClassifier().fit(*rows[:2], sensitive_features=rows[2])
for use in (fit, lambda: __import__("fairgrad.torch")):
    try:
        use()
    except ImportError as error:
        print(error)
"""
    shown = run(audit_only, "-c", code, cwd=tmp_path).stdout
    assert shown.count("pip install 'fairgrad[torch]'") == 2


def test_an_audit_needs_few_packages(contents):
    found = needed(contents[1].get_all("Requires-Dist"), "")
    assert len(found) <= 20
    assert not {"torch", "skops", "safetensors", "requests", "altair"} & set(found)


@pytest.fixture
def hook(tmp_path):
    """The step of the build that compiles, on a copy of the sources; and its warnings."""
    ignored = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd")
    sources = Path("src", "fairgrad", "compiled")
    shutil.copytree(ROOT / sources, tmp_path / sources, ignore=ignored)
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    warned = []
    app = SimpleNamespace(display_warning=warned.append)
    made = module.CompiledStep(str(tmp_path), {}, None, None, str(tmp_path), "wheel", app)
    return SimpleNamespace(initialize=made.initialize, warned=warned, sources=tmp_path / sources)


def test_without_a_compiler_the_wheel_is_pure_python(hook, monkeypatch):
    monkeypatch.setenv("CC", "false")
    data = {"artifacts": []}
    hook.initialize("standard", data)
    assert data == {"artifacts": []}
    assert "slower" in hook.warned[0]
    assert not list(hook.sources.rglob("_step*.so"))


@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler")
def test_the_module_is_found_under_its_name_on_windows(hook, monkeypatch):
    monkeypatch.setattr("setuptools.command.build_ext.get_abi3_suffix", lambda: ".pyd")
    data = {"artifacts": []}
    hook.initialize("standard", data)
    assert data["artifacts"] == ["src/fairgrad/compiled/_step.pyd"]
    assert data["tag"].startswith("cp311-abi3-")
    assert not hook.warned
