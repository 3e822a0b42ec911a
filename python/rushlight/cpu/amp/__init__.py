"""The older names of rushlight.amp for the CPU."""

from __future__ import annotations

from rushlight import _C
from rushlight import amp as _amp

__all__ = ["GradScaler", "autocast"]


class autocast(_amp.autocast):
    """Region of autocast for the CPU."""

    def __init__(
        self, enabled: bool = True, dtype: object = _C.bfloat16, cache_enabled: bool = True
    ) -> None:
        super().__init__("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(_amp.GradScaler):
    """Scaling of losses on the CPU."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def __getattr__(name: str) -> object:
    """Imports a submodule at its first use."""
    if name in ("autocast_mode", "grad_scaler"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
