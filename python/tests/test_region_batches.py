"""A region for each example: batches, windows, and layers whose rows have regions of their own."""

import pickle

import numpy as np
import pytest
import torch

import pal
from pal.torch import CompiledRegions, RegionDistribution, SplineLayer, collate

x, y, z = pal.reals("x", "y", "z")
ROOM = pal.Region(
    x.between(0, 6) & y.between(0, 5) & (2 * x + y >= 1) & ~(x.between(1, 2) & y.between(2, 3)) & ~(x - y).between(1, 2)
)
BOX = x.between(-1, 1) & y.between(-1, 1)


def windows(count=12, seed=0, turned=True):
    random = np.random.default_rng(seed)
    centres, headings = random.uniform([0, 0], [6, 5], (count, 2)), random.normal(size=(count, 2))
    batch = ROOM.windows(centres, 1, headings if turned else None)
    return batch[batch.volume > 0.01]


def test_windows_are_constraints_of_their_own():
    batch = windows(30)
    assert len(batch) > 20 and batch.variables == ("x", "y")
    points = np.random.default_rng(1).uniform(-1.2, 1.2, (5, len(batch), 2))
    inside = batch.contains(points)
    assert inside.shape == (5, len(batch)) and 0 < inside.mean() < 1
    volume = batch.volume
    for row, region in enumerate(batch):
        assert region.contains(points[:, row]).tolist() == inside[:, row].tolist()
        assert abs(volume[row] / region.volume - 1) < 1e-12
        assert region.status == "bounded"


def test_local_coordinates_are_turned_and_scaled():
    centre, heading, scale = np.array([3.0, 2.0]), np.array([3.0, 4.0]), 0.5
    batch = ROOM.windows([centre], 1, [heading], scale)
    ahead = heading / 5 * scale
    left = np.array([-ahead[1], ahead[0]])
    for u in np.random.default_rng(2).uniform(-1, 1, (200, 2)):
        assert batch.contains([u])[0] == ROOM.contains(centre + u[0] * ahead + u[1] * left)


def test_indexing_and_concatenation_keep_rows():
    batch = windows(12)
    volume = batch.volume
    for index in (slice(2, 5), [3, -1, 3], np.array([0, 4]), volume > 1, torch.tensor([1, 2])):
        expected = volume[index.numpy() if isinstance(index, torch.Tensor) else index]
        assert np.array_equal(batch[index].volume, expected)
    assert isinstance(batch[1], pal.Region) and isinstance(batch[np.int64(1)], pal.Region)
    both = batch + batch[:2]
    assert len(both) == len(batch) + 2 and np.array_equal(both.volume[-2:], volume[:2])
    assert np.array_equal(pal.RegionBatch.concatenate([batch, both]).volume, np.concatenate([volume, both.volume]))
    with pytest.raises(IndexError, match="rows"):
        batch[[100]]
    with pytest.raises(pal.RegionError, match="x, z"):
        batch + pal.RegionBatch([x.between(0, 1) & z.between(0, 1)])


def test_files_and_pickles_bring_rows_back(tmp_path):
    half_spaces = pal.RegionBatch.from_halfspaces([[[1, 0], [0, 1], [-1, -1]]], [[1, 1, 0]], variables=["x", "y"])
    batch = windows(6) + half_spaces + pal.RegionBatch([ROOM])
    batch.save(tmp_path / "regions.safetensors")
    for back in (pal.RegionBatch.load(tmp_path / "regions.safetensors"), pickle.loads(pickle.dumps(batch))):
        assert np.array_equal(back.volume, batch.volume) and back.variables == batch.variables
        assert [repr(region) for region in back] == [repr(region) for region in batch]
    (tmp_path / "other").write_bytes(b"nothing")
    with pytest.raises(pal.FileError, match="other"):
        pal.RegionBatch.load(tmp_path / "other")


def test_statuses_and_wrong_input_name_rows():
    batch = pal.RegionBatch([BOX, BOX & (x >= 2), BOX & (x == 1), pal.Constraint(x >= 0, ["x", "y"])])
    assert batch.status == ["bounded", "empty", "lower-dimensional", "unbounded"]
    assert batch.volume.tolist() == [4.0, 0.0, 0.0, np.inf]
    layer = SplineLayer(BOX, knots=4, components=2)
    with pytest.raises(pal.DensityError, match="rows 1, 2 of the regions have no volume"):
        layer(torch.zeros(4, layer.num_params), batch)
    with pytest.raises(ValueError, match="4 regions"):
        layer(torch.zeros(3, layer.num_params), CompiledRegions(layer, batch[[0, 3, 0, 3]]))
    with pytest.raises(TypeError, match="RegionBatch"):
        layer(torch.zeros(3, layer.num_params), ROOM)
    with pytest.raises(pal.RegionError, match="row 1"):
        ROOM.windows([[1, 1], [1, np.nan]], 1)
    with pytest.raises(pal.RegionError, match="half width"):
        ROOM.windows([[1, 1]], -1)
    with pytest.raises(ValueError, match="one heading for each"):
        ROOM.windows([[1, 1]], 1, headings=[1, 0])
    with pytest.raises(ValueError, match="shapes"):
        pal.RegionBatch.from_halfspaces(np.zeros((2, 3, 2)), np.zeros((2, 4)))


