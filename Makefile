# Each command sets up what it needs in .venv. The usual ones: make test, make quick, make dev, make docs, make run.
PYTHON ?= python3
VENV := .venv
WORKERS ?= 2# processes that run tests side by side
JOBS ?= $(shell $(PYTHON) -c "import os; print(os.cpu_count())")# compilers at a time: without a number make starts them all
BIN := $(VENV)/bin
EXTRAS := cli,plot,data,river,ray,serve,kafka,redis,mqtt,onnx# what the tests need of the package
SOURCES := $(shell find src -type f \( -name '*.py' -o -name '*.cpp' -o -name '*.hpp' -o -name '*.pyi' \) -not -name _core.pyi) CMakeLists.txt pyproject.toml
# The C++ library comes along, so that the sanitizer finds the throw that other extensions use.
ASAN = $(shell $(CXX) -print-file-name=libasan.so) $(shell $(CXX) -print-file-name=libstdc++.so)
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: run playground test-playground test test-shared test-alone test-search bench papers lint types core-test test-neon test-micro test-compilers test-oldest sanitize fuzz mutants chaos \
  test-browser docs wheel quickest quick dev clean

run: $(VENV)/.run
	$(BIN)/gristmill run --report run.html

test: lint types core-test test-shared test-alone

# The tests that may run beside other work: pull requests run these.
test-shared: $(VENV)/.dev
	$(BIN)/python -m pytest tests -m 'not alone' -n $(WORKERS) --durations=20
	$(BIN)/python -m pytest --doctest-modules --pyargs gristmill papers
	for isa in $$($(BIN)/python -c 'from gristmill import _core; print(*_core.isas()[:-1])'); do \
	  GRISTMILL_ISA=$$isa $(BIN)/python -m pytest -q -n $(WORKERS) tests/promises/test_exactness.py tests/promises/test_cuts.py tests/fleets/test_fleet.py \
	    tests/fleets/test_keyed_fleet.py || exit 1; done

# The tests that need the machine for themselves.
test-alone: $(VENV)/.dev
	$(BIN)/python -m pytest tests -m alone --durations=20

# Lint and the quickest tests: under two minutes once the package is built.
quick: lint $(VENV)/.dev
	PYTHONPATH=tools $(BIN)/python -m pytest tests -q -n $(WORKERS) -p quickest --quickest=run

# An editable install: Python files are used from src, and the core is compiled again on import when it has changed.
dev: $(VENV)/.tools
	$(BIN)/pip install --quiet --no-build-isolation --editable '.[$(EXTRAS)]' -C editable.rebuild=true -C editable.verbose=false -C build-dir=build/editable
	$(BIN)/python -m nanobind.stubgen -q -m gristmill._core -o src/gristmill/_core.pyi
	touch $(VENV)/.editable $(VENV)/.dev

# Compiles nothing.
lint: $(VENV)/.tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PYTHONPATH=src $(BIN)/lint-imports --no-cache
	$(BIN)/python tools/include_order.py
	$(BIN)/clang-format --dry-run --Werror $$(find src tests -name '*.cpp' -o -name '*.hpp')
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/bug.yml .github/ISSUE_TEMPLATE/feature.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff

types: $(VENV)/.dev
	$(BIN)/mypy

# The core by itself, without Python, under the sanitizers.
core-test: $(VENV)/.dev
	cmake -S . -B build/core -DGRISTMILL_PYTHON=OFF -DGRISTMILL_CORE_TESTS=ON -DGRISTMILL_SANITIZE=ON
	cmake --build build/core --parallel $(JOBS)
	build/core/core_main
	build/core/core_pairwise
	build/core/core_elementary
	for isa in $$(build/core/core_digests --isas); do \
	  GRISTMILL_ISA=$$isa build/core/core_fleets && \
	  GRISTMILL_ISA=$$isa build/core/core_digests tests/core/digests || exit 1; done

# The core on ARM: cross-compiled and run by an emulator, which on Debian come by
# apt-get install g++-aarch64-linux-gnu qemu-user
ARM ?= aarch64-linux-gnu
test-neon:
	@command -v $(ARM)-g++ qemu-aarch64 >/dev/null || \
	  { echo "make test-neon needs: apt-get install g++-$(ARM) qemu-user"; exit 1; }
	cmake -S . -B build/neon -DGRISTMILL_PYTHON=OFF -DGRISTMILL_CORE_TESTS=ON -DCMAKE_SYSTEM_NAME=Linux \
	  -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_CXX_COMPILER=$(ARM)-g++ "-DCMAKE_CROSSCOMPILING_EMULATOR=qemu-aarch64;-L;/usr/$(ARM)"
	cmake --build build/neon --parallel $(JOBS)
	ctest --test-dir build/neon --output-on-failure

