"""Back ends written in Python: from an exported segment to an fx graph, and to its callable."""

from __future__ import annotations

import functools
import linecache
import operator
import re
import warnings
from collections.abc import Callable

from rushlight import _C, _ops, fx, ops
from rushlight._dynamo import config, exc, segments
from rushlight._subclasses.fake_tensor import FakeTensorMode


def _with_code(line: str) -> str | None:
    """`File "x.py", line 3, in f`, and the text of that line, as in a traceback."""
    place = re.fullmatch(r'File "(.*)", line (\d+), in .*', line)
    if place is None:
        return None
    return f"  {line}\n    {linecache.getline(place[1], int(place[2])).strip()}\n"


class _Builder:
    """Makes the graph of an exported segment (bindings/capture_foreign.cpp).

    Inputs are placeholders; a view that was made outside the segment is an as_strided of its
    input. An operator that writes in place is the node of what it wrote from then on.
    """

    def __init__(self, exported: dict) -> None:
        self._values = exported["values"]
        self._exported = exported
        self._graph = fx.Graph()
        self._nodes: dict[int, fx.Node] = {}  # by value
        self._first: dict[int, fx.Node] = {}  # by storage: where it begins
        self._given: dict[tuple, fx.Node] = {}  # by storage and dtype: its placeholder
        self._fake_mode = FakeTensorMode(allow_non_fake_inputs=True)
        self._trace: str | None = None  # the line of the program that calls are of

    def build(self, examples: list) -> fx.GraphModule:
        """The graph as a module."""
        for number, (value, example) in enumerate(zip(self._exported["inputs"], examples)):
            node = self._graph.placeholder(f"arg{number}_1")
            node.meta["example_value"] = example
            storage, dtype = self._values[value][:2]
            self._nodes[value] = self._given[storage, dtype] = node
            self._first.setdefault(storage, node)
            self._describe(value, node)
        for *call, line in self._exported["nodes"]:
            self._trace = _with_code(line)
            self._add(*call)
        self._graph.output(tuple(self._nodes[value] for value in self._exported["outputs"]))
        return fx.GraphModule({}, self._graph)

    def _call(self, target: Callable, args: tuple, kwargs: dict | None = None) -> fx.Node:
        node = self._graph._call_operator(target, args, kwargs)
        if self._trace is not None:
            node.stack_trace = self._trace
        return node

    def _use(self, value: int) -> fx.Node | None:
        """The node of a value; one that no node made is a view from outside."""
        if value < 0:
            return None
        if value not in self._nodes:
            storage, dtype, sizes, strides, offset = self._values[value]
            base = self._given.get((storage, dtype)) or self._reinterpreted(storage, dtype)
            node = self._call(
                ops.aten.as_strided.default, (base, list(sizes), list(strides), offset)
            )
            self._nodes[value] = node
        return self._nodes[value]

    def _reinterpreted(self, storage: int, dtype: object) -> fx.Node:
        first = self._first[storage]
        meta = first.meta["tensor_meta"]
        if meta.dtype == dtype:
            return first
        reach = sum((size - 1) * stride for size, stride in zip(meta.shape, meta.stride))
        flat = self._call(ops.aten.as_strided.default, (first, [reach + 1], [1], 0))
        return self._call(ops.aten.view.dtype, (flat, dtype))

    def _arguments(self, declared: list) -> tuple[tuple, dict]:
        args: list = []
        kwargs: dict = {}
        pending: list = []  # arguments at their defaults, shown only where a later one is not
        for name, keyword_only, kind, what, default in declared:
            if kind == "value":
                item = self._use(what)
            elif kind == "list":
                item = [self._use(value) for value in what]
            else:
                item = what
            is_default = kind == "constant" and type(item) is type(default) and item == default
            if keyword_only:
                if not is_default:
                    kwargs[name] = item
            elif is_default:
                pending.append(item)
            else:
                args += [*pending, item]
                pending = []
        return tuple(args), kwargs

    def _add(
        self, name: str, overload: str, form: str, declared: list, results: list, single: bool
    ) -> None:
        args, kwargs = self._arguments(declared)
        packet = getattr(ops.aten, name)
        numbers = [
            argument
            for argument, _, kind, what, _ in declared
            if kind == "constant" and isinstance(what, (bool, int, float, complex))
        ]
        if form == "functional":
            if single and results[0] in self._nodes:
                return  # a view that is there already
            called = _ops.overload_of(name, overload, form, numbers)
            made = self._call(called, args, kwargs)
            if single:
                self._define(results[0], made)
                return
            for position, value in enumerate(results):
                if value >= 0 and value not in self._nodes:
                    self._define(value, self._call(operator.getitem, (made, position)))
            return
        targets = [self._use(value) for value in results]
        written = self._write(packet, name, overload, form, args, kwargs, targets)
        for value, node in zip(results, written):
            self._nodes[value] = node
            self._describe(value, node)

    def _write(
        self,
        packet: object,
        name: str,
        overload: str,
        form: str,
        args: tuple,
        kwargs: dict,
        targets: list,
    ) -> list[fx.Node]:
        copy = ops.aten.copy_.default
        if form == "inplace" and overload in _C._overload_names(name + "_"):
            target = getattr(getattr(ops.aten, name + "_"), overload)
            return [self._call(target, args, kwargs)]
        if name == "_assign":
            return [self._call(copy, (targets[0], args[0]))]
        made = self._call(getattr(packet, overload), args, kwargs)
        if len(targets) == 1:
            return [self._call(copy, (targets[0], made))]
        return [
            self._call(copy, (target, self._call(operator.getitem, (made, i))))
            for i, target in enumerate(targets)
        ]

    def _describe(self, value: int, node: fx.Node) -> None:
        _, dtype, sizes, strides, _ = self._values[value]
        node.meta["tensor_meta"] = fx.TensorMetadata(
            _C.Size(sizes), dtype, False, tuple(strides), None
        )
        node.meta["val"] = self._fake_mode.of_layout(sizes, strides, dtype)

    def _define(self, value: int, node: fx.Node) -> None:
        self._nodes[value] = node
        self._describe(value, node)
        self._first.setdefault(self._values[value][0], node)


