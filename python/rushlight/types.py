"""Names for types in annotations."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Union

from rushlight._C import Generator, Size, Tensor, device, dtype, layout, memory_format  # noqa: F401

Number = Union[int, float, bool]
_TensorOrTensors = Union[Tensor, Sequence[Tensor]]
Device = Union[device, str, int, None]
_dtype = dtype
_device = device
_size = Union[Size, list[int], tuple[int, ...]]
_layout = layout
_int = builtins.int
_float = builtins.float
_bool = builtins.bool
