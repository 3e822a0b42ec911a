"""Ranges of one's own in a profile."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from rushlight import _C


class record_function:
    """Marks a block or a function in the profile: `with record_function("forward"):`."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self._number = -1

    def __enter__(self) -> record_function:
        self._number = _C._profiler_begin_range(self.name)
        return self

    def __exit__(self, *_: object) -> None:
        _C._profiler_end_range(self._number)

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def marked(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return marked
