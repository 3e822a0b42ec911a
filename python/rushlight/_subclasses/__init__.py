"""Subclasses of Tensor that the library itself has."""

from rushlight._subclasses.fake_tensor import (
    DynamicOutputShapeException as DynamicOutputShapeException,
)
from rushlight._subclasses.fake_tensor import FakeTensor as FakeTensor
from rushlight._subclasses.fake_tensor import FakeTensorMode as FakeTensorMode
from rushlight._subclasses.fake_tensor import (
    UnsupportedFakeTensorException as UnsupportedFakeTensorException,
)

__all__ = [
    "DynamicOutputShapeException",
    "FakeTensor",
    "FakeTensorMode",
    "UnsupportedFakeTensorException",
]
