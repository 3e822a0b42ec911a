# Rushlight on a fresh Debian 12 machine: `make train` or `make test`, nothing else first.
PACKAGES := build-essential cmake ninja-build ccache git python3-dev python3-venv llvm-19-dev \
  libzstd-dev zlib1g-dev libgtest-dev clang-format-19 bible-kjv
REQUIREMENTS := numpy pytest ruff
BUILD ?= build
PYTHON3 ?= python3
PYTHON := .venv/bin/python
JOBS ?= $(shell nproc)
SOURCES = $(shell git ls-files '*.cpp' '*.h')
.DEFAULT_GOAL := build
.PHONY: setup build train train-cpp test test-sanitize test-sanitize-python bench format lint clean

setup: .venv/ready

# The stamp is older than this file when the list of packages may have changed.
.venv/ready: Makefile
	@missing=$$(for p in $(PACKAGES); do dpkg-query -W -f '$${Status}' $$p 2>/dev/null \
	  | grep -q 'ok installed' || echo $$p; done); \
	if [ -n "$$missing" ]; then \
	  if [ $$(id -u) = 0 ]; then root=; \
	  elif sudo -n true 2>/dev/null || { [ -t 0 ] && command -v sudo >/dev/null; }; then root=sudo; \
	  else echo "Run this once, then make again:"; \
	    echo "  su -c 'apt-get update && apt-get install -y" $$missing"'"; exit 1; fi; \
	  $$root apt-get update && \
	  $$root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $$missing; \
	fi
	@$(PYTHON3) -c 'import sys; assert sys.version_info >= (3, 10), "Python 3.10 or newer is needed"'
	test -x $(PYTHON) || $(PYTHON3) -m venv .venv
	$(PYTHON) -m pip install --quiet --disable-pip-version-check $(REQUIREMENTS)
	$(PYTHON) -c 'import sysconfig, pathlib; \
	  pathlib.Path(sysconfig.get_path("purelib"), "rushlight-build.pth").write_text( \
	  str(pathlib.Path("$(BUILD)/python").resolve()) + "\n")'
	touch $@

$(BUILD)/build.ninja: | setup
	cmake --preset release -B $(BUILD) -D Python3_EXECUTABLE=$(CURDIR)/$(PYTHON)

build: setup $(BUILD)/build.ninja
	cmake --build $(BUILD) -j $(JOBS)

train: build
	$(PYTHON) examples/gpt/train.py

train-cpp: build
	$(BUILD)/examples/gpt/gpt

test: build
	ctest --test-dir $(BUILD) --output-on-failure
	$(PYTHON) -m pytest -q $(wildcard tests/python tests/misuse tests/parity)

# The quick set: every C++ test, under each pair of sanitizers.
test-sanitize: setup
	for preset in asan-ubsan tsan; do \
	  cmake --preset $$preset -D Python3_EXECUTABLE=$(CURDIR)/$(PYTHON) && \
	  cmake --build --preset $$preset -j $(JOBS) --target all_tests && \
	  ctest --preset $$preset -j $(JOBS) || exit 1; \
	done

# The Python tests on an extension under the address and undefined-behaviour sanitizers. The
# interpreter's own leaks, which it leaves on purpose, would hide ours. The sanitizer looks for what
# throws when it starts: in libstdc++, which the interpreter does not have yet.
test-sanitize-python: setup
	cmake --preset asan-ubsan -D RUSHLIGHT_PYTHON=ON -D Python3_EXECUTABLE=$(CURDIR)/$(PYTHON)
	cmake --build --preset asan-ubsan -j $(JOBS) --target rushlight_python
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so)" \
	  ASAN_OPTIONS=detect_leaks=0 PYTHONPATH=build-asan-ubsan/python $(PYTHON) -m pytest -q tests/python tests/misuse

bench: build
	BUILD=$(BUILD) bash benchmarks/run.sh

format: setup
	clang-format-19 -i $(SOURCES)
	$(PYTHON) -m ruff format .
	$(PYTHON) -m ruff check --fix .

lint: setup
	clang-format-19 --dry-run --Werror $(SOURCES)
	$(PYTHON) -m ruff check .

clean:
	rm -rf $(BUILD) build-asan-ubsan build-tsan build-debug
