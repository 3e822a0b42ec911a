"""The override protocol: __torch_function__ of classes and of modes.

Every function and method of the package asks the classes of its arguments (subclasses of Tensor,
and any class with a __torch_function__), and the modes in force, before it runs.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import types
from collections.abc import Callable, Iterable, Iterator

from rushlight import _C
from rushlight._C import Tensor
from rushlight._tensor import DisableTorchFunction, DisableTorchFunctionSubclass
from rushlight._tensor import _default_nowrap_functions as get_default_nowrap_functions

__all__ = [
    "BaseTorchFunctionMode",
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "TorchFunctionMode",
    "enable_reentrant_dispatch",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "redispatch_torch_function",
    "resolve_name",
    "wrap_torch_function",
]

has_torch_function = _C._has_torch_function
has_torch_function_unary = _C._has_torch_function_unary
has_torch_function_variadic = _C._has_torch_function_variadic
_get_overloaded_args = _C._get_overloaded_args


def handle_torch_function(
    public_api: Callable, relevant_args: Iterable[object], *args: object, **kwargs: object
) -> object:
    """Asks the overriding arguments and modes to run public_api(*args, **kwargs)."""
    return _C._handle_torch_function(public_api, tuple(relevant_args), args, kwargs)


def _call_composite(function: Callable, args: tuple, kwargs: dict) -> object:
    """Calls a function of nn.functional where an argument or a mode overrides.

    Whoever takes operators only (`_operators_only`) sees those that the function calls. The others
    get what PyTorch gives: what has no default by position, the rest by name.
    """
    inner = function.__wrapped__
    mode = _get_current_function_mode() if _C._get_torch_function_state() != 2 else None
    relevant = _get_overloaded_args(tuple(_flat([*args, *kwargs.values()])))
    askers = relevant if mode is None else [mode, *relevant]
    if any(getattr(type(asker), "_operators_only", False) for asker in askers):
        return inner(*args, **kwargs)
    signature = inspect.signature(inner)
    try:
        given = signature.bind(*args, **kwargs)
    except TypeError:
        return inner(*args, **kwargs)  # says what is wrong
    given.apply_defaults()
    required = [
        name for name, p in signature.parameters.items() if p.default is inspect.Parameter.empty
    ]
    positional = [given.arguments.pop(name) for name in required]
    return handle_torch_function(function, tuple(relevant), *positional, **given.arguments)


def _flat(values: Iterable[object]) -> Iterable[object]:
    for value in values:
        yield from value if isinstance(value, (tuple, list)) else (value,)


def _composites(namespace: dict[str, object], exempt: Iterable[str]) -> None:
    """Makes a module's functions ask before they run, save those named."""
    for name, function in list(namespace.items()):
        if not isinstance(function, types.FunctionType) or name.startswith("_") or name in exempt:
            continue
        whole = functools.update_wrapper(_C._composite_function(function), function)
        whole.__module__ = namespace["__name__"]
        namespace[name] = whole


def wrap_torch_function(dispatcher: Callable) -> Callable:
    """Decorator: dispatcher(*args, **kwargs) gives the arguments that may override the function."""

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapped(*args: object, **kwargs: object) -> object:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


