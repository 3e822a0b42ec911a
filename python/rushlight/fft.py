"""Discrete Fourier transforms. The functions come from the operator table."""

from rushlight import _C
from rushlight._C import Tensor as Tensor

globals().update({name: f for name, f in vars(_C._fft).items() if not name.startswith("__")})
