"""Draws the picture of the README: a Gaussian mixture and PAL, fitted to the same simulated walkers.

    python docs/tools/draw_leak.py docs/images/leak.png

Both have 16 components and are fitted by maximum likelihood to all positions. Needs the package with its extras `torch`,
`sklearn` and `plot`. Takes about a minute.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.colors import PowerNorm
from matplotlib.patches import Rectangle
from PIL import Image
from sklearn.mixture import GaussianMixture

from pal.datasets import campus
from pal.datasets.campus import OBSTACLES, SIZE
from pal.formula import Constraint
from pal.torch import KernelDistribution, KernelLayer

COMPONENTS = 16
STEPS, ROWS = 2500, 256
VALUES_PER_METRE = 6


def kernels(constraint: Constraint, walkers: np.ndarray) -> KernelDistribution:
    """One density of kernels, fitted to all positions: its parameters depend on nothing."""
    torch.manual_seed(0)
    layer = KernelLayer(constraint, components=COMPONENTS)
    params = torch.zeros(layer.num_params, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([params], lr=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, STEPS)
    targets = torch.tensor(walkers)
    for rows in torch.randint(len(targets), (STEPS, ROWS)):
        loss = -layer(params).log_prob(targets[rows]).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return layer(params.detach())


def main(path: str) -> None:
    constraint, inputs, _ = campus(walkers=400, seed=0)
    walkers = inputs[:, :2]
    mixture = GaussianMixture(COMPONENTS, random_state=0).fit(walkers)
    ours = kernels(constraint, walkers)

    axes_values = [(np.arange(side * VALUES_PER_METRE) + 0.5) / VALUES_PER_METRE for side in SIZE]
    grid = np.stack(np.meshgrid(*axes_values), -1)
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained")
    for ax, name, log_density, samples in (
        (axes[0], f"{COMPONENTS} Gaussians", mixture.score_samples, mixture.sample(100_000)[0]),
        (axes[1], f"PAL, {COMPONENTS} kernels", lambda at: ours.log_prob(torch.tensor(at)).numpy(), ours.sample((100_000,)).numpy()),
    ):
        outside = 1 - constraint.contains(samples).mean()
        density = np.exp(log_density(grid.reshape(-1, 2))).reshape(grid.shape[:2])
        # Where there is no mass at all, the paper shows.
        shown = np.ma.masked_equal(density, 0)
        norm = PowerNorm(0.5, vmin=0, vmax=1.2e-3)
        ax.imshow(shown, extent=(0, SIZE[0], 0, SIZE[1]), origin="lower", cmap="YlGnBu", norm=norm)
        for x0, y0, x1, y1 in OBSTACLES:
            ax.add_patch(Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, edgecolor="crimson", linewidth=1.6))
        ax.set(title=f"{name}: {100 * outside:.2g} % of the samples are forbidden", xticks=[], yticks=[])
        print(f"{name}: mean log-density {log_density(walkers).mean():.3f}, outside {outside:.4f}")
    picture = io.BytesIO()
    figure.savefig(picture, dpi=110)
    # 128 colours are enough, and make the file a third as large.
    Image.open(picture).convert("RGB").quantize(128).save(Path(path), optimize=True)


if __name__ == "__main__":
    main(sys.argv[1])
