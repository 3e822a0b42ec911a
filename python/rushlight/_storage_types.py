"""The legacy tensor classes: FloatTensor and others, which make tensors of one dtype."""

from __future__ import annotations

import rushlight as torch
from rushlight._C import Tensor


class _LegacyType(type):
    dtype: object

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype and instance.is_cpu

    def __call__(cls, *args: object, **kwargs: object) -> Tensor:
        if len(args) == 1 and isinstance(args[0], (list, tuple)) and not kwargs:
            return torch.tensor(args[0], dtype=cls.dtype)
        if len(args) == 1 and isinstance(args[0], Tensor):
            if args[0].dtype is not cls.dtype:
                raise TypeError(f"expected torch.{cls.__name__} (got {args[0].type()})")
            return args[0].detach()
        if len(args) == 1 and not isinstance(args[0], int) and not kwargs:
            return torch.tensor(args[0], dtype=cls.dtype)
        return torch.empty(args, dtype=cls.dtype, **kwargs)


def _legacy(name: str, dtype: object) -> type:
    return _LegacyType(name, (), {"dtype": dtype, "__module__": "rushlight"})


BFloat16Tensor = _legacy("BFloat16Tensor", torch.bfloat16)
BoolTensor = _legacy("BoolTensor", torch.bool)
ByteTensor = _legacy("ByteTensor", torch.uint8)
CharTensor = _legacy("CharTensor", torch.int8)
DoubleTensor = _legacy("DoubleTensor", torch.float64)
FloatTensor = _legacy("FloatTensor", torch.float32)
HalfTensor = _legacy("HalfTensor", torch.float16)
IntTensor = _legacy("IntTensor", torch.int32)
LongTensor = _legacy("LongTensor", torch.int64)
ShortTensor = _legacy("ShortTensor", torch.int16)
