"""Whether operators are recorded: for a thread, in a scope or a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight import _C
from rushlight.autograd._context import BareDecoratorContext, DecoratorContext

__all__ = [
    "enable_grad",
    "enforce_grad_layout_policy",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]

_is_enabled = _C.is_grad_enabled
_set_enabled = _C._set_grad_enabled


class no_grad(BareDecoratorContext):
    """Records nothing: results never require grad, save those of factories asked to."""

    def __init__(self, function: Callable | None = None) -> None:
        self.prev = False

    def __enter__(self) -> None:
        self.prev = _is_enabled()
        _set_enabled(False)

    def __exit__(self, *_: object) -> None:
        _set_enabled(self.prev)


class enable_grad(BareDecoratorContext):
    """Records, inside a `no_grad` too."""

    def __init__(self, orig_func: Callable | None = None) -> None:
        self.prev = False

    def __enter__(self) -> None:
        self.prev = _is_enabled()
        _set_enabled(True)

    def __exit__(self, *_: object) -> None:
        _set_enabled(self.prev)


class set_grad_enabled(DecoratorContext):
    """Turns recording on or off at once; as a context manager, until its end."""

    def __init__(self, mode: bool) -> None:
        self.prev = _is_enabled()
        self.mode = mode
        _set_enabled(mode)

    def __call__(self, function: Callable) -> Callable:
        _set_enabled(self.prev)
        return super().__call__(function)

    def __enter__(self) -> None:
        _set_enabled(self.mode)

    def __exit__(self, *_: object) -> None:
        _set_enabled(self.prev)

    def __repr__(self) -> str:
        return f"{self.__module__}.{type(self).__name__}(mode={self.mode})"

    def clone(self) -> set_grad_enabled:
        return self.__class__(self.mode)


class inference_mode(DecoratorContext):
    """Records nothing and makes inference tensors, which can never take part in a graph."""

    def __new__(cls, mode: bool | Callable = True) -> Any:
        if isinstance(mode, bool):
            return super().__new__(cls)
        return cls()(mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode
        self._entered: list = []

    def __enter__(self) -> None:
        self._entered.append(_C._enter_inference_mode(self.mode))

    def __exit__(self, *_: object) -> None:
        _C._exit_inference_mode(self._entered.pop())

    def clone(self) -> inference_mode:
        return self.__class__(self.mode)


class set_multithreading_enabled(DecoratorContext):
    """Accepted for compatibility: a backward call runs in the thread that made it."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass

    def clone(self) -> set_multithreading_enabled:
        return self.__class__(self.mode)


class enforce_grad_layout_policy(DecoratorContext):
    """Whether gradients become laid out like their leaves, for this thread: at once, and as a
    context manager until its end. With False, a gradient that nobody else holds is taken as it
    lies, without a copy.
    """

    def __init__(self, enable: bool = True) -> None:
        self.mode = enable
        self.prev = _C._set_grad_layout_enforced(bool(enable))

    def __call__(self, function: Callable) -> Callable:
        _C._set_grad_layout_enforced(self.prev)
        return super().__call__(function)

    def __enter__(self) -> None:
        _C._set_grad_layout_enforced(bool(self.mode))

    def __exit__(self, *_: object) -> None:
        _C._set_grad_layout_enforced(self.prev)

    def clone(self) -> enforce_grad_layout_policy:
        return self.__class__(self.mode)


class _unsafe_preserve_version_counter(DecoratorContext):
    """Hides in-place writes to tensors, done inside, from the checks of saved tensors."""

    def __init__(self, tensors: Any) -> None:
        self.tensors = (tensors,) if isinstance(tensors, _C.Tensor) else tuple(tensors)
        self.versions = tuple(tensor._version for tensor in self.tensors)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        for tensor, version in zip(self.tensors, self.versions, strict=False):
            _C._set_version(tensor, version)
