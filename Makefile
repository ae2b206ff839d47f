# Everything runs inside $(VENV); nothing is installed elsewhere. Needs Python 3.11 or later, git and make.
PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 2
BIN := $(VENV)/bin
STAMP := $(VENV)/.htpsim-installed

.DEFAULT_GOAL := help
.PHONY: help venv demo test lint verify bench notebooks site clean

help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile

venv: $(STAMP) ## Make the environment, with the exact versions of constraints.txt

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "htpsim needs Python 3.11 or later, got " + sys.version.split()[0] + "; name one with make PYTHON=python3.11")'
	@test -x $(BIN)/python || { echo "Making $(VENV) and installing into it; this happens once."; $(PYTHON) -m venv $(VENV); }
	@$(BIN)/python -m pip install -q -c constraints.txt -e '.[test]'
	@touch $(STAMP)

demo: venv ## Answer the main question: the ViT on the legacy path, on Genie, on Genie with the registry
	$(BIN)/htpsim compare vit_migration --out runs/vit_migration
	@echo "The run directory is runs/vit_migration"

test: lint ## Lint, then every test that takes seconds
	$(BIN)/python -m pytest -n $(WORKERS)

lint: venv ## Style, format, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict htpsim
	$(BIN)/lint-imports --no-logo

verify: venv ## The slow checks: statistics, exhaustive enumeration, many generated cases
	$(BIN)/python -m pytest -n $(WORKERS) -m "(verify or slow) and not bench" --hypothesis-profile=verify

bench: venv ## How fast the engines, the points of a sweep and the readers of large logs are
	$(BIN)/python -m benchmarks.run
	$(BIN)/python -m benchmarks.sweep
	$(BIN)/python -m pytest -m bench -s -q tests/formats/test_large_logs.py

notebooks: venv ## Execute the notebooks anew and store them with their outputs
	$(BIN)/python notebooks/execute.py

site: venv ## Build the documentation as a site, in build/site
	$(BIN)/mkdocs build --strict -q -f .mkdocs.yml

clean: ## Remove the environment, the caches and the runs
	rm -rf $(VENV) build dist runs .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find htpsim tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
