"""Normalisers: by which integrals the components of a density are divided."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from ..formula import Formula


class Normaliser(NamedTuple):
    """The integrals of all components over a set, as a form in their coefficients (the denominator of Eq. (PAL) of the
    paper).

    A layer computes the densities of its parameters for any normaliser on its grid: by default for that of the
    constraint it was compiled on, `layer.normaliser`; with `layer.normaliser_within(condition)`, for the part of the
    constraint where a further condition holds, as a layer compiled on that part would.

    Attributes:
        form: the constants of the integrals, in the layout of the layer; `None` where they would be too large for
            tensor operations, and the core computes integrals instead.
        condition: which part of the constraint the integrals are over; `None` for all of it.

    >>> import pal, torch
    >>> x = pal.real("x")
    >>> layer = pal.torch.SplineLayer(x.between(0, 4), knots=5, components=2, head="values")
    >>> layer.normaliser.condition is None, layer.normaliser_within(x <= 1).condition
    (True, x <= 1)
    """

    form: Tensor | None
    condition: Formula | None = None

    @property
    def tensor(self) -> Tensor:
        """The form, for tensor operations; an error that says what is possible, where there is none."""
        if self.form is None:
            raise NotImplementedError(
                "written out for all bins, the normaliser of this layer would be too large for tensor operations: with "
                "so many knots there are log-densities of one point per row on the CPU, with first derivatives"
            )
        return self.form
