"""torch.jit.trace: functions and modules as the calls that one run of them makes."""

from __future__ import annotations

import difflib
import inspect
import threading
import types
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import rushlight as torch
from rushlight import fx
from rushlight.fx.graph_module import _run_source
from rushlight.jit._function import ScriptFunction
from rushlight.jit._record import Recorder, TracerWarning
from rushlight.nn.modules.module import Module
from rushlight.utils._pytree import tree_flatten, tree_map_only

_state = threading.local()


def is_tracing() -> bool:
    """Whether a trace is being made."""
    return getattr(_state, "depth", 0) > 0


class TracingCheckError(Exception):
    """Another run of what was traced made other calls."""

    def __init__(
        self, graph_diff_error: str | None, tensor_compare_error: str | None = None,
        extra_msg: str | None = None,
    ) -> None:  # fmt: skip
        self.message = "Tracing failed sanity checks!\n"
        if extra_msg is not None:
            self.message += f"{extra_msg}\n"
        if graph_diff_error is not None:
            self.message += "ERROR: Graphs differed across invocations!\n"
            self.message += _indented(graph_diff_error)
        if tensor_compare_error is not None:
            self.message += (
                "ERROR: Tensor-valued Constant nodes differed in value across invocations. This "
                "often indicates that the tracer has encountered untraceable code.\n"
                f"{_indented(tensor_compare_error)}"
            )
        super().__init__(self.message)


def _indented(text: str) -> str:
    return "".join(f"\t{line}\n" for line in text.splitlines())


class _Trace:
    """A graph that was recorded, with its constants."""

    def __init__(self, graph: fx.Graph, constants: dict[str, torch.Tensor]) -> None:
        self.graph, self.constants = graph, constants
        self.code = graph.python_code("self")
        self.function = _run_source(self.code.src, self.code.globals)


