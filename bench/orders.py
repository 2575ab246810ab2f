#!/usr/bin/env python3
"""A table with numbers, truth values, labels and rules between them: `ConstrainedDensity` against mixtures of Gaussians.

    python bench/orders.py --seeds 3
    python bench/orders.py --quick

The orders of a shop (`pal.datasets.orders`): weight, price, carrier, express, insured. Models are fitted to half of the rows
and judged on the other half:

    pal        pal.sklearn.ConstrainedDensity with the rules, one density of all columns
    one-hot    GaussianMixture on standardised columns of numbers and of 0 and 1; samples are rounded to the nearest label
    per-value  the frequencies of all combinations of labels and truth values, and a GaussianMixture of the numbers for
               each of them

The numbers of components of the Gaussians are chosen by their log-likelihood on a fifth of the training rows. Figures: the
mean log-density of test rows (one-hot has none: rounding makes its log-density one of other columns); the fraction of 10^5
samples that violate a rule, judged without PAL; and how well a classifier (gradient boosting, half of the rows to learn,
half to judge) tells samples from as many test rows, as the area under its curve: 0.5 is not at all, 1 is always. One JSON line per run goes to
the file --log.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.mixture import GaussianMixture

from pal.datasets import orders
from pal.datasets.orders import CARRIERS, violations
from pal.sklearn import ConstrainedDensity

NUMBERS, TRUTHS = ["weight", "price"], ["express", "insured"]
# Closer where most orders are.
KNOTS = [[0, 0.7, 1.4, 2, 3.5, 6, 10, 15, 20, 30, 40], [2, 3.5, 5, 6.5, 8, 10, 12, 15, 20, 30, 50]]


def rows_of(table, rows):
    return {name: column[rows] for name, column in table.items()}


def plain(table):
    """The numbers, then 0 and 1 for every carrier and every truth value."""
    one_hot = [table["carrier"] == carrier for carrier in CARRIERS]
    columns = [table[name] for name in NUMBERS] + one_hot + [table[name] for name in TRUTHS]
    return np.stack(columns, -1).astype(float)


def best_mixture(points, most, seed):
    """A mixture of Gaussians, whose number of components is chosen on a fifth of the points."""
    order = np.random.default_rng(seed).permutation(len(points))
    aside = max(1, len(points) // 5)
    fitted, judged = points[order[aside:]], points[order[:aside]]
    counts = [k for k in (1, 2, 4, 8, 16, 32) if k <= min(most, len(fitted) // 10)] or [1]
    scores = [GaussianMixture(k, random_state=seed, reg_covar=1e-4).fit(fitted).score(judged) for k in counts]
    return GaussianMixture(counts[int(np.argmax(scores))], random_state=seed, reg_covar=1e-4).fit(points)


class Pal:
    def __init__(self, constraint, args, seed):
        self.model = ConstrainedDensity(
            constraint, knots=KNOTS, components=args.components, max_iter=args.steps, random_state=seed
        )

    def fit(self, table):
        self.model.fit(table)

    def score(self, table):
        return self.model.score(table)

    def sample(self, count, seed):
        return self.model.sample(count, random_state=seed)


class OneHot:
    """Gaussians of all columns, standardised; what they say of labels is rounded."""

    def __init__(self, _, args, seed):
        self.most, self.seed = args.gaussians, seed

    def fit(self, table):
        points = plain(table)
        self.mean, self.spread = points.mean(0), points.std(0)
        self.mixture = best_mixture((points - self.mean) / self.spread, self.most, self.seed)

    def score(self, table):
        return None

    def sample(self, count, seed):
        self.mixture.random_state = seed
        points = self.mixture.sample(count)[0] * self.spread + self.mean
        table = dict(zip(NUMBERS, points.T))
        table["carrier"] = np.array(CARRIERS)[points[:, 2:5].argmax(1)]
        return {**table, **{name: points[:, 5 + k] > 0.5 for k, name in enumerate(TRUTHS)}}


class PerValue:
    """Frequencies of combinations of labels, and Gaussians of the numbers for each of them."""

    def __init__(self, _, args, seed):
        self.most, self.seed = args.gaussians, seed

    @staticmethod
    def keys(table):
        return plain(table)[:, 2:] @ 2.0 ** np.arange(5)

    def fit(self, table):
        keys, numbers = self.keys(table), plain(table)[:, :2]
        self.known, first, counts = np.unique(keys, return_index=True, return_counts=True)
        self.labels = plain(table)[first, 2:]
        self.frequencies = counts / len(keys)
        self.mixtures = [best_mixture(numbers[keys == key], self.most, self.seed) for key in self.known]

    def score(self, table):
        keys, numbers, logs = self.keys(table), plain(table)[:, :2], np.full(len(table["weight"]), -np.inf)
        for key, frequency, mixture in zip(self.known, self.frequencies, self.mixtures):
            logs[keys == key] = np.log(frequency) + mixture.score_samples(numbers[keys == key])
        return float(logs.mean())

    def sample(self, count, seed):
        parts = np.random.default_rng(seed).multinomial(count, self.frequencies)
        numbers, labels = [], []
        for number, mixture, row in zip(parts, self.mixtures, self.labels):
            if number:
                mixture.random_state = seed
                numbers.append(mixture.sample(number)[0])
                labels.append(np.tile(row, (number, 1)))
        numbers, labels = np.vstack(numbers), np.vstack(labels)
        table = dict(zip(NUMBERS, numbers.T))
        table["carrier"] = np.array(CARRIERS)[labels[:, :3].argmax(1)]
        return {**table, **{name: labels[:, 3 + k] == 1 for k, name in enumerate(TRUTHS)}}


def told_apart(real, made, seed):
    """The area under the curve of a classifier that tells rows from samples."""
    points = np.vstack([plain(real), plain(made)])
    which = np.repeat([0, 1], [len(real["weight"]), len(made["weight"])])
    order = np.random.default_rng(seed).permutation(len(points))
    learn, judge = np.array_split(order, 2)
    classifier = HistGradientBoostingClassifier(max_iter=100, random_state=seed).fit(points[learn], which[learn])
    return float(roc_auc_score(which[judge], classifier.predict_proba(points[judge])[:, 1]))


MODELS = {"pal": Pal, "one-hot": OneHot, "per-value": PerValue}


def run(name, seed, args):
    constraint, table = orders(2 * args.rows, seed=seed)
    train, test = (rows_of(table, part) for part in (slice(None, args.rows), slice(args.rows, None)))
    model = MODELS[name](constraint, args, seed)
    start = time.perf_counter()
    model.fit(train)
    seconds = time.perf_counter() - start
    samples = model.sample(args.samples, seed)
    some = rows_of(samples, np.random.default_rng(seed).permutation(args.samples)[: args.rows])
    return {
        "model": name, "seed": seed, "rows": args.rows, "test_ll": model.score(test), "seconds": seconds,
        "outside": float(violations(samples).mean()), "samples": args.samples, "auc": told_apart(test, some, seed),
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS), help="models, separated by commas")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--components", type=int, default=16, help="of PAL")
    parser.add_argument("--steps", type=int, default=200, help="of the optimiser of PAL")
    parser.add_argument("--gaussians", type=int, default=32, help="the largest number of components of the mixtures")
    parser.add_argument("--quick", action="store_true", help="few rows and steps, one seed")
    parser.add_argument("--log", type=Path, default=Path("target/orders.jsonl"))
    args = parser.parse_args()
    if args.quick:
        args.seeds, args.rows, args.samples, args.components, args.steps = 1, 500, 2000, 4, 20
    args.log.parent.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", ConvergenceWarning)
    for name in args.models.split(","):
        found = []
        for seed in range(1, args.seeds + 1):
            found.append(run(name, seed, args))
            with args.log.open("a") as log:
                log.write(json.dumps(found[-1]) + "\n")

        def spread(field, found=found):
            values = [figures[field] for figures in found]
            if None in values:
                return "-"
            return f"{statistics.mean(values):.3f} ± {statistics.stdev(values) if len(values) > 1 else 0:.3f}"

        outside = 100 * statistics.mean(figures["outside"] for figures in found)
        seconds = statistics.mean(figures["seconds"] for figures in found)
        print(
            f"{name:9} {len(found)} seeds  test {spread('test_ll')}  outside {outside:.2f} %  AUC {spread('auc')}  "
            f"{seconds:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
