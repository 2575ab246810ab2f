"""Paths that never touch an obstacle: exact likelihoods and samples of many steps."""

from fractions import Fraction

import numpy as np
import pal
import pytest
import torch
from pal.torch import StepNetwork, TrajectoryLayer

BLOCKS = [((4, 5), (2, 6)), ((6, 7), (0, 4)), ((1, 2), (1, 2))]


def hall(blocks=BLOCKS):
    x, y = pal.reals("x", "y")
    formula = x.between(0, 9) & y.between(0, 6)
    for (left, right), (low, high) in blocks:
        formula = formula & ~(x.between(left, right) & y.between(low, high))
    return pal.Region(formula)


def touches(start, end, blocks=BLOCKS):
    """Whether a segment meets a closed block or leaves the hall, in fractions."""
    p, q = [[Fraction(float(v)) for v in point] for point in (start, end)]
    if not all(0 <= v <= most for point in (p, q) for v, most in zip(point, (9, 6))):
        return True
    for block in blocks:
        low, high = Fraction(0), Fraction(1)
        for a, b, (left, right) in zip(p, q, block):
            if a == b:
                if not left <= a <= right:
                    low = Fraction(2)
                continue
            ends = sorted(((Fraction(left) - a) / (b - a), (Fraction(right) - a) / (b - a)))
            low, high = max(low, ends[0]), min(high, ends[1])
        if low <= high:
            return True
    return False


def walkers(count=6, seed=0):
    """Past positions that are free: three steps from random starts."""
    generator = np.random.default_rng(seed)
    found = []
    while len(found) < count:
        start, step = generator.uniform((0, 0), (9, 6)), 0.4 * generator.normal(size=2)
        path = [start, start + step, start + 2 * step]
        if not any(touches(a, b) for a, b in zip(path, path[1:])):
            found.append(path)
    return torch.tensor(np.array(found))


@pytest.fixture(scope="module")
def layer():
    torch.manual_seed(1)
    return TrajectoryLayer(hall(), steps=5, components=3)


def test_samples_touch_nothing_in_fractions(layer):
    past = walkers()
    paths = layer(past).sample((40,))
    assert paths.shape == (40, 6, 5, 2) and paths.dtype == torch.float64
    whole = torch.cat([past[:, -1:].expand(40, 6, 1, 2), paths], 2).numpy().reshape(-1, 6, 2)
    assert not any(touches(a, b) for path in whole for a, b in zip(path, path[1:]))
    # Steps are long enough for obstacles to matter: without them some would touch one.
    free = TrajectoryLayer(hall([]), steps=5, network=layer.network, components=3)
    ghosts = free(past).sample((40,)).numpy().reshape(-1, 5, 2)
    assert any(touches(a, b) for path in ghosts for a, b in zip(path, path[1:]))
    assert torch.isfinite(layer(past).log_prob(paths)).all()
    assert layer(past).support.check(paths).all()


def test_the_product_of_two_steps_integrates_to_one():
    """By plain Monte Carlo with uniform points, which knows nothing of kernels, windows or shadows."""
    torch.manual_seed(2)
    layer = TrajectoryLayer(hall(), steps=2, components=3, reach=2.0, stride=1.0)
    past = torch.tensor([[[2.2, 3.0], [2.9, 3.5], [3.6, 4.0]]], dtype=torch.float64)
    rows, generator = 40_000, np.random.default_rng(3)

    def uniform(origin, heading, scale):
        """Points of the window of a walker, and its area."""
        ahead = heading / np.linalg.norm(heading, axis=-1, keepdims=True)
        left = np.stack([-ahead[..., 1], ahead[..., 0]], -1)
        u = generator.uniform(-2, 2, size=(rows, 2)) * scale[..., None]
        return origin + u[:, :1] * ahead + u[:, 1:] * left, (4 * scale) ** 2

    start, step = past[0, -1].numpy(), (past[0, -1] - past[0, -2]).numpy()
    first, area = uniform(start, step, np.full(rows, max(np.linalg.norm(step), 0.5)))
    move = first - start
    second, second_area = uniform(first, move, np.maximum(np.linalg.norm(move, axis=-1), 0.5))
    paths = torch.from_numpy(np.stack([first, second], 1))
    with torch.no_grad():
        weights = layer(past.expand(rows, 3, 2)).log_prob(paths).double().exp().numpy() * area * second_area
    error = weights.std() / np.sqrt(rows)
    assert error < 0.04 and abs(weights.mean() - 1) < 4 * error, (weights.mean(), error)
    assert 0.2 < (weights == 0).mean() < 0.95


