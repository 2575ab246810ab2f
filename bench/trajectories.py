#!/usr/bin/env python3
"""Predicts twelve steps of walkers after eight observed ones: PAL's trajectory layer, the same network with a mixture of
Gaussians, that mixture with rejection, and constant velocity.

    PAL_DATA=FOLDER python bench/trajectories.py                          scenes 12 and 2, three seeds
    PAL_DATA=FOLDER python bench/trajectories.py --only scene12 --seeds 1 --epochs 4
    PAL_DATA=FOLDER python bench/trajectories.py --speed                  times of training steps and of samples alone

Tracks are divided 70 : 15 : 15. Both networks are those of `TrajectoryLayer` by default and see the same features in the
same local frames; the mixture has as many Gaussians with full covariances, in local coordinates, whose scales are not less
than 0.01 of the reach, as those of kernels. Log-likelihoods are in nats per step and in units of the map, over the test
paths whose steps are all free and within reach; the number of the others is printed. A path touches an obstacle if one of
its positions (points) or any point of its segments (segments) is off the map, decided exactly. One JSON line per run goes
to the file --log.
"""

from __future__ import annotations

import argparse
import copy
import csv
import json
import math
import os
import statistics
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical, MixtureSameFamily, MultivariateNormal

import pal
from pal.torch import StepNetwork, TrajectoryLayer
from pal.torch._frames import Frames

OBSERVED, STEPS, FRAMES, SAMPLES = 8, 12, 10, 20


def scene(folder: Path, number: int, every: int):
    """The map, the paths of eight and twelve positions, and the number of the track of each path."""
    tracks = defaultdict(list)
    with (folder / f"scene{number}_trajectories.csv").open() as table:
        for row in csv.DictReader(table):
            tracks[row["trajectory_id"]].append([float(row[key]) for key in ("frame", "x", "y")])
    region = pal.Region(pal.read_geojson(folder / f"scene{number}_window_constraints.geojson"))
    paths, groups = [], []
    for group, track in enumerate(tracks.values()):
        frames, places = np.array(track)[:, 0], np.array(track)[:, 1:]
        for first in range(0, len(places) - OBSERVED - STEPS + 1, every):
            last = first + OBSERVED + STEPS
            # Tracks have gaps where somebody stood still or left the window.
            if frames[last - 1] - frames[first] == FRAMES * (OBSERVED + STEPS - 1):
                paths.append(places[first:last])
                groups.append(group)
    return region, torch.from_numpy(np.array(paths)), np.array(groups)


def split(groups):
    """Divides the rows 70 : 15 : 15 by tracks, in the same way for all models and seeds."""
    labels = np.unique(groups)
    order = np.random.default_rng(0).permutation(len(labels))
    cuts = [int(0.7 * len(labels)), int(0.85 * len(labels))]
    return [torch.from_numpy(np.flatnonzero(np.isin(groups, labels[part]))) for part in np.split(order, cuts)]


class MixtureHead(nn.Module):
    """The network of a trajectory layer with a mixture of Gaussians in the same local frames."""

    def __init__(self, layer: TrajectoryLayer) -> None:
        super().__init__()
        self.layer, self.components = [layer], layer.kernels.components
        self.network = StepNetwork(layer.num_features, 6 * self.components)

    def mixture(self, outputs):
        logits, mean, widths, tilt = outputs.unflatten(-1, (-1, 6)).split([1, 2, 2, 1], -1)
        widths = nn.functional.softplus(widths) + 0.01 * self.layer[0].reach
        factor = torch.cat([widths[..., :1], torch.zeros_like(tilt), tilt, widths[..., 1:]], -1).unflatten(-1, (2, 2))
        parts = MultivariateNormal(mean, scale_tril=factor, validate_args=False)
        return MixtureSameFamily(Categorical(logits=logits.squeeze(-1)), parts, validate_args=False)

    def frames(self, whole):
        frames = Frames.along(whole, self.layer[0].floor)
        first = Frames(whole[:, :1], frames.heading[:, :1], frames.scale[:, :1])
        return Frames(*(torch.cat(parts, 1) for parts in zip(first, frames)))

    def step_log_prob(self, past, paths):
        frames = self.frames(torch.cat([past, paths[:, :-1]], 1))
        outputs, _ = self.network(self.layer[0].features(frames, None))
        here = frames.at(slice(-paths.shape[1], None))
        found = self.mixture(outputs[:, -paths.shape[1] :]).log_prob(here.local(paths).float())
        return found - 2 * here.scale.log().float()

    @torch.no_grad()
    def sample(self, past, count, region=None, attempts=1000):
        """Paths; with a region, steps that leave it are drawn again. Also the number of rounds of drawing."""
        layer = self.layer[0]
        frames = self.frames(past)
        outputs, state = self.network(layer.features(frames, None))
        now = Frames(*(part.repeat(count, *[1] * (part.dim() - 1)) for part in frames.at(-1)))
        outputs, state, positions, rounds = outputs[:, -1].repeat(count, 1), state.repeat(1, count, 1), [], 0
        for _ in range(STEPS):
            ahead = now.heading / torch.linalg.vector_norm(now.heading, dim=-1, keepdim=True)
            left = torch.stack([-ahead[:, 1], ahead[:, 0]], -1)
            chosen, rest = torch.empty_like(now.origin), torch.arange(len(now.origin))
            for _ in range(attempts):
                rounds += 1
                local = self.mixture(outputs[rest]).sample().double()
                moved = now.scale[rest, None] * (local[:, :1] * ahead[rest] + local[:, 1:] * left[rest])
                chosen[rest] = now.origin[rest] + moved
                if region is None:
                    break
                free = region.contains_segments(now.origin[rest].numpy(), chosen[rest].numpy())
                rest = rest[torch.from_numpy(~free)]
                if not len(rest):
                    break
            positions.append(chosen)
            after = now.step(chosen, layer.floor)
            pair = [Frames(*(part.unsqueeze(1) for part in frame)) for frame in (now, after)]
            outputs, state = self.network(layer.step_features(*pair, None), state)
            outputs, now = outputs[:, -1], after
        return torch.stack(positions, 1).reshape(count, len(past), STEPS, 2), rounds


