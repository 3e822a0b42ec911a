"""finfo and iinfo: the limits of dtypes."""

from __future__ import annotations

from rushlight import _C
from rushlight._public import publish

# (mantissa bits stored, smallest exponent of a normal number, largest finite value)
_FLOATS = {
    "float64": (52, -1022, (2 - 2**-52) * 2.0**1023),
    "float32": (23, -126, (2 - 2**-23) * 2.0**127),
    "float16": (10, -14, 65504.0),
    "bfloat16": (7, -126, (2 - 2**-7) * 2.0**127),
    "float8_e4m3fn": (3, -6, 448.0),
    "float8_e5m2": (2, -14, 57344.0),
    "float8_e4m3fnuz": (3, -7, 240.0),
    "float8_e5m2fnuz": (3, -15, 57344.0),  # as PyTorch says: it stores 2 bits
    "float8_e8m0fnu": (0, -127, 2.0**127),
}
_RESOLUTION = {
    "float64": 1e-15, "float32": 1e-6, "float16": 1e-3, "bfloat16": 1e-2,
    "float8_e4m3fn": 1.0, "float8_e5m2": 1.0,
    "float8_e4m3fnuz": 1.0, "float8_e5m2fnuz": 1.0, "float8_e8m0fnu": 1.0,
}  # fmt: skip


class finfo:
    """The limits of a floating-point dtype; of a complex one, those of its parts."""

    __slots__ = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")

    def __init__(self, type: object = None) -> None:
        dtype = _C.get_default_dtype() if type is None else type
        if not isinstance(dtype, _C.dtype):
            raise TypeError(f"finfo(): argument 'type' must be torch.dtype, not {dtype!r}")
        if dtype.is_complex:
            dtype = dtype.to_real()
        if not dtype.is_floating_point:
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle "
                "'torch.finfo'"
            )
        self.dtype = repr(dtype).removeprefix("torch.")
        mantissa, exponent, largest = _FLOATS[self.dtype]
        self.bits = dtype.itemsize * 8
        self.eps = 2.0**-mantissa
        self.max = largest
        self.tiny = 2.0**exponent
        self.min = self.tiny if self.dtype == "float8_e8m0fnu" else -largest  # it has no signs
        self.smallest_normal = self.tiny
        self.resolution = _RESOLUTION[self.dtype]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo:
    """The limits of an integer dtype."""

    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, type: object) -> None:
        if not isinstance(type, _C.dtype):
            raise TypeError(f"iinfo(): argument 'type' must be torch.dtype, not {type!r}")
        if type.is_floating_point or type.is_complex:
            raise TypeError(
                "torch.iinfo() requires an integer input type. Use torch.finfo to handle "
                "'torch.iinfo'"
            )
        self.dtype = repr(type).removeprefix("torch.")
        if self.dtype == "bool":
            raise TypeError("torch.bool is not supported by torch.iinfo")
        self.bits = type.itemsize * 8
        self.min = -(2 ** (self.bits - 1)) if type.is_signed else 0
        self.max = 2 ** (self.bits - 1) - 1 if type.is_signed else 2**self.bits - 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


publish("rushlight", finfo, iinfo)
