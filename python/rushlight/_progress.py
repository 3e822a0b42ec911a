"""A line that shows how much has been done, where tqdm is not installed."""

from __future__ import annotations

import sys


class Progress:
    """Stands in for tqdm: counts, and writes one line to standard error."""

    def __init__(
        self, total: int | None = None, disable: bool = False, unit: str = "it", **_: object
    ) -> None:
        self.total = total
        self.disable = disable
        self.unit = unit
        self.n = 0

    def update(self, n: int = 1) -> None:
        """Counts n more."""
        self.n += n
        if not self.disable:
            share = f"{100 * self.n / self.total:.1f}%" if self.total else f"{self.n} {self.unit}"
            sys.stderr.write(f"\r{share}")
            sys.stderr.flush()

    def set_description(self, *_: object) -> None:
        """Descriptions are not shown."""

    def close(self) -> None:
        """Ends the line."""
        if not self.disable:
            sys.stderr.write("\n")

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
