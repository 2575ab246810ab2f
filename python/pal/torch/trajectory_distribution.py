"""Densities of paths, and of one step of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from .. import _core
from ..errors import QueryError
from ._frames import Frames
from .kernel import KernelDistribution, _LogProb

if TYPE_CHECKING:
    from .trajectory import PathWindows, TrajectoryLayer

# How often a sample that rounding pushed off the map is drawn again, where only points count.
_ATTEMPTS = 100

# The most walkers that are moved at once: bounds memory.
_ROWS = 1 << 15


class FreePaths(constraints.Constraint):
    """The paths whose positions, and whose segments between positions where the layer asks for that, are on the map,
    decided exactly.

    Args:
        layer: the layer with the map.
        start: where the paths begin, one position for each walker.

    >>> import pal, torch
    >>> x, y = pal.reals("x", "y")
    >>> hall = pal.Region(x.between(0, 9) & y.between(0, 6) & ~(x.between(4, 5) & y.between(2, 6)))
    >>> layer = pal.torch.TrajectoryLayer(hall, steps=2)
    >>> past = torch.tensor([[[2.5, 3.0], [3.0, 3.0]]], dtype=torch.float64)
    >>> walks = torch.tensor([[[3.5, 3.0], [4.0, 1.0]], [[3.5, 3.0], [5.5, 3.0]]], dtype=torch.float64)
    >>> layer(past).support.check(walks)  # the second one crosses the wall
    tensor([ True, False])
    """

    event_dim = 2

    def __init__(self, layer: TrajectoryLayer, start: Tensor) -> None:
        self.layer, self.start = layer, start

    def check(self, value: Tensor) -> Tensor:
        """Whether paths, steps by coordinates along the last two axes, stay on the map."""
        start = self.start.expand(*value.shape[:-2], 2).unsqueeze(-2)
        points = torch.cat([start, value.detach().double().cpu()], -2).numpy()
        free = np.ones(points.shape[:-2], dtype=bool)
        for step in range(self.layer.steps):
            region = self.layer.map_at(step)
            here, there = points[..., step, :], points[..., step + 1, :]
            free &= region.contains_segments(here, there) if self.layer.segments else region.contains(there)
        return torch.from_numpy(free).to(value.device)


class StepDistribution(Distribution):
    """The densities of the next positions of walkers, in coordinates of the map.

    `local` are the same densities in the local frames of the walkers, with all their questions, and `windows` says what
    is ahead of them. [`TrajectoryDistribution.next`][pal.torch.TrajectoryDistribution.next] makes it.

    Args:
        layer: the layer with the map.
        step: the number of the step, from 0.
        frames: the local frames of the walkers.
        outputs: the outputs of the network for this step.

    >>> import pal, torch
    >>> x, y = pal.reals("x", "y")
    >>> hall = pal.Region(x.between(0, 9) & y.between(0, 6) & ~(x.between(4, 5) & y.between(2, 6)))
    >>> layer = pal.torch.TrajectoryLayer(hall, steps=2)
    >>> past = torch.tensor([[[2.5, 3.0], [3.0, 3.0]]], dtype=torch.float64)
    >>> step = layer(past).next()
    >>> step.log_prob(torch.tensor([[4.5, 3.0]])), step.sample((10,)).shape  # inside the wall
    (tensor([-inf], grad_fn=<SubBackward0>), torch.Size([10, 1, 2]))
    """

    arg_constraints: dict[str, Any] = {}
    support = constraints.real_vector

    def __init__(self, layer: TrajectoryLayer, step: int, frames: Frames, outputs: Tensor) -> None:
        self.layer, self.step, self.frames, self.outputs = layer, step, frames, outputs
        self.windows = layer.windows(frames, step)
        self.families: list[_core.KernelFamily] = layer.kernels._core.on_regions(self.windows._core)
        super().__init__(outputs.shape[:-1], torch.Size([2]), validate_args=False)

    @property
    def local(self) -> KernelDistribution:
        """The densities in local coordinates."""
        return KernelDistribution(self.layer.kernels, self.outputs, self.families)

    def _is_free(self, points: np.ndarray) -> np.ndarray:
        region = self.layer.map_at(self.step)
        if not self.layer.segments:
            return region.contains(points)
        return region.contains_segments(self.frames.rows().origin.cpu().numpy(), points)

    def log_prob(self, value: Tensor) -> Tensor:
        """The log-densities of next positions, one for each walker; minus infinity where an obstacle is in the way."""
        points = value.detach().double().expand(*self.batch_shape, 2).reshape(-1, 2).cpu().numpy()
        local = self.windows.to_local(points)
        inside = (np.abs(local) <= self.layer.reach).all(-1) & self._is_free(points)
        rows = self.outputs.reshape(-1, self.outputs.shape[-1])
        found = _LogProb.apply(rows, torch.from_numpy(local), self.families, inside)
        return found.reshape(self.batch_shape) - 2 * self.frames.scale.log().to(found).reshape(self.batch_shape)

    def sample(self, sample_shape: Any = torch.Size(), *, generator: torch.Generator | None = None) -> Tensor:
        """Independent next positions in float64."""
        shape = torch.Size(sample_shape)
        drawn = [self._sample_once(generator) for _ in range(shape.numel())]
        found = torch.stack(drawn) if drawn else self.outputs.new_empty(0, *self.batch_shape, 2, dtype=torch.float64)
        return found.reshape(*shape, *self.batch_shape, 2)

    def _sample_once(self, generator: torch.Generator | None) -> Tensor:
        params = self.outputs.detach().reshape(-1, self.outputs.shape[-1]).cpu().double().numpy()
        points = np.empty((len(params), 2))
        left = np.arange(len(params))
        for _ in range(_ATTEMPTS):
            seed = int(torch.randint(2**62, (), dtype=torch.int64, generator=generator))
            families = self.families if len(left) == len(params) else [self.families[row] for row in left]
            drawn = _core.KernelFamily.sample_each(families, params[left].reshape(-1), seed).reshape(-1, 2)
            local = np.zeros_like(points)
            local[left] = drawn
            points[left] = self.windows.to_map(local)[left]
            if self.layer.segments:
                # What can be seen is decided for rounded points already.
                break
            left = left[~self._is_free(points)[left]]
            if not len(left):
                break
        else:
            raise QueryError(f"row {left[0]}: no sample is on the map after rounding")
        return torch.from_numpy(points).reshape(*self.batch_shape, 2).to(self.outputs.device)

    @property
    def mode(self) -> Tensor:
        """The positions of largest density."""
        points = self.windows.to_map(self.local.mode.reshape(-1, 2).cpu().numpy())
        free = self._is_free(points)
        if not free.all():
            raise QueryError(f"row {int(np.flatnonzero(~free)[0])}: the mode is on a wall, and rounding pushed it off the map")
        return torch.from_numpy(points).reshape(*self.batch_shape, 2).to(self.outputs.device)


class TrajectoryDistribution(Distribution):
    """Densities of paths, one for each walker: what a [`TrajectoryLayer`][pal.torch.TrajectoryLayer] returns.

        p(y_1, .., y_T | past) = p(y_1 | past) p(y_2 | past, y_1) .. p(y_T | past, y_1, .., y_(T-1))

    Marginals over earlier steps have no closed form: ask for the next step given a prefix ([`next`]
    [pal.torch.TrajectoryDistribution.next]), or sample.

    Args:
        layer: the layer with the map and the network.
        past: walkers x positions x 2, at least two positions of each walker.
        context: further numbers about each walker, as many as the layer asks for.

    >>> import pal, torch
    >>> x, y = pal.reals("x", "y")
    >>> hall = pal.Region(x.between(0, 9) & y.between(0, 6) & ~(x.between(4, 5) & y.between(2, 6)))
    >>> layer = pal.torch.TrajectoryLayer(hall, steps=2)
    >>> past = torch.tensor([[[2.5, 3.0], [3.0, 3.0]]], dtype=torch.float64)
    >>> p = layer(past)
    >>> paths = p.sample((50,))
    >>> paths.shape, bool(p.support.check(paths).all()), p.log_prob(paths).shape
    (torch.Size([50, 1, 2, 2]), True, torch.Size([50, 1]))
    """

    arg_constraints: dict[str, Any] = {}

    def __init__(self, layer: TrajectoryLayer, past: Tensor, context: Tensor | None = None) -> None:
        if not isinstance(past, Tensor) or not past.is_floating_point():
            raise TypeError("past positions are a tensor of floating-point numbers")
        if past.dim() < 2 or past.shape[-1] != 2 or past.shape[-2] < 2:
            raise ValueError(f"the past is walkers x at least 2 positions x 2; its shape is {tuple(past.shape)}")
        given = 0 if context is None else context.shape[-1]
        if given != layer.num_context:
            raise ValueError(f"the layer has a context of {layer.num_context} numbers for each walker; {given} are given")
        if context is not None and context.shape[:-1] != past.shape[:-2]:
            raise ValueError(f"there is a context for each walker; shapes are {tuple(context.shape)} and {tuple(past.shape)}")
        self.layer, self.past, self.context = layer, past.detach().double(), context
        super().__init__(past.shape[:-2], torch.Size([layer.steps, 2]), validate_args=False)

    @property
    def support(self) -> FreePaths:
        """The paths that stay on the map."""
        return FreePaths(self.layer, self.past[..., -1, :].cpu())

    def _rows(self, value: Tensor) -> tuple[Tensor, Tensor, Tensor | None, torch.Size]:
        """Past, paths and context with as many rows, and the shape of these rows."""
        if value.shape[-2:] != self.event_shape:
            raise ValueError(f"paths are {tuple(self.event_shape)} along the last axes; their shape is {tuple(value.shape)}")
        shape = torch.broadcast_shapes(value.shape[:-2], self.batch_shape)
        past = self.past.expand(*shape, *self.past.shape[-2:]).reshape(-1, *self.past.shape[-2:])
        context = self.context
        if context is not None:
            context = context.expand(*shape, context.shape[-1]).reshape(-1, context.shape[-1])
        paths = value.detach().double().to(past.device).expand(*shape, *self.event_shape).reshape(-1, *self.event_shape)
        return past, paths, context, shape

    def step_log_prob(self, value: Tensor, windows: PathWindows | None = None) -> Tensor:
        """The log-density of each step of paths given the steps before it, all in one pass: minus infinity where a step is
        beyond the reach or an obstacle is in the way, never NaN. Compiled windows are those of the same paths."""
        past, paths, context, shape = self._rows(value)
        if windows is None:
            windows = self.layer.compile_paths(past, paths)
        if len(windows) != len(paths):
            raise ValueError(f"there are windows of {len(windows)} paths, and {len(paths)} paths")
        whole = torch.cat([past, paths[:, :-1]], -2)
        frames = Frames.along(whole, self.layer.floor)
        # The first step has no frame before it: it is described in its own.
        first = Frames(whole[:, :1], frames.heading[:, :1], frames.scale[:, :1])
        all_frames = Frames(*(torch.cat(parts, 1) for parts in zip(first, frames)))
        outputs, _ = self.layer.outputs(self.layer.features(all_frames, context))
        outputs = outputs[:, -self.layer.steps :].reshape(-1, outputs.shape[-1])
        rows, families = windows.usable()
        result = outputs.new_full((len(outputs),), -torch.inf)
        if len(rows):
            index = torch.from_numpy(rows).to(outputs.device)
            local = torch.from_numpy(windows.local.reshape(-1, 2)[rows])
            found = _LogProb.apply(outputs[index], local, families, np.ones(len(rows), dtype=bool))
            scale = torch.from_numpy(windows.log_scale.reshape(-1)[rows]).to(found)
            result = result.index_copy(0, index, found - 2 * scale)
        elif outputs.requires_grad:
            result = result + 0 * outputs.sum()
        return result.reshape(*shape, self.layer.steps)

    def log_prob(self, value: Tensor, windows: PathWindows | None = None) -> Tensor:
        """The log-density of whole paths: the sum of `step_log_prob`."""
        return self.step_log_prob(value, windows).sum(-1)

    def _begin(self, count: int) -> tuple[Frames, Tensor, Any]:
        """The frames of the walkers after the past, the outputs for the next step and the state of the network."""
        rows = self.past.reshape(-1, *self.past.shape[-2:])
        context = None if self.context is None else self.context.reshape(-1, self.context.shape[-1])
        frames = Frames.along(rows, self.layer.floor)
        first = Frames(rows[:, :1], frames.heading[:, :1], frames.scale[:, :1])
        all_frames = Frames(*(torch.cat(parts, 1) for parts in zip(first, frames)))
        outputs, state = self.layer.outputs(self.layer.features(all_frames, context))
        last = frames.at(-1)
        if count > 1:
            last = Frames(*(part.repeat(count, *[1] * (part.dim() - 1)) for part in last))
        return last, outputs[:, -1].repeat(count, 1), _repeated(state, count)

    def _rollout(self, count: int, choose: Any) -> Tensor:
        """Paths of `count` copies of all walkers, whose steps `choose` takes from their densities."""
        frames, outputs, state = self._begin(count)
        context = self.context
        if context is not None:
            context = context.reshape(-1, context.shape[-1]).repeat(count, 1)
        positions = []
        for step in range(self.layer.steps):
            chosen = choose(StepDistribution(self.layer, step, frames, outputs)).to(frames.origin)
            positions.append(chosen)
            if step + 1 < self.layer.steps:
                after = frames.step(chosen, self.layer.floor)
                before, now = (Frames(*(part.unsqueeze(1) for part in frame)) for frame in (frames, after))
                features = self.layer.step_features(before, now, context)
                outputs, state = self.layer.outputs(features, state)
                outputs, frames = outputs[:, -1], after
        return torch.stack(positions, 1)

    @torch.no_grad()
    def sample(self, sample_shape: Any = torch.Size(), *, generator: torch.Generator | None = None) -> Tensor:
        """Independent paths in float64; every position, and with segments every point between positions, is exactly on
        the map. A generator makes them reproducible by itself; without one, `torch.manual_seed` does."""
        shape = torch.Size(sample_shape)
        count, walkers = shape.numel(), self.batch_shape.numel()
        if count * walkers == 0:
            return self.past.new_empty(*shape, *self.batch_shape, *self.event_shape)
        at_once = max(1, _ROWS // walkers)
        parts = []
        for first in range(0, count, at_once):
            parts.append(self._rollout(min(at_once, count - first), lambda p: p._sample_once(generator)))
        return torch.cat(parts).reshape(*shape, *self.batch_shape, *self.event_shape)

    @torch.no_grad()
    def rollout_mode(self) -> Tensor:
        """The paths of greedy modes: each step is the most likely one given the steps before it. That is not the most
        likely path."""
        return self._rollout(1, lambda p: p.mode).reshape(*self.batch_shape, *self.event_shape)

    def next(self, prefix: Tensor | None = None) -> StepDistribution:
        """The density of the step after a prefix, walkers x steps x 2, or of the first one."""
        taken = 0 if prefix is None else prefix.shape[-2]
        if taken >= self.layer.steps:
            raise ValueError(f"the layer has {self.layer.steps} steps, and the prefix has {taken}")
        whole = self.past if prefix is None else torch.cat([self.past, prefix.detach().double().to(self.past)], -2)
        longer = TrajectoryDistribution(self.layer, whole, self.context)
        frames, outputs, _ = longer._begin(1)
        shape = self.batch_shape
        frames = Frames(frames.origin.reshape(*shape, 2), frames.heading.reshape(*shape, 2), frames.scale.reshape(shape))
        return StepDistribution(self.layer, taken, frames, outputs.reshape(*shape, outputs.shape[-1]))

    def expand(self, batch_shape: Any, _instance: Any = None) -> TrajectoryDistribution:
        """The same densities in a larger batch."""
        shape = torch.Size(batch_shape)
        past = self.past.expand(*shape, *self.past.shape[-2:])
        context = None if self.context is None else self.context.expand(*shape, self.context.shape[-1])
        return TrajectoryDistribution(self.layer, past, context)

    def __repr__(self) -> str:
        return f"TrajectoryDistribution({self.layer.steps} steps; batch_shape={tuple(self.batch_shape)})"


def _repeated(state: Any, count: int) -> Any:
    """The state of a recurrent network, whose tensors are layers x rows x units, for copies of all rows."""
    if count == 1 or state is None:
        return state
    if isinstance(state, Tensor):
        return state.repeat(1, count, 1)
    return type(state)(_repeated(part, count) for part in state)