def test_teacher_forcing_is_step_after_step(layer):
    past = walkers(4, seed=5)
    p = layer(past)
    paths = p.sample()
    at_once = p.step_log_prob(paths)
    for step in range(5):
        density = p.next(paths[:, :step] if step else None)
        torch.testing.assert_close(density.log_prob(paths[:, step]), at_once[:, step], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(p.log_prob(paths), at_once.sum(-1))
    # Compiled windows, whole and selected, change nothing.
    compiled = layer.compile_paths(past, paths)
    assert torch.equal(p.log_prob(paths, compiled), p.log_prob(paths))
    some = torch.tensor([2, 0])
    torch.testing.assert_close(layer(past[some]).log_prob(paths[some], compiled[some]), p.log_prob(paths)[some])
    # Local coordinates and those of the map differ by the area of the unit.
    density = p.next()
    local = torch.from_numpy(density.windows.to_local(paths[:, 0].numpy()))
    shift = density.local.log_prob(local) - density.log_prob(paths[:, 0])
    torch.testing.assert_close(shift.double(), 2 * density.frames.scale.log(), rtol=1e-4, atol=1e-4)


def test_what_is_behind_an_obstacle_beyond_reach_or_no_number_has_no_density():
    torch.manual_seed(1)
    layer = TrajectoryLayer(hall(), steps=5, components=3, stride=1.0)
    past = torch.tensor([[[3.0, 4.0], [3.5, 4.0]]] * 4, dtype=torch.float64)
    going = torch.tensor([[3.6, 4.0], [3.7, 4.0], [3.7, 4.1], [3.7, 4.2], [3.6, 4.2]], dtype=torch.float64)
    paths = going.repeat(4, 1, 1)
    paths[1, 2:] = torch.tensor([5.2, 4.0])  # through a wall, to a free place
    paths[2, 4] = torch.tensor([0.1, 0.1])  # far away
    paths[3, 3, 0] = torch.nan
    p = layer(past)
    found = p.log_prob(paths)
    assert torch.isfinite(found[0]) and found[1:].isneginf().all()
    found[0].backward()
    assert all(torch.isfinite(weight.grad).all() for weight in layer.network.parameters())
    layer.zero_grad()
    coverage = layer.coverage(past, paths)
    assert coverage.steps == 20 and coverage.beyond_reach == 1 and coverage.blocked == 1 and coverage.off_map == 2
    assert coverage.covered == 0.8 and "reach of" in str(coverage) and "segments=False" in str(coverage)
    # Positions alone: the other side of the wall is possible.
    points = TrajectoryLayer(hall(), steps=5, network=layer.network, components=3, stride=1.0, segments=False)
    assert torch.isfinite(points(past).log_prob(paths)[1]) and points(past).log_prob(paths)[2:].isneginf().all()
    drawn = points(past).sample((200,))
    assert hall().contains(drawn.numpy()).all()
    assert points(past).support.check(drawn).all() and not p.support.check(drawn).all()


def test_walkers_on_edges_and_corners_and_in_narrow_corridors():
    x, y = pal.reals("x", "y")
    wall = float(np.nextafter(1.0, 2.0))
    # Obstacles without their boundaries, so that walkers may stand on them; the corridor between two is one ulp wide.
    inside = [(x > 0) & (x < 1) & (y > 1) & (y < 2), (x > wall) & (x < 3) & (y > 1) & (y < 2)]
    region = pal.Region(x.between(0, 3) & y.between(0, 3) & ~inside[0] & ~inside[1])
    starts = [[1.0, 1.0], [0.5, 1.0], [wall, 1.0], [1.0, 0.5], [0.0, 0.0], [3.0, 2.5], [1.0, 2.0]]
    past = torch.tensor([[start, start] for start in starts], dtype=torch.float64)
    torch.manual_seed(0)
    layer = TrajectoryLayer(region, steps=3, components=2)
    p = layer(past)
    paths = p.sample((100,))
    assert p.support.check(paths).all()
    whole = torch.cat([past[:, -1:].expand(100, 7, 1, 2), paths], 2).numpy()
    assert region.contains_segments(whole[:, :, :-1], whole[:, :, 1:]).all()
    assert torch.isfinite(p.log_prob(paths)).all()


def test_obstacles_may_move():
    x, y = pal.reals("x", "y")
    square = x.between(0, 4) & y.between(0, 4)
    maps = [pal.Region(square & ~(x.between(1 + k, 1.5 + k) & y.between(0, 3))) for k in range(3)]
    torch.manual_seed(0)
    layer = TrajectoryLayer(maps, steps=3, components=2, stride=0.3)
    past = torch.tensor([[[0.2, 3.5], [0.5, 3.5]]], dtype=torch.float64)
    paths = layer(past).sample((200,))[:, 0].numpy()
    before = np.concatenate([np.broadcast_to(past[:, -1:].numpy(), (200, 1, 2)), paths[:, :-1]], 1)
    for step, region in enumerate(maps):
        assert region.contains_segments(before[:, step], paths[:, step]).all()
    assert not maps[0].contains(paths[:, 2]).all()
    with pytest.raises(ValueError, match="one map for all steps or one for each of 3; 2 are given"):
        TrajectoryLayer(maps[:2], steps=3)


def test_greedy_modes_are_at_least_as_likely_as_samples(layer):
    past = walkers(2, seed=9)
    p = layer(past)
    path = p.rollout_mode()
    assert path.shape == (2, 5, 2) and p.support.check(path).all()
    first = p.next()
    for _ in range(20):
        assert (first.log_prob(path[:, 0]) + 1e-3 >= first.log_prob(first.sample())).all()


def test_training_learns_to_go_on():
    torch.manual_seed(0)
    layer = TrajectoryLayer(hall([]), steps=3, components=3)
    generator = torch.Generator().manual_seed(1)
    start = 2 + 3 * torch.rand(64, 1, 2, generator=generator, dtype=torch.float64)
    angle = 6.3 * torch.rand(64, 1, generator=generator, dtype=torch.float64)
    way = 0.3 * torch.stack([angle.cos(), angle.sin()], -1)
    whole = start + torch.arange(5)[:, None] * way + 0.01 * torch.randn(64, 5, 2, generator=generator)
    past, future = whole[:, :2], whole[:, 2:]
    windows = layer.compile_paths(past, future)
    assert windows.coverage.covered == 1.0
    optimiser = torch.optim.Adam(layer.parameters(), lr=1e-2)
    scores = []
    for _ in range(60):
        optimiser.zero_grad()
        loss = -layer(past).log_prob(future, windows).mean()
        loss.backward()
        optimiser.step()
        scores.append(-loss.item())
    assert scores[-1] > scores[0] + 3.0


def test_states_networks_and_generators(layer):
    past = walkers(3, seed=2)
    torch.manual_seed(4)
    other = TrajectoryLayer(hall(), steps=5, components=3)
    other.load_state_dict(layer.state_dict())
    generator = [torch.Generator().manual_seed(7) for _ in range(2)]
    drawn = [p.sample((3,), generator=g) for p, g in zip((layer(past), other(past)), generator)]
    assert torch.equal(*drawn)
    with pytest.raises(RuntimeError, match="another settings"):
        TrajectoryLayer(hall(), steps=4, components=3).load_state_dict(layer.state_dict())
    with pytest.raises(RuntimeError, match="another map"):
        TrajectoryLayer(hall([]), steps=5, components=3).load_state_dict(layer.state_dict())
    # A network without memory, and a context.
    plain = TrajectoryLayer(hall(), steps=2, components=2, network=torch.nn.Linear(7, 22))
    assert plain.num_params == 22 and plain(past).sample((2,)).shape == (2, 3, 2, 2)
    told = TrajectoryLayer(hall(), steps=2, components=2, context=4)
    assert told.num_features == 11 and told(past, torch.randn(3, 4)).sample().shape == (3, 2, 2)
    with pytest.raises(ValueError, match="context of 4 numbers"):
        told(past)
    assert isinstance(layer.network, StepNetwork)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "positive integer"),
        ({"stride": 0.0}, "stride must be a positive number"),
        ({"reach": float("nan")}, "reach must be a positive number"),
    ],
)
def test_bad_settings_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        TrajectoryLayer(hall(), **options)


