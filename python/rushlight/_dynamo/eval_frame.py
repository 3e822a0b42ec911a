"""Compiled functions and modules: the calls that open and close capture."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sized

from rushlight import _C
from rushlight._dynamo import config, segments
from rushlight._dynamo.backends.registry import lookup_backend
from rushlight._functorch import config as functorch_config
from rushlight.nn.modules.module import Module

_open = _C._capture_open
_close = _C._capture_close


class Stance:
    """What compiled functions do, for the whole process: see `torch.compiler.set_stance`."""

    NAMES = (
        "default",
        "eager_then_compile",
        "aot_eager_then_compile",
        "force_eager",
        "eager_on_recompile",
        "fail_on_recompile",
    )

    def __init__(self, name: str = "default", backend: str | Callable | None = None) -> None:
        self.name = name
        self.backend = backend

    @property
    def is_default(self) -> bool:
        """Whether compiled functions go by their own settings."""
        return self.name == "default" and self.backend is None


_stance = Stance()
_CORE_STANCE = {"eager_on_recompile": 1, "fail_on_recompile": 2}


def get_stance() -> Stance:
    """The stance in force."""
    return _stance


def change_stance(stance: Stance) -> None:
    """Puts a stance in force."""
    global _stance
    _stance = stance
    _C._compile_stance(_CORE_STANCE.get(stance.name, 0))


class CompileContext:
    """The settings of one `torch.compile`; called with a function, gives the compiled one."""

    def __init__(
        self,
        backend: str | Callable,
        *,
        fullgraph: bool = False,
        backend_arguments: dict[str, object] | None = None,
        name: str | None = None,
        recompile_limit: int | None = None,
        observer: Callable | None = None,
        static: bool = False,
    ) -> None:
        self.backend = backend
        self.static = static
        self.fullgraph = fullgraph
        self.backend_arguments = backend_arguments or {}
        self.name = name
        self.recompile_limit = recompile_limit
        self.observer = observer
        self._compiler = lookup_backend(backend)
        options = self.backend_arguments.get("options")
        self._budget = (
            options.get("activation_memory_budget") if isinstance(options, dict) else None
        )
        self._settings: dict[tuple[int, float], int] = {}  # by the back end's identity, and budget
        self._own = 0
        self._own_budget = 1.0
        self._calls = 0
        self._what = name or "?"

    def __getstate__(self) -> dict:
        return {
            "backend": self.backend,
            "fullgraph": self.fullgraph,
            "backend_arguments": self.backend_arguments,
            "name": self.name,
            "recompile_limit": self.recompile_limit,
            "static": self.static,
        }

    def __setstate__(self, state: dict) -> None:
        self.__init__(state.pop("backend"), **state)

    def _register(self, compiler: Callable) -> int:
        runner = getattr(compiler, "_runner", None)
        limit = -1 if self.recompile_limit is None else self.recompile_limit
        if runner is None:
            from rushlight._dynamo.foreign import backend_of

            runner = backend_of(compiler, self.backend_arguments)
            if self.recompile_limit is None:
                # Each shape is a graph of its own to other back ends, as it is where PyTorch is
                # told that no size changes.
                limit = (
                    config.recompile_limit if self.static else config.accumulated_recompile_limit
                )
        budget = functorch_config.check_budget(self._wanted_budget())
        number = _C._capture_settings(
            runner, self._what, self.fullgraph, limit, self.observer, budget
        )
        self._settings[id(compiler), budget] = number
        return number

    def _wanted_budget(self) -> float:
        if self._budget is not None:
            return self._budget
        return functorch_config.activation_memory_budget

    def settings(self) -> int:
        """The number that the core knows these settings by; 0: run as written."""
        if _stance.is_default and not config.disable:
            budget = self._wanted_budget()
            if not self._own or budget != self._own_budget:
                known = self._settings.get((id(self._compiler), budget))
                self._own = known or self._register(self._compiler)
                self._own_budget = budget
            return self._own
        return self._settings_by_stance()

    def _settings_by_stance(self) -> int:
        if config.disable or _stance.name == "force_eager":
            return 0
        self._calls += 1
        if _stance.name.endswith("eager_then_compile") and self._calls == 1:
            return 0
        compiler = self._compiler if _stance.backend is None else lookup_backend(_stance.backend)
        known = self._settings.get((id(compiler), self._wanted_budget()))
        return known or self._register(compiler)

    def __call__(self, target: Callable) -> Callable:
        if isinstance(target, Module):
            self._name_after(type(target).__name__)
            return OptimizedModule(target, self)
        if not callable(target):
            raise AssertionError(
                f"A callable function is expected, but {type(target)} is provided."
            )
        target = innermost(target)
        if inspect.isclass(target):
            return _compile_class(target, self)
        self._name_after(getattr(target, "__qualname__", type(target).__qualname__))
        wrapper = _wrapper(target, self)
        return _dress(wrapper, target)

    def _name_after(self, name: str) -> None:
        if self.name is None and self._what == "?":
            self._what = name


def innermost(function: Callable) -> Callable:
    """What was compiled or disabled, where the function is what came of that."""
    # A bound method shows its function's attributes, but is more than the function.
    while not inspect.ismethod(function) and hasattr(function, "_torchdynamo_orig_callable"):
        function = function._torchdynamo_orig_callable
    return function


def _dress(wrapper: Callable, function: Callable) -> Callable:
    """Gives the wrapper the function's names."""
    try:
        functools.update_wrapper(wrapper, function)
    except AttributeError:
        wrapper.__wrapped__ = function
    wrapper._torchdynamo_orig_callable = function
    return wrapper


