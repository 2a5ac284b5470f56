.DEFAULT_GOAL := help
PYTHON ?= python3
PORT ?= 8000
SOURCES := mcpkit tests examples

VENV := .venv
PY := $(VENV)/bin/python
CONFORMANCE := tests/conformance

.PHONY: help
help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: $(VENV)/.run  ## Set up, and serve examples/hello.py on PORT
	@sed 's/:8000/:$(PORT)/' examples/curl.txt
	@$(PY) -m uvicorn examples.hello:app --port $(PORT)

.PHONY: test
test: install  ## Set up, and run every test; make test ARGS="-k era"
	$(PY) -m pytest $(ARGS)

.PHONY: check
check: $(VENV)/.dev  ## Format, lint and types, changing nothing
	$(PY) -m ruff format --check --diff $(SOURCES)
	$(PY) -m ruff check $(SOURCES)
	$(PY) -m mypy

.PHONY: fix
fix: $(VENV)/.dev  ## Format, and apply every safe lint fix
	$(PY) -m ruff format $(SOURCES)
	$(PY) -m ruff check --fix $(SOURCES)

.PHONY: cover
cover: install  ## The tests under branch coverage
	$(PY) -m coverage run -m pytest $(ARGS)
	$(PY) -m coverage report

.PHONY: bench
bench: $(VENV)/.dev  ## Measure against the floors and the peers; results in tests/bench/results
	$(PY) -m tests.bench $(ARGS)

.PHONY: soak
soak: $(VENV)/.dev  ## Streams and calls for five minutes, then tasks over 200 kills; make soak ARGS="--quick"
	$(PY) -m tests.soak $(ARGS)

.PHONY: install
install: $(VENV)/.dev .venv-mcp1/.done .venv-oldest/.done $(CONFORMANCE)/node_modules/.done  ## Everything the tests need

.PHONY: clean
clean:  ## Remove what the other targets leave behind
	rm -rf build dist .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -rf $(VENV) .venv-mcp1 .venv-oldest $(CONFORMANCE)/node_modules

# Half a virtual environment would look whole the next time.
$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 is needed, or a newer one: make run PYTHON=python3.12")'
	@echo "Making $(VENV)"
	@$(PYTHON) -m venv $(VENV) && \
		$(PY) -m pip install --quiet --upgrade 'pip>=25.1' || \
		{ rm -rf $(VENV); exit 1; }

$(VENV)/.run: pyproject.toml | $(VENV)/bin/python
	$(PY) -m pip install --quiet --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(PY) -m pip install --quiet --editable '.[fast]' --group test --group lint --group bench
	@touch $@ $(VENV)/.run

# The 1.x client, which cannot be installed beside the 2.x one.
.venv-mcp1/.done: pyproject.toml
	$(PYTHON) -m venv .venv-mcp1
	.venv-mcp1/bin/python -m pip install --quiet 'mcp>=1.25,<2'
	@touch $@

# The oldest releases that pyproject.toml allows.
.venv-oldest/.done: pyproject.toml tests/oldest.txt
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --requirement tests/oldest.txt
	@touch $@

# Without npm the conformance tests say that they are skipped, and fail in CI.
$(CONFORMANCE)/node_modules/.done: $(CONFORMANCE)/package-lock.json
	@if command -v npm >/dev/null; then \
		npm ci --silent --no-audit --no-fund --prefix $(CONFORMANCE) && touch $@; \
	else \
		echo "npm is missing: the conformance suite is not installed" >&2; \
	fi
