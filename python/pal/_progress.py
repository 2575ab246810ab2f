"""A progress bar for work that takes long, where tqdm is installed and standard error is a terminal."""

from __future__ import annotations

import sys


class Bar:
    """Shows how many steps a call has taken. Their number in the end is not known, so there is no percentage."""

    def __init__(self, what: str) -> None:
        self._bar = None
        self._done = 0
        # Without a terminal nobody sees the bar, and tqdm need not be imported.
        if not sys.stderr.isatty():
            return
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return
        self._bar = tqdm(desc=f"pal: {what}", unit=" steps", unit_scale=True, leave=False)

    def show(self, done: int) -> None:
        """Shows that `done` steps have been taken."""
        if self._bar is not None:
            self._bar.update(done - self._done)
            self._done = done

    def close(self) -> None:
        """Removes the bar."""
        if self._bar is not None:
            self._bar.close()
