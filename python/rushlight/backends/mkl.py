"""Intel's MKL, which this build does not use."""

from __future__ import annotations

VERBOSE_OFF = 0
VERBOSE_ON = 1


def is_available() -> bool:
    """False: matrix products are Rushlight's own."""
    return False


class verbose:
    """MKL's messages; there is no MKL to give any."""

    def __init__(self, enable: int) -> None:
        self.enable = enable

    def __enter__(self) -> verbose:
        if self.enable != VERBOSE_OFF:
            raise RuntimeError("mkl.verbose: Rushlight is built without MKL")
        return self

    def __exit__(self, *_: object) -> bool:
        return False
