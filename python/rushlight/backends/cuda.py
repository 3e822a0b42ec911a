"""Libraries of CUDA devices, which this build does not use: settings change nothing."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from rushlight import backends as _backends


def _absent(what: str) -> NoReturn:
    raise RuntimeError(f"{what}: Rushlight is not compiled with CUDA enabled")


def is_built() -> bool:
    """False."""
    return False


class cuFFTPlanCache:
    """The plans that cuFFT keeps for a device: there are none."""

    def __init__(self, device_index: int) -> None:
        self.device_index = device_index

    @property
    def size(self) -> int:
        """An error: there is no device."""
        _absent("cufft_plan_cache.size")

    @property
    def max_size(self) -> int:
        """An error: there is no device."""
        _absent("cufft_plan_cache.max_size")

    def clear(self) -> None:
        """An error: there is no device."""
        _absent("cufft_plan_cache.clear")


class cuFFTPlanCacheAttrContextProp(_backends.ContextProp):
    """A property of a plan cache."""


class cuFFTPlanCacheManager(cuFFTPlanCache):
    """The caches of all devices, by index: there are none."""

    def __init__(self) -> None:
        super().__init__(-1)

    def __getitem__(self, device: object) -> cuFFTPlanCache:
        raise RuntimeError(
            f"cufft_plan_cache: expected 0 <= device index < 0, but got device with index {device}"
        )


class cuBLASModule:
    """How matrix products on CUDA devices are to be computed."""

    def __init__(self) -> None:
        self.__dict__["_values"] = {
            "allow_tf32": False,
            "allow_fp16_reduced_precision_reduction": True,
            "allow_bf16_reduced_precision_reduction": True,
            "allow_fp16_accumulation": False,
            "fp32_precision": "none",
        }

    def __getattr__(self, name: str) -> Any:
        if name not in self._values:
            raise AttributeError("Unknown attribute " + name)
        return self._values[name]

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._values:
            raise AttributeError("Unknown attribute " + name)
        if name == "fp32_precision":
            self._values[name] = _backends._precision(value)
        elif name.endswith("reduction") and isinstance(value, tuple):
            self._values[name] = value
        else:
            self._values[name] = _backends._boolean(name)(value)


cufft_plan_cache = cuFFTPlanCacheManager()
matmul = cuBLASModule()


class _LinalgBackend(enum.IntEnum):
    Default = 0
    Cusolver = 1
    Magma = 2


class _BlasBackend(enum.IntEnum):
    Default = 0
    Cublas = 1
    Cublaslt = 2
    Ck = 3


class _ROCmFABackend(enum.IntEnum):
    Default = 0
    AOTriton = 1
    Ck = 2


_LIBRARIES: dict[str, tuple[type[enum.IntEnum], dict[str, int]]] = {
    "preferred_linalg_library": (_LinalgBackend, {"default": 0, "cusolver": 1, "magma": 2}),
    "preferred_blas_library": (_BlasBackend, {"default": 0, "cublas": 1, "cublaslt": 2, "ck": 3}),
    "preferred_rocm_fa_library": (_ROCmFABackend, {"default": 0, "aotriton": 1, "ck": 2}),
}
_preferred: dict[str, enum.IntEnum] = {
    "preferred_linalg_library": _LinalgBackend.Default,
    "preferred_blas_library": _BlasBackend.Cublas,
    "preferred_rocm_fa_library": _ROCmFABackend.Default,
}


def _prefer(which: str, backend: object) -> enum.IntEnum:
    kind, names = _LIBRARIES[which]
    if backend is None:
        return _preferred[which]
    if isinstance(backend, str):
        if backend not in names:
            raise RuntimeError(
                f"Unknown input value. Choose from: {', '.join(names)}. Got {backend!r}"
            )
        _preferred[which] = kind(names[backend])
    elif isinstance(backend, kind):
        _preferred[which] = backend
    else:
        raise RuntimeError(f"Unknown input value type: {type(backend).__name__}")
    return _preferred[which]


def preferred_linalg_library(backend: object = None) -> _LinalgBackend:
    """The library asked for in linear algebra on CUDA devices."""
    return _prefer("preferred_linalg_library", backend)


def preferred_blas_library(backend: object = None) -> _BlasBackend:
    """The library asked for in matrix products on CUDA devices."""
    return _prefer("preferred_blas_library", backend)


def preferred_rocm_fa_library(backend: object = None) -> _ROCmFABackend:
    """The library asked for in attention on ROCm devices."""
    return _prefer("preferred_rocm_fa_library", backend)


def cublas_workspace_size(size: int | None = None) -> int:
    """An error: there is no cuBLAS."""
    _absent("cublas_workspace_size")


def cublaslt_workspace_size(size: int | None = None) -> int:
    """An error: there is no cuBLASLt."""
    _absent("cublaslt_workspace_size")


def blas_workspace_size(size: int | None = None, backend: object = None) -> int:
    """An error: there is no library with a workspace."""
    _absent("blas_workspace_size")


# ---- Attention: which of PyTorch's algorithms on CUDA devices are allowed ----------------------
_sdp = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True, "reduction": False}


def flash_sdp_enabled() -> bool:
    """What enable_flash_sdp was given last."""
    return _sdp["flash"]


def enable_flash_sdp(enabled: bool) -> None:
    """Allows flash attention on CUDA devices; the CPU's attention is one algorithm."""
    _sdp["flash"] = _backends._boolean("enable_flash_sdp")(enabled)


