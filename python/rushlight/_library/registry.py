"""The operators that programs have defined, and what a call of one does."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable
from typing import Any

import rushlight as torch
from rushlight import _C, Tensor
from rushlight._library.schema import Schema
from rushlight._ops import OpOverload, OpOverloadPacket
from rushlight.utils._python_dispatch import _get_current_dispatch_mode, _pop_mode_temporarily
from rushlight.utils._pytree import tree_flatten, tree_leaves, tree_map_only, tree_unflatten

_operators: dict[str, Operator] = {}
_lock = threading.RLock()
_thread = threading.local()
_DEFAULT_KEYS = ("default", "compositeimplicitautograd", "compositeexplicitautograd")


def kernel_key(name: str) -> str:
    """The name that a device type or dispatch key goes by here."""
    key = name.lower()
    return "default" if key in _DEFAULT_KEYS or key == "" else key


class Operator:
    """One overload that a program has defined: its schema, kernels, gradient and rules."""

    def __init__(
        self,
        namespace: str,
        schema: Schema,
        is_custom: bool = False,
        tags: Iterable[torch.Tag] = (),
    ) -> None:
        self.namespace = namespace
        self.schema = schema
        self.is_custom = is_custom  # made by custom_op: results are apart from arguments
        self.tags = set(tags)
        # Those tagged so give arguments that they have written, outside the graph.
        self.gives_arguments = bool(self.tags & {torch.Tag.inplace, torch.Tag.out})
        self.kernels: dict[str, Callable] = {}
        self.disabled: set[str] = set()
        self.fake: Callable | None = None
        self.backward: Callable | None = None
        self.setup_context: Callable | None = None
        self.vmap: Callable | None = None
        self.autocast: dict[str, torch.dtype] = {}
        self.dispatched: dict[type, Callable] = {}
        self._function: type | None = None

    @property
    def qualname(self) -> str:
        """As in mylib::sin."""
        return f"{self.namespace}::{self.schema.name}"

    @property
    def _overload(self) -> str:
        return self.schema.overload or "default"

    @property
    def full_name(self) -> str:
        """As in mylib::sin.overload."""
        end = f".{self.schema.overload}" if self.schema.overload else ""
        return self.qualname + end

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the operator: autocast, then the gradient's record, then the device's kernel."""
        args, keywords = self.schema.bind(self.qualname, args, kwargs)
        tensors = [x for x in tree_leaves((args, keywords)) if isinstance(x, Tensor)]
        if self.dispatched:
            found = self._handler(tensors)
            if found is not None:
                handler, asked, context = found
                overload = getattr(packet(self.namespace, self.schema.name), self._overload)
                kinds = tuple(dict.fromkeys(type(x) for x in tensors if _dispatches(type(x))))
                with context:
                    return handler(asked, overload, kinds, args, keywords)
        for device, dtype in self.autocast.items():
            if torch.is_autocast_enabled(device):
                args, keywords = tree_map_only(
                    Tensor,
                    lambda x, dtype=dtype: x.to(dtype) if x.is_floating_point() else x,
                    (args, keywords),
                )
                with torch.autocast(device, enabled=False):
                    return self._recorded(args, keywords, tensors)
        return self._recorded(args, keywords, tensors)

    def _handler(self, tensors: list[Tensor]) -> tuple | None:
        """What a mode or class has registered, whom it is for, and where it runs."""
        mode = _get_current_dispatch_mode()
        if type(mode) in self.dispatched:
            return self.dispatched[type(mode)], mode, _pop_mode_temporarily()
        for tensor in tensors:
            if type(tensor) in self.dispatched and _dispatches(type(tensor)):
                return self.dispatched[type(tensor)], type(tensor), contextlib.nullcontext()
        return None

    def _recorded(self, args: tuple, keywords: dict, tensors: list[Tensor]) -> Any:
        wanted = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
        if "autograd" in self.kernels and not getattr(_thread, "below", False):
            _thread.below = True
            try:
                return self.kernels["autograd"](*args, **keywords)
            finally:
                _thread.below = False
        unrecorded = not self.schema.returns or self.gives_arguments
        if not wanted or unrecorded or not (self.is_custom or self.backward):
            if wanted and self.is_custom:
                with torch.no_grad():
                    return self.run(args, keywords, tensors)
            return self.run(args, keywords, tensors)
        flat, spec = tree_flatten(args)
        call = _Recorded(self, spec, keywords, args)
        result = self._autograd_function().apply(*flat, call)
        return call.output(result)

    def _autograd_function(self) -> type:
        if self._function is None:
            name = f"GeneratedBackwardFor_{self.namespace}_{self.schema.name}_"
            name += self.schema.overload or "default"
            self._function = type(
                name,
                (torch.autograd.Function,),
                {"forward": staticmethod(_forward), "backward": staticmethod(_backward)},
            )
        return self._function

    def run(self, args: tuple, keywords: dict, tensors: list[Tensor]) -> Any:
        """Asks dispatch modes and classes, else runs the kernel of the arguments' device.

        Nothing is recorded for gradients.
        """
        if _C._dispatch_is_open():
            overload = getattr(packet(self.namespace, self.schema.name), self._overload)
            defaults = {a.name: a.default for a in self.schema.arguments if a.keyword_only}
            given = {name: x for name, x in keywords.items() if x is not defaults[name]}
            result = _C._dispatch(overload, args, given)
            if result is not NotImplemented:
                return result
        kernel = self._kernel(tensors)
        result = kernel(*args, **keywords)
        if isinstance(result, list) and self.schema.returns_tuple:
            result = tuple(result)
        if torch.Tag.inplace in self.tags and result is not args[0]:
            raise RuntimeError(
                f"{self.schema.name}: An operator tagged with torch.Tag.inplace must return its "
                "first argument."
            )
        if self.is_custom and not self.gives_arguments:
            _check_apart(self, result, tensors)
        return result

    def _kernel(self, tensors: list[Tensor]) -> Callable:
        devices = {tensor.device.type for tensor in tensors} or {"cpu"}
        if "meta" in devices:
            kernel = self.fake or self.kernels.get("meta")
            kernel = kernel or (None if self.is_custom else self.kernels.get("default"))
            if kernel is None:
                raise RuntimeError(
                    f"There was no fake impl registered for {self.qualname}. This is necessary for "
                    "torch.compile/export/fx tracing to work. Please use "
                    f"`{self.schema.name}.register_fake` to add an fake impl."
                )
            return kernel
        device = next(iter(devices))
        kernel = None if device in self.disabled else self.kernels.get(device)
        kernel = kernel or self.kernels.get("default")
        if kernel is None:
            raise NotImplementedError(
                f"Could not run '{self.qualname}' with arguments from the '{device.upper()}' "
                f"backend: it has kernels for {sorted(self.kernels) or 'no backend'}."
            )
        return kernel


