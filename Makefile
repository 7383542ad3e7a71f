# Needs make, a C compiler and Python >= 3.10 with its headers; the rest is installed into a virtual
# environment in this directory. Another interpreter: make test PYTHON=/path/to/python3.13t

ifdef PYTHON
# an environment for each version, so that several coexist: .venv-3.10, .venv-3.13t
VENV := .venv-$(shell $(PYTHON) -c 'import sys, sysconfig; print("%d.%d" % sys.version_info[:2] \
	+ ("t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""))')
else
# python3 unless it is too old, cannot make environments or does not run; then the newest that can
PYTHON := $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python3.10; do \
	$$python -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null \
	&& echo $$python && break; done)
VENV := .venv
endif
BIN := $(VENV)/bin

# Every file whose change calls for another build of the extension.
NATIVE := setup.py $(wildcard csrc/*.[ch] fastactor/*.pyx fastactor/*.pxd fastactor/*.h fastactor/*.c fastactor/native/*.pxi)
C_FILES := $(wildcard csrc/*.[ch] fastactor/*.h tests/native/*.[ch] tests/model/*.[ch])

# An older release that is built already beats a newer one that needs, say, a Rust compiler.
PIP_FLAGS := --quiet --prefer-binary

# A layout in C cannot be mixed with another one; the stub shares the twin's classes, which can.
STUBTEST_FLAGS := --allowlist .ci/stubtest-allowlist --ignore-disjoint-bases

# The stamp of the build carries the switches that setup.py reads: other switches, another build.
BUILT := $(VENV)/.built-$(FASTACTOR_PURE)-$(FASTACTOR_DEBUG)-$(FASTACTOR_SANITIZE)

.DEFAULT_GOAL := help
.PHONY: help test demo lint format python clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile

test: $(BUILT) ## Run the tests; ARGS="-k word" goes to pytest
	$(BIN)/python -m pytest $(ARGS)

demo: $(BUILT) ## Show a quiet key overtaking a noisy one
	$(BIN)/python examples/fairness.py

lint: $(BUILT) $(VENV)/.lint ## Check style and types, change nothing
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/clang-format --dry-run -Werror $(C_FILES)
	PATH="$(CURDIR)/$(BIN):$$PATH" cython-lint fastactor  # which looks for pycodestyle on PATH
	$(BIN)/mypy
	$(BIN)/pyright fastactor
	$(BIN)/python -m mypy.stubtest $(STUBTEST_FLAGS) fastactor._native

format: $(VENV)/.lint ## Lay out Python and C files, apply safe fixes
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(C_FILES)

python: $(BUILT) ## Print the interpreter that has fastactor installed
	@echo $(BIN)/python

clean: ## Remove everything that was built or installed
	rm -rf .venv .venv-* build dist *.egg-info fastactor/*.so wheelhouse/*.whl
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +

$(VENV)/.deps: pyproject.toml
	@test -n "$(PYTHON)" || { echo "make: no Python >= 3.10 with ensurepip on PATH" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'  # the first that knows --group
	$(BIN)/python -m pip install $(PIP_FLAGS) --group test
	@touch $@

$(VENV)/.lint: $(VENV)/.deps
	$(BIN)/python -m pip install $(PIP_FLAGS) --group lint
	@touch $@

$(BUILT): $(VENV)/.deps $(NATIVE)
	@rm -f $(VENV)/.built-*  # they speak of the module that is about to be replaced
	$(BIN)/python -m pip install --quiet --no-build-isolation --no-deps --editable .
	@touch $@
