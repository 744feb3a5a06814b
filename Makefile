.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install develop demo live browser systemd test quick study check bench soak chaos docs pictures clean

# The first Python on this machine that is new enough; `make PYTHON=... install` names another.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
BIN := .venv/bin
INSTALLED := .venv/.installed
DEVELOPED := .venv/.developed
# The first import makes the bytecode, of what it imports: pip takes 30 s instead of 63 s, and .venv 805 MB instead of 921.
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check --no-compile -c constraints.txt
KERNELS := .cache/kernels.stamp
COMPILED := .cache/compiled.stamp

# So it must be kept, or every start would make it again.
unexport PYTHONDONTWRITEBYTECODE

# Material for MkDocs prints a notice about its future on every build; this is its own switch for it.
export NO_MKDOCS_2_WARNING := 1

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(COMPILED) ## Create .venv with topstory and all that its users need (a no-op when up to date)

develop: $(DEVELOPED) ## Add what development needs to .venv (a no-op when up to date)

$(BIN)/python:
	@echo "Creating .venv ..."
	@python="$(PYTHON)"; test -n "$$python" \
		|| { echo "topstory needs Python 3.11 or newer: none found" >&2; exit 1; }; \
	$$python -m venv .venv

$(INSTALLED): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing topstory into .venv ..."
	@$(PIP) -e '.[all]'
	@touch $@

$(DEVELOPED): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing topstory and the development tools into .venv ..."
	@$(PIP) -e '.[dev]'
	@touch $(INSTALLED) $@

# numba's cache of a kernel does not notice a change in a kernel that it calls: drop it with any change.
$(KERNELS): $(shell find src/topstory/kernels -name "*.py")
	@find src \( -name '*.nbi' -o -name '*.nbc' \) -delete
	@mkdir -p $(@D)
	@touch $@

# A first replay then waits for no compiler, or for less of it. The demo and the tests compile what they use by themselves.
$(COMPILED): $(KERNELS) $(INSTALLED)
	@echo "Compiling the kernels ..."
	@$(BIN)/topstory compile >/dev/null
	@touch $@

demo: $(INSTALLED) $(KERNELS) ## Run the paper's whole evaluation on simulated logs, and say where the report is
	@echo "Running the paper's evaluation on simulated logs; the report will be .cache/demo-study/report.html"
	@$(BIN)/topstory study .cache/demo-study

live: $(INSTALLED) $(KERNELS) ## Serve the front page and the studio, with simulated visitors coming
	@$(BIN)/topstory demo --live

# The report is tested in a real browser: the machine's own, or one that is installed here.
browser: develop
	@command -v chromium chromium-browser google-chrome google-chrome-stable >/dev/null \
		|| { test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
			&& apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium; } \
		|| $(BIN)/playwright install --with-deps chromium \
		|| { echo "the tests need Chromium, and it could not be installed" >&2; exit 1; }

# systemd reads its unit in a test, too; it need not run.
systemd: develop
	@command -v systemd-analyze >/dev/null \
		|| { test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
			&& apt-get -qq update && apt-get -qq install -y --no-install-recommends systemd; } \
		|| { echo "the tests need systemd-analyze, and it could not be installed" >&2; exit 1; }

test: develop browser systemd ## Run the tests, the doctests and the documentation's snippets, and measure their coverage
	@mkdir -p .cache
	@$(BIN)/python -m slipcover --fail-under 0 --json --out .cache/coverage.json -m pytest -q -n 2 --dist worksteal
	@$(BIN)/python -m slipcover --merge .cache/coverage.json --out .cache/coverage.json >.cache/coverage.txt; status=$$?; \
		echo "Lines, lines that no test ran, and the covered share in %; .cache/coverage.txt lists them by file:"; \
		tail -n 1 .cache/coverage.txt; exit $$status

# What starts processes, a browser or a cluster, or fits or simulates for long, waits for `make test`.
SLOW := tests/serving tests/deploy tests/engines tests/report tests/studies tests/cli/commands/evaluation/test_study.py tests/test_docs.py \
	tests/test_contributing.py tests/test_extras.py tests/test_packaging.py tests/test_written_by_0_1.py tests/test_news_site.py \
	tests/features/test_default_world.py tests/features/test_novelty.py tests/events/simulator/test_table_1.py \
	tests/events/formats/pipeline/test_processes.py tests/models/test_any_scale.py tests/evaluation/test_feature_choice.py \
	tests/evaluation/uncertainty/test_learning_paths.py tests/evaluation/uncertainty/test_clusters.py \
	tests/evaluation/replays/test_precompilation.py tests/cli/commands/test_demo.py tests/cli/commands/service/test_promote.py

quick: develop ## Run the tests that are quick, while you work
	@$(BIN)/pytest -q -n 2 --dist worksteal -k 'not [ray]' $(SLOW:%=--ignore=%)

study: develop ## Test what the paper found on minutes of simulated traffic
	@$(BIN)/pytest -q -m long

check: develop ## Run the linters, the type checker, the import rules and a strict build of the docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --cache-dir .cache/import-linter
	$(BIN)/mkdocs build --strict --quiet --site-dir .cache/site

bench: develop $(KERNELS) ## Measure the speed of replay
	@$(BIN)/python -m benchmarks

soak: develop ## Test the service at length: fifty kill -9, generated requests, ten minutes at half of capacity
	@SOAK_KILLS=50 SOAK_EXAMPLES=300 SOAK_SECONDS=600 $(BIN)/pytest -q -rP tests/serving

chaos: develop ## Test the service with faults at random: kill -9, pauses, full disks, a hung database, takeovers
	@SOAK_KILLS=50 $(BIN)/pytest -q -rP tests/serving/test_kill.py
	@CHAOS_SECONDS=600 CHAOS_SEED=$$$$ $(BIN)/pytest -q -rP tests/serving/test_random_faults.py
	@CHAOS_SECONDS=600 CHAOS_SEED=$$$$ $(BIN)/pytest -q -rP -m long tests/serving/test_chaos.py
	@CHAOS_SECONDS=600 CHAOS_SEED=$$$$ $(BIN)/pytest -q -rP -m long tests/serving/fleet/test_faults.py

docs: develop ## Build the documentation into site/
	@$(BIN)/mkdocs build --strict --quiet --site-dir site
	@echo "Built: site/index.html"

pictures: develop browser ## Take the pictures of the pages anew, from the live demo
	@$(BIN)/python -m docs.generate.draw_pages

clean: ## Remove caches and built files (.venv stays)
	@rm -rf .cache .hypothesis build dist site
	@find src tests benchmarks \( -name '*.nbi' -o -name '*.nbc' -o -name '*.pyc' \) -delete
