"""Operators that programs define: custom_op for a Python function, Library for schemas and kernels.

They are found under rushlight.ops.NAMESPACE.NAME, and take part in gradients, autocast, vmap, meta
tensors and compilation.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from rushlight._library import registry
from rushlight._library.custom_ops import CustomOpDef, custom_op, devices_of, parse_qualname
from rushlight._library.infer import infer_schema
from rushlight._library.opcheck import opcheck
from rushlight._library.registry import Operator, kernel_key
from rushlight._library.schema import Schema

__all__ = [
    "Library",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "get_ctx",
    "get_kernel",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
    "triton_op",
    "wrap_triton",
]

_defined: dict[str, weakref.ref] = {}
_kept: list[Library] = []  # of the functions below, which are given no library


def fallthrough_kernel() -> None:
    """A kernel that lets the next one of the row run: nothing to call."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


class Library:
    """A group of operators, or of kernels for them; they are there as long as the library is.

    kind: 'DEF' defines the operators of a namespace, 'FRAGMENT' some of them, 'IMPL' has kernels.
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns in ("prim",) and kind == "DEF":
            raise ValueError(
                f"{ns} is a reserved namespace, please try creating a library with another name."
            )
        if kind == "DEF":
            other = _defined.get(ns)
            if other is not None and other() is not None:
                raise RuntimeError(
                    "Only a single TORCH_LIBRARY can be used to register the namespace "
                    f"{ns}; please put all of your definitions in a single TORCH_LIBRARY block. "
                    "To define operators in several places, use kind 'FRAGMENT'."
                )
            _defined[ns] = weakref.ref(self)
        self.ns = ns
        self.kind = kind
        self.dispatch_key = dispatch_key
        self._undo: list[Callable] = []
        self._finalizer = weakref.finalize(self, _undo_all, self._undo)

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Defines an operator by its schema, `name(Tensor x) -> Tensor`; gives its name."""
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        op = Operator(self.ns, Schema(schema))
        registry.add(op)
        self._undo.append(lambda: registry.remove(op))
        return op.schema.name + (f".{op.schema.overload}" if op.schema.overload else "")

    def _find(self, op_name: Any) -> Operator:
        name = getattr(op_name, "_operator", None)
        if name is not None:
            return name
        text = str(op_name)
        found = registry.find(text if "::" in text else f"{self.ns}::{text}")
        if found is None:
            raise RuntimeError(
                f"{self.ns}::{text}: there is no operator of that name that a library has "
                "defined; kernels of the operators that come with the package cannot be replaced"
            )
        return found

    def impl(
        self,
        op_name: Any,
        fn: Callable,
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = True,
    ) -> None:
        """Registers a kernel for a dispatch key: 'CPU', 'Meta', 'Autograd', or one for all."""
        if not callable(fn):
            raise TypeError(
                f"Input function is required to be a callable but found type {type(fn)}"
            )
        op, key = self._find(op_name), kernel_key(dispatch_key or self.dispatch_key)
        before = op.kernels.get(key)
        if before is not None and not allow_override:
            raise RuntimeError(
                f"This is not allowed since there's already a kernel registered from python "
                f"overriding {op.qualname}'s behavior for {key} dispatch key and {self.ns} "
                "namespace."
            )
        if fn is fallthrough_kernel:
            op.kernels.pop(key, None)
            return
        op.kernels[key] = (lambda *a, **k: fn(None, *a, **k)) if with_keyset else fn
        self._undo.append(lambda: _restore(op.kernels, key, before))

    def fallback(self, fn: Callable, dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """Kernels for every operator at once are not offered."""
        raise NotImplementedError(
            "Library.fallback: a kernel for every operator of a dispatch key is not offered; use "
            "a TorchFunctionMode, which is asked for every function"
        )

    def register_symm_mem_args(self, op_name: str, arg_names: list[str]) -> None:
        """Memory that is symmetric across devices is not offered."""
        raise NotImplementedError(
            f"Library.register_symm_mem_args({op_name!r}): there is no symmetric memory here"
        )

    def _register_fake(self, op_name: str, fn: Callable, *_: Any, **__: Any) -> None:
        op = self._find(op_name)
        before = op.fake
        op.fake = fn
        self._undo.append(lambda: setattr(op, "fake", before))

    def _destroy(self) -> None:
        """Takes away what the library has registered."""
        self._finalizer()
        if self.kind == "DEF":
            _defined.pop(self.ns, None)


def _undo_all(actions: list[Callable]) -> None:
    while actions:
        actions.pop()()


def _restore(table: dict, key: str, before: Callable | None) -> None:
    if before is None:
        table.pop(key, None)
    else:
        table[key] = before


@contextlib.contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    made = Library(*args, **kwargs)
    try:
        yield made
    finally:
        made._destroy()


def _library(lib: Library | None, namespace: str) -> Library:
    """The library given, or one that is kept."""
    if lib is not None:
        return lib
    made = Library(namespace, "FRAGMENT")
    _kept.append(made)
    return made


def _operator(op: Any) -> Operator:
    """The operator of a CustomOpDef, an overload, or a full name."""
    for holder in (op, getattr(op, "default", None)):
        found = getattr(holder, "_operator", None)
        if found is not None:
            return found
    if not isinstance(op, str):
        raise ValueError(f"expected an operator, or its name, but got {type(op)}")
    parse_qualname(op)
    found = registry.find(op)
    if found is None:
        raise RuntimeError(f"operator {op} does not exist")
    return found


def define(qualname: str, schema: str, *, lib: Library | None = None, tags: Any = ()) -> None:
    """Defines an operator: define("mylib::sin", "(Tensor x) -> Tensor")."""
    if not isinstance(qualname, str):
        raise ValueError(
            "define(qualname, schema): expected qualname to be instance of str, got "
            f"{type(qualname)}"
        )
    namespace, name = parse_qualname(qualname)
    if not schema.lstrip().startswith("(") or "->" not in schema:
        raise ValueError(
            'define(qualname, schema, ...): expected schema to look like e.g. "(Tensor x) -> '
            f'Tensor" but got "{schema}"'
        )
    _library(lib, namespace).define(name + schema, tags=tags)


def impl(
    qualname: Any, types: Any, func: Callable | None = None, *, lib: Library | None = None
) -> Any:
    """Registers a kernel for device types or dispatch keys; also as a decorator."""

    def register(func: Callable) -> Callable:
        op = _operator(qualname)
        for each in devices_of(types):
            _library(lib, op.namespace).impl(op.full_name, func, each)
        return func

    return register if func is None else register(func)


def register_kernel(
    op: Any, device_types: Any, func: Callable | None = None, /, *, lib: Library | None = None
) -> Any:
    """Registers the function that runs on some device types; also as a decorator."""
    if isinstance(op, CustomOpDef):
        return op.register_kernel(device_types, func)
    return impl(op, "default" if device_types is None else device_types, func, lib=lib)


def register_fake(
    op: Any,
    func: Callable | None = None,
    /,
    *,
    lib: Library | None = None,
    _stacklevel: int = 1,
    allow_override: bool = True,
) -> Any:
    """Registers the function that gives results without numbers; also as a decorator."""

    def register(func: Callable) -> Callable:
        found = _operator(op)
        if found.fake is not None and not allow_override:
            raise RuntimeError(f"register_fake(...): the operator {found.qualname} has a fake impl")
        _library(lib, found.namespace)._register_fake(found.full_name, func)
        return func

    return register if func is None else register(func)


def impl_abstract(
    qualname: Any, func: Callable | None = None, *, lib: Library | None = None, _stacklevel: int = 1
) -> Any:
    """The old name of register_fake."""
    import warnings

    warnings.warn(
        "`torch.library.impl_abstract` was renamed to `torch.library.register_fake`. Please use "
        "that instead; we will remove `torch.library.impl_abstract` in a future version of "
        "PyTorch.",
        FutureWarning,
        stacklevel=2,
    )
    return register_fake(qualname, func, lib=lib)


def register_autograd(
    op: Any,
    backward: Callable,
    /,
    *,
    setup_context: Callable | None = None,
    lib: Library | None = None,
) -> None:
    """Registers backward(ctx, *gradients), and setup_context(ctx, inputs, output)."""
    if isinstance(op, CustomOpDef):
        op.register_autograd(backward, setup_context=setup_context)
        return
    found = _operator(op)
    if found.schema.mutates:
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {found.qualname}. "
            "Please create a functional operator and register an autograd formula for that."
        )
    before = (found.backward, found.setup_context)
    found.backward, found.setup_context = backward, setup_context

    def undo() -> None:
        found.backward, found.setup_context = before

    _library(lib, found.namespace)._undo.append(undo)


