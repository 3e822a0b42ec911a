"""What programs say about single functions and tensors."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable

from rushlight import _C
from rushlight._dynamo import config
from rushlight._dynamo.eval_frame import Stance, change_stance, get_stance


class set_stance:
    """Sets what compiled functions do: at once, for a with block, or for a decorated function.

    default: as compiled, by `force_backend` where given. force_eager: as written.
    eager_then_compile, aot_eager_then_compile: as written in the first call. eager_on_recompile:
    graphs without a plan run operator by operator. fail_on_recompile: such graphs are errors.
    """

    def __init__(
        self,
        stance: str = "default",
        *,
        skip_guard_eval_unsafe: bool = False,
        force_backend: str | Callable | None = None,
    ) -> None:
        if stance not in Stance.NAMES:
            raise RuntimeError(
                f"invalid torch.compile stance {stance!r}, expected one of: "
                f"{', '.join(Stance.NAMES)}"
            )
        if force_backend is not None and stance != "default":
            raise RuntimeError("non-default stance cannot have force_backend set")
        if force_backend is not None:
            from rushlight._dynamo.backends.registry import lookup_backend

            lookup_backend(force_backend)
        self._stance = Stance(stance, force_backend)
        self._before = get_stance()
        change_stance(self._stance)

    def __enter__(self) -> None:
        change_stance(self._stance)

    def __exit__(self, *exception: object) -> None:
        change_stance(self._before)

    def __call__(self, function: Callable) -> Callable:
        change_stance(self._before)

        @functools.wraps(function)
        def wrapper(*args: object, **kwargs: object) -> object:
            before = get_stance()
            change_stance(self._stance)
            try:
                return function(*args, **kwargs)
            finally:
                change_stance(before)

        return wrapper


def allow_in_graph(fn: Callable | list | tuple) -> Callable | list:
    """Says that a function may be captured as one operator; its operators are captured anyhow."""
    if isinstance(fn, (list, tuple)):
        return [allow_in_graph(item) for item in fn]
    if not callable(fn):
        raise AssertionError("allow_in_graph expects a callable")
    return fn


def nonstrict_trace(traceable_fn: Callable) -> Callable:
    """As allow_in_graph: a function of any Python is captured."""
    return allow_in_graph(traceable_fn)


def disallow_in_graph(fn: Callable | list | tuple) -> Callable | list:
    """A function that must not be part of a graph: it ends the segment and runs at once."""
    from rushlight._dynamo.eval_frame import disable

    if isinstance(fn, (list, tuple)):
        return [disallow_in_graph(item) for item in fn]
    return disable(fn)


def forbid_in_graph(fn: Callable | list | tuple) -> Callable | list:
    """A function that compiled functions must not call: RuntimeError where they do."""
    if isinstance(fn, (list, tuple)):
        return [forbid_in_graph(item) for item in fn]
    if not callable(fn):
        raise AssertionError("forbid_in_graph applies only to callables")

    @functools.wraps(fn)
    def wrapper(*args: object, **kwargs: object) -> object:
        if _C._capture_active():
            from rushlight._dynamo.exc import Unsupported

            raise Unsupported(f"attempted to call a forbidden function in a graph: {fn}")
        return fn(*args, **kwargs)

    return wrapper


def assume_constant_result(fn: Callable) -> Callable:
    """Says that a function gives the same for ever; here it is called each time, which is cheap."""
    fn._dynamo_marked_constant = True
    return fn


def substitute_in_graph(
    original_fn: Callable,
    *,
    can_constant_fold_through: bool = False,
    skip_signature_check: bool = False,
    is_embedded_type: bool = False,
) -> Callable[[Callable], Callable]:
    """Gives a Python form of a function that tracing cannot see into.

    Capture sees what the original does to tensors, so the original goes on being called; the
    signatures are compared all the same.
    """
    if not callable(original_fn) and not is_embedded_type:
        raise TypeError(f"substitute_in_graph expects a function but got {type(original_fn)!r}")

    def decorator(traceable_fn: Callable) -> Callable:
        if not callable(traceable_fn):
            raise TypeError(
                f"@substitute_in_graph(...) expects a function but got {type(traceable_fn)!r}"
            )
        if not skip_signature_check:
            _check_signatures(original_fn, traceable_fn)
        return traceable_fn

    return decorator


def _check_signatures(original_fn: Callable, traceable_fn: Callable) -> None:
    try:
        original = inspect.signature(original_fn)
    except ValueError:
        return
    traceable = inspect.signature(traceable_fn)

    def shape(signature: inspect.Signature) -> list:
        return [(p.name, p.kind, p.default) for p in signature.parameters.values()]

    if shape(original) != shape(traceable):
        raise TypeError(
            f"Signature mismatch between {original_fn} and {traceable_fn}: "
            f"{original} != {traceable}"
        )


def graph_break(msg: str = "") -> None:
    """Ends the segment here: what was captured runs."""
    what = f"torch._dynamo.graph_break() {msg}".rstrip()
    _C._capture_announce_break(what)
    _C._capture_flush(what)


def skip_frame(msg: str = "") -> None:
    """Asks for a function to be left alone; capture has no frames, so nothing is to be done."""


def step_unsupported(msg: str = "") -> None:
    """Ends the segment here."""
    graph_break(msg)


def _check_dims(t: object, index: object, name: str) -> list[int]:
    dims = list(index) if isinstance(index, (list, tuple)) else [index]
    for dim in dims:
        if not isinstance(dim, int):
            raise AssertionError(f"{name}: index must be int, got {type(dim)}")
        if not 0 <= dim < t.dim():
            raise AssertionError(f"{name}: dimension {dim} is out of range for {t.dim()} dims")
    return dims


def mark_dynamic(
    t: object,
    index: int | list | tuple,
    *,
    hint_override: int | None = None,
    min: int | None = None,
    max: int | None = None,
    specialize_on: list | None = None,
) -> None:
    """Says that a dimension varies. All do here: the mark is kept, and read by none."""
    dims = _check_dims(t, index, "mark_dynamic")
    t._dynamo_dynamic_indices = {*getattr(t, "_dynamo_dynamic_indices", ()), *dims}


def maybe_mark_dynamic(t: object, index: int | list | tuple) -> None:
    """As mark_dynamic, without insisting."""
    _check_dims(t, index, "maybe_mark_dynamic")


def mark_unbacked(
    t: object,
    index: int | list | tuple,
    hint_override: int | None = None,
    strict: bool = False,
    specialize_on: list | None = None,
    shape_id: str | None = None,
    min: int | None = None,
    max: int | None = None,
) -> None:
    """As mark_dynamic: sizes are never looked at for deciding what is compiled."""
    mark_dynamic(t, index)


def mark_static(t: object, index: int | list | tuple | None = None) -> None:
    """Says that a dimension does not vary; plans hold for every size all the same."""
    if index is not None and hasattr(t, "dim"):
        _check_dims(t, index, "mark_static")


def mark_static_address(t: object, guard: bool = False) -> None:
    """Says that a tensor stays where it is; plans do not keep addresses."""


def override_optimization_hint(x: object, val: int) -> None:
    """A guess of a size; plans need none."""


class _Scope:
    """A with block and decorator without effect here."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        pass

    def __call__(self, function: Callable) -> Callable:
        return function


def override_cudagraphs(fwd: bool | None = None, bwd: bool | None = None) -> _Scope:
    """Whether CUDA graphs are used; there are none on this device."""
    return _Scope()


def patch_dynamo_config(arg1: object = None, arg2: object = None, **kwargs: object):
    """config.patch."""
    return config.patch(arg1, arg2, **kwargs)


def dont_skip_tracing(fn: Callable | None = None) -> Callable:
    """Library functions are captured anyhow."""
    return fn if fn is not None else dont_skip_tracing


def disable_nested_graph_breaks(fn: Callable | None = None) -> Callable:
    """A break ends the segment wherever it is, and capture goes on after it."""
    return fn if fn is not None else disable_nested_graph_breaks
