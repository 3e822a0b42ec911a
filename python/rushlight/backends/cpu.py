"""The CPU."""

from __future__ import annotations

from rushlight import _C


def get_cpu_capability() -> str:
    """The instruction set that kernels are chosen for, by PyTorch's names."""
    level = _C._cpu_level()
    return {"base": "DEFAULT", "v3": "AVX2"}.get(level, "AVX512")