class NativeCallable:
    """What `lookup_backend("inductor")(gm, inputs)` gives: the core runs the graph."""

    def __init__(self, gm: fx.GraphModule) -> None:
        self._gm = gm
        self._compiled: Callable | None = None

    @property
    def is_unchanged(self) -> bool:
        """Whether the graph is as it was captured: then its segments need no fx at all."""
        return self._gm.meta.get("captured_code") == self._gm.code

    def __call__(self, *args: object) -> object:
        if self._compiled is None:
            from rushlight.compiler import compile

            self._compiled = compile(self._gm.forward, backend="inductor")
        return self._compiled(*args)


def native_callable(gm: fx.GraphModule) -> NativeCallable:
    """The core's compiler as a foreign back end sees it."""
    return NativeCallable(gm)


def _compile(compiler: Callable, arguments: dict, exported: dict, examples: list) -> Callable | str:
    gm = _Builder(exported).build(examples)
    gm.meta["is_backward"] = exported["backward"]
    gm.meta["captured_code"] = gm.code
    # Of each result: its memory's number (_C._storage_id), and where it begins there.
    gm.meta["results"] = [
        (storage, exported["values"][value][4])
        for storage, value in zip(exported["output_storages"], exported["outputs"])
    ]
    try:
        made = compiler(gm, list(examples), **arguments)
        if not callable(made):
            raise AssertionError("compiler_fn did not return callable")
    except Exception as error:
        if config.suppress_errors:
            warnings.warn(
                f"the back end failed, its graph is run as written: {error}", stacklevel=2
            )
            return "interpreter"
        failure = exc.BackendCompilerFailed(compiler, error, segments.user_frame())
        raise failure.with_traceback(error.__traceback__) from error
    if isinstance(made, NativeCallable) and made.is_unchanged:
        return "native"
    if getattr(made, "_boxed_call", False):
        return functools.wraps(made)(lambda *args: made(list(args)))
    return made


def backend_of(compiler: Callable, arguments: dict) -> Callable:
    """What the core calls for a segment of a new structure."""

    def backend(exported: dict, examples: list) -> Callable | str:
        return _compile(compiler, arguments, exported, examples)

    backend.__name__ = re.sub(r"\W", "_", getattr(compiler, "__name__", type(compiler).__name__))
    return backend
