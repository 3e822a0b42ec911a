"""Structured traces: records as JSON lines, to the logger `torch.__trace` where it has handlers."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable

trace_log = logging.getLogger("torch.__trace")
trace_log.propagate = False
_overhead = 0.0


def trace_structured(
    name: str,
    metadata_fn: Callable[[], object] = dict,
    *,
    payload_fn: Callable[[], object] = lambda: None,
    suppress_context: bool = False,
    expect_trace_id: bool = True,
    record_logging_overhead: bool = True,
    compile_id: object = None,
) -> None:
    """Writes a record {name: metadata_fn(), "payload": payload_fn()}; nobody listening: nothing."""
    global _overhead
    if not trace_log.handlers:
        return
    start = time.perf_counter()
    record: dict[str, object] = {name: metadata_fn()}
    payload = payload_fn()
    if payload is not None:
        record["payload"] = payload
    if compile_id is not None and not suppress_context:
        record["compile_id"] = str(compile_id)
    trace_log.debug("%s", json.dumps(record, default=str))
    if record_logging_overhead:
        _overhead += time.perf_counter() - start


def dtrace_structured(
    name: str,
    metadata_fn: Callable[[], object] = dict,
    *,
    payload_fn: Callable[[], object] = lambda: None,
    suppress_context: bool = False,
    expect_trace_id: bool = False,
    record_logging_overhead: bool = True,
) -> None:
    """trace_structured, for records that are for debugging."""
    trace_structured(
        name,
        metadata_fn,
        payload_fn=payload_fn,
        suppress_context=suppress_context,
        expect_trace_id=expect_trace_id,
        record_logging_overhead=record_logging_overhead,
    )


def get_structured_logging_overhead() -> float | None:
    """The seconds that records took; None where there were none."""
    return _overhead or None