def test_half_spaces_are_exact():
    A = torch.tensor([[[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], [[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]])
    batch = pal.RegionBatch.from_halfspaces(A, torch.tensor([[0.3, 0.0, 0.0], [1.0, 0.0, 0.0]]))
    # 0.3 is the float32 nearest to it, and 0.1 + 0.2 is larger than the float64 nearest to it.
    limit = float(torch.tensor(0.3))
    assert batch.volume.tolist() == [limit**2 / 2, 0.5]
    unions = pal.RegionBatch.from_halfspaces(
        np.array([[[[1.0], [-1.0]], [[1.0], [-1.0]]]] * 2), [[[1, 0], [3, -2]]] * 2, mask=[[True, True], [True, False]]
    )
    assert unions.volume.tolist() == [2.0, 1.0]
    assert unions.contains([[2.5], [2.5]]).tolist() == [True, False]


def test_shapely_geometries_become_rows():
    shapely = pytest.importorskip("shapely")
    batch = pal.RegionBatch.from_shapely([shapely.box(0, 0, 1, 2), shapely.Point(0, 0).buffer(1).difference(shapely.box(0, 0, 2, 2))])
    assert batch.volume[0] == 2.0 and batch.contains([[0.5, 0.5], [0.5, 0.5]]).tolist() == [True, False]


@pytest.mark.parametrize("head", ["student-t", "values"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_densities_are_those_of_layers_compiled_alone(head, dtype):
    batch = windows(10, turned=head == "values")
    layer = SplineLayer(BOX, knots=7, components=3, head=head)
    torch.manual_seed(1)
    outputs = (torch.randn(len(batch), layer.num_params, dtype=dtype) / 2).requires_grad_()
    points = torch.from_numpy(np.stack([region.sample(1, seed=row)[0] for row, region in enumerate(batch)]))
    p = layer(outputs, batch)
    assert isinstance(p, RegionDistribution) and p.batch_shape == (len(batch),)
    log_prob = p.log_prob(points)
    log_prob.sum().backward()
    tolerance = 1e-10 if dtype == torch.float64 else 2e-4
    for row in range(len(batch)):
        # The same grid, because the box is among the knots.
        edges = [list(map(pal.rational, axis)) for axis in layer.family.edges]
        alone = SplineLayer(batch[row], knots=edges, components=3, head=head)
        own = outputs.detach()[row].clone().requires_grad_()
        expected = alone(own).log_prob(points[row])
        expected.backward()
        assert torch.allclose(log_prob[row], expected, atol=tolerance)
        assert torch.allclose(outputs.grad[row], own.grad, atol=tolerance * 10, rtol=tolerance * 10)


def test_points_outside_have_no_density_and_no_gradient():
    batch = windows(8)
    layer = SplineLayer(BOX, knots=6, components=2)
    outputs = torch.randn(len(batch), layer.num_params).requires_grad_()
    points = torch.rand(20, len(batch), 2) * 2.4 - 1.2
    p = layer(outputs, layer.compile_regions(batch))
    log_prob = p.log_prob(points)
    inside = torch.from_numpy(batch.contains(points.double().numpy()))
    assert torch.equal(log_prob.isneginf(), ~inside) and torch.equal(p.support.check(points), inside)
    log_prob.nan_to_num(neginf=0.0).sum().backward()
    assert bool(outputs.grad.isfinite().all()) and not bool(log_prob.isnan().any())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_samples_are_inside_of_their_own_regions(dtype):
    batch = windows(6)
    layer = SplineLayer(BOX, knots=6, components=2)
    p = layer(torch.randn(len(batch), layer.num_params, dtype=dtype), batch)
    torch.manual_seed(3)
    samples = p.sample((50,))
    assert samples.shape == (50, len(batch), 2) and samples.dtype == dtype
    assert batch.contains(samples.double().numpy()).all()
    torch.manual_seed(3)
    assert torch.equal(samples, p.sample((50,)))


def test_queries_are_those_of_the_rows():
    batch = windows(20)
    batch = batch[batch.volume > 2][:4]
    layer = SplineLayer(BOX, knots=6, components=2)
    torch.manual_seed(2)
    p = layer(torch.randn(len(batch), layer.num_params, dtype=torch.float64), batch)
    event = x + y >= 0.25
    with pytest.raises(pal.QueryError, match="row 0: the condition has probability 0"):
        p.condition(x >= 2)
    densities = p.densities()
    total = p.probability(event) + p.probability(~event)
    assert torch.allclose(total, torch.ones(len(batch), dtype=torch.float64))
    for row, density in enumerate(densities):
        assert np.allclose(p.mean[row], density.mean()) and np.allclose(p.covariance[row], density.covariance())
        assert np.allclose(p.entropy()[row], density.entropy().value)
        assert np.allclose(p.mode[row], density.mode().point)
    assert torch.allclose(p.marginal("x").mean, p.mean[:, 0])
    given = p.condition(event)
    points = given.sample((20,))
    assert bool((points.sum(-1) >= 0.25).all())
    expected = p.log_prob(points) - p.probability(event).log()
    assert torch.allclose(given.log_prob(points), expected)
    assert torch.allclose(p[1:3].log_prob(points[:, 1:3]), p.log_prob(points)[:, 1:3])
    assert p.expand((2, len(batch))).log_prob(points[:2]).shape == (2, len(batch))
    # The mean of many samples is the mean.
    assert torch.allclose(p.sample((4000,)).mean(0), p.mean, atol=0.06)


def test_a_layer_still_has_a_constraint_of_its_own():
    layer = SplineLayer(BOX & (x + y <= 1), knots=6, components=2)
    outputs = torch.randn(3, layer.num_params)
    assert layer(outputs).log_prob(torch.tensor([0.9, 0.9])).isneginf().all()
    part = layer.normaliser_within(x <= 0)
    values = [layer(outputs, part), layer(outputs, normaliser=part)]
    assert torch.equal(*(p.log_prob(torch.tensor([-0.5, 0.5])) for p in values))
    # Rows are not bound by the constraint of the layer, but by its box.
    rows = layer(outputs, pal.RegionBatch([BOX] * 3))
    assert rows.log_prob(torch.tensor([0.9, 0.9])).isfinite().all()


def test_other_layers_compile_other_regions():
    layer, other = SplineLayer(BOX, knots=5, components=2), SplineLayer(BOX, knots=6, components=2)
    compiled = layer.compile_regions(windows(4))
    with pytest.raises(ValueError, match="another grid"):
        other(torch.zeros(len(compiled), other.num_params), compiled)
    copy = pickle.loads(pickle.dumps(compiled))
    outputs = torch.randn(len(copy), layer.num_params)
    point = torch.tensor([0.1, 0.1])
    assert torch.equal(layer(outputs, copy).log_prob(point), layer(outputs, compiled).log_prob(point))
    assert 0 < compiled.nbytes < 10_000 * len(compiled)


def test_regions_compiled_for_float32_take_half_of_the_memory():
    layer, batch = SplineLayer(BOX, knots=9, components=2), windows(20)
    double, single = layer.compile_regions(batch), layer.compile_regions(batch, torch.float32)
    assert single.nbytes < 0.6 * double.nbytes
    outputs, point = torch.randn(len(batch), layer.num_params), torch.tensor([0.1, 0.1])
    values = [layer(outputs, regions).log_prob(point) for regions in (single, double)]
    assert torch.allclose(*values, atol=1e-4)
    with pytest.raises(pal.DensityError, match="compiled for float32"):
        layer(outputs.double(), single).log_prob(point)


class Examples(torch.utils.data.Dataset):
    def __init__(self, batch):
        self.batch = batch

    def __len__(self):
        return len(self.batch)

    def __getitem__(self, index):
        return {"input": torch.tensor([float(index)]), "region": self.batch[index : index + 1]}


@pytest.mark.parametrize("workers", [0, 2])
def test_loaders_collate_regions(workers):
    batch = windows(10)
    loader = torch.utils.data.DataLoader(Examples(batch), batch_size=4, collate_fn=collate, num_workers=workers)
    volumes, inputs = [], []
    for examples in loader:
        volumes.append(examples["region"].volume)
        inputs.append(examples["input"])
    assert np.array_equal(np.concatenate(volumes), batch.volume)
    assert torch.cat(inputs).flatten().tolist() == list(range(len(batch)))


def test_a_network_learns_with_a_region_per_example():
    batch = windows(40)
    torch.manual_seed(0)
    layer = SplineLayer(BOX, knots=8, components=2)
    compiled = layer.compile_regions(batch)
    targets = torch.from_numpy(np.stack([region.sample(1, seed=row)[0] for row, region in enumerate(batch)])).float()
    assert batch.contains(targets.double().numpy()).all()
    network = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.Tanh(), torch.nn.Linear(32, layer.num_params))
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-2)
    losses = []
    for _ in range(60):
        rows = torch.randperm(len(batch))[:16]
        loss = -layer(network(targets[rows]), compiled[rows]).log_prob(targets[rows]).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert np.mean(losses[-5:]) < np.mean(losses[:5]) - 0.5
