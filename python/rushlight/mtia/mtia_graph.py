"""Recorded work of Meta's accelerators, of which there are none."""

from rushlight.mtia import (  # noqa: F401
    MTIAGraph,
    graph,
    graph_pool_handle,
)
