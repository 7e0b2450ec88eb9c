# Each target sets up .venv by itself. `make` alone lists them.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
DEMO_TASKS ?= 6
# Further arguments for pytest, and how many workers run the tests.
PYTEST ?=
WORKERS ?= logical
# A tier that has passed on this tree: `make test-all AFTER=check` does not repeat its tests.
AFTER ?=
RUN_TESTS = RETRIAL_AFTER=$(AFTER) $(BIN)/python -m pytest -q -n $(WORKERS) --maxprocesses 8 $(PYTEST)

.DEFAULT_GOAL := help
.PHONY: help setup demo check test test-all sandbox

help:
	@echo "make demo      set up, run a small real model over the bundled tasks, score its patches"
	@echo "make check     formatter, linter, types, unit tests (two minutes)"
	@echo "make test      unit tests, and one real path through every part (six minutes)"
	@echo "make test-all  the whole test suite (half an hour, plus building the images the first time)"
	@echo "make setup     set up $(VENV) alone"

setup: $(VENV)/.ready

$(VENV)/.ready: requirements.txt requirements-nodeps.txt
	@echo "== Setting up $(VENV) with $$($(PYTHON) --version) (once, some minutes)"
	@$(PYTHON) scripts/require_python.py
	@$(PYTHON) -m venv $(VENV)
	@started=$$(date +%s) \
	    && $(PIP) -r requirements.txt \
	    && $(PIP) --no-deps -r requirements-nodeps.txt \
	    && echo "== packages: ready ($$(($$(date +%s) - started)) s)"
	@touch $@

$(VENV)/.ready-dev: requirements-dev.txt requirements-ray.txt $(VENV)/.ready
	@echo "== Adding the development tools to $(VENV)"
	@started=$$(date +%s) \
	    && $(PIP) -r requirements-dev.txt \
	    && echo "== development tools: ready ($$(($$(date +%s) - started)) s)"
	@touch $@

sandbox: $(VENV)/.ready
	@scripts/sandbox-up $(BIN)/python

demo: setup sandbox
	@echo "== Phase 1: a real, very small model edits $(DEMO_TASKS) of the demo tasks, two tries each (about two minutes)"
	@$(BIN)/python harness.py --run demo --benchmark demo-python --sample-size $(DEMO_TASKS) --turns 1 --max-tokens 256
	@echo "== Phase 2: its patches are scored in fresh sandboxes"
	@$(BIN)/python report.py demo

check: $(VENV)/.ready-dev
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@# Types are checked beside the tests: mypy uses one core.
	@$(BIN)/mypy & types=$$!; RETRIAL_TIER=check $(RUN_TESTS); tests=$$?; wait $$types && exit $$tests

test: $(VENV)/.ready-dev sandbox
	@-scripts/sandbox-up $(BIN)/python bwrap
	@$(BIN)/python -m tests.prepare test
	@RETRIAL_TIER=test $(RUN_TESTS)

test-all: $(VENV)/.ready-dev sandbox
	@-scripts/sandbox-up $(BIN)/python bwrap
	@$(BIN)/python -m tests.prepare all
	@RETRIAL_TIER=all $(RUN_TESTS)
