"""The device that factory functions use where none is given, by the names that programs know."""

from __future__ import annotations

import functools
from collections.abc import Callable

from rushlight._device import DeviceContext as DeviceContext


def set_device(device: object) -> Callable:
    """Decorator: factory functions called in the function use the device."""

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapped(*args: object, **kwargs: object) -> object:
            with DeviceContext(device):
                return function(*args, **kwargs)

        return wrapped

    return decorate
