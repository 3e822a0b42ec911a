"""Kernels written as CUDA source, which nothing here can run."""

from __future__ import annotations

from rushlight._absent import define
from rushlight.cuda import _DEVICE

define(
    globals(),
    _DEVICE,
    """
fails _create_jit_fn(code_string, **kwargs)
fails _create_multi_output_jit_fn(code_string, num_outputs, **kwargs)
""",
)
