"""Densities of paths that never touch an obstacle: one density for each step, each on what can be seen from the last
position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from .. import _core
from ..batch import RegionBatch, row_indices
from ..formula import Constrained, reals
from ..region import Region
from ._frames import Frames
from .kernel import KernelLayer
from .trajectory_distribution import TrajectoryDistribution
from .trajectory_network import STEP_FEATURES, StepNetwork, step_features

# What a frame means: weights that were trained with another version make other densities.
_VERSION = "1"


class Coverage(NamedTuple):
    """Which steps of paths a [`TrajectoryLayer`][pal.torch.TrajectoryLayer] can give a density to.

    >>> import pal, torch
    >>> x, y = pal.reals("x", "y")
    >>> hall = pal.Region(x.between(0, 9) & y.between(0, 6) & ~(x.between(4, 5) & y.between(2, 6)))
    >>> layer = pal.torch.TrajectoryLayer(hall, steps=2)
    >>> past = torch.tensor([[[2.5, 3.0], [3.0, 3.0]]], dtype=torch.float64)
    >>> coverage = layer.coverage(past, torch.tensor([[[3.5, 3.0], [8.0, 1.0]]], dtype=torch.float64))
    >>> coverage.steps, coverage.beyond_reach, coverage.covered
    (2, 1, 0.5)
    """

    #: The number of steps.
    steps: int
    #: Steps that are farther than the reach.
    beyond_reach: int
    #: Steps that start off the map, or where a coordinate is not a number.
    off_map: int
    #: Steps within reach that end in an obstacle or, with segments, touch one on the way.
    blocked: int
    #: The reach, in units of local frames, that would contain all steps.
    reach_needed: float

    @property
    def covered(self) -> float:
        """The fraction of steps with a density."""
        lost = self.beyond_reach + self.off_map + self.blocked
        return 1.0 - lost / self.steps if self.steps else 1.0

    def __str__(self) -> str:
        lines = [f"{self.covered:.2%} of {self.steps} steps have a density"]
        if self.beyond_reach:
            lines.append(
                f"{self.beyond_reach} are beyond the reach: a reach of {self.reach_needed:.3g} would contain them, or a "
                "larger stride, where walkers start from rest"
            )
        if self.off_map:
            lines.append(f"{self.off_map} start off the map: remove them, or move their starts with Region.project")
        if self.blocked:
            lines.append(f"{self.blocked} touch an obstacle: correct the map or the paths, or give segments=False")
        return "; ".join(lines)


class TrajectoryLayer(nn.Module):
    """A density of the next `steps` positions of a walker given the last ones, and a map that it never leaves:

        p(y_1, .., y_T | past) = p(y_1 | past) p(y_2 | past, y_1) .. p(y_T | past, y_1, .., y_(T-1)),

    where each factor is a mixture of kernels ([`KernelLayer`][pal.torch.KernelLayer]) on a window of the map around the
    last position. With `segments`, only what can be seen from there counts, so that no segment between positions touches
    an obstacle either, decided exactly. Log-densities are exact, and so are samples.

    A window is in the local frame of the walker: the origin is the last position, the first axis points along the last
    movement, and the unit is the length of that movement, but at least half a stride. A walker that goes on as before
    is at (1, 0).

    Args:
        map: where walkers may be: a bounded region in the plane, a constraint or a formula; or, where obstacles move, a
            list with one of these for each step.
        steps: the number of steps.
        network: what turns features of steps, rows x steps x `num_features`, into outputs, rows x steps x
            `num_params`. A recurrent network has the attribute `recurrent = True`, takes a state as second argument
            (`None` at first), and returns outputs and the next state. By default a
            [`StepNetwork`][pal.torch.StepNetwork] with 64 hidden units.
        stride: the usual length of a step in the units of the map; 0.5 suits walkers on a map in metres at 2.5 to 3 Hz.
        reach: the half width of windows in units of local frames. Longer steps have no density;
            [`coverage`][pal.torch.TrajectoryLayer.coverage] counts them.
        components: the number of kernels of each step.
        segments: whether segments between positions avoid obstacles, too, or only positions.
        context: how many further numbers about each walker are given to the network.

    >>> import pal, torch
    >>> from pal.torch import TrajectoryLayer
    >>> x, y = pal.reals("x", "y")
    >>> hall = pal.Region(x.between(0, 9) & y.between(0, 6) & ~(x.between(4, 5) & y.between(2, 6)))
    >>> layer = TrajectoryLayer(hall, steps=4)
    >>> past = torch.tensor([[[1.0, 3.0], [1.5, 3.0], [2.0, 3.0]]], dtype=torch.float64)
    >>> p = layer(past)
    >>> p.batch_shape, p.event_shape, p.sample((5,)).shape
    (torch.Size([1]), torch.Size([4, 2]), torch.Size([5, 1, 4, 2]))
    >>> paths = p.sample((100,))
    >>> bool(p.support.check(paths).all()), bool(p.log_prob(paths).isfinite().all())
    (True, True)
    """

    #: The lower and the upper corner of the box around all maps.
    box: Tensor

    def __init__(
        self,
        map: Region | Constrained | Sequence[Region | Constrained],
        steps: int = 12,
        network: nn.Module | None = None,
        *,
        stride: float = 0.5,
        reach: float = 4.0,
        components: int = 8,
        segments: bool = True,
        context: int = 0,
    ) -> None:
        super().__init__()
        if not isinstance(steps, int) or steps < 1:
            raise ValueError(f"the number of steps must be a positive integer, not {steps!r}")
        for name, value in (("stride", stride), ("reach", reach)):
            if not (np.isfinite(value) and value > 0):
                raise ValueError(f"the {name} must be a positive number, not {value!r}")
        given: list[Any] = list(map) if isinstance(map, (list, tuple)) else [map]
        if len(given) not in (1, steps):
            raise ValueError(f"there is one map for all steps or one for each of {steps}; {len(given)} are given")
        self.maps = [one if isinstance(one, Region) else Region(one) for one in given]
        self.steps, self.stride, self.reach, self.segments = steps, float(stride), float(reach), bool(segments)
        variables = self.maps[0].variables
        for number, region in enumerate(self.maps):
            if region.variables != variables or len(variables) != 2:
                raise ValueError(
                    f"maps are over the same two variables; map {number} is over {', '.join(region.variables)}"
                )
        x, y = reals(*variables)
        self.kernels = KernelLayer(x.between(-self.reach, self.reach) & y.between(-self.reach, self.reach), components)
        boxes = [region.bounding_box for region in self.maps]
        for number, found in enumerate(boxes):
            if found is None:
                raise ValueError(f"map {number} has no area: there is nowhere to go")
        box = np.array(boxes, dtype=float)
        low, high = box[..., 0].min(0), box[..., 1].max(0)
        self.register_buffer("box", torch.from_numpy(np.stack([low, high])), persistent=False)
        #: How many numbers describe a step for the network, and how many of them are the context of the walker.
        self.num_context = int(context)
        self.num_features = STEP_FEATURES + self.num_context
        self.network = StepNetwork(self.num_features, self.num_params) if network is None else network
        # An error about the map comes now and not with the first batch.
        if self.segments:
            for region in self.maps:
                region.windows(np.zeros((0, 2)), 1.0, visible=True)

    @property
    def num_params(self) -> int:
        """How many outputs the network must have for each step."""
        return self.kernels.num_params

    @property
    def floor(self) -> float:
        """The least unit of local frames: half a stride."""
        return 0.5 * self.stride

    def map_at(self, step: int) -> Region:
        """The map of a step, counted from 0."""
        return self.maps[step if len(self.maps) > 1 else 0]

    def forward(self, past: Tensor, context: Tensor | None = None) -> TrajectoryDistribution:
        """The density of what follows after at least two past positions, walkers x positions x 2, the last one last. They
        are float64, or are taken as float64. The context has one row for each walker."""
        return TrajectoryDistribution(self, past, context)

    def features(self, frames: Frames, context: Tensor | None) -> Tensor:
        """What the network is told about the steps to all frames but the first one, in its own precision."""
        before, now = frames.at(slice(None, -1)), frames.at(slice(1, None))
        return self.step_features(before, now, context)

    def step_features(self, before: Frames, now: Frames, context: Tensor | None) -> Tensor:
        """What the network is told about steps from frames to frames, rows x steps."""
        features = step_features(before, now, self.stride, self.reach, self.box.to(now.origin))
        if context is not None:
            shape = (*features.shape[:-1], context.shape[-1])
            features = torch.cat([features, context.unsqueeze(-2).expand(shape).to(features)], -1)
        weight = next(self.network.parameters(), features)
        return features.to(weight.device, weight.dtype)

    def outputs(self, features: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        """The outputs of the network after each step, and its state after the last one."""
        if getattr(self.network, "recurrent", False):
            return self.network(features, state)  # type: ignore[no-any-return]
        return self.network(features), None

    def windows(self, frames: Frames, step: int) -> RegionBatch:
        """What is ahead of walkers at a step, one row for each frame, in its local coordinates."""
        origin, heading, scale = (part.cpu().numpy() for part in frames.rows())
        return self.map_at(step).windows(origin, self.reach, heading, scale, visible=self.segments)

    def compile_paths(self, past: Tensor, paths: Tensor) -> PathWindows:
        """Prepares the windows of all steps of paths, for training with the same paths again and again: give
        `windows=compiled[rows]` to [`log_prob`][pal.torch.TrajectoryDistribution.log_prob]."""
        return PathWindows(self, past, paths)

    def coverage(self, past: Tensor, paths: Tensor) -> Coverage:
        """Counts which steps of paths have a density, and why others have none."""
        return PathWindows(self, past, paths, only_counts=True).coverage

    def get_extra_state(self) -> dict[str, str]:
        settings = f"steps {self.steps}, stride {self.stride}, reach {self.reach}, segments {self.segments}"
        maps = "\n".join(region.constraint.to_smtlib() for region in self.maps)
        return {"version": _VERSION, "settings": settings, "map": maps}

    def set_extra_state(self, state: dict[str, str]) -> None:
        for key, wanted in self.get_extra_state().items():
            if state.get(key) != wanted:
                raise RuntimeError(f"the state is that of a trajectory layer with another {key}")

    def extra_repr(self) -> str:
        return f"steps={self.steps}, stride={self.stride}, reach={self.reach}, segments={self.segments}"


class PathWindows:
    """The windows of all steps of paths, prepared by [`TrajectoryLayer.compile_paths`][pal.torch.TrajectoryLayer.compile_paths].
    Indexing selects paths.

    Args:
        layer: the layer with the map.
        past: walkers x positions x 2.
        paths: walkers x steps x 2, what followed.
        only_counts: whether only the counts of [`Coverage`][pal.torch.Coverage] are wanted.

    >>> import pal, torch
    >>> x, y = pal.reals("x", "y")
    >>> hall = pal.Region(x.between(0, 9) & y.between(0, 6) & ~(x.between(4, 5) & y.between(2, 6)))
    >>> layer = pal.torch.TrajectoryLayer(hall, steps=2)
    >>> past = torch.tensor([[[2.5, 3.0], [3.0, 3.0]]], dtype=torch.float64)
    >>> paths = torch.tensor([[[3.5, 3.0], [3.5, 2.5]]], dtype=torch.float64)
    >>> windows = layer.compile_paths(past, paths)
    >>> len(windows), torch.equal(layer(past).log_prob(paths, windows), layer(past).log_prob(paths))
    (1, True)
    """

    def __init__(self, layer: TrajectoryLayer, past: Tensor, paths: Tensor, only_counts: bool = False) -> None:
        whole = torch.cat([past.detach().double(), paths.detach().double()], -2).cpu()
        if whole.dim() != 3 or paths.shape[-2:] != (layer.steps, 2):
            shapes = f"{tuple(past.shape)} and {tuple(paths.shape)}"
            raise ValueError(f"past and paths are walkers x positions x 2, with {layer.steps} steps; they are {shapes}")
        self.layer = layer
        frames = Frames.along(whole, layer.floor).at(slice(past.shape[-2] - 2, -1))
        starts, ends, scale = frames.origin.numpy(), whole[:, past.shape[-2] :].numpy(), frames.scale.numpy()
        count = len(whole)
        self.inside = np.zeros((count, layer.steps), dtype=bool)
        self.local = np.zeros((count, layer.steps, 2))
        self.log_scale = np.log(scale)
        self.families = np.full((count, layer.steps), None, dtype=object)
        far, off, blocked, needed = 0, 0, 0, 0.0
        for step in range(layer.steps):
            region = layer.map_at(step)
            finite = np.isfinite(starts[:, step]).all(-1) & np.isfinite(ends[:, step]).all(-1)
            on_map = finite.copy()
            on_map[finite] = region.contains(starts[finite, step])
            rows = np.flatnonzero(on_map)
            batch = layer.windows(Frames(*(part[torch.from_numpy(rows), step] for part in frames)), step)
            local = batch.to_local(ends[rows, step]) if len(rows) else np.zeros((0, 2))
            within = (np.abs(local) <= layer.reach).all(-1)
            if layer.segments:
                free = region.contains_segments(starts[rows, step], ends[rows, step])
            else:
                free = region.contains(ends[rows, step])
            far, off = far + int((~within).sum()), off + int((~on_map).sum())
            blocked += int((within & ~free).sum())
            needed = max(needed, float(np.abs(local).max(initial=0.0)))
            self.local[rows, step] = local
            self.inside[rows, step] = within & free
            if not only_counts and len(rows):
                self.families[rows, step] = layer.kernels._core.on_regions(batch._core)
        #: Which steps have a density.
        self.coverage = Coverage(count * layer.steps, far, off, blocked, needed)

    def __len__(self) -> int:
        return len(self.inside)

    def __getitem__(self, index: Any) -> PathWindows:
        rows = row_indices(index, len(self))
        new = PathWindows.__new__(PathWindows)
        new.layer, new.coverage = self.layer, self.coverage
        new.inside, new.local, new.log_scale = self.inside[rows], self.local[rows], self.log_scale[rows]
        new.families = self.families[rows]
        return new

    def usable(self) -> tuple[np.ndarray, list[_core.KernelFamily]]:
        """The numbers of the steps that have a density, and their families."""
        rows = np.flatnonzero(self.inside.reshape(-1))
        return rows, list(self.families.reshape(-1)[rows])

    def __repr__(self) -> str:
        return f"PathWindows({len(self)} paths of {self.layer.steps} steps)"
