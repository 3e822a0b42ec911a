"""The older names of rushlight.amp for CUDA devices, of which there are none: they do nothing."""

from __future__ import annotations

import functools

from rushlight import _C
from rushlight import amp as _amp

__all__ = ["GradScaler", "amp_definitely_not_available", "autocast", "custom_bwd", "custom_fwd"]

custom_fwd = functools.partial(_amp.custom_fwd, device_type="cuda")
custom_bwd = functools.partial(_amp.custom_bwd, device_type="cuda")


def amp_definitely_not_available() -> bool:
    """True: there is no CUDA device."""
    return True


class autocast(_amp.autocast):
    """Region of autocast for CUDA devices."""

    def __init__(
        self, enabled: bool = True, dtype: object = _C.float16, cache_enabled: bool = True
    ) -> None:
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(_amp.GradScaler):
    """Scaling of losses on CUDA devices."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__(
            "cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )


def __getattr__(name: str) -> object:
    """Imports a submodule at its first use."""
    if name in ("autocast_mode", "common", "grad_scaler"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
