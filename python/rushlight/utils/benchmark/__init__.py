"""Timing of small programs: how long a statement takes, and tables of measurements."""

from .common import (
    Measurement,
    TaskSpec,
    select_unit,
    set_torch_threads,
    trim_sigfig,
    unit_to_english,
)
from .compare import Colorize, Compare
from .timer import Language, Timer, timer

__all__ = [
    "Colorize",
    "Compare",
    "Language",
    "Measurement",
    "TaskSpec",
    "Timer",
    "select_unit",
    "set_torch_threads",
    "timer",
    "trim_sigfig",
    "unit_to_english",
]