def mem_efficient_sdp_enabled() -> bool:
    """What enable_mem_efficient_sdp was given last."""
    return _sdp["mem_efficient"]


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Allows memory-efficient attention on CUDA devices."""
    _sdp["mem_efficient"] = _backends._boolean("enable_mem_efficient_sdp")(enabled)


def math_sdp_enabled() -> bool:
    """What enable_math_sdp was given last."""
    return _sdp["math"]


def enable_math_sdp(enabled: bool) -> None:
    """Allows attention composed of operators on CUDA devices."""
    _sdp["math"] = _backends._boolean("enable_math_sdp")(enabled)


def cudnn_sdp_enabled() -> bool:
    """What enable_cudnn_sdp was given last."""
    return _sdp["cudnn"]


def enable_cudnn_sdp(enabled: bool) -> None:
    """Allows cuDNN's attention on CUDA devices."""
    _sdp["cudnn"] = _backends._boolean("enable_cudnn_sdp")(enabled)


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """What allow_fp16_bf16_reduction_math_sdp was given last."""
    return _sdp["reduction"]


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Allows composed attention to sum in half precision on CUDA devices."""
    _sdp["reduction"] = _backends._boolean("allow_fp16_bf16_reduction_math_sdp")(enabled)


def is_flash_attention_available() -> bool:
    """False: there is none for CUDA devices."""
    return False


def is_ck_sdpa_available() -> bool:
    """False."""
    return False


class SDPAParams:
    """The arguments of one call of scaled_dot_product_attention."""

    def __init__(self, arg0, arg1, arg2, arg3, arg4, arg5, arg6, /) -> None:
        self._arguments = (arg0, arg1, arg2, arg3, arg4, arg5, arg6)

    query = property(lambda self: self._arguments[0])
    key = property(lambda self: self._arguments[1])
    value = property(lambda self: self._arguments[2])
    attn_mask = property(lambda self: self._arguments[3])
    dropout = property(lambda self: self._arguments[4])
    is_causal = property(lambda self: self._arguments[5])
    enable_gqa = property(lambda self: self._arguments[6])


def _cannot(what: str, debug: bool) -> bool:
    if debug:
        import warnings

        warnings.warn(f"{what} is not compiled: this build has no CUDA", stacklevel=3)
    return False


def can_use_flash_attention(params: SDPAParams, debug: bool = False) -> bool:
    """False; with `debug`, a warning says why."""
    return _cannot("Flash attention", debug)


def can_use_efficient_attention(params: SDPAParams, debug: bool = False) -> bool:
    """False; with `debug`, a warning says why."""
    return _cannot("Memory efficient attention", debug)


def can_use_cudnn_attention(params: SDPAParams, debug: bool = False) -> bool:
    """False; with `debug`, a warning says why."""
    return _cannot("cuDNN attention", debug)


@contextmanager
def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> Iterator[None]:
    """The older form of nn.attention.sdpa_kernel: allows these algorithms in the context."""
    import warnings

    from rushlight.nn.attention import SDPBackend, sdpa_kernel

    warnings.warn(
        "`torch.backends.cuda.sdp_kernel()` is deprecated. Please use "
        "`torch.nn.attention.sdpa_kernel()` instead.",
        FutureWarning,
        stacklevel=3,
    )
    allowed = [
        backend
        for wanted, backend in (
            (enable_flash, SDPBackend.FLASH_ATTENTION),
            (enable_mem_efficient, SDPBackend.EFFICIENT_ATTENTION),
            (enable_math, SDPBackend.MATH),
            (enable_cudnn, SDPBackend.CUDNN_ATTENTION),
        )
        if wanted
    ]
    with sdpa_kernel(allowed):
        yield