def _wrapper(function: Callable, context: CompileContext) -> Callable:
    if inspect.isasyncgenfunction(function):
        return _async_generator_wrapper(function, context)
    if inspect.iscoroutinefunction(function):
        return _coroutine_wrapper(function, context)
    if inspect.isgeneratorfunction(function):
        return _generator_wrapper(function, context)
    settings = context.settings

    def compile_wrapper(*args: object, **kwargs: object) -> object:
        number = settings()
        if not number or not _open(number):
            return function(*args, **kwargs)
        try:
            result = function(*args, **kwargs)
        except BaseException:
            _close(True)
            raise
        _close(False)
        return result

    compile_wrapper._is_torch_compile = True
    return compile_wrapper


def _captured(context: CompileContext, step: Callable, *args: object) -> object:
    """One step of a generator; its end is no failure."""
    number = context.settings()
    if not number or not _open(number):
        return step(*args)
    try:
        result = step(*args)
    except (StopIteration, StopAsyncIteration):
        _close(False)
        raise
    except BaseException:
        _close(True)
        raise
    _close(False)
    return result


def _drive(inner: object, context: CompileContext) -> Iterator:
    """Runs a generator or coroutine with capture open in each of its steps, shut between them."""
    step, value = inner.send, None
    while True:
        try:
            made = _captured(context, step, value)
        except StopIteration as stop:
            return stop.value
        try:
            value = yield made
            step = inner.send
        except GeneratorExit:
            inner.close()
            raise
        except BaseException as error:
            step, value = inner.throw, error


class _Awaitable:
    def __init__(self, inner: object, context: CompileContext) -> None:
        self._inner = inner
        self._context = context

    def __await__(self) -> Iterator:
        return _drive(self._inner, self._context)


def _generator_wrapper(function: Callable, context: CompileContext) -> Callable:
    def compile_wrapper(*args: object, **kwargs: object) -> Iterator:
        return (yield from _drive(function(*args, **kwargs), context))

    return compile_wrapper


def _coroutine_wrapper(function: Callable, context: CompileContext) -> Callable:
    async def compile_wrapper(*args: object, **kwargs: object) -> object:
        return await _Awaitable(function(*args, **kwargs), context)

    return compile_wrapper


def _async_generator_wrapper(function: Callable, context: CompileContext) -> Callable:
    async def compile_wrapper(*args: object, **kwargs: object):
        inner = function(*args, **kwargs)
        step, value = inner.asend, None
        while True:
            try:
                made = await _Awaitable(step(value), context)
            except StopAsyncIteration:
                return
            try:
                value = yield made
                step = inner.asend
            except GeneratorExit:
                await inner.aclose()
                raise
            except BaseException as error:
                step, value = inner.athrow, error

    return compile_wrapper


def _compile_class(cls: type, context: CompileContext) -> type:
    """Compiles the calls of a class's objects; gives the class."""
    for name in ("_call_impl",) if issubclass(cls, Module) else ("__call__",):
        if hasattr(cls, name):
            setattr(cls, name, context(getattr(cls, name)))
    if issubclass(cls, Module):
        cls.__call__ = cls._call_impl
    return cls


# ---- Disabling -------------------------------------------------------------------------------


class DisableContext:
    """Called with a function, gives one that runs as written, inside compiled functions too."""

    def __init__(self, reason: str | None = None) -> None:
        self.reason = reason

    def __call__(self, target: Callable) -> Callable:
        if isinstance(target, Module):
            return OptimizedModule(target, self)
        if not callable(target):
            raise AssertionError(
                f"A callable function is expected, but {type(target)} is provided."
            )
        target = innermost(target)
        if inspect.isclass(target):
            return _compile_class(target, self)
        what = "a function under torch.compiler.disable"
        if self.reason:
            what += f" ({self.reason})"

        def disabled(*args: object, **kwargs: object) -> object:
            _C._capture_announce_break(what)
            suspended = _C._capture_suspend(what)
            try:
                return target(*args, **kwargs)
            finally:
                _C._capture_resume(suspended)

        disabled._torchdynamo_disable = True
        disabled._torchdynamo_disable_msg = self.reason
        return _dress(disabled, target)