# The core by GCC and by Clang, warnings as errors, the digests of each instruction set; then the Python module by Clang.
# On Debian: apt-get install g++ clang
test-compilers: $(VENV)/.dev
	@command -v g++ clang++ >/dev/null || { echo "make test-compilers needs: apt-get install g++ clang"; exit 1; }
	for compiler in g++ clang++; do \
	  cmake -S . -B build/$$compiler -DGRISTMILL_PYTHON=OFF -DGRISTMILL_CORE_TESTS=ON -DCMAKE_CXX_COMPILER=$$compiler \
	    -DCMAKE_CXX_FLAGS=-Werror && \
	  cmake --build build/$$compiler --parallel $(JOBS) && ctest --test-dir build/$$compiler --output-on-failure && \
	  for isa in $$(build/$$compiler/core_digests --isas); do \
	    GRISTMILL_ISA=$$isa build/$$compiler/core_digests tests/core/digests || exit 1; done || exit 1; done
	CXX=clang++ $(BIN)/pip install --quiet --no-build-isolation --no-deps --upgrade --target build/clang-python/site . \
	  -C build-dir=build/clang-python/cmake
	PYTHONPATH=build/clang-python/site $(BIN)/python -m pytest -q -p no:cacheprovider tests/promises/test_isas.py tests/promises/test_exactness.py

# The tests with the oldest dependencies that pyproject.toml allows, in an environment of their own.
test-oldest:
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python tools/requirements.py dev > .venv-oldest/dev.txt
	.venv-oldest/bin/pip install --quiet --constraint tests/oldest.txt --requirement .venv-oldest/dev.txt '.[$(EXTRAS)]'
	.venv-oldest/bin/python -m pytest tests -m 'not alone' -n $(WORKERS)
	.venv-oldest/bin/python -m pytest tests -m alone

# The sdist and a wheel, tried in an empty environment; tests/quickest.txt names the tests.
wheel: $(VENV)/.wheel
	$(BIN)/python tools/wheel.py

quickest: $(VENV)/.dev
	PYTHONPATH=tools $(BIN)/python -m pytest tests -q -p quickest --quickest=write --durations=20

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

# Every figure and table of the papers, its picture and its text into docs/results/pictures (GRISTMILL_DATA says where the data are).
papers: $(VENV)/.dev
	$(BIN)/python -m docs._scripts.pictures

# The Python module by the sanitizers, and how tests run against it. A model asks for no block of 1 GB.
build/sanitize/site/.built: $(VENV)/.tools $(SOURCES)
	$(BIN)/pip install --quiet --no-build-isolation --no-deps --upgrade --target build/sanitize/site . \
	  -C build-dir=build/sanitize/cmake -C cmake.define.GRISTMILL_SANITIZE=ON
	touch $@
SANITIZED = LD_PRELOAD="$(ASAN)" ASAN_OPTIONS=detect_leaks=0:max_allocation_size_mb=1024 PYTHONPATH=build/sanitize/site \
  $(BIN)/python -m pytest -p no:cacheprovider

# The whole Python test suite against a build with AddressSanitizer and UndefinedBehaviorSanitizer.
sanitize: core-test build/sanitize/site/.built
	$(SANITIZED) tests

# Changed model files and readers beside a learner, against the same build; then every whole number of every model file, a
# thousand kills during a save, full disks, forks, signals and closed streams, against the package; and exports of thousands of
# random compositions.
fuzz: $(VENV)/.dev build/sanitize/site/.built
	GRISTMILL_FUZZ=10000 $(SANITIZED) tests/hostile/test_mutated_files.py tests/hostile/test_threads.py
	GRISTMILL_FUZZ=100000 $(BIN)/python -m pytest tests/hostile/test_mutated_files.py
	GRISTMILL_INTEGERS=all $(BIN)/python -m pytest tests/hostile/test_forged_integers.py
	GRISTMILL_EXPORTS=3000 $(BIN)/python -m pytest tests/export/test_random_compositions.py
	GRISTMILL_MOMENTS=500 $(BIN)/python -m pytest --timeout 7200 tests/hostile/test_sudden_errors.py
	GRISTMILL_SEEDS=600 $(BIN)/python -m pytest --timeout 7200 tests/prepared/test_saved_streams.py
	GRISTMILL_KILLS=1000 $(BIN)/python -m pytest tests/persist/test_atomic.py tests/fleets/test_spill.py tests/cli/test_process.py

# Changes of the code that no test notices; an hour at most. The survivors are printed.
mutants: $(VENV)/.dev
	$(BIN)/python tools/mutants.py --count 15 --minutes 55

# Shards, driver and both are killed at fifty random moments, on a real Ray; so are learners on each broker. The digests are
# compared each time.
chaos: $(VENV)/.dev
	GRISTMILL_CHAOS=50 $(BIN)/python -m pytest tests/cluster/test_cluster_ray.py -s -k random_kills
	GRISTMILL_CHAOS=50 $(BIN)/python -m pytest tests/serve/test_kill.py -s
	GRISTMILL_CHAOS=50 $(BIN)/python -m pytest tests/brokers -s -k 'random_kills or whatever_is_killed or that_is_killed'

