# `make` alone prints the targets. Each sets up $(VENV) first when it has to.
VENV ?= .venv
PYTHON ?=
PYTEST_ARGS ?=
BENCH_ARGS ?=

PY := $(VENV)/bin/python
SETUP := PYTHON="$(PYTHON)" ./tools/venv.sh "$(VENV)"

# Python's compiled files are kept: without, each process that the tests start takes a second more.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test check lint types pytest test-long format bench setup setup-demo setup-test clean

help: ## print the targets
	@echo "wend: targets of make (VENV=$(VENV); PYTHON=... chooses the interpreter of a new one)"
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{printf "%-18s %s\n", $$1, $$2}'

demo: setup-demo ## set up what the demo needs and run it
	@$(PY) -m wend demo

test: lint types pytest ## everything a change must pass: linters, types, tests

check: lint types ## linters and types, no tests

lint: setup-test ## ruff, its formatter, and the import floors
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) $(VENV)/bin/lint-imports --no-logo

types: setup-test ## mypy, strict, over src/wend
	$(PY) -m mypy

pytest: setup-test ## the tests alone (PYTEST_ARGS="-k newton -x")
	$(PY) -m pytest -n auto $(PYTEST_ARGS)

test-long: setup-test ## the tests with the slow ones and longer random search
	HYPOTHESIS_PROFILE=long $(PY) -m pytest -n auto -m "" $(PYTEST_ARGS)

format: setup-test ## let ruff format and mend what it can
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

bench: setup-test ## measure wend beside C and the peers that are installed (BENCH_ARGS="dopri --peers DIR")
	$(PY) -m bench $(BENCH_ARGS)

setup: ## a virtual environment with every tool, for development
	@$(SETUP) dev

setup-demo:
	@$(SETUP) demo

setup-test:
	@$(SETUP) test

clean: ## remove caches and build outputs (remove $(VENV) by hand for a fresh start)
	rm -rf build dist htmlcov docs/_build .coverage .coverage.* \
	    .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
