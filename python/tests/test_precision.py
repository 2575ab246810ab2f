"""Points far from the origin, and devices without float64."""

import warnings

import pytest

torch = pytest.importorskip("torch")

import pal
from pal.torch import HistogramLayer, SplineLayer, SumOfSquaresLayer, _devices

x, y = pal.reals("x", "y")


def triangle(east, north, side):
    return (x >= east) & (y >= north) & (x + y <= east + north + side)


def layers(region):
    return [
        SplineLayer(region, knots=6, components=2),
        SumOfSquaresLayer(region, degree=2, components=2),
        HistogramLayer(region, bins=4, components=1),
    ]


def test_samples_far_from_the_origin_are_not_quantised():
    # A field of 30 metres in UTM coordinates: float32 has a number every 3 cm east and every half metre north.
    for layer in layers(triangle(350_000, 4_000_000, 30)):
        torch.manual_seed(0)
        p = layer(torch.randn(50, layer.num_params))
        samples = p.sample((40,))
        assert samples.dtype == torch.float64 and p.support.check(samples).all()
        assert len(samples[..., 1].unique()) == 2000
        assert p.mean.dtype == p.mode.dtype == torch.float64
        assert p.log_prob(samples).dtype == torch.float32 and p.log_prob(samples).isfinite().all()
        assert p.marginal("y").icdf(torch.full((50,), 0.5)).dtype == torch.float64
        assert p.probability(x <= 350_010).dtype == torch.float32
        moved = p.rsample((3,))
        assert moved.dtype == torch.float64


def test_means_far_away_are_those_at_the_origin():
    torch.manual_seed(1)
    far, near = (SplineLayer(triangle(*at, 32), knots=5, components=2) for at in ((2**18, 2**22), (0, 0)))
    outputs = torch.randn(6, far.num_params)
    shift = torch.tensor([2.0**18, 2.0**22], dtype=torch.float64)
    assert near(outputs).mean.dtype == torch.float32
    assert torch.allclose(far(outputs).mean - shift, near(outputs).mean.double(), atol=1e-3)


def test_near_the_origin_samples_have_the_precision_of_the_parameters():
    for region in (triangle(0, 0, 1), triangle(-3, 5, 1), triangle(0, 0, 1_000_000), triangle(-1e-3, 0, 1e-3)):
        for layer in layers(region):
            assert layer(torch.zeros(layer.num_params)).sample().dtype == torch.float32
            assert layer(torch.zeros(layer.num_params, dtype=torch.float64)).sample().dtype == torch.float64
    layer = SplineLayer(triangle(0, 0, 1), knots=4)
    assert layer(torch.zeros(layer.num_params, dtype=torch.bfloat16)).sample().dtype == torch.bfloat16
    # From eight sides away on: 2^-20 of the side between neighbours at 8, twice that at 16.
    for east, dtype in ((7, torch.float32), (14, torch.float32), (16, torch.float64), (100, torch.float64)):
        layer = SplineLayer(x.between(east, east + 1), knots=4)
        assert layer(torch.zeros(layer.num_params)).sample().dtype == dtype, east


def test_targets_that_have_lost_the_wall_give_one_warning():
    layer = SplineLayer(triangle(350_000, 4_000_000, 30), knots=6, components=2)
    p = layer(torch.zeros(4, layer.num_params))
    points = p.sample()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        p.log_prob(points)
    with pytest.warns(UserWarning, match=r"points in float32 are .* of the side of the box apart.*torch.float64"):
        p.log_prob(points.float())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        p.log_prob(points.float())
        near = SplineLayer(triangle(0, 0, 1), knots=6, components=2)
        near(torch.zeros(4, near.num_params)).log_prob(torch.rand(4, 2) / 2)


@pytest.fixture(name="without_float64")
def device_without_float64(monkeypatch):
    """The device `meta` stands in for one without float64, of which this machine has none."""
    monkeypatch.setattr(_devices, "lacks_float64", lambda device: device.type == "meta")


def test_devices_without_float64_are_refused_by_name(without_float64):
    layer = SplineLayer(triangle(0, 0, 1), knots=4, components=2)
    for move in (lambda: layer.to("meta"), lambda: torch.nn.Sequential(torch.nn.Linear(2, 3), layer).to("meta")):
        with pytest.raises(ValueError, match=r"a layer cannot be on the device meta.*layer\(network\(x\).cpu\(\)\)"):
            move()
    # What was refused has not been moved half of the way.
    assert {buffer.device.type for buffer in layer.buffers()} == {"cpu"}
    with pytest.raises(ValueError, match="outputs cannot be on the device meta"):
        layer(torch.zeros(3, layer.num_params, device="meta"))
    values = SplineLayer(triangle(0, 0, 1), knots=4, components=2, head="values")
    with pytest.raises(ValueError, match="params cannot be on the device meta"):
        values(torch.zeros(3, values.num_params, device="meta"))
    with pytest.raises(ValueError, match="points cannot be on the device meta"):
        layer(torch.zeros(3, layer.num_params)).log_prob(torch.zeros(3, 2, device="meta"))


def test_metal_is_such_a_device_and_the_others_are_not():
    assert _devices.lacks_float64(torch.device("mps"))
    assert not any(_devices.lacks_float64(torch.device(name)) for name in ("cpu", "cuda", "cuda:1", "meta"))
