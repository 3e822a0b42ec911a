"""What programs ask of compile and tell it: back ends, stances, caches, what not to compile."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

from rushlight import _C
from rushlight.compiler import config as config
from rushlight.compiler._artifacts import (
    CacheInfo as CacheInfo,
)
from rushlight.compiler._artifacts import (
    load_cache_artifacts as load_cache_artifacts,
)
from rushlight.compiler._artifacts import (
    save_cache_artifacts as save_cache_artifacts,
)
from rushlight.compiler._compile import (
    compile as compile,
)
from rushlight.compiler._compile import (
    get_default_backend as get_default_backend,
)
from rushlight.compiler._compile import (
    set_default_backend as set_default_backend,
)

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "config",
    "cudagraph_mark_step_begin",
    "disable",
    "get_default_backend",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "keep_portable_guards_unsafe",
    "keep_tensor_guards_unsafe",
    "list_backends",
    "load_cache_artifacts",
    "load_compiled_function",
    "nested_compile_region",
    "reset",
    "save_cache_artifacts",
    "set_default_backend",
    "set_enable_guard_collectives",
    "set_stance",
    "skip_all_guards_unsafe",
    "skip_guard_on_all_nn_modules_unsafe",
    "skip_guard_on_globals_unsafe",
    "skip_guard_on_inbuilt_nn_modules_unsafe",
    "substitute_in_graph",
    "wrap_numpy",
]

# Set by export while it captures a program.
_is_exporting_flag = False
_is_compiling_flag = False


def reset() -> None:
    """Forgets all plans."""
    from rushlight import _dynamo

    _dynamo.reset()


def list_backends(exclude_tags: Iterable[str] | None = ("debug", "experimental")) -> list[str]:
    """The names that `torch.compile(backend=...)` takes."""
    from rushlight._dynamo.backends import registry

    return registry.list_backends(tuple(exclude_tags or ()))


def disable(
    fn: Callable | None = None, recursive: bool = True, *, reason: str | None = None
) -> Callable:
    """A function that runs as written, inside compiled functions too; also a decorator."""
    from rushlight._dynamo import eval_frame

    return eval_frame.disable(fn, recursive, reason=reason)


def set_stance(
    stance: str = "default",
    *,
    skip_guard_eval_unsafe: bool = False,
    force_backend: str | Callable | None = None,
):
    """Sets what compiled functions do: at once, for a with block, or for a decorated function.

    See torch._dynamo.decorators.set_stance for the stances.
    """
    from rushlight._dynamo import decorators

    return decorators.set_stance(
        stance, skip_guard_eval_unsafe=skip_guard_eval_unsafe, force_backend=force_backend
    )


def allow_in_graph(fn):
    """Says that a function may be captured as one operator; its operators are captured anyhow."""
    from rushlight._dynamo import decorators

    return decorators.allow_in_graph(fn)


def substitute_in_graph(
    original_fn: Callable,
    *,
    can_constant_fold_through: bool = False,
    skip_signature_check: bool = False,
) -> Callable[[Callable], Callable]:
    """Gives a Python form of a function that tracing cannot see into; capture needs none."""
    from rushlight._dynamo import decorators

    return decorators.substitute_in_graph(
        original_fn,
        can_constant_fold_through=can_constant_fold_through,
        skip_signature_check=skip_signature_check,
    )


def assume_constant_result(fn: Callable) -> Callable:
    """Says that a function gives the same for ever; here it is called each time."""
    from rushlight._dynamo import decorators

    return decorators.assume_constant_result(fn)


def nested_compile_region(
    fn: Callable | None = None,
    *,
    options: object = None,
    max_reuse_entries: int = 8,
    reuse_hash_fn: Callable | None = None,
) -> Callable:
    """Marks a function that is called many times, so that PyTorch compiles it once.

    Plans and kernels are found by structure here, so what is repeated is compiled once in any case.
    """

    def wrap(function: Callable) -> Callable:
        @functools.wraps(function)
        def inner(*args: object, **kwargs: object) -> object:
            return function(*args, **kwargs)

        return inner

    return wrap if fn is None else wrap(fn)


def cudagraph_mark_step_begin() -> None:
    """Says that a step begins, for CUDA graphs to reuse memory; there are none on this device."""


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Whether ranks agree on recompiling; there are no guards to agree on. Gives what it was."""
    global _guard_collectives
    before, _guard_collectives = _guard_collectives, bool(enabled)
    return before


_guard_collectives = False


def is_compiling() -> bool:
    """Whether operators of this thread are being captured."""
    return _C._capture_active() or _is_compiling_flag or _is_exporting_flag


def is_dynamo_compiling() -> bool:
    """Whether operators of this thread are being captured."""
    return _C._capture_active()


def is_exporting() -> bool:
    """Whether a program is being exported."""
    return _is_exporting_flag


def wrap_numpy(fn: Callable) -> Callable:
    """A function of NumPy arrays as a function of tensors."""
    import numpy

    import rushlight

    def to_array(value: object) -> object:
        return value.numpy() if isinstance(value, rushlight.Tensor) else value

    def to_tensor(value: object) -> object:
        if isinstance(value, numpy.ndarray):
            return rushlight.from_numpy(value)
        if isinstance(value, numpy.generic):
            return rushlight.tensor(value.item())
        return value

    @functools.wraps(fn)
    def wrapped(*args: object, **kwargs: object) -> object:
        made = fn(
            *_map(to_array, args), **{name: _map(to_array, value) for name, value in kwargs.items()}
        )
        return _map(to_tensor, made)

    return wrapped


def _map(function: Callable, value: object) -> object:
    if isinstance(value, (list, tuple)):
        return type(value)(_map(function, item) for item in value)
    if isinstance(value, dict):
        return {key: _map(function, item) for key, item in value.items()}
    return function(value)


def load_compiled_function(
    file: object, *, f_globals: dict | None = None, external_data: dict | None = None
) -> Callable:
    """Loads what PyTorch's aot_compile saved: compiled code for PyTorch, which cannot run here."""
    raise NotImplementedError(
        "load_compiled_function: compiled functions are not saved here; save the kernels with "
        "torch.compiler.save_cache_artifacts and compile the function again, which takes no time"
    )


# Filters for the guards of a compiled function: which of them to keep. There are none here, so each
# filter keeps what it is given, or nothing, by its meaning.


def keep_portable_guards_unsafe(guard_entries: list) -> list[bool]:
    """Keeps the guards that hold in another process."""
    return [True for _ in guard_entries]


def keep_tensor_guards_unsafe(guard_entries: list, keep_parameters: bool = False) -> list[bool]:
    """Keeps the guards on tensors."""
    return [entry.guard_type == "TENSOR_MATCH" for entry in guard_entries]


def skip_guard_on_inbuilt_nn_modules_unsafe(guard_entries: list) -> list[bool]:
    """Drops the guards on modules of the library."""
    return [
        not entry.orig_guard.source.is_unspecialized_builtin_nn_module() for entry in guard_entries
    ]


def skip_guard_on_all_nn_modules_unsafe(guard_entries: list) -> list[bool]:
    """Drops the guards on modules."""
    return [not entry.orig_guard.source.is_unspecialized_nn_module() for entry in guard_entries]


def skip_guard_on_globals_unsafe(guard_entries: list) -> list[bool]:
    """Drops the guards on global variables."""
    return [not entry.is_global for entry in guard_entries]


def skip_all_guards_unsafe(guard_entries: list) -> list[bool]:
    """Drops all guards."""
    return [False for _ in guard_entries]
