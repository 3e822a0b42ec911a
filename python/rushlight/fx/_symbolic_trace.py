"""Tracing, under the name that PyTorch's programs import it by."""

from rushlight.fx._inputs import _assert_is_none  # noqa: F401
from rushlight.fx.proxy import Tracer, symbolic_trace, wrap

__all__ = ["Tracer", "symbolic_trace", "wrap"]