def test_bad_maps_and_pasts_are_refused(layer):
    x, y = pal.reals("x", "y")
    with pytest.raises(ValueError, match="thickness"):
        TrajectoryLayer(x.between(0, 1) & y.between(0, 1) & (x != 0.5))
    with pytest.raises(ValueError, match="at least 2 positions"):
        layer(torch.zeros(3, 1, 2))
    with pytest.raises(TypeError, match="floating-point"):
        layer(torch.zeros(3, 2, 2, dtype=torch.int64))
    with pytest.raises(ValueError, match="last axes"):
        layer(torch.zeros(3, 2, 2)).log_prob(torch.zeros(3, 4, 2))


def test_windows_of_what_can_be_seen():
    region = hall()
    view = region.windows([[3.0, 4.0]], 8, visible=True)
    assert not view.contains([[2.5, 0.0]])[0] and region.windows([[3.0, 4.0]], 8).contains([[2.5, 0.0]])[0]
    assert view.volume[0] < region.windows([[3.0, 4.0]], 8).volume[0]
    assert np.array_equal(view.to_local(view.to_map([[0.5, 0.25]])), [[0.5, 0.25]])
    assert region.contains_segments([[3.0, 4.0]], [[5.5, 4.0]]).tolist() == [False]
    with pytest.raises(ValueError, match="each start has its end"):
        region.contains_segments([[3.0, 4.0]], [[5.5, 4.0], [0, 0]])
