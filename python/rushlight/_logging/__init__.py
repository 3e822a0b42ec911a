"""What is told while programs run: PyTorch's names for it, and the core's topics behind them.

`set_logs(graph_breaks=True)`, or TORCH_LOGS=graph_breaks in the environment, has the core write
lines to stderr, as RUSHLIGHT_LOG does; loggers of Python are set to the levels asked for.
"""

from __future__ import annotations

from rushlight._logging._artifacts import DEFAULT_LOGGING as DEFAULT_LOGGING
from rushlight._logging._artifacts import getArtifactLogger as getArtifactLogger
from rushlight._logging._artifacts import set_logs as set_logs
from rushlight._logging._text import LazyString as LazyString
from rushlight._logging._text import hide_warnings as hide_warnings
from rushlight._logging._text import warning_once as warning_once
from rushlight._logging._trace import dtrace_structured as dtrace_structured
from rushlight._logging._trace import (
    get_structured_logging_overhead as get_structured_logging_overhead,
)
from rushlight._logging._trace import trace_structured as trace_structured

__all__ = [
    "DEFAULT_LOGGING",
    "LazyString",
    "dtrace_structured",
    "getArtifactLogger",
    "get_structured_logging_overhead",
    "hide_warnings",
    "set_logs",
    "trace_structured",
    "warning_once",
]