def errors(paths, truth):
    """minADE and minFDE: the least mean and last distances among samples, averaged over walkers."""
    distance = torch.linalg.vector_norm(paths - truth, dim=-1)
    return float(distance.mean(-1).amin(0).mean()), float(distance[..., -1].amin(0).mean())


def touching(region, start, paths):
    """The fractions of paths with a position off the map, and with any point of a segment off the map."""
    whole = torch.cat([start.expand(*paths.shape[:-2], 2).unsqueeze(-2), paths], -2).numpy()
    points = region.contains(whole).all(-1)
    segments = region.contains_segments(whole[..., :-1, :], whole[..., 1:, :]).all(-1)
    return float(1 - points.mean()), float(1 - segments.mean())


def train(model, log_prob, rows, validate, args, generator):
    """Adam until the validation score was not better for some epochs; keeps the best weights."""
    optimiser = torch.optim.Adam(model.parameters(), lr=args.rate)
    best, best_state, seconds, since = -math.inf, None, 0.0, 0
    for _ in range(args.epochs):
        start = time.perf_counter()
        order = rows[torch.randperm(len(rows), generator=generator)]
        for batch in order.split(128):
            optimiser.zero_grad()
            (-log_prob(batch).mean()).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimiser.step()
        seconds += time.perf_counter() - start
        with torch.no_grad():
            score = float(torch.cat([log_prob(batch) for batch in validate.split(512)]).mean())
        since += 1
        if score > best:
            best, best_state, since = score, copy.deepcopy(model.state_dict()), 0
        if since >= args.patience:
            break
    model.load_state_dict(best_state)
    return best, seconds