class TracedFunction(ScriptFunction):
    """A function that `trace` made: it makes the calls of the run that was traced.

    graph: these calls as an fx graph. code: the same as Python.
    """

    def __init__(self, name: str, trace: _Trace) -> None:
        self.__name__ = name
        self._trace = trace
        self._constants = types.SimpleNamespace(**trace.constants)
        self._compiled = torch.compile(trace.function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._compiled(self._constants, *args, **kwargs)

    @property
    def name(self) -> str:
        """The function's name."""
        return self.__name__

    @property
    def graph(self) -> fx.Graph:
        """The calls."""
        return self._trace.graph

    inlined_graph = graph

    @property
    def code(self) -> str:
        """The calls as the source of a function."""
        return self._trace.code.src

    @property
    def qualified_name(self) -> str:
        """Its name with that of the namespace of traces."""
        return f"__torch__.{self.name}"

    def __reduce__(self) -> tuple:
        return torch.jit._loaded, (self.save_to_buffer(),)


class TracedPart(Module):
    """A submodule of a module that was traced: its state alone."""

    def __init__(self, original_name: str) -> None:
        super().__init__()
        self.original_name = original_name

    def extra_repr(self) -> str:
        """The class that was traced."""
        return f"original_name={self.original_name}"

    def _get_name(self) -> str:
        return self.original_name


def _copy_tree(source: Module, made: Module, known: dict[int, Module]) -> None:
    """Gives a module the state of another, and parts for its submodules."""
    made.training = source.training
    for name, value in source._parameters.items():
        made.register_parameter(name, value)
    for name, value in source._buffers.items():
        hidden = name in source._non_persistent_buffers_set
        made.register_buffer(name, value, persistent=not hidden)
    for name, child in source._modules.items():
        if child is None:
            made.register_module(name, None)
            continue
        if id(child) not in known:
            kind = getattr(child, "original_name", type(child).__name__)
            known[id(child)] = TracedPart(kind)
            _copy_tree(child, known[id(child)], known)
        made.add_module(name, known[id(child)])


def install(module: Module, traces: dict[str, _Trace]) -> None:
    """Gives a module the methods of traces, compiled, with the constants that these read."""
    module.__dict__["_traces"] = traces
    module.__dict__["_methods"] = {
        name: types.MethodType(torch.compile(trace.function), module)
        for name, trace in traces.items()
    }
    for name, method in module.__dict__["_methods"].items():
        if name != "forward":
            module.__dict__[name] = method  # before methods of all modules, such as double()
    for trace in traces.values():
        module.__dict__.update(trace.constants)


def _names(function: Callable, args: tuple, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by the names of the function's parameters; *args get numbers."""
    try:
        signature = inspect.signature(function)
        bound = signature.bind(*args, **kwargs)
    except ValueError:  # a builtin
        return {f"argument_{number}": value for number, value in enumerate(args)}
    given: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            given.update({f"{name}_{number}": item for number, item in enumerate(value)})
        elif kind is inspect.Parameter.VAR_KEYWORD:
            given.update(value)
        else:
            given[name] = value
    return given


def _record(
    function: Callable, root: Module | None, args: tuple, kwargs: Mapping[str, Any], strict: bool
) -> _Trace:
    recorder = Recorder(root)
    for name, value in _names(function, args, kwargs).items():
        recorder.input(name, value)
    _state.depth = getattr(_state, "depth", 0) + 1
    try:
        with recorder:
            result = function(*args, **kwargs)
        recorder.output(result, strict)
    finally:
        _state.depth -= 1
    return _Trace(recorder.graph, recorder.constants)


def _cloned(args: tuple, kwargs: Mapping[str, Any]) -> tuple[tuple, dict]:
    def copy(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach().clone().requires_grad_(tensor.requires_grad)

    return tree_map_only(torch.Tensor, copy, (args, dict(kwargs)))


def _check(
    traced: Callable, trace: _Trace, function: Callable, root: Module | None,
    inputs: Sequence[tuple[tuple, Mapping[str, Any]]], strict: bool, tolerance: float,
) -> None:  # fmt: skip
    """Warns where a further run gives something else, and raises where it makes other calls."""
    random = [node for node in trace.graph.nodes if _is_random(node)]
    if random:
        nodes = "\n".join(f"\t{node.format_node()}" for node in random[:20])
        warnings.warn(
            "Trace had nondeterministic nodes. Did you forget call .eval() on your model? Nodes:\n"
            f"{nodes}\nThis may cause errors in trace checking. To disable trace checking, pass "
            "check_trace=False to torch.jit.trace()",
            TracerWarning,
            stacklevel=4,
        )
    for given in inputs:
        again = _record(function, root, *_cloned(*given), strict)
        _compare_results(traced, function, given, tolerance)
        before, after = (str(one.graph).splitlines() for one in (trace, again))
        if before != after:
            lines = "\n".join(difflib.ndiff(before, after))
            raise TracingCheckError(f"Graph diff:\n{_indented(lines)}")
        _compare_constants(trace, again, tolerance)


def _compare_results(
    traced: Callable, function: Callable, given: tuple[tuple, Mapping[str, Any]], tolerance: float
) -> None:
    results = []
    for call in (traced, function):
        args, kwargs = _cloned(*given)
        results.append(tree_flatten(call(*args, **kwargs))[0])
    for number, (ours, theirs) in enumerate(zip(*results), 1):
        try:
            torch.testing.assert_close(
                ours.double() if ours.is_floating_point() else ours,
                theirs.double() if theirs.is_floating_point() else theirs,
                rtol=tolerance,
                atol=tolerance,
                equal_nan=True,
            )
        except AssertionError as error:
            warnings.warn(
                f"Output nr {number}. of the traced function does not match the corresponding "
                f"output of the Python function. Detailed error:\n{error}",
                TracerWarning,
                stacklevel=5,
            )


def _compare_constants(trace: _Trace, again: _Trace, tolerance: float) -> None:
    for name, value in trace.constants.items():
        other = again.constants[name]
        if value.shape != other.shape or not torch.allclose(
            value.double(), other.double(), tolerance, tolerance, equal_nan=True
        ):
            raise TracingCheckError(None, f"Constant {name}:\n{value}\n{other}")


def _is_random(node: fx.Node) -> bool:
    name = str(getattr(node.target, "__name__", node.target))
    if "dropout" in name:
        return node.kwargs.get("training", node.args[2] if len(node.args) > 2 else True) is True
    return name.removesuffix("_") in _RANDOM or name.removesuffix("_like") in _RANDOM


_RANDOM = frozenset(
    "bernoulli cauchy exponential geometric log_normal multinomial normal poisson rand randint "
    "randn random randperm rrelu uniform".split()
)


def trace(
    func: Callable | Module,
    example_inputs: Any = None,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Sequence[Any] | None = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_kwarg_inputs: Mapping[str, Any] | None = None,
    _store_inputs: bool = True,
) -> Any:
    """What a function or a module calls in one run, as a function or a module, compiled.

    example_inputs: the arguments, tensors or tuples, lists and dicts of them; a tensor alone is one
    argument. Sizes stay open as far as the program computes with them; branches, other numbers and
    values that it reads (TracerWarning) are those of the run. check_trace: runs it again, on
    check_inputs where given; TracingCheckError where that calls something else, TracerWarning where
    results differ by more than check_tolerance. strict: a dict as a result is a RuntimeError.
    """
    if isinstance(func, ScriptFunction):
        warnings.warn(
            "The input to trace is already a ScriptFunction, tracing it is a no-op. Returning the "
            "object as is.",
            stacklevel=2,
        )
        return func
    if example_inputs is None and example_kwarg_inputs is None:
        raise TypeError("trace: example_inputs or example_kwarg_inputs must be given")
    owner = getattr(func, "__self__", None)
    if isinstance(owner, Module):
        if func.__name__ != "forward":
            raise AttributeError(
                "trace doesn't support compiling individual module's functions.\n"
                "Please use trace_module"
            )
        func = owner
    options = {"check_trace": check_trace, "check_tolerance": check_tolerance, "strict": strict}
    by_name = example_inputs is None
    inputs = example_kwarg_inputs if by_name else example_inputs
    if isinstance(func, Module):
        checks = None if check_inputs is None else [{"forward": one} for one in check_inputs]
        return trace_module(
            func,
            {"forward": inputs},
            check_inputs=checks,
            example_inputs_is_kwarg=by_name,
            **options,
        )
    if not callable(func):
        raise RuntimeError(f"trace: expected a function or a module, got {type(func)}")
    given = _call_of(inputs, by_name)
    made = _record(func, None, *_cloned(*given), strict)
    traced = TracedFunction(getattr(func, "__name__", type(func).__name__), made)
    if check_trace:
        calls = [given] if check_inputs is None else [_call_of(i, by_name) for i in check_inputs]
        _check(traced, made, func, None, calls, strict, check_tolerance)
    return traced


def _call_of(inputs: Any, by_name: bool) -> tuple[tuple, dict]:
    """The arguments by position and by name."""
    if by_name:
        return (), dict(inputs)
    if isinstance(inputs, (torch.Tensor, dict)):
        return (inputs,), {}
    return tuple(inputs), {}


def trace_module(
    mod: Module,
    inputs: Mapping[str, Any],
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Sequence[Mapping[str, Any]] | None = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_inputs_is_kwarg: bool = False,
    _store_inputs: bool = True,
) -> Any:
    """A module of several methods, each traced as `trace` does, by name, on the inputs given.

    Its state is the module's own: parameters and buffers are shared.
    """
    if not isinstance(mod, Module):
        raise AttributeError("expected torch.nn.Module as the first argument")
    if not isinstance(inputs, Mapping):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    traces = {}
    for name, example in inputs.items():
        args, kwargs = _cloned(*_call_of(example, example_inputs_is_kwarg))
        call = mod if name == "forward" else getattr(mod, name)
        signature_of = mod.forward if name == "forward" else call
        traces[name] = _record(_named(call, signature_of), mod, args, kwargs, strict)
    _number_constants(traces)
    traced = torch.jit.TopLevelTracedModule(getattr(mod, "original_name", type(mod).__name__))
    _copy_tree(mod, traced, {id(mod): traced})
    install(traced, traces)
    if check_trace:
        for name in inputs:
            samples = [inputs] if check_inputs is None else check_inputs
            calls = [_call_of(one[name], example_inputs_is_kwarg) for one in samples]
            call = mod if name == "forward" else getattr(mod, name)
            function = _named(call, mod.forward if name == "forward" else call)
            _check(
                getattr(traced, name), traces[name], function, mod, calls, strict, check_tolerance
            )
    return traced


def _named(call: Callable, like: Callable) -> Callable:
    """A function that calls one thing, with the parameters of another."""

    def function(*args: Any, **kwargs: Any) -> Any:
        return call(*args, **kwargs)

    function.__signature__ = inspect.signature(like)
    return function


def _number_constants(traces: dict[str, _Trace]) -> None:
    """Has no two methods read different constants under one name."""
    total = 0
    for name, made in traces.items():
        renamed = {old: f"_constant{total + number}" for number, old in enumerate(made.constants)}
        total += len(renamed)
        if all(old == new for old, new in renamed.items()):
            continue
        for node in made.graph.nodes:
            if node.op == "get_attr" and node.target in renamed:
                node.target = renamed[node.target]
        constants = {renamed[old]: value for old, value in made.constants.items()}
        traces[name] = _Trace(made.graph, constants)
