# make setup · make eval · make view · make test · make test-real · make perf · make docs · make screenshots · make clean
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
REAL := $(VENV)-real
# the measure `workers` needs Postgres, which `make test-real` installs
PERF = $(if $(wildcard $(REAL)/bin/python),$(REAL),$(VENV))/bin/python
# the tests start many processes; without compiled modules each of them takes several times as long
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup eval view test check test-real perf docs screenshots format clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt scripts/setup.py
	$(PYTHON) scripts/setup.py $(VENV)
	@touch $@

test: setup check
	$(BIN)/python -m pytest -n auto --dist worksteal

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test-real: $(REAL)/.installed
	$(REAL)/bin/python -m pytest tests/real -rs
	$(REAL)/bin/python -m pytest tests tests/real -m slow -n auto -rs

$(REAL)/.installed: pyproject.toml constraints.txt scripts/setup.py
	$(PYTHON) scripts/setup.py $(REAL) --real
	@touch $@

perf: setup  ## make perf NAMES="latency ingest" runs some
	$(PERF) -m perf $(NAMES)

eval: setup
	$(BIN)/memorybench eval

view: setup
	$(BIN)/memorybench view

docs: $(VENV)/.docs-installed
	$(BIN)/zensical build --clean --strict

$(VENV)/.docs-installed: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	@touch $@

screenshots: $(REAL)/.installed  ## make screenshots NAMES="run compare" takes some
	$(REAL)/bin/python scripts/screenshots.py $(NAMES)

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) $(REAL) build dist *.egg-info src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