def run(name, number, seed, args, folder, log):
    region, paths, groups = scene(folder, number, args.every)
    training, validation, test = split(groups)
    past, future = paths[:, :OBSERVED], paths[:, OBSERVED:]
    stride = float(torch.linalg.vector_norm(paths.diff(dim=1), dim=-1)[training].median())
    torch.manual_seed(seed)
    layer = TrajectoryLayer(region, STEPS, stride=stride, components=args.components)
    start = time.perf_counter()
    windows = layer.compile_paths(past, future)
    compiling = time.perf_counter() - start
    usable = torch.from_numpy(windows.inside.all(-1))
    training, validation, kept = training[usable[training]], validation[usable[validation]], test[usable[test]]
    if seed == 0:
        print(f"{name}: {len(paths)} paths, stride {stride:.3f}, windows compiled in {compiling:.1f} s")
        print(f"  {windows.coverage}; {len(test) - len(kept)} of {len(test)} test paths have no density", flush=True)
    torch.manual_seed(seed)
    mixture = MixtureHead(layer)
    generator = torch.Generator().manual_seed(seed)
    result = {"scene": name, "seed": seed, "test": len(kept), "left_out": len(test) - len(kept)}

    def report(model, values):
        line = {**result, "model": model, **values}
        text = "  ".join(f"{key} {value:.4g}" for key, value in values.items())
        print(f"  {name} seed {seed} {model:10} {text}", flush=True)
        if log is not None:
            log.write(json.dumps(line) + "\n")
            log.flush()

    def pal_log_prob(rows):
        return layer(past[rows]).step_log_prob(future[rows], windows[rows]).mean(-1)

    def mixture_log_prob(rows):
        return mixture.step_log_prob(past[rows], future[rows]).mean(-1)

    some = kept[:: max(1, len(kept) // args.walkers)]
    truth, begin = future[some], past[some]

    def sampled(paths):
        ade, fde = errors(paths, truth)
        points, segments = touching(region, begin[:, -1], paths)
        return {"minADE": ade, "minFDE": fde, "points": points, "segments": segments}

    for model, network, log_prob in (("pal", layer, pal_log_prob), ("mixture", mixture, mixture_log_prob)):
        score, seconds = train(network, log_prob, training, validation, args, generator)
        with torch.no_grad():
            found = float(torch.cat([log_prob(batch) for batch in kept.split(512)]).mean())
        values = {"test_log_prob": found, "validation": score, "training_s": seconds}
        start = time.perf_counter()
        paths = layer(begin).sample((SAMPLES,)) if model == "pal" else mixture.sample(begin, SAMPLES)[0]
        report(model, {**values, "sampling_s": time.perf_counter() - start, **sampled(paths)})
    start = time.perf_counter()
    paths, rounds = mixture.sample(begin, SAMPLES, region)
    report("rejection", {"rounds": rounds, "sampling_s": time.perf_counter() - start, **sampled(paths)})
    if seed == 0:
        steady = begin[:, -1:] + torch.arange(1, STEPS + 1)[:, None] * (begin[:, -1:] - begin[:, -2:-1])
        report("velocity", sampled(steady.unsqueeze(0)))
    if args.paths:
        bad = total = 0
        start = time.perf_counter()
        with torch.no_grad():
            while total < args.paths:
                drawn = layer(begin).sample((max(1, 10_000 // len(begin)),))
                bad += int((~layer(begin).support.check(drawn)).sum())
                total += drawn.shape[0] * drawn.shape[1]
        print(f"  {name} seed {seed}: {bad} of {total} paths touch an obstacle; {time.perf_counter() - start:.0f} s", flush=True)


def speed(args, folder):
    """Training steps of 128 paths, in alternation, and paths per second."""
    region, paths, _ = scene(folder, 12, args.every)
    past, future = paths[:, :OBSERVED], paths[:, OBSERVED:]
    layer = TrajectoryLayer(region, STEPS, stride=0.15, components=args.components)
    windows = layer.compile_paths(past, future)
    rows_of = torch.from_numpy(np.flatnonzero(windows.inside.all(-1)))
    mixture = MixtureHead(layer)
    models = {
        "pal": (layer, lambda rows: layer(past[rows]).log_prob(future[rows], windows[rows])),
        "mixture": (mixture, lambda rows: mixture.step_log_prob(past[rows], future[rows]).sum(-1)),
    }
    optimisers = {name: torch.optim.Adam(model.parameters(), lr=1e-3) for name, (model, _) in models.items()}
    times = {name: [] for name in models}
    for round_number in range(args.repetitions + 30):
        rows = rows_of[torch.randint(len(rows_of), (128,))]
        for name, (_, log_prob) in models.items():
            start = time.perf_counter()
            optimisers[name].zero_grad()
            (-log_prob(rows).mean()).backward()
            optimisers[name].step()
            if round_number >= 30:
                times[name].append(time.perf_counter() - start)
    median = {name: 1e3 * statistics.median(values) for name, values in times.items()}
    best = {name: 1e3 * min(values) for name, values in times.items()}
    print(f"training step of 128 paths: PAL {median['pal']:.1f} ms, mixture {median['mixture']:.1f} ms (medians); "
          f"ratio {median['pal'] / median['mixture']:.2f}, of the best {best['pal'] / best['mixture']:.2f}")  # fmt: skip
    walkers = past[rows_of[torch.randint(len(rows_of), (1000,))]]
    rates = []
    for _ in range(5):
        start = time.perf_counter()
        layer(walkers).sample((10,))
        rates.append(10_000 / (time.perf_counter() - start))
    print(f"sampling: best {max(rates):.0f}, median {statistics.median(rates):.0f} paths of 12 steps per second")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="scene12 or scene2")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--patience", type=int, default=6, help="epochs without a better validation score")
    parser.add_argument("--components", type=int, default=8)
    parser.add_argument("--rate", type=float, default=3e-3, help="learning rate")
    parser.add_argument("--every", type=int, default=2, help="distance between the starts of paths along a track")
    parser.add_argument("--walkers", type=int, default=300, help="test walkers that paths are sampled for")
    parser.add_argument("--paths", type=int, default=0, help="so many paths are sampled and tested exactly")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--repetitions", type=int, default=30)
    parser.add_argument("--threads", type=int, default=2, help="threads of PyTorch; one where others use the machine, too")
    parser.add_argument("--log", type=Path)
    args = parser.parse_args()
    if "PAL_DATA" not in os.environ:
        sys.exit("PAL_DATA is not set: it is the folder with sdd/scene12_trajectories.csv and so on")
    folder = Path(os.environ["PAL_DATA"], "sdd")
    torch.set_num_threads(args.threads)
    if args.speed:
        return speed(args, folder)
    log = None if args.log is None else args.log.open("a")
    for name, number in (("scene12", 12), ("scene2", 2)):
        for seed in range(args.seeds):
            if args.only in (None, name):
                run(name, number, seed, args, folder, log)


if __name__ == "__main__":
    main()
