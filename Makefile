# Two commands do everything: `make demo` and `make test`. Both create .venv if need be.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-all check format format-check lint types layers bench reproduce docs docs-pages audit results-doc coverage-doc coverage-outside test-torch test-lowest test-newest dist clean

demo: $(STAMP)
	$(BIN)/inn demo

# The fast tests, and of those that are marked as rotating the quarter of the day; QUARTER=0 to 3 says which, or all.
QUARTER ?= today
test: $(STAMP)
	$(BIN)/python -m pytest -m "not slow and not gpu" -n 2 --quarter $(QUARTER)

test-all: $(STAMP)
	$(BIN)/python -m pytest -m "not gpu" -n 2

check: format-check lint types layers test

format: $(STAMP)
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

format-check: $(STAMP)
	$(BIN)/ruff format --check

lint: $(STAMP)
	$(BIN)/ruff check

types: $(STAMP)
	$(BIN)/mypy

layers: $(STAMP)
	$(BIN)/lint-imports --no-cache

bench: $(STAMP)
	$(BIN)/python benchmarks/propagation.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/peers.py
	$(BIN)/python benchmarks/export.py
	$(BIN)/python benchmarks/growth.py
	$(BIN)/python benchmarks/floor.py
	$(BIN)/python benchmarks/kinds.py
	$(BIN)/python benchmarks/large.py image --memory 4
	$(BIN)/python benchmarks/large.py volume
	$(BIN)/python benchmarks/summary.py

# Every table and figure of the 1D task, into results/; SCALE=paper wants a GPU.
SCALE ?= quick
DEVICE ?= cpu
reproduce: $(STAMP)
	$(BIN)/inn reproduce deconv --scale $(SCALE) --device $(DEVICE)

# The pages, warnings as errors; nothing is fetched.
docs: $(STAMP)
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html

# Run the code of the pages, and write what it prints and draws into them.
docs-pages: $(STAMP)
	$(BIN)/python docs/make_pages.py
	$(BIN)/python docs/make_screenshot.py

# The pins against the public advisories; needs the network.
audit: $(STAMP)
	$(BIN)/python -m pip install --quiet pip-audit
	$(BIN)/python -m pip_audit --requirement constraints.txt --no-deps --disable-pip

# The pages of results, of robustness and the map of the paper, from results/ and benchmarks/results/.
results-doc: $(STAMP)
	$(BIN)/python docs/make_results.py

coverage-doc: $(STAMP)
	$(BIN)/python docs/make_coverage.py

# Networks of public packages, in an environment of their own: torchvision wants the registry's torch, gigabytes of it.
# ONLY=part of a name tries those alone.
OUTSIDE ?= .venv-outside
ONLY ?=
coverage-outside: $(OUTSIDE)/.installed
	HF_HUB_OFFLINE=1 $(OUTSIDE)/bin/python docs/examine_outside.py $(ONLY)
	$(OUTSIDE)/bin/python docs/make_coverage.py outside

$(OUTSIDE)/.installed: docs/outside-requirements.txt
	$(PYTHON) -m venv $(OUTSIDE)
	$(OUTSIDE)/bin/python -m pip install --quiet --requirement docs/outside-requirements.txt
	$(OUTSIDE)/bin/python -m pip install --quiet --editable .
	touch $@

# The fast tests with other versions, each set in an environment of its own in the folder VENVS, deleted by hand.
# torch comes as the registry has it, gigabytes with CUDA, and runs on the CPU. TESTS are further arguments of pytest.
VENVS ?= .
TESTS ?= -n 2
OTHER = $(<D)/bin/python -m pytest -m "not slow and not gpu" $(TESTS)

# `make test-torch TORCH=2.15.0`: all but torch from the pins, so that a test that fails here fails for torch.
TORCH ?= 2.15.0
test-torch: $(VENVS)/.venv-torch-$(TORCH)/.installed
	$(OTHER)

# The lowest versions that pyproject.toml allows, and the newest.
test-lowest: $(VENVS)/.venv-lowest/.installed
	$(OTHER)

test-newest: $(VENVS)/.venv-newest/.installed
	$(OTHER)

$(VENVS)/.venv-torch-%/.installed: CHOOSE = sed 's/^torch==.*/torch==$(TORCH)/' constraints.txt
$(VENVS)/.venv-lowest/.installed: CHOOSE = $(PYTHON) tests/lowest.py
$(VENVS)/.venv-newest/.installed: CHOOSE = true
$(VENVS)/.venv-%/.installed: pyproject.toml
	$(PYTHON) -m venv $(@D)
	$(CHOOSE) > $(@D)/constraints.txt
	$(@D)/bin/python -m pip install --upgrade --constraint $(@D)/constraints.txt --editable '.[dev]'
	touch $@

# Sdist and wheel, and both tested: the wheel without extras, the fast tests from the sdist.
dist: $(STAMP)
	rm -rf dist
	$(BIN)/python -m pip install --quiet build
	$(BIN)/python -m build --outdir dist
	$(BIN)/python tests/packages.py archives dist
	$(PYTHON) -m venv dist/bare
	dist/bare/bin/python -m pip install --quiet $$(grep '^torch==' constraints.txt)
	dist/bare/bin/python -m pip install --quiet --constraint constraints.txt dist/*.whl
	dist/bare/bin/python tests/packages.py bare README.md
	mkdir dist/unpacked
	tar -xzf dist/*.tar.gz -C dist/unpacked --strip-components 1
	cd dist/unpacked && PYTHONPATH=src $(abspath $(BIN))/python -m pytest -m "not slow and not gpu" -n 2 --quarter $(QUARTER)

# torch first, from the pin: a bare `torch` may pull gigabytes of CUDA.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet $$(grep '^torch==' constraints.txt)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist docs/_build .mypy_cache .ruff_cache .hypothesis
