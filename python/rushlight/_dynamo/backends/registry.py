"""The back ends that compile knows by name.

A back end is called with a rushlight.fx.GraphModule and example inputs, and gives a callable that
takes the graph's tensors by position and gives a tuple or list of its results. Packages add theirs
under the entry point group `torch_dynamo_backends`.
"""

from __future__ import annotations

import functools
import importlib.metadata
from collections.abc import Callable, Sequence

from rushlight._dynamo.exc import InvalidBackend

_GROUP = "torch_dynamo_backends"
_backends: dict[str, Callable] = {}


def register_backend(
    compiler_fn: Callable | None = None, name: str | None = None, tags: Sequence[str] = ()
) -> Callable:
    """Gives a back end a name, its function's own where none is given; usable as a decorator."""
    if compiler_fn is None:
        return functools.partial(register_backend, name=name, tags=tags)
    if not callable(compiler_fn):
        raise AssertionError(f"compiler_fn must be callable, got {type(compiler_fn)}")
    name = name or compiler_fn.__name__
    if name in _backends:
        raise AssertionError(f"duplicate name: {name}")
    _backends[name] = compiler_fn
    compiler_fn._tags = tuple(tags)
    return compiler_fn


register_debug_backend = functools.partial(register_backend, tags=("debug",))
register_experimental_backend = functools.partial(register_backend, tags=("experimental",))


def _entry_points() -> dict[str, importlib.metadata.EntryPoint]:
    return {point.name: point for point in importlib.metadata.entry_points(group=_GROUP)}


def _load_built_in() -> None:
    from rushlight._dynamo.backends import debugging  # noqa: F401  registers its back ends


def lookup_backend(compiler_fn: str | Callable) -> Callable:
    """The back end of this name; a callable is its own."""
    if not isinstance(compiler_fn, str):
        return compiler_fn
    _load_built_in()
    if compiler_fn not in _backends:
        point = _entry_points().get(compiler_fn)
        if point is None:
            raise InvalidBackend(name=compiler_fn)
        register_backend(point.load(), name=compiler_fn)
    return _backends[compiler_fn]


def list_backends(exclude_tags: Sequence[str] | None = ("debug", "experimental")) -> list[str]:
    """The names that `torch.compile(backend=...)` takes, but for back ends with these tags."""
    _load_built_in()
    excluded = set(exclude_tags or ())
    names = [name for name, backend in _backends.items() if not excluded & set(backend._tags)]
    return sorted({*names, *_entry_points()})


def set_default_backend(backend: str | Callable | None) -> None:
    """torch.compiler.set_default_backend."""
    from rushlight.compiler import set_default_backend as set_it

    set_it(backend)


def get_default_backend() -> str | Callable:
    """torch.compiler.get_default_backend."""
    from rushlight.compiler import get_default_backend as get_it

    return get_it()
