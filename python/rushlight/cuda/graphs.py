"""Recorded work of CUDA devices, of which there are none."""

from rushlight.cuda import (  # noqa: F401
    CUDAGraph,
    graph,
    graph_pool_handle,
    is_current_stream_capturing,
    make_graphed_callables,
)
