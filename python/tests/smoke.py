"""A first look at an installed wheel, where nothing but numpy is there. Run with any interpreter that has it: it needs
no test runner."""

import importlib.util
import tempfile
from fractions import Fraction
from pathlib import Path

import pal

for name in ("torch", "sklearn", "matplotlib", "scipy", "tqdm", "pandas", "pytest"):
    assert importlib.util.find_spec(name) is None, f"{name} is installed, so this proves nothing"
for name in ("pal.torch", "pal.sklearn", "pal.plot"):
    try:
        __import__(name)
    except ImportError:
        continue
    raise AssertionError(f"{name} works without its library")

x, y = pal.reals("x", "y")
region = pal.Region((x >= 0) & (y >= 0) & (x + y <= 1) & ~((x > "1/4") & (x < "1/2") & (y < "1/4")))
assert region.exact_volume == Fraction(1, 2) - Fraction(1, 16)
assert pal.integrate(region, x * y) == Fraction(1, 24) - Fraction(3, 32) * Fraction(1, 32)
family = pal.SplineMixture(region, knots=5, components=2)
params = family.random_params(3, seed=1)
assert region.contains(family.sample(params, 1000, seed=1)).all()
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder, "model.safetensors")
    family.save(file, params)
    again, rows = pal.load(file)
    assert (rows == params).all() and (again.mean(rows) == family.mean(params)).all()
assert family.density(params[0]).mode().stop == "certified"
assert (Path(pal.__file__).parent / "py.typed").exists() and (Path(pal.__file__).parent / "_core.pyi").exists()
print("the wheel works")
