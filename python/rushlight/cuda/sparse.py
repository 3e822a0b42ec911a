"""Legacy sparse tensors on CUDA devices: no object is one."""

from __future__ import annotations

from rushlight._absent import no_class
from rushlight.cuda import _DEVICE

_TYPES = (
    "BFloat16Tensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
)
globals().update({name: no_class(name, __name__, _DEVICE) for name in _TYPES})
