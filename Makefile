# make setup · make demo · make test · make check; each sets up .venv by itself.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DEMO_TASKS ?= 6
PYTEST ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo test check sandbox

help:
	@echo "make demo   set up, run a small real model over the bundled tasks, score its patches"
	@echo "make test   set up, run the whole test suite"
	@echo "make check  set up, run formatter, linter, type checker and the quick tests"
	@echo "make setup  set up $(VENV) alone"

setup: $(VENV)/.ready

$(VENV)/.ready: requirements.txt requirements-nodeps.txt
	@echo "== Setting up $(VENV) with $$($(PYTHON) --version) (once, some minutes)"
	@$(PYTHON) scripts/require_python.py
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements-nodeps.txt
	@touch $@

$(VENV)/.ready-dev: requirements-dev.txt requirements-ray.txt $(VENV)/.ready
	@echo "== Adding the development tools to $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@

sandbox: $(VENV)/.ready
	@scripts/sandbox-up $(BIN)/python

demo: setup sandbox
	@echo "== Phase 1: a real, very small model edits $(DEMO_TASKS) of the demo tasks, two tries each (about two minutes)"
	@$(BIN)/python harness.py --run demo --benchmark demo-python --sample-size $(DEMO_TASKS) --turns 1 --max-tokens 256
	@echo "== Phase 2: its patches are scored in fresh sandboxes"
	@$(BIN)/python report.py demo

test: $(VENV)/.ready-dev sandbox
	@$(BIN)/python -m pytest $(PYTEST)

check: $(VENV)/.ready-dev
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/python -m pytest -q -m "not real"