def disable(
    fn: Callable | None = None,
    recursive: bool = True,
    *,
    reason: str | None = None,
    wrapping: bool = True,
) -> Callable:
    """A function that is not compiled, nor what it calls; also a decorator.

    With recursive=False only the function's own frame is meant: what it calls is compiled. Capture
    has no frames, so such a function is left as it is: it means the same.
    """
    if not recursive:
        if fn is None:
            return lambda function: function
        return innermost(fn)
    if fn is None:
        return DisableContext(reason)
    return DisableContext(reason)(fn)


def is_dynamo_disable_recursive(method: Callable) -> bool | None:
    """True for a disabled function, None for another."""
    return True if getattr(method, "_torchdynamo_disable", False) else None


# ---- Modules -----------------------------------------------------------------------------------

_OWN = frozenset({"dynamo_ctx", "forward", "_orig_mod", "_forward"})


class OptimizedModule(Module):
    """A module whose calls are compiled: state, attributes and hooks are those of `_orig_mod`."""

    def __init__(self, mod: Module, dynamo_ctx: Callable) -> None:
        super().__init__()
        self._modules["_orig_mod"] = mod
        self.__dict__["dynamo_ctx"] = dynamo_ctx
        self._initialize()

    def _initialize(self) -> None:
        # Through __call__, so that the module's hooks are captured too.
        self.__dict__["forward"] = self.dynamo_ctx(self._modules["_orig_mod"].__call__)

    def __len__(self) -> int:
        original = self._modules["_orig_mod"]
        if isinstance(original, Sized):
            return len(original)
        raise TypeError(f"{type(original)} does not support len()")

    def __bool__(self) -> bool:
        original = self._modules["_orig_mod"]
        return bool(original) if isinstance(original, Sized) else True

    def __getstate__(self) -> dict:
        state = dict(self.__dict__)
        state.pop("forward", None)
        state.pop("_compiled_call_impl", None)
        return state

    def __setstate__(self, state: dict) -> None:
        super().__setstate__(state)
        self._initialize()

    @property
    def training(self) -> bool:
        """The module's own."""
        return self._modules["_orig_mod"].training

    @training.setter
    def training(self, value: bool) -> None:
        if "_orig_mod" in self.__dict__.get("_modules", {}):
            self._modules["_orig_mod"].training = value

    def __getattr__(self, name: str) -> object:
        modules = self.__dict__.get("_modules", {})
        if "_orig_mod" not in modules:
            raise AttributeError(name)
        if name == "_orig_mod":
            return modules["_orig_mod"]
        return getattr(modules["_orig_mod"], name)

    def __setattr__(self, name: str, value: object) -> None:
        if name == "training" or name in _OWN:
            super().__setattr__(name, value)
        else:
            setattr(self._modules["_orig_mod"], name, value)

    def __delattr__(self, name: str) -> None:
        if name in _OWN:
            super().__delattr__(name)
        else:
            delattr(self._modules["_orig_mod"], name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._modules["_orig_mod"])})


# ---- Older ways in ----------------------------------------------------------------------------


def optimize(
    backend: str | Callable = "inductor",
    *,
    nopython: bool = False,
    error_on_graph_break: bool | None = None,
    guard_export_fn: object = None,
    guard_fail_fn: object = None,
    guard_filter_fn: object = None,
    disable: bool = False,
    dynamic: bool | None = None,
    package: object = None,
    **kwargs: object,
) -> Callable:
    """What `torch.compile` was called before: gives what compiles functions and modules."""
    if disable:
        return lambda function: function
    return CompileContext(backend, fullgraph=bool(nopython or error_on_graph_break))


def optimize_assert(backend: str | Callable, **kwargs: object) -> Callable:
    """optimize with fullgraph=True."""
    return CompileContext(backend, fullgraph=True)


def run(fn: Callable | None = None) -> Callable:
    """Lets a compiled function use the plans it has, and run as written where it has none."""
    from rushlight._dynamo.decorators import set_stance

    if fn is None:
        return run

    def wrapper(*args: object, **kwargs: object) -> object:
        with set_stance("eager_on_recompile"):
            return fn(*args, **kwargs)

    return _dress(wrapper, fn)


class error_on_graph_break:
    """For a scope or a decorated function: whether breaks are errors, whatever fullgraph is."""

    def __init__(self, error_on_graph_break: bool) -> None:
        self._on = error_on_graph_break

    def __enter__(self) -> None:
        self._before = _C._compile_strict(self._on)
        self._allowed = segments.allow_breaks(not self._on)
        self._allowed.__enter__()

    def __exit__(self, *exception: object) -> None:
        self._allowed.__exit__(*exception)
        _C._compile_strict(self._before)

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapper(*args: object, **kwargs: object) -> object:
            with type(self)(self._on):
                return function(*args, **kwargs)

        return wrapper
