.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install demo browser test quick study check bench soak docs clean

# The first Python on this machine that is new enough; `make PYTHON=... install` names another.
PYTHON ?= $(firstword $(foreach python,python3 python3.13 python3.12 python3.11,$(shell \
	$(python) -c 'import sys; sys.version_info >= (3, 11) and print("$(python)")' 2>/dev/null)))
BIN := .venv/bin
INSTALLED := .venv/.installed
KERNELS := .cache/kernels.stamp

# Material for MkDocs prints a notice about its future on every build; this is its own switch for it.
export NO_MKDOCS_2_WARNING := 1

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(INSTALLED) ## Create .venv with topstory and everything it needs (a no-op when up to date)

$(INSTALLED): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "topstory needs Python 3.11 or newer: none found" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Installing topstory into .venv ..."
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

# numba's cache of a kernel does not notice a change in a kernel that it calls: drop it with any change.
$(KERNELS): $(wildcard src/topstory/kernels/*.py)
	@find src \( -name '*.nbi' -o -name '*.nbc' \) -delete
	@mkdir -p $(@D)
	@touch $@

demo: install $(KERNELS) ## Run the paper's whole evaluation on simulated logs, and say where the report is
	@$(BIN)/topstory study .cache/demo

# The report is tested in a real browser: the machine's own, or one that is installed here.
browser: install
	@command -v chromium chromium-browser google-chrome google-chrome-stable >/dev/null \
		|| { test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
			&& apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium; } \
		|| $(BIN)/playwright install --with-deps chromium \
		|| { echo "the tests need Chromium, and it could not be installed" >&2; exit 1; }

test: install browser ## Run the tests, the doctests and the documentation's snippets
	@$(BIN)/pytest -q -n 2

# What starts processes, a browser or a cluster, or fits for long, waits for `make test`.
SLOW := tests/serving tests/engines tests/report tests/studies tests/cli/commands/test_study.py tests/test_docs.py tests/test_contributing.py \
	tests/features/test_default_world.py tests/events/simulator/test_table_1.py tests/events/formats/pipeline/test_processes.py

quick: install ## Run the tests that are quick, while you work
	@$(BIN)/pytest -q -n 2 $(SLOW:%=--ignore=%)

study: install ## Test what the paper found on minutes of simulated traffic
	@$(BIN)/pytest -q -m long

check: install ## Run the linters, the type checker, the import rules and a strict build of the docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --cache-dir .cache/import-linter
	$(BIN)/mkdocs build --strict --quiet --site-dir .cache/site

bench: install $(KERNELS) ## Measure the speed of replay
	@$(BIN)/python -m benchmarks

soak: install ## Test the service at length: fifty kill -9, generated requests, ten minutes at half of capacity
	@SOAK_KILLS=50 SOAK_EXAMPLES=300 SOAK_SECONDS=600 $(BIN)/pytest -q -rP tests/serving

docs: install ## Build the documentation into site/
	@$(BIN)/mkdocs build --strict --quiet --site-dir site
	@echo "Built: site/index.html"

clean: ## Remove caches and built files (.venv stays)
	@rm -rf .cache .hypothesis build dist site
	@find src tests benchmarks \( -name '*.nbi' -o -name '*.nbc' -o -name '*.pyc' \) -delete
