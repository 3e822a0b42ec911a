"""Names for types in annotations."""

from __future__ import annotations

import builtins
from collections.abc import Sequence

from rushlight._C import Generator, Size, Tensor, device, dtype, layout, memory_format  # noqa: F401

Number = int | float | bool
_TensorOrTensors = Tensor | Sequence[Tensor]
Device = device | str | int | None
_dtype = dtype
_device = device
_size = Size | list[int] | tuple[int, ...]
_layout = layout
_int = builtins.int
_float = builtins.float
_bool = builtins.bool
