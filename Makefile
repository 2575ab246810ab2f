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

.PHONY: help demo test test-gpu test-wmi test-densities test-scale test-python wheel bench bench-python clean

help:
	@echo 'make demo            draw regions and densities, fit a density to walkers on a campus; pictures go to out/'
	@echo 'make test            format, lints, documentation and all tests, cheapest first'
	@echo 'make test-wmi        weighted model integration, in an optimised build (part of make test)'
	@echo 'make test-densities  densities of high degree and many samples, in an optimised build (part of make test)'
	@echo 'make test-gpu        the layer, training and cubature on a GPU; .ci/software-gpu make test-gpu needs none'
	@echo 'make test-scale      ten million samples on every map and star, a million per mode (ten minutes)'
	@echo 'make test-python     tests, doctests and examples of the Python package, and its wheel (part of make test)'
	@echo 'make wheel           build the wheel of the Python package into target/wheels'
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
	$(TARGET)/debug/examples/triangle && $(TARGET)/debug/examples/integrals && $(TARGET)/debug/examples/windows
	$(CARGO) test --profile quick -p pal-burn -p pal-cli -p pal-system
	$(TARGET)/quick/examples/mixture_head && $(TARGET)/quick/examples/drone_scene
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
# several densities, none of which may have a higher density than the mode.
test-scale:
	$(CARGO) test --profile quick -p pal --test density_scale --test density_modes -- --include-ignored --nocapture

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

# If the program has been built before, as in `make test`, files are exchanged with it.
test-python: wheel
	$(VENV)/bin/pip install -q --no-deps --force-reinstall target/wheels/*.whl
	PAL_PROGRAM=$(firstword $(wildcard $(abspath $(TARGET))/quick/pal $(abspath $(TARGET))/release/pal)) \
		$(VENV)/bin/python -m pytest
	$(VENV)/bin/python -m pytest --doctest-modules --pyargs pal
	$(PYTHON) -m venv --clear $(SMOKE)
	$(SMOKE)/bin/pip install -q target/wheels/*.whl
	$(SMOKE)/bin/python python/tests/smoke.py

bench-python: wheel
	$(VENV)/bin/pip install -q --no-deps --force-reinstall target/wheels/*.whl
	$(VENV)/bin/python bench/python_step.py
	$(VENV)/bin/python bench/regions.py

bench:
	$(CARGO) bench -p pal --bench regions
	$(CARGO) bench -p pal --bench moments
	$(CARGO) bench -p pal --bench densities
	$(CARGO) bench -p pal --bench batches
	$(CARGO) bench -p pal-burn -p pal-cli --bench step
	$(CARGO) build --release -p pal-cli
	$(PYTHON) bench/run.py $(BENCH)

clean:
	$(CARGO) clean
	rm -rf out
