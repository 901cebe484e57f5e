# Everything runs in .venv, which scripts/bootstrap.py makes. Nothing has to be installed by hand but Python.

# The first of these that is new enough; else python3, and `bootstrap` says what is missing.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.10; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && echo $$p && exit; done; echo python3)

too_old = Hedgerow needs Python 3.10 or newer: install one, or name it with make PYTHON=...

# A JAVA_HOME of your own wins over the one that the bootstrap found.
python = JAVA_HOME="$${JAVA_HOME:-$$(cat .venv/java-home 2>/dev/null)}" .venv/bin/python

lines = bench/results/quick.jsonl

.DEFAULT_GOAL := help
.PHONY: help bootstrap demo test test-long lint docs wheel dist bench clean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' Makefile | expand -t 12

bootstrap: ## make or update .venv (every target below does it by itself)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "$(too_old)")'
	@$(PYTHON) scripts/bootstrap.py

demo: bootstrap ## see Hedgerow make queries faster, beside ZORDER and liquid clustering
	@$(python) -m hedgerow demo

test: bootstrap ## all but the slow tests, in two processes with a Spark session each
	@$(python) -m pytest -m "not long" -q -n 2 --dist loadfile --no-loadscope-reorder --durations 20

test-long: bootstrap ## all tests, the properties with many more examples
	@HEDGEROW_HYPOTHESIS=full $(python) -m pytest -q

lint: bootstrap ## style, types, who imports whom, and that the results are those of their lines
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy src scripts $(if $(wildcard bench/*.py),bench)
	@.venv/bin/lint-imports
	@$(python) -m bench report --check

docs: bootstrap ## the documentation as a site, in dist/site; a broken link is an error
	@NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build # --quiet would hide warnings from strict, too

wheel: bootstrap ## build the wheel, and run the demo from it in an empty environment
	@$(python) scripts/try_wheel.py

dist: bootstrap ## build the sdist and the wheel of the last commit twice, and compare their bytes
	@$(python) scripts/build_twice.py dist

# Lines of a run that did not end well are not taken for results.
bench: bootstrap ## the quick form of every benchmark, and the page of results made of it
	@rm -f $(lines).partial
	@mkdir -p $(dir $(lines))
	@$(python) -m bench quick --json $(lines).partial
	@mv $(lines).partial $(lines)
	@$(python) -m bench report

clean: ## remove .venv and every cache; the way to change to another Python
	rm -rf .venv dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests scripts bench -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
