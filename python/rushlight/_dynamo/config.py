"""Settings of compile, under PyTorch's names.

Those that this compiler has a use for: `disable` (compiled functions run as they are written),
`suppress_errors` (a back end that fails leaves its graph to the interpreter, with a warning),
`error_on_recompile` and `recompile_limit`. The others are kept for programs that set them: here
there are no guards, every shape is dynamic, and any Python is captured.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import types
from collections.abc import Callable, Iterator

disable = False
suppress_errors = False
verbose = False
recompile_limit = 8
cache_size_limit = 8
accumulated_recompile_limit = 256
accumulated_cache_size_limit = 256
error_on_recompile = False
fail_on_recompile_limit_hit = False
capture_scalar_outputs = False
capture_dynamic_output_shape_ops = False
assume_static_by_default = True
automatic_dynamic_shapes = True
dynamic_shapes = True
force_parameter_static_shapes = True
force_nn_module_property_static_shapes = True
allow_unspec_int_on_nn_module = False
inline_inbuilt_nn_modules = True
guard_nn_modules = True
specialize_int = False
specialize_float = False
optimize_ddp = True
compiled_autograd = False
numpy_default_float = "float64"
numpy_default_int = "int64"
trace_numpy = True
skip_fsdp_hooks = True
log_level = None
repro_after = None
repro_level = 2


def _place(module: types.ModuleType, name: str) -> tuple[object, str]:
    """Where a setting is: `triton.cudagraphs` is one of `triton`."""
    *groups, last = name.split(".")
    place: object = module
    for group in groups:
        place = getattr(place, group, None)
    if not hasattr(place, last):
        raise AttributeError(f"{module.__name__}.{name} does not exist")
    return place, last


@contextlib.contextmanager
def _patched(module: types.ModuleType, changes: dict[str, object]) -> Iterator[None]:
    places = [(*_place(module, name), value) for name, value in changes.items()]
    before = [(place, name, getattr(place, name)) for place, name, _ in places]
    for place, name, value in places:
        setattr(place, name, value)
    try:
        yield
    finally:
        for place, name, value in before:
            setattr(place, name, value)


class _Patch:
    """A context manager and a decorator, usable many times."""

    def __init__(self, module: types.ModuleType, changes: dict[str, object]) -> None:
        self._module = module
        self._changes = changes
        self._entered: list = []

    def __enter__(self) -> None:
        manager = _patched(self._module, self._changes)
        manager.__enter__()
        self._entered.append(manager)

    def __exit__(self, *exception: object) -> None:
        self._entered.pop().__exit__(*exception)

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapper(*args: object, **kwargs: object) -> object:
            with _patched(self._module, self._changes):
                return function(*args, **kwargs)

        return wrapper


def patch(arg1: object = None, arg2: object = None, **kwargs: object) -> _Patch:
    """Changes settings for a scope: patch(name=value), patch("name", value) or patch({...})."""
    return make_patch(sys.modules[__name__], arg1, arg2, kwargs)


def make_patch(module: types.ModuleType, arg1: object, arg2: object, named: dict) -> _Patch:
    """Changes a module's settings for a scope: see patch."""
    if isinstance(arg1, str):
        return _Patch(module, {arg1: arg2})
    return _Patch(module, {**(arg1 or {}), **named})
