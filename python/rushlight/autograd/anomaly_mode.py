"""Anomaly mode: backward errors name the forward call, and the first NaN is an error."""

from __future__ import annotations

import warnings

from rushlight import _C

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class detect_anomaly:
    """Context with anomaly mode on. It is slow: use it to look for a fault only."""

    def __init__(self, check_nan: bool = True) -> None:
        self.prev = _C.is_anomaly_enabled()
        self.prev_check_nan = _C.is_anomaly_check_nan_enabled()
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should "
            "only be enabled for debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        _C.set_anomaly_enabled(True, self.check_nan)

    def __exit__(self, *_: object) -> None:
        _C.set_anomaly_enabled(self.prev, self.prev_check_nan)


class set_detect_anomaly:
    """Turns anomaly mode on or off at once; as a context manager, until its end."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.prev = _C.is_anomaly_enabled()
        self.prev_check_nan = _C.is_anomaly_check_nan_enabled()
        _C.set_anomaly_enabled(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        _C.set_anomaly_enabled(self.prev, self.prev_check_nan)
