"""Texts that are made when somebody reads them, and warnings that come once."""

from __future__ import annotations

import contextlib
import functools
import logging
import warnings
from collections.abc import Callable, Iterator


class LazyString:
    """str() of it is what the function gives, called then."""

    def __init__(self, func: Callable[..., str], *args: object, **kwargs: object) -> None:
        self.func = func
        self.args = args
        self.kwargs = kwargs

    def __str__(self) -> str:
        return self.func(*self.args, **self.kwargs)


@functools.lru_cache(None)
def warning_once(logger_obj: logging.Logger, *args: object, **kwargs: object) -> None:
    """logger_obj.warning(...), the first time that it is called with these arguments."""
    logger_obj.warning(*args, **kwargs)


def _all_of(message: object, category: object, filename: object, *_: object) -> bool:
    return True


@contextlib.contextmanager
def hide_warnings(filter_fn: Callable[..., bool] = _all_of) -> Iterator[None]:
    """Drops the warnings that `filter_fn(message, category, filename, ...)` is true of."""
    shown = warnings.showwarning

    def show(message, category, filename, lineno, file=None, line=None) -> None:
        if not filter_fn(message, category, filename, lineno, file, line):
            shown(message, category, filename, lineno, file, line)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = shown