def register_vmap(op: Any, func: Callable | None = None, /, *, lib: Library | None = None) -> Any:
    """Registers func(info, in_dims, *args), which gives (results, out_dims) for a batch."""

    def register(func: Callable) -> None:
        _operator(op).vmap = func

    return register if func is None else register(func)


def register_autocast(
    op: Any, device_type: str, cast_inputs: Any, /, *, lib: Library | None = None
) -> None:
    """Makes autocast convert the floating arguments to a dtype first."""
    if device_type not in ("cpu", "cuda", "xpu"):
        raise ValueError(f"Unknown device type: {device_type}")
    _operator(op).autocast[device_type] = cast_inputs


def register_torch_dispatch(
    op: Any,
    torch_dispatch_class: Any,
    func: Callable | None = None,
    /,
    *,
    lib: Library | None = None,
) -> Any:
    """Registers fn(cls, func, types, args, kwargs) for tensors of a subclass with a
    __torch_dispatch__, or fn(mode, func, ...) for a dispatch mode; also as a decorator.
    """

    def register(func: Callable) -> Callable:
        _operator(op).dispatched[torch_dispatch_class] = func
        return func

    return register if func is None else register(func)


def get_ctx() -> Any:
    """Results whose size follows from numbers are not offered, and so no context of a fake impl."""
    raise RuntimeError(
        "get_ctx: a fake impl here works on meta tensors with known sizes, and has no context"
    )


def get_kernel(op: Any, dispatch_key: Any) -> Callable:
    """The kernel of an operator for a dispatch key."""
    found = _operator(op)
    key = kernel_key(str(dispatch_key).rpartition(".")[2])
    kernel = found.kernels.get(key) or found.kernels.get("default")
    if kernel is None:
        raise RuntimeError(f"{found.qualname} has no kernel for {dispatch_key}")
    return kernel


def triton_op(
    name: str, fn: Callable | None = None, /, *, mutates_args: Any, schema: str | None = None
) -> Any:
    """An operator whose function launches Triton kernels: custom_op for every device."""
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def wrap_triton(triton_kernel: Callable, /) -> Any:
    """The kernel itself: what launches it is not traced here."""
    return triton_kernel
