"""What can go wrong, as a small hierarchy of exceptions.

All are [`Error`][pal.errors.Error]s, and all are `ValueError`s too: the types of the arguments were right, their values
were not. Their messages name the thing and say what would work.
"""

from __future__ import annotations

from fractions import Fraction


class Error(Exception):
    """The base of all exceptions of this package.

    >>> import pal
    >>> issubclass(pal.ParseError, pal.Error) and issubclass(pal.ParseError, ValueError)
    True
    """


class NumberError(Error, ValueError):
    """A text or a float that is not a real number.

    >>> import pal
    >>> pal.rational("one")
    Traceback (most recent call last):
    pal.errors.NumberError: ...
    """


class ParseError(Error, ValueError):
    """A text that cannot be read; `line` and `column` count from 1 and are `None` where they are not known.

    >>> import pal
    >>> try:
    ...     pal.parse_smtlib("(declare-const x Real)\\n(assert (<= x y))")
    ... except pal.ParseError as error:
    ...     print(error.line, error.column)
    2 15
    """

    line: int | None = None
    column: int | None = None


class RegionError(Error, ValueError):
    """A constraint that cannot be made into a region.

    >>> import pal
    >>> x, y = pal.reals("x", "y")
    >>> pal.Region(x + y <= 1, variables=["x"])
    Traceback (most recent call last):
    pal.errors.RegionError: ...
    """


class UnboundedError(RegionError):
    """A region of infinite volume, where a finite one is needed. `direction` is a ray inside it, by variable.

    >>> import pal
    >>> x, y = pal.reals("x", "y")
    >>> try:
    ...     pal.SplineMixture((x >= 0) & y.between(0, 1))
    ... except pal.UnboundedError as error:
    ...     print(error.direction)
    {'x': Fraction(1, 1), 'y': Fraction(0, 1)}
    """

    direction: dict[str, Fraction] | None = None


class PolynomialError(Error, ValueError):
    """A polynomial or a weight that does not fit the region, or grows too large.

    >>> import pal
    >>> pal.integrate(pal.real("x").between(0, 1), "z^2")
    Traceback (most recent call last):
    pal.errors.PolynomialError: ...
    """


class DensityError(Error, ValueError):
    """A family that cannot be compiled, or parameters and points that do not fit it.

    >>> import pal
    >>> pal.SplineMixture(pal.real("x").between(0, 1), knots=1)
    Traceback (most recent call last):
    pal.errors.DensityError: ...
    """


class QueryError(Error, ValueError):
    """A question about a density that has no answer, such as conditioning on an event of probability 0.

    >>> import pal
    >>> x = pal.real("x")
    >>> density = pal.SumOfSquares(x.between(0, 1), degree=0, components=1).density([0.0, 0.0])
    >>> density.condition(x >= 2)
    Traceback (most recent call last):
    pal.errors.QueryError: ...
    """


class FileError(Error, ValueError):
    """A file that holds no model, or one that was damaged.

    >>> import os, pal, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "cut.safetensors")
    ...     with open(file, "wb") as cut:
    ...         _ = cut.write(b"half of a header")
    ...     pal.load(file)
    Traceback (most recent call last):
    pal.errors.FileError: ...
    """
