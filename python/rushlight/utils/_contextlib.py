"""Contexts that also decorate functions."""

from __future__ import annotations

from rushlight.autograd._context import BareDecoratorContext as _NoParamDecoratorContextManager
from rushlight.autograd._context import DecoratorContext as _DecoratorContextManager

__all__ = ["_DecoratorContextManager", "_NoParamDecoratorContextManager"]
