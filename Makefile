# SPDX-License-Identifier: Apache-2.0
# Needs Python 3.11 or newer and make; everything else is installed into $(VENV) by the targets themselves.
#
#   make demo     the main job on real data            make lint    style of code and spelling
#   make test     all tests                            make types   types
#   make bench    figures beside their limits          make docs    the reference, from the docstrings
#   make test-core  what runs on numpy, pyarrow, fsspec, numba, pytest and hypothesis alone, in $(VENV)-core
#   make test-pythons  the same on Python 3.12 and 3.13, where they are on this machine
#   make test-deep  all tests with much longer searches for counterexamples (hours); then what each room's tests run of it
#   make outside  suites of other libraries, where their packages are installed, and what was left out (tests/outside)
#   make outside-bench  the cases of TensorFlow's benchmarks beside TensorFlow; DLIO itself, where it is installed
#   make peers    TensorFlow, Grain, PyTorch, WebDataset and HF datasets, so that `make bench` prints their figures too
#   make page     docs/performance.md and the plot of the README from the figures of the last `make bench`
#   make release-check  the wheel and the archive of sources in dist/, tried in empty environments
#   make site     the pages of docs/ as a site with navigation and search, in build/site
#
#   make test PYTHON=python3.13 PYTEST_ARGS='-k shard -x'

PYTHON ?= python3
VENV ?= .venv
# Twice two cores: many tests wait for processes of theirs.
JOBS ?= 4
# Each process begins with a part of the tests in their order, and takes some of another's when it has none left.
SPREAD := --dist worksteal
PYTEST_ARGS ?=
DEMO_ARGS ?=
BENCH_ARGS ?=

# The tests start hundreds of interpreters: each would compile the whole package again.
unexport PYTHONDONTWRITEBYTECODE

RUN := $(VENV)/bin
MADE := $(VENV)/made
TORCH := $(firstword $(shell sed -n 's/^ *"\(torch==[^"]*\)",.*/\1/p' pyproject.toml))
# Python compiles what is imported, when it is imported first: most files of the packages never are.
INSTALL := -m pip install --quiet --disable-pip-version-check --no-compile
PIP := $(RUN)/python $(INSTALL)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-core test-pythons test-deep outside outside-bench peers lint types format bench page docs site dist release-check clean

help:
	@sed -n 's/^#   //p' Makefile

# A stamp per group of extras: a second call installs nothing. They live in $(VENV), so that removing it removes them.
$(MADE)/venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "distinput needs Python 3.11 or newer, $(PYTHON) is " + sys.version.split()[0] + "; say make PYTHON=...")'
	@test -x $(RUN)/python || $(PYTHON) -m venv $(VENV)
	@mkdir -p $(MADE) && touch $@

$(MADE)/demo: pyproject.toml | $(MADE)/venv
	@echo "installing distinput[progress,crc32c] into $(VENV)"
	@$(PIP) --editable '.[progress,crc32c]'
	@echo "compiling the loops of distinput, once: about a minute"
	@$(RUN)/distinput kernels build >/dev/null
	@touch $@

# Torch by itself and first: pip then keeps this one, which has a small build for CPUs, when the others are asked for.
$(MADE)/test: pyproject.toml | $(MADE)/venv
	@echo "installing $(TORCH), then distinput[progress,test,engines,neighbours,proofs] into $(VENV) (3 GB)"
	@$(PIP) '$(TORCH)'
	@$(PIP) --editable '.[progress,test,engines,neighbours,proofs]'
	@touch $(MADE)/demo $@

# With the test extra: the types of tests are checked too, and pytest and hypothesis ship theirs.
$(MADE)/lint: pyproject.toml | $(MADE)/venv
	@echo "installing distinput[progress,lint,test] into $(VENV)"
	@$(PIP) --editable '.[progress,lint,test]'
	@touch $(MADE)/demo $@

# An environment of its own, in which no optional package can stand by accident.
$(VENV)-core/made: pyproject.toml
	@test -x $(VENV)-core/bin/python || $(PYTHON) -m venv $(VENV)-core
	@echo "installing distinput, pytest and hypothesis alone into $(VENV)-core"
	@$(VENV)-core/bin/python $(INSTALL) --editable . pytest hypothesis
	@touch $@

