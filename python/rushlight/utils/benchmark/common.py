"""What was measured, and how it is told."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import statistics
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

import rushlight as torch

_UNITS = (("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0))
_WORDS = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}
_NOISY = 0.1  # quartiles further apart than this share of the median are worth a warning
_VERY_NOISY = 0.25


@dataclasses.dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """What is measured: the statement, its setup, and how it is called in tables."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement where there is none, and the sub-label."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        if "\n" not in self.stmt:
            return self.stmt + (f": {self.sub_label}" if self.sub_label else "")
        head = f"stmt:{f' ({self.sub_label})' if self.sub_label else ''}"
        return f"{head}\n{textwrap.indent(self.stmt, '  ')}"

    def setup_str(self) -> str:
        """The setup as a measurement shows it."""
        if self.setup == "pass" or not self.setup:
            return ""
        if "\n" in self.setup:
            return f"setup:\n{textwrap.indent(self.setup, '  ')}"
        return f"setup: {self.setup}"

    def summarize(self) -> str:
        """Title, description, setup."""
        parts = [self.title, self.description or "", self.setup_str()]
        text = "\n".join(part for part in parts if part)
        return text + "\n" if "\n" in self.setup else text


@dataclasses.dataclass(init=True, repr=False)
class Measurement:
    """Times of one task: `raw_times` seconds for `number_per_run` runs each."""

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "task_spec":
            raise AttributeError(name)
        return getattr(self.task_spec, name)  # label, stmt, num_threads, ...

    @property
    def times(self) -> list[float]:
        """Seconds a run."""
        return [t / self.number_per_run for t in self.raw_times]

    def _quantile(self, share: float) -> float:
        times = sorted(self.times)
        at = share * (len(times) - 1)
        low = math.floor(at)
        high = min(low + 1, len(times) - 1)
        return times[low] + (times[high] - times[low]) * (at - low)

    @property
    def median(self) -> float:
        """The median of `times`."""
        return statistics.median(self.times)

    @property
    def mean(self) -> float:
        """The mean of `times`."""
        return statistics.fmean(self.times)

    @property
    def iqr(self) -> float:
        """How far the quartiles of `times` are apart."""
        return self._quantile(0.75) - self._quantile(0.25)

    @property
    def significant_figures(self) -> int:
        """How many figures of the median the spread leaves: from 1 to 5."""
        if not self.iqr:
            return 5
        return max(1, min(5, math.floor(-math.log10(self.iqr / self.median))))

    @property
    def has_warnings(self) -> bool:
        """Whether the times are spread too widely to be trusted."""
        return self.iqr / self.median > _NOISY

    def meets_confidence(self, threshold: float = 0.1) -> bool:
        """Whether there are enough times, and close enough together."""
        return len(self.times) >= 4 and self.iqr / self.median < threshold

    @property
    def as_row_name(self) -> str:
        """The name in tables: sub-label, else statement."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __repr__(self) -> str:
        count = len(self.raw_times)
        unit, scale = select_unit(self.median)
        lines = [
            f"<{type(self).__module__}.{type(self).__name__} object at {hex(id(self))}>",
            self.task_spec.summarize(),
        ]
        shown = f"{self.median / scale:.2f} {unit}"
        if count == 1:
            lines.append(f"  {shown}")
        elif count == 2:
            lines.append(f"  Mean:   {self.mean / scale:.2f} {unit}")
        else:
            low, high = self._quantile(0.25) / scale, self._quantile(0.75) / scale
            lines.append(f"  Median: {shown}")
            lines.append(f"  IQR:    {high - low:.2f} {unit} ({low:.2f} to {high:.2f})")
        threads = (
            f"{self.task_spec.num_threads} thread{'s' if self.task_spec.num_threads > 1 else ''}"
        )
        runs = f"{self.number_per_run} runs {'per measurement' if count > 1 else ''}"
        lines.append(f"  {count} measurement{'s' if count > 1 else ''}, {runs}, {threads}")
        if self.has_warnings:
            share = f"{self.iqr / self.median * 100:.1f}% of the median"
            advice = (
                "This suggests significant environmental influence."
                if self.iqr / self.median > _VERY_NOISY
                else "This could indicate system fluctuation."
            )
            lines.append(f"  WARNING: Interquartile range is {share} measurement.")
            lines.append(f"           {advice}")
        return "\n".join(lines)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Measurements of the same task as one each, by their times for a single run."""
        groups: dict[TaskSpec, list[Measurement]] = {}
        for m in measurements:
            groups.setdefault(m.task_spec, []).append(m)
        return [
            Measurement(1, [t for m in group for t in m.times], spec)
            for spec, group in groups.items()
        ]


def select_unit(t: float) -> tuple[str, float]:
    """The largest unit that is not above `t` seconds, and how many seconds it has."""
    for name, scale in reversed(_UNITS):
        if t >= scale:
            return name, scale
    return _UNITS[0]


def unit_to_english(u: str) -> str:
    """The word for a unit: "us" is a microsecond."""
    return _WORDS[u]


def trim_sigfig(x: float, n: int) -> float:
    """`x` with `n` figures."""
    if x == 0:
        return 0.0
    scale = 10.0 ** (math.floor(math.log10(abs(x))) + 1 - n)
    return round(x / scale) * scale


@contextlib.contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """A block with this many threads."""
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(n)
        yield
    finally:
        torch.set_num_threads(before)
