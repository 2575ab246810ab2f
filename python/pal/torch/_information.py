"""Entropies and Kullback-Leibler divergences of batches, with derivatives with respect to the parameters.

The core integrates by adaptive cubature, row by row, and knows the derivatives of what it sums up. Where that takes too
many evaluations, in many variables, there are estimates from samples: unbiased, with derivatives by the score function,
whose variance a baseline reduces that leaves out the sample itself:

    d/dparams E[f(y)]  =  E[(f(y) - b) d log p(y)/dparams],        b_i  =  mean of f(y_j) over all other samples j
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from .. import _core
from ..errors import QueryError
from ._moments import KnownGradient, event, flat, probability

if TYPE_CHECKING:
    from .distribution import ConstrainedDistribution


def entropy(p: ConstrainedDistribution, tolerance: float) -> Tensor:
    """The differential entropies of all rows, in float64."""
    rows = p._core_rows()
    differentiable = rows.requires_grad and torch.is_grad_enabled()
    options = _core.EntropyOptions(float(tolerance))
    values, errors, converged, gradient, _ = _source(p).information(flat(rows), options, differentiable)
    _report("entropies", errors, converged, tolerance)
    return _with_gradient(rows, values, gradient)


def kl_divergence(p: ConstrainedDistribution, q: ConstrainedDistribution, tolerance: float) -> Tensor:
    """The Kullback-Leibler divergences of all rows, in float64."""
    of_p, of_q = p._core_rows(), q._core_rows()
    differentiable = (of_p.requires_grad or of_q.requires_grad) and torch.is_grad_enabled()
    options = _core.EntropyOptions(float(tolerance))
    infinite = _mass_outside(p, q) > 0
    if bool(infinite.all()):
        return of_p.new_full(infinite.shape, math.inf) + 0 * (of_p.sum() + of_q.sum())
    source, other = _source(p), q.layer.family._core
    found = source.divergence(flat(of_p), other, flat(of_q), options, differentiable)
    values, errors, converged, gradient, other_gradient = found
    _report("divergences", errors, converged | infinite.cpu().numpy(), tolerance)
    total = _with_gradient(of_p, values, gradient)
    if differentiable:
        # The gradient with respect to the second parameters, of a value that is already counted.
        second = _with_gradient(of_q, values, other_gradient)
        total = total + (second - second.detach()).to(total.device)
    if q._condition is not None:
        # The second density, given its condition, is larger by the inverse of the probability of that.
        total = total + probability(q.layer, of_q, q._condition).log().to(total.device)
    return torch.where(infinite, math.inf, total)


def _source(p: ConstrainedDistribution) -> _core.Family | _core.Event:
    return p.layer.family._core if p._condition is None else event(p.layer, p._condition)


def _with_gradient(rows: Tensor, values: np.ndarray, gradient: np.ndarray | None) -> Tensor:
    values_ = torch.from_numpy(values)
    if gradient is None:
        return values_.to(rows)
    return KnownGradient.apply(rows, values_, torch.from_numpy(gradient).view_as(rows))


def _report(what: str, errors: np.ndarray, converged: np.ndarray, tolerance: float) -> None:
    missed = np.flatnonzero(~converged)
    if len(missed):
        worst = missed[errors[missed].argmax()]
        rows = ", ".join(map(str, missed[:8])) + (", ..." if len(missed) > 8 else "")
        warnings.warn(
            f"{what} of {len(missed)} of {len(errors)} densities (rows {rows}) are not known to {tolerance:g}: the "
            f"estimate of the error of row {worst} is {errors[worst]:.1e}",
            stacklevel=4,
        )


def _mass_outside(p: ConstrainedDistribution, q: ConstrainedDistribution) -> Tensor:
    """The probability under p of what q excludes, decided exactly where it is 0."""
    with torch.no_grad():
        rows = p._core_rows()
        nothing = rows.new_zeros(len(rows))
        if p._variables != q._variables:
            names = ", ".join(p._variables), ", ".join(q._variables)
            raise QueryError(f"the densities have different variables: {names[0]} and {names[1]}")
        mine, other = p.layer.family, q.layer.family
        alike = mine is other or mine.constraint.to_smtlib() == other.constraint.to_smtlib()
        if alike and q._condition is None:
            return nothing
        outside = ~q.constraint.formula
        given = outside if p._condition is None else p._condition & outside
        return probability(p.layer, rows, given)


def from_samples(p: ConstrainedDistribution, q: ConstrainedDistribution | None, samples: int) -> Tensor:
    """An unbiased estimate of the entropy of p or, if there is a q, of the divergence of p from q, with derivatives by
    the score function."""
    if samples < 2:
        raise ValueError(f"an estimate takes at least 2 samples, not {samples}")
    points = p.sample((samples,)).to(torch.float64)
    log_p = p.log_prob(points)
    log_q = None if q is None else q.log_prob(points)
    value = -log_p.detach() if log_q is None else (log_p - log_q).detach()
    mean = value.mean(0)
    # What remains of the mean when a sample is left out.
    baseline = (samples * mean - value) / (samples - 1)
    # Where the divergence is infinite there is no derivative.
    weights = torch.nan_to_num(value - baseline, nan=0.0, posinf=0.0, neginf=0.0)
    surrogate = (weights * log_p).mean(0)
    if log_q is not None:
        surrogate = surrogate - log_q.masked_fill(log_q.isneginf(), 0.0).mean(0)
    return mean + (surrogate - surrogate.detach())
