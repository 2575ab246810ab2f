# make help lists what there is. The Rust parts need Rust only; the Python package needs Python 3.10 or later besides, and the peers of `make bench`
# need Python too. Environments are made under target/.
#
# Tests on real maps read the folder that PAL_DATA names; without it they say `skipped: PAL_DATA is not set`.

CARGO ?= cargo
PYTHON ?= python3
# Where cargo puts what it builds.
TARGET = $(or $(CARGO_TARGET_DIR),target)

ifdef PAL_DATA
export PAL_DATA
endif

.PHONY: help demo test test-gpu test-wmi test-densities test-scale test-python wheel bench bench-python clean

help:
	@echo 'make demo            draw regions and densities, fit walkers on a campus; pictures go to out/'
	@echo 'make test            format, lints, documentation and all tests, cheapest first'
	@echo 'make test-wmi        weighted model integration, optimised (part of make test)'
	@echo 'make test-densities  densities of high degree and many samples, optimised (part of make test)'
	@echo 'make test-gpu        the layer, training and cubature on a GPU; .ci/software-gpu make test-gpu does without one'
	@echo 'make test-scale      ten million samples on every map and star, a million against every mode (ten minutes)'
	@echo 'make test-python     the Python package: tests, doctests, examples, and its wheel in a fresh environment (part of make test)'
	@echo 'make wheel           build the wheel of the Python package into target/wheels'
	@echo 'make bench           benchmarks, then a comparison with LattE and SymPy (about an hour; BENCH=--quick for two minutes)'
	@echo 'make bench-python    speed of the Python package, PyTorch included (a minute)'
	@echo 'make clean           remove build products and pictures'
	@echo
	@echo 'PAL_DATA=FOLDER make test   also runs the tests on real maps and problems'

demo:
	$(CARGO) run --profile quick -p pal-cli -- demo

# Networks and the program are tested in the profile `quick`, in which the demo runs too: burn is built once.
test:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps --workspace
	$(CARGO) test -p pal
	$(TARGET)/debug/examples/triangle && $(TARGET)/debug/examples/integrals
	$(CARGO) test --profile quick -p pal-burn -p pal-cli
	$(TARGET)/quick/examples/mixture_head && $(TARGET)/quick/examples/drone_scene
	$(MAKE) test-wmi
	$(MAKE) test-densities
	$(MAKE) test-python WHEEL_PROFILE=quick

# In an optimised build all published problems with an exact answer are solved exactly, the expensive ones included.
test-wmi:
	$(CARGO) test --profile quick -p pal --test wmi -- --nocapture

# High degrees against an independent integrator, and a million samples per density.
test-densities:
	$(CARGO) test --profile quick -p pal --test density_conditioning --test density_samples -- --include-ignored --nocapture

# Needs a GPU or a software driver for one, and fails without. Not part of make test, which needs Rust only.
test-gpu:
	$(CARGO) test --release --config .ci/quick-gpu.toml -p pal-burn -p pal-cli --features pal-burn/wgpu,pal-cli/wgpu --test gpu -- --nocapture

# Ten million samples on every map and star, none of which may be outside; a million samples per density, none higher than its mode.
test-scale:
	$(CARGO) test --profile quick -p pal --test density_scale --test density_modes -- --include-ignored --nocapture

# The package with everything that its extras ask for, in an environment of its own. The only torch of the package index for Linux is built for CUDA
# and would bring 2 GB of libraries that tests on a CPU never call: it is installed without them (see cpu_torch.py), and with the few packages
# that `import torch` needs.
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

# Where the program was built before, as in `make test`, files are exchanged with it.
test-python: wheel
	$(VENV)/bin/pip install -q --no-deps --force-reinstall target/wheels/*.whl
	PAL_PROGRAM=$(firstword $(wildcard $(abspath $(TARGET))/quick/pal $(abspath $(TARGET))/release/pal)) $(VENV)/bin/python -m pytest
	$(VENV)/bin/python -m pytest --doctest-modules --pyargs pal
	$(PYTHON) -m venv --clear $(SMOKE)
	$(SMOKE)/bin/pip install -q target/wheels/*.whl
	$(SMOKE)/bin/python python/tests/smoke.py

bench-python: wheel
	$(VENV)/bin/pip install -q --no-deps --force-reinstall target/wheels/*.whl
	$(VENV)/bin/python bench/python_step.py

bench:
	$(CARGO) bench -p pal --bench regions
	$(CARGO) bench -p pal --bench moments
	$(CARGO) bench -p pal --bench densities
	$(CARGO) bench -p pal-burn -p pal-cli --bench step
	$(CARGO) build --release -p pal-cli
	$(PYTHON) bench/run.py $(BENCH)

clean:
	$(CARGO) clean
	rm -rf out