def is_tensor_like(inp: object) -> bool:
    """Whether inp is a Tensor or an object with a __torch_function__."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


def get_ignored_functions() -> set[Callable]:
    """Functions that never ask: they make tensors of nothing, or are about settings."""
    import rushlight as torch

    names = (
        "arange", "as_tensor", "asarray", "can_cast", "compile", "empty", "empty_strided",
        "enable_grad", "eye", "finfo", "fork_rng", "from_numpy", "frombuffer", "full",
        "get_default_dtype", "get_num_threads", "get_rng_state", "iinfo", "inference_mode",
        "initial_seed", "is_grad_enabled", "is_storage", "is_tensor", "linspace", "load",
        "logspace", "manual_seed", "no_grad", "ones", "promote_types", "rand", "randint", "randn",
        "randperm", "range", "save", "scalar_tensor", "seed", "set_default_device",
        "set_default_dtype", "set_grad_enabled", "set_num_threads", "set_printoptions",
        "set_rng_state", "tensor", "tril_indices", "triu_indices", "typename",
        "use_deterministic_algorithms", "zeros",
    )  # fmt: skip
    found = {getattr(torch, name) for name in names if hasattr(torch, name)}
    members = ("__new__", "__init__", "__init_subclass__", "__torch_function__", "_make_subclass")
    return found | {getattr(Tensor, name) for name in members if hasattr(Tensor, name)}


@functools.lru_cache(None)
def _overridable() -> tuple[dict[object, list[Callable]], dict[Callable, str]]:
    import rushlight as torch

    functions: dict[object, list[Callable]] = {}
    names: dict[Callable, str] = {}
    ignored = get_ignored_functions()
    spaces = [
        ("rushlight", torch, vars(_C._VariableFunctions)),
        ("rushlight.functional", torch.functional, vars(torch.functional)),
        ("rushlight.nn.functional", torch.nn.functional, dir(torch.nn.functional)),
        ("rushlight.nn.init", torch.nn.init, vars(torch.nn.init)),
        ("rushlight.Tensor", Tensor, vars(Tensor)),
        ("rushlight.linalg", torch.linalg, vars(torch.linalg)),
        ("rushlight.special", torch.special, vars(torch.special)),
        ("rushlight.fft", torch.fft, vars(torch.fft)),
    ]
    for prefix, space, members in spaces:
        for name in members:
            if name.startswith("_") and (space is not Tensor or not name.startswith("__")):
                continue
            function = getattr(space, name, None)
            if isinstance(function, (type, types.ModuleType)) or function is None:
                continue
            if hasattr(type(function), "__set__"):
                for kind in ("__get__", "__set__"):
                    accessor = getattr(function, kind)
                    functions.setdefault(space, []).append(accessor)
                    names[accessor] = f"{prefix}.{name}.{kind}"
                continue
            if not callable(function):
                continue
            names.setdefault(function, f"{prefix}.{name}")
            if function not in ignored:
                functions.setdefault(space, []).append(function)
    return functions, names


def get_overridable_functions() -> dict[object, list[Callable]]:
    """The functions that ask __torch_function__, by the module or class that has them."""
    return _overridable()[0]


def get_testing_overrides() -> dict[Callable, Callable]:
    """For each function that asks, one to stand in for it in tests: it takes anything, gives -1."""

    def stand_in(*args: object, **kwargs: object) -> int:
        return -1

    return {f: stand_in for group in get_overridable_functions().values() for f in group}


def resolve_name(f: Callable) -> str | None:
    """The full name of a function given to __torch_function__, or None."""
    if isinstance(f, str):
        return f
    found = _overridable()[1].get(f)
    if found is None and type(f).__name__ in ("OpOverload", "OpOverloadPacket"):
        return str(f)
    return found


@functools.lru_cache(None)
def _tensor_members() -> set[Callable]:
    return set(get_overridable_functions()[Tensor])


def is_tensor_method_or_property(func: Callable) -> bool:
    """Whether func is a method of Tensor or an accessor of one of its properties."""
    return func in _tensor_members() or getattr(func, "__name__", "") == "__get__"


class TorchFunctionMode:
    """Context whose __torch_function__ is asked first for every function called in it.

    While it handles a call it is off, so it may call the function itself.
    """

    inner: TorchFunctionMode

    def __init__(self) -> None:
        pass

    def __torch_function__(
        self, func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None
    ) -> object:
        raise NotImplementedError

    def __enter__(self) -> TorchFunctionMode:
        _C._push_on_torch_function_stack(self)
        return self

    def __exit__(self, *_: object) -> None:
        _C._pop_torch_function_stack()

    @classmethod
    def push(cls, *args: object, **kwargs: object) -> TorchFunctionMode:
        """The mode itself, for `with Mode.push():`."""
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that lets every call through."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def _get_current_function_mode() -> TorchFunctionMode | None:
    count = _C._len_torch_function_stack()
    return _C._get_function_stack_at(count - 1) if count else None


def _get_current_function_mode_stack() -> list[TorchFunctionMode]:
    return [_C._get_function_stack_at(i) for i in range(_C._len_torch_function_stack())]


def _push_mode(mode: TorchFunctionMode) -> None:
    _C._push_on_torch_function_stack(mode)


def _pop_mode() -> TorchFunctionMode:
    return _C._pop_torch_function_stack()


@contextlib.contextmanager
def _pop_mode_temporarily() -> Iterator[TorchFunctionMode]:
    mode = _pop_mode()
    try:
        yield mode
    finally:
        _push_mode(mode)


class enable_reentrant_dispatch:
    """Context in which overrides are asked again inside a __torch_function__."""

    def __enter__(self) -> None:
        self._saved = _C._set_torch_function_state(0)

    def __exit__(self, *_: object) -> None:
        _C._set_torch_function_state(self._saved)


def redispatch_torch_function(func: Callable, args: tuple, kwargs: dict) -> object:
    """Calls func with overrides asked again."""
    with enable_reentrant_dispatch():
        return func(*args, **kwargs)
