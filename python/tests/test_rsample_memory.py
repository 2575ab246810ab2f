"""The memory of pathwise derivatives: in chunks, with the same results, and refused with a number."""

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import pal
from pal.torch import HistogramLayer, SplineLayer, SumOfSquaresLayer

x, y, z, w = pal.reals("x", "y", "z", "w")
PENTAGON = x.between(0, 3) & y.between(0, 2) & (x + y <= 4) & (2 * y <= x + 3)
FOUR = (x >= 0) & (y >= 0) & (z >= 0) & (w >= 0) & (x + y + z + w <= 1)
LAYERS = {
    "spline": lambda: SplineLayer(PENTAGON, knots=5, components=3, head="values"),
    "student-t": lambda: SplineLayer(PENTAGON, knots=6, components=2),
    "squares": lambda: SumOfSquaresLayer(PENTAGON, degree=3, components=2),
    "histogram": lambda: HistogramLayer(PENTAGON, bins=4, components=1),
    "interval": lambda: SplineLayer(x.between(0, 1), knots=5, components=2, head="values"),
}


@pytest.mark.parametrize("kind", LAYERS)
def test_results_do_not_depend_on_the_chunks(kind):
    layer = LAYERS[kind]()
    outputs = torch.randn(5, layer.num_params, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    outputs.requires_grad_()
    p = layer(outputs)
    paths, form = p._paths, p.normaliser.form
    per_line = 2 * paths.bytes_per_line(layer, form)
    density, sample = per_line * paths.lines_per_density, per_line * paths.lines_per_sample
    # Everything at once, two rows at a time, one row at a time, and two samples of one row at a time.
    limits = [2**30, 2.5 * (density + 7 * sample), 1.5 * (density + 7 * sample), density + 2.5 * sample]
    chunks = [paths.chunks(layer, form, 5, 7, limit) for limit in limits]
    assert chunks == [(5, 7), (2, 7), (1, 7), (1, 2)]
    found = []
    for limit in limits:
        torch.manual_seed(3)
        samples = layer(outputs).rsample((7,), memory=limit)
        (gradient,) = torch.autograd.grad((samples * samples.detach().cos()).sum(), outputs)
        found.append((samples.detach(), gradient))
    for samples, gradient in found[1:]:
        assert torch.equal(samples, found[0][0])
        assert torch.allclose(gradient, found[0][1], rtol=1e-12, atol=1e-13)


def test_too_little_memory_is_an_error_that_says_how_much_it_takes():
    layer = SplineLayer(FOUR, knots=6, components=1, head="values")
    p = layer(torch.zeros(layer.num_params))
    assert not p.has_rsample
    with pytest.raises(NotImplementedError, match=r"would need [\d.]+ GB of memory, more than the limit of 1.07 GB"):
        p.rsample((64,))
    small = LAYERS["spline"]()
    with pytest.raises(NotImplementedError, match=r"limit of 1e\+03 bytes|limit of 1 kB"):
        small(torch.zeros(small.num_params)).rsample(memory=1000)


MEASURE = """
import resource, torch, pal
from pal.torch import SplineLayer
names = pal.reals("x", "y", "z", "w")
region = pal.all_of(name >= 0 for name in names) & (names[0] + names[1] + names[2] + names[3] <= 1)
layer = SplineLayer(region, knots=2, components=4, head="values")
params = torch.zeros(2, layer.num_params, dtype=torch.float64, requires_grad=True)
layer(params[:1]).rsample((1,), memory=2**33).sum().backward()
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
paths, form = layer(params)._paths, layer.form
one = 2 * paths.bytes_per_line(layer, form) * (paths.lines_per_density + paths.lines_per_sample)
before = peak()
limit = 4 * one
layer(params).rsample((12,), memory=limit).sum().backward()
print(peak() - before, limit, one)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read as Linux reports it")
def test_the_limit_is_kept():
    output = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True).stdout
    taken, limit, one = map(float, output.split())
    assert one < limit and taken < 1.25 * limit
