"""Memory of Meta's accelerators, of which there are none."""

from rushlight.mtia import (  # noqa: F401
    max_memory_allocated,
    memory_allocated,
    memory_stats,
    reset_peak_memory_stats,
)