$(MADE)/dev: $(MADE)/test
	@echo "installing distinput[dev] into $(VENV)"
	@$(PIP) --editable '.[dev]'
	@touch $@

# The peers of the benchmarks; PyTorch first, for the same reason.
$(MADE)/peers: pyproject.toml | $(MADE)/venv
	@echo "installing $(TORCH), then distinput[progress,bench] into $(VENV)"
	@$(PIP) '$(TORCH)'
	@$(PIP) --editable '.[progress,bench]'
	@touch $(MADE)/demo $@

$(MADE)/docs: pyproject.toml | $(MADE)/venv
	@echo "installing distinput[docs] into $(VENV)"
	@$(PIP) --editable '.[docs]'
	@touch $@

$(MADE)/dist: pyproject.toml | $(MADE)/venv
	@$(PIP) build twine
	@touch $@

demo: $(MADE)/demo
	@$(RUN)/distinput demo $(DEMO_ARGS)

test: $(MADE)/test
	@$(RUN)/python -m pytest -n $(JOBS) $(SPREAD) $(PYTEST_ARGS)

test-core: $(VENV)-core/made
	@HYPOTHESIS_PROFILE=core $(VENV)-core/bin/python -m tests.in_parts $(PYTEST_ARGS)

# The interpreters are those on the PATH, then those of pyenv; each has an environment of its own.
test-pythons:
	@for minor in 12 13; do \
	    for python in python3.$$minor "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/3.$$minor.*/bin/python; do \
	        if "$$python" -c "import sys; sys.exit(sys.version_info[:2] != (3, $$minor))" 2>/dev/null; then \
	            echo "the tests of the core on Python 3.$$minor, $$python"; \
	            $(MAKE) --no-print-directory test-core PYTHON="$$python" VENV=$(VENV)-3.$$minor || exit 1; \
	            found="$$found 3.$$minor"; break; \
	        fi; \
	    done; \
	done; \
	echo "the tests of the core ran on these other versions of Python:$${found:- none is on this machine}"

test-deep: $(MADE)/dev
	@rm -rf build/coverage
	@DISTINPUT_TESTS=deep HYPOTHESIS_PROFILE=thorough $(RUN)/python -m coverage run -m pytest -n $(JOBS) $(SPREAD) --timeout 3600 $(PYTEST_ARGS)
	@$(RUN)/python -m coverage combine --quiet
	@$(RUN)/python -m coverage json --quiet -o build/coverage/all.json
	@$(RUN)/python tests/covered.py build/coverage/all.json

outside: $(MADE)/test
	@$(RUN)/python -m pytest tests/outside tests/testing/judge/loaders -rs $(PYTEST_ARGS)

outside-bench: $(MADE)/peers
	@$(RUN)/python benchmarks/run.py outside $(BENCH_ARGS)
	@$(RUN)/python tests/outside/dlio_speed.py

peers: $(MADE)/peers

lint: $(MADE)/lint
	@$(RUN)/ruff check .
	@$(RUN)/ruff format --check .
	@$(RUN)/codespell

format: $(MADE)/lint
	@$(RUN)/ruff check --fix-only --quiet .
	@$(RUN)/ruff format .

types: $(MADE)/lint
	@$(RUN)/mypy
	@$(RUN)/basedpyright

# Peers are no need: after `make peers` their figures stand beside ours, else one line for each says that it was left out.
bench: $(MADE)/demo
	@$(RUN)/python benchmarks/run.py $(BENCH_ARGS)

page: $(MADE)/demo
	@$(RUN)/python benchmarks/page.py
	@$(RUN)/python docs/pictures/make.py peers

docs: $(MADE)/test
	@$(RUN)/python docs/make_stub.py
	@$(RUN)/python docs/make_reference.py

site: $(MADE)/docs
	@$(RUN)/python docs/make_site.py

# The wheel is made of the archive of sources, so that this is known to be whole.
dist: $(MADE)/dist
	@rm -rf dist
	@$(RUN)/python -m build --outdir dist . >/dev/null

release-check: dist
	@$(RUN)/python .ci/release_check.py dist

clean:
	@rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