def _dispatches(kind: type) -> bool:
    return kind.__torch_dispatch__ is not Tensor.__torch_dispatch__


def _check_apart(op: Operator, result: Any, tensors: list[Tensor]) -> None:
    """Results of a custom operator have memory of their own."""
    seen = {tensor.untyped_storage()._cdata for tensor in tensors if not tensor.is_meta}
    for each in tree_leaves(result):
        if not isinstance(each, Tensor) or each.is_meta:
            continue
        key = each.untyped_storage()._cdata
        if key in seen or any(each is tensor for tensor in tensors):
            raise RuntimeError(
                f"{op.schema.name}: The output of this custom operator (1) must not also be an "
                "input to this custom operator and (2) may not alias any inputs to this custom "
                "operator or other returns. The most common way to trigger this error is if we "
                "have y = custom_op(x) and y and x are the same Tensor. Please instead return a "
                "clone of the offending output tensor(s) (e.g. return x.clone()) or refactor the "
                "custom operator to not return y."
            )
        seen.add(key)


class _Recorded:
    """One call on its way through the record: what forward and backward must know of it."""

    def __init__(self, op: Operator, spec: Any, keywords: dict, args: tuple) -> None:
        self.op = op
        self.spec = spec
        self.keywords = keywords
        self.lengths = [len(arg) if isinstance(arg, (list, tuple)) else None for arg in args]
        self.result_spec: Any = None

    def output(self, result: Any) -> Any:
        """The results in the structure that the kernel gave them."""
        flat = list(result) if isinstance(result, tuple) else [result]
        return tree_unflatten(flat, self.result_spec)