# The page of the service in a real browser. On Debian: apt-get install chromium chromium-driver
test-browser: $(VENV)/.dev
	@command -v chromium chromedriver >/dev/null || \
	  { echo "make test-browser needs: apt-get install chromium chromium-driver"; exit 1; }
	$(BIN)/python -m pytest tests/serve/browser_page.py

# Exported models that go on learning on an emulated Cortex-M4: equal to the library, and what they take.
test-micro: $(VENV)/.dev
	@command -v arm-none-eabi-gcc qemu-system-arm >/dev/null || \
	  { echo "make test-micro needs: apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm"; exit 1; }
	$(BIN)/python -m pytest tests/export/micro/emulated.py

# The pages, with the gallery (its examples run) and the reference, in site/; every warning is an error.
docs: $(VENV)/.docs
	if command -v emcmake >/dev/null; then $(MAKE) playground; else echo "without the playground, which needs: apt-get install emscripten"; fi
	$(BIN)/sphinx-build -b html -W --keep-going docs site

# Ordinary queries against the search of the pages that `make docs` built. On Debian: apt-get install nodejs
test-search: $(VENV)/.docs
	@command -v node >/dev/null || { echo "make test-search needs: apt-get install nodejs"; exit 1; }
	test -e site/searchindex.js || $(MAKE) docs
	$(BIN)/python -m pytest tests/browser/test_search.py

# The core for browsers and the playground, in build/playground: serve that folder, or let `make docs` take it in. On Debian:
# apt-get install emscripten (NODE_PATH: its acorn, where Node.js is not Debian's own)
playground:
	@command -v emcmake >/dev/null || { echo "make playground needs: apt-get install emscripten"; exit 1; }
	NODE_PATH=/usr/share/nodejs emcmake cmake -S . -B build/web -DGRISTMILL_PYTHON=OFF
	NODE_PATH=/usr/share/nodejs cmake --build build/web --target gristmill_web --parallel $(JOBS)
	mkdir -p build/playground/playground
	cp docs/playground/*.html docs/playground/*.css docs/playground/*.js src/web/*.js build/web/src/web/gristmill.wasm build/playground/playground

# The playground in a headless browser, against the Python package. On Debian: apt-get install chromium-driver
test-playground: $(VENV)/.dev playground
	@command -v chromedriver >/dev/null || { echo "make test-playground needs: apt-get install chromium-driver"; exit 1; }
	$(BIN)/pip install --quiet selenium
	$(BIN)/python -m pytest tests/browser/test_playground.py

$(VENV)/pyvenv.cfg:
	$(PYTHON) -m venv $(VENV)

# What compiles the package: pip builds with these and not in isolation, so that every target shares one build folder and
# compiles a source file once.
$(VENV)/.build: $(VENV)/pyvenv.cfg pyproject.toml
	$(BIN)/python tools/requirements.py build > $(VENV)/build.txt
	$(BIN)/pip install --quiet --requirement $(VENV)/build.txt
	touch $@

$(VENV)/.run: $(VENV)/.build $(SOURCES)
	test -e $(VENV)/.editable || $(BIN)/pip install --quiet --no-build-isolation '.[cli,plot]'
	touch $@

$(VENV)/.tools: $(VENV)/.build
	$(BIN)/python tools/requirements.py dev > $(VENV)/dev.txt
	$(BIN)/pip install --quiet --requirement $(VENV)/dev.txt
	touch $@

# The package as users install it, unless `make dev` made the install editable; and the types of its compiled part for mypy.
$(VENV)/.dev: $(VENV)/.tools $(SOURCES)
	test -e $(VENV)/.editable || $(BIN)/pip install --quiet --no-build-isolation '.[$(EXTRAS)]'
	$(BIN)/python -m nanobind.stubgen -q -m gristmill._core -o src/gristmill/_core.pyi
	touch $@

$(VENV)/.bench: $(VENV)/.dev
	$(BIN)/python tools/requirements.py bench > $(VENV)/bench.txt
	$(BIN)/pip install --quiet --requirement $(VENV)/bench.txt
	touch $@

$(VENV)/.docs: $(VENV)/.dev
	$(BIN)/python tools/requirements.py docs > $(VENV)/docs.txt
	$(BIN)/pip install --quiet --requirement $(VENV)/docs.txt
	touch $@

$(VENV)/.wheel: $(VENV)/.dev
	$(BIN)/python tools/requirements.py wheel > $(VENV)/wheel.txt
	$(BIN)/pip install --quiet --requirement $(VENV)/wheel.txt
	touch $@

clean:
	rm -rf $(VENV) .venv-oldest build dist site docs/gallery docs/reference docs/sg_execution_times.rst
