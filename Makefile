# Every chore is one command; each sets up what it needs in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find src -type f \( -name '*.py' -o -name '*.cpp' -o -name '*.hpp' -o -name '*.pyi' \)) CMakeLists.txt pyproject.toml
# The C++ library comes along, so that the sanitizer finds the throw that other extensions use.
ASAN = $(shell $(CXX) -print-file-name=libasan.so) $(shell $(CXX) -print-file-name=libstdc++.so)
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: run test bench lint types core-test sanitize docs clean

run: $(VENV)/.run
	$(BIN)/gristmill run --report run.html

test: lint types core-test
	$(BIN)/python -m pytest tests
	$(BIN)/python -m pytest --doctest-modules --pyargs gristmill

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

# The core by itself, without Python, under the sanitizers.
core-test: $(VENV)/.dev
	cmake -S . -B build/core -DGRISTMILL_PYTHON=OFF -DGRISTMILL_CORE_TESTS=ON -DGRISTMILL_SANITIZE=ON
	cmake --build build/core --parallel
	build/core/core_tests
	build/core/core_pairwise_tests

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

# The whole Python test suite against a build with AddressSanitizer and UndefinedBehaviorSanitizer.
sanitize: core-test
	$(BIN)/pip install --quiet --no-build-isolation --no-deps --upgrade --target build/sanitize/site . \
	  -C build-dir=build/sanitize/cmake -C cmake.define.GRISTMILL_SANITIZE=ON
	LD_PRELOAD="$(ASAN)" ASAN_OPTIONS=detect_leaks=0 PYTHONPATH=build/sanitize/site \
	  $(BIN)/python -m pytest tests -p no:cacheprovider

# The pages, with the gallery (its examples run) and the reference, in site/; every warning is an error.
docs: $(VENV)/.docs
	$(BIN)/sphinx-build -b html -W --keep-going docs site

$(VENV)/pyvenv.cfg:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: $(VENV)/pyvenv.cfg $(SOURCES)
	$(BIN)/pip install --quiet '.[cli,plot]'
	touch $@

$(VENV)/.tools: $(VENV)/pyvenv.cfg pyproject.toml
	$(BIN)/pip install --quiet '.[dev]'
	touch $(VENV)/.built $@

# The tools came with a build of these sources; only later changes need another.
$(VENV)/.dev: $(VENV)/.tools $(SOURCES)
	test -e $(VENV)/.built || $(BIN)/pip install --quiet --no-build-isolation --no-deps .
	rm -f $(VENV)/.built
	touch $@

$(VENV)/.bench: $(VENV)/.dev
	$(BIN)/pip install --quiet --no-build-isolation '.[bench]'
	touch $@

$(VENV)/.docs: $(VENV)/.dev
	$(BIN)/pip install --quiet --no-build-isolation '.[docs]'
	touch $@

clean:
	rm -rf $(VENV) build dist site docs/gallery docs/reference docs/sg_execution_times.rst