def _forward(ctx: Any, *given: Any) -> Any:
    *flat, call = given
    op = call.op
    args = tree_unflatten(flat, call.spec)
    tensors = [x for x in tree_leaves((args, call.keywords)) if isinstance(x, Tensor)]
    result = op.run(args, call.keywords, tensors)
    ctx._call = call
    if op.setup_context is not None:
        if call.keywords:
            op.setup_context(ctx, inputs=args, keyword_only_inputs=call.keywords, output=result)
        else:
            op.setup_context(ctx, inputs=args, output=result)
    results, call.result_spec = tree_flatten(result)
    ctx._result_spec = call.result_spec
    return tuple(results) if len(results) != 1 else results[0]


def _backward(ctx: Any, *gradients: Any) -> Any:
    call = ctx._call
    op = call.op
    if op.backward is None:
        raise RuntimeError(
            f"Trying to backward through {op.namespace}.{op.schema.name}."
            f"{op.schema.overload or 'default'} but no autograd formula was registered. Please use "
            "register_autograd to add one."
        )
    given = tree_unflatten(list(gradients), ctx._result_spec)
    found = op.backward(ctx, *(given if isinstance(given, tuple) else (given,)))
    found = found if isinstance(found, tuple) else (found,)
    if len(found) != len(call.lengths):
        raise RuntimeError(
            f"The backward of {op.qualname} returned {len(found)} gradients for "
            f"{len(call.lengths)} arguments"
        )
    flat: list = []
    for gradient, length in zip(found, call.lengths, strict=True):
        if length is None:
            flat.append(gradient)
        else:
            flat += [None] * length if gradient is None else list(gradient)
    return (*flat, None)


class CustomPacket(OpOverloadPacket):
    """An operator that a program has defined, with its overloads."""

    def overloads(self) -> list[str]:
        """The names of the overloads."""
        head = f"{self._namespace}::{self.__name__}"
        found = [op for op in _operators.values() if op.qualname == head]
        return [op.schema.overload or "default" for op in found]

    def __getattr__(self, overload: str) -> OpOverload:
        end = "" if overload == "default" else f".{overload}"
        op = _operators.get(f"{self._namespace}::{self.__name__}{end}")
        if op is None:
            raise AttributeError(
                f"The underlying op of '{self._qualified}' has no overload name '{overload}'"
            )
        made = OpOverload(self, overload, op.call, op.schema.text)
        made._operator = op
        setattr(self, overload, made)
        return made

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        names = self.overloads()
        errors = []
        for name in names:
            overload = getattr(self, name)
            try:
                overload._operator.schema.bind(self._qualified, args, kwargs)
            except RuntimeError as error:
                if len(names) == 1:
                    raise
                errors.append(str(error))
                continue
            return overload(*args, **kwargs)
        raise RuntimeError(f"No overload of {self._qualified} fits:\n" + "\n".join(errors))


_packets: dict[str, CustomPacket] = {}


def packet(namespace: str, name: str) -> CustomPacket | None:
    """The operator of a name, None where there is none."""
    qualname = f"{namespace}::{name}"
    with _lock:
        if not any(op.qualname == qualname for op in _operators.values()):
            return None
        if qualname not in _packets:
            _packets[qualname] = CustomPacket(namespace, name)
        return _packets[qualname]


def operator_names(namespace: str) -> list[str]:
    """The names of a namespace's operators."""
    return sorted({op.schema.name for op in _operators.values() if op.namespace == namespace})


def add(op: Operator) -> None:
    """Adds an operator; a second of its name is an error."""
    with _lock:
        if op.full_name in _operators or _in_table(op):
            raise RuntimeError(
                f"Tried to register an operator ({op.schema.declaration(op.qualname)}) with the "
                "same name and overload name multiple times. Each overload's schema should only be "
                "registered with a single call to def()."
            )
        _operators[op.full_name] = op


def _in_table(op: Operator) -> bool:
    return op.namespace == "aten" and bool(_C._overload_names(op.schema.name))


def remove(op: Operator) -> None:
    """Takes an operator away."""
    with _lock:
        _operators.pop(op.full_name, None)
        _packets.pop(op.qualname, None)


def find(qualname: str) -> Operator | None:
    """The operator of a full name, None where there is none."""
    return _operators.get(qualname.removesuffix(".default"))


def replace(op: Operator) -> None:
    """Puts an operator in the place of one of its name."""
    with _lock:
        _operators[op.full_name] = op
        _packets.pop(op.qualname, None)
