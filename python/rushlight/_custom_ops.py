"""Operators of one's own by the functions that came before torch.library's."""

from __future__ import annotations

from collections.abc import Callable

from rushlight import library
from rushlight.library import get_ctx as get_ctx
from rushlight.library import impl_abstract as impl_abstract
from rushlight.library import infer_schema as infer_schema


def custom_op(qualname: str, func_or_schema: Callable | str | None = None) -> Callable | None:
    """Defines an operator, by its schema or by a function that has its types; a decorator too."""
    if isinstance(func_or_schema, str):
        library.define(qualname, func_or_schema)
        return None

    def define(function: Callable) -> Callable:
        library.define(qualname, infer_schema(function, mutates_args=()))
        return function

    return define if func_or_schema is None else define(func_or_schema)


def impl(
    qualname: str, *, device_types: str | tuple = ("cpu", "cuda"), func: Callable | None = None
) -> Callable:
    """Gives an operator its kernel on some device types; a decorator where there is no func."""
    found = [d for d in ([device_types] if isinstance(device_types, str) else device_types)]
    return library.impl(qualname, found, func)
