"""Types of values for tracing."""

from __future__ import annotations

from typing import Any

from rushlight.fx.proxy import Proxy

__all__ = ["annotate"]


def annotate(val: Any, type: Any) -> Any:
    """The value; where it is a stand-in its node gets the type, which code is annotated with.

    RuntimeError where it has one.
    """
    if not isinstance(val, Proxy):
        return val
    if val.node.type is not None:
        raise RuntimeError(
            "Tried to annotate a value that already had a type on it! Existing type is "
            f"{val.node.type} and new type is {type}. This could happen if you tried to annotate a "
            "function parameter value (in which case you should use the type slot on the function "
            "signature) or you called annotate on the same value twice"
        )
    val.node.type = type
    return val
