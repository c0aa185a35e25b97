# Every target sets up what it needs by itself in .venv; nothing has to be installed by hand.
PYTHON ?= python3
BIN := .venv/bin
# pip reads the pin of torch from here, also for packages that pull torch in by themselves.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
# One thread per process: on small networks two are often slower, and tests run in parallel.
export OMP_NUM_THREADS := 1
# Processes that train together find each other on this machine even if its name leads nowhere.
export PET_LOCAL_ADDR := 127.0.0.1
ifeq ($(shell uname -s),Linux)
export GLOO_SOCKET_IFNAME := lo
endif

.PHONY: demo test coverage test-browser test-cuda test-network test-lowest test-newest lint format docs bench-overhead bench-smoke reliability pictures clean

SOURCES := pyproject.toml constraints.txt hatch_build.py $(wildcard src/fairgrad/compiled/*.c src/fairgrad/compiled/*.h)

.venv/base: $(SOURCES)
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet -e '.[torch]'
	touch $@

# All at once, so that the package is built and its dependencies are resolved a single time.
.venv/dev: $(SOURCES) bench/pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet -e '.[dev]' -e bench
	touch .venv/base $@

# What an extra lists, without building the package again.
.venv/docs .venv/browser: .venv/dev
	$(BIN)/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['$(@F)'], sep='\n')" > build-$(@F).txt
	$(BIN)/pip install --quiet -r build-$(@F).txt
	rm build-$(@F).txt
	touch $@

# The program on census data, with nothing but what the README installs.
demo: .venv/base
	$(BIN)/fairgrad demo --force

test: .venv/dev
	$(BIN)/pytest -n 2 --dist worksteal

# How much of the library the tests run, lines and branches, the program's processes included.
coverage: .venv/dev
	$(BIN)/pytest -n 2 --dist worksteal --cov=fairgrad --cov-report=term:skip-covered -m "not wheel"

# Real pages in a real browser. Chromium comes from the system's packages.
test-browser: .venv/browser
	command -v chromium >/dev/null || (apt-get update -qq && apt-get install -y -qq chromium)
	FAIRGRAD_BROWSER=$$(command -v chromium) $(BIN)/pytest tests/browser

# What needs a GPU; it fails where PyTorch finds none.
test-cuda: .venv/dev
	$(BIN)/python -c "import sys, torch; sys.exit(None if torch.cuda.is_available() else 'no GPU')"
	$(BIN)/pytest tests/torch/wild/test_cuda.py

# Real downloads of the data sets' carriers.
test-network: .venv/dev
	FAIRGRAD_TEST_NETWORK=1 $(BIN)/pytest tests/datasets

# The lowest versions of the dependencies that pyproject.toml allows, and the newest there are.
test-lowest: .venv/dev
	$(BIN)/python scripts/lowest_versions.py build/lowest

test-newest: .venv/dev
	$(BIN)/python scripts/lowest_versions.py build/newest --newest

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/lint-imports --config bench/pyproject.toml

format: .venv/dev
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

# The site: every example is run, a warning is an error, nothing is fetched.
docs: .venv/docs
	$(BIN)/sphinx-build -W --keep-going -b html docs build/docs
	$(BIN)/pytest -q tests/docs/test_extensions.py

bench-overhead: .venv/dev
	$(BIN)/python benchmarks/overhead.py

# Every method on two small data sets: does the benchmark program run?
bench-smoke: .venv/dev
	rm -rf build/bench-smoke
	$(BIN)/fairgrad-bench run --plan smoke --jobs 2 --records build/bench-smoke/records
	$(BIN)/fairgrad-bench tables --records build/bench-smoke/records --out build/bench-smoke/tables

# Odd inputs, killed processes, full disks: is it as promised? About six minutes.
reliability: .venv/dev
	$(BIN)/python -m reliability fuzz faults --trials 10

# The pictures in the README, from the demo's report.
pictures: .venv/browser .venv/docs
	command -v chromium >/dev/null || (apt-get update -qq && apt-get install -y -qq chromium)
	$(BIN)/python scripts/pictures.py

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
