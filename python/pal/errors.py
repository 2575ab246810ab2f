"""What can go wrong, as a small hierarchy of exceptions.

All are [`Error`][pal.errors.Error]s, and all are `ValueError`s too: the types of the arguments were right, their values
were not. Their messages name the thing and say what would work.
"""

from __future__ import annotations

from fractions import Fraction


class Error(Exception):
    """The base of all exceptions of this package."""


class NumberError(Error, ValueError):
    """A text or a float that is not a real number."""


class ParseError(Error, ValueError):
    """A text that cannot be read; `line` and `column` count from 1 and are `None` where they are not known."""

    line: int | None = None
    column: int | None = None


class RegionError(Error, ValueError):
    """A constraint that cannot be made into a region."""


class UnboundedError(RegionError):
    """A region of infinite volume, where a finite one is needed. `direction` is a ray inside it, by variable."""

    direction: dict[str, Fraction] | None = None


class PolynomialError(Error, ValueError):
    """A polynomial or a weight that does not fit the region, or grows too large."""


class DensityError(Error, ValueError):
    """A family that cannot be compiled, or parameters and points that do not fit it."""


class QueryError(Error, ValueError):
    """A question about a density that has no answer, such as conditioning on an event of probability 0."""


class FileError(Error, ValueError):
    """A file that holds no model, or one that was damaged."""
