"""Recorded work of Intel GPUs, of which there are none."""

from rushlight.xpu import (  # noqa: F401
    XPUGraph,
    graph,
    graph_pool_handle,
    is_current_stream_capturing,
    make_graphed_callables,
)
