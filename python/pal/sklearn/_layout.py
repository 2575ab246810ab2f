"""How rows come and go: arrays in the order of the columns, or named columns with numbers, truth values and labels.

Estimators compute with plain rows. What they are given may be a table of pandas or a dict of columns, and samples and
predictions are given back in the same form. pandas is imported only where a table of it was given.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import _arrays
from .._arrays import FloatArray
from ..formula import Constraint
from ..mixed import _Columns

_TRUTH = "True, False, 0 or 1"


class Layout:
    """The columns that a constraint is about, and the form of the rows that an estimator was fitted on.

    Args:
        constraint: a constraint, with or without Boolean variables.
        what: how messages call the rows, `X` or `y`.
        given: what the estimator was fitted on.
    """

    def __init__(self, constraint: Constraint, what: str, given: Any) -> None:
        self.what = what
        self.columns = _Columns(constraint.variables, constraint.booleans)
        self.named = _arrays.labels_of(given) is not None
        # An empty table of pandas keeps the order and the types of its columns.
        self.frame = given.iloc[:0] if self.named and hasattr(given, "iloc") and hasattr(given, "columns") else None

    def plain(self, given: Any) -> Any:
        """Named columns as plain rows: real variables, then 0 and 1 for each Boolean one. Other rows stay as they
        are, to be checked by `check`. Errors name the row and the column."""
        labels = _arrays.labels_of(given)
        if labels is None:
            return given
        # A category is one column of labels, or one of 0 and 1 for each of its values.
        split = {name for name in self.columns.categories if name not in labels and _any_value(name, labels)}
        short = {column: self.columns.short(column) for column in self.columns.names}
        wanted = list(dict.fromkeys(column if name in split else name for column, name in short.items()))
        parts: list[FloatArray] = []
        for name, column in zip(wanted, _arrays.named(given, wanted, f"rows of {self.what}") or ()):
            entries = _entries(column)
            parts += self._one_hot(name, entries) if name in self.columns.categories else [self._numbers(name, entries)]
        lengths = sorted({len(part) for part in parts})
        if len(lengths) > 1:
            raise ValueError(f"the columns of {self.what} have {lengths[0]} to {lengths[-1]} rows; they need equally many")
        return np.stack(parts, axis=-1)

    def _one_hot(self, name: str, labels: Any) -> list[FloatArray]:
        values = self.columns.categories[name]
        wrong = np.array([label not in values for label in labels], dtype=bool)
        self._refuse(wrong, name, labels, f", which is none of its values {', '.join(values)}")
        return [(labels == value).astype(np.float64) for value in values]

    def _numbers(self, name: str, entries: Any) -> FloatArray:
        if entries.dtype.kind not in "fiub":
            wrong = np.array([not isinstance(entry, (bool, int, float, np.bool_, np.number)) for entry in entries], bool)
            asked = _TRUTH if name in self.columns.booleans else "a number"
            self._refuse(wrong, name, entries, f" in place of {asked}")
        return _arrays.float64(entries.astype(np.float64) if entries.dtype == object else entries, f"the column `{name}`")

    def check(self, rows: FloatArray) -> None:
        """Refuses plain rows that are too short or too long, have numbers that are not finite, Boolean variables that
        are neither 0 nor 1, or categories without exactly one value."""
        _arrays.check_width(rows.shape, self.columns.names, f"rows of {self.what}")
        for name, column in zip(self.columns.names, rows.T):
            truth = name in self.columns.booleans
            wrong = (column != 0) & (column != 1) if truth else ~np.isfinite(column)
            self._refuse(wrong, name, column, f" in place of {_TRUTH if truth else 'a finite number'}")
        for name, values in self.columns.categories.items():
            chosen = rows[:, [self.columns.names.index(f"{name}={value}") for value in values]].sum(1)
            for row in np.flatnonzero(chosen != 1)[:1]:
                raise ValueError(f"row {row} of {self.what}: `{name}` has {chosen[row]:.0f} values in place of exactly one")

    def _refuse(self, wrong: Any, name: str, entries: Any, why: str) -> None:
        """Raises an error about the first entry that is wrong."""
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            entry = entries[row].item() if isinstance(entries[row], np.generic) else entries[row]
            problem = "has no value" if _is_missing(entry) else f"is {entry!r}{why}"
            raise ValueError(f"row {row} of {self.what}: `{name}` {problem}")

    def shown(self, row: FloatArray) -> str:
        """A row for a message: a list of numbers, or values by name where there are Boolean variables."""
        if not self.columns.booleans:
            return str(row.tolist())
        return "(" + ", ".join(f"{name} = {value}" for name, value in self.columns.named(row).items()) + ")"

    def restored(self, rows: FloatArray) -> Any:
        """Plain rows in the form of those that were given: an array, a dict of columns, or a table of pandas with the
        same columns in their order. Truth values and labels have the types that were given. Real numbers are float64
        whatever they were: rounded, they might violate the constraint."""
        if not self.named:
            return rows
        columns: Mapping[str, Any] = self.columns.named(rows)
        if self.frame is None:
            return dict(columns)
        import pandas

        split = {name: rows[..., k] == 1 for k, name in enumerate(self.columns.names) if name in self.columns.booleans}
        columns = {**split, **columns}
        made = pandas.DataFrame({name: columns[name] for name in self.frame.columns if name in columns})
        return made.astype({name: self.frame[name].dtype for name in made if name not in self.columns.reals})

    def means(self, rows: FloatArray) -> Any:
        """Means of all plain columns, of which those of Boolean variables are probabilities, in the form of the rows that
        were given."""
        if not self.named:
            return rows
        columns = dict(zip(self.columns.names, rows.T))
        if self.frame is None:
            return columns
        import pandas

        return pandas.DataFrame(columns)


def _any_value(category: str, labels: list[Any]) -> bool:
    return any(isinstance(label, str) and label.startswith(f"{category}=") for label in labels)


def _entries(column: Any) -> Any:
    """A column as an array of one axis; texts, and what numpy has no type for, are objects."""
    # In a list with a text, numpy would make texts of numbers too.
    entries = np.array(column, dtype=object) if isinstance(column, (list, tuple)) else np.asarray(column)
    return (entries if entries.dtype.kind in "fiub" else entries.astype(object)).reshape(-1)


def _is_missing(entry: Any) -> bool:
    """Whether an entry is not there: None, NaN, NA or NaT."""
    absent = entry is None or type(entry).__name__ in ("NAType", "NaTType")
    return absent or (isinstance(entry, float) and entry != entry)
