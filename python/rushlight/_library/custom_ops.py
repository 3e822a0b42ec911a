"""Operators made of Python functions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import rushlight as torch
from rushlight._library import registry
from rushlight._library.infer import infer_schema, tag_set
from rushlight._library.registry import Operator
from rushlight._library.schema import Schema
from rushlight._ops import OpOverload

_DEVICES = ("cpu", "cuda", "meta", "mps", "xpu", "mtia", "hpu", "privateuse1")


def parse_qualname(qualname: str) -> tuple[str, str]:
    """Namespace and name of `namespace::name`."""
    parts = qualname.split("::")
    if len(parts) != 2 or not all(parts):
        raise ValueError(
            'Expected `qualname` to be of the form "namespace::name", but got '
            f"{qualname}. The qualname passed to the torch.library APIs must consist of a "
            "namespace and a name, e.g. aten::sin"
        )
    return parts[0], parts[1]


def devices_of(device_types: Any) -> list[str]:
    """The device types given: one, several, or None for all."""
    if device_types is None:
        return ["default"]
    return [device_types] if isinstance(device_types, str) else list(device_types)


class CustomOpDef:
    """An operator made of a Python function; calling it runs the operator."""

    def __init__(
        self, namespace: str, name: str, schema: str, fn: Callable, tags: Any = None
    ) -> None:
        self._namespace = namespace
        self._name = name
        self._schema = schema
        self._init_fn = fn
        self._tags = tags
        self._operator = Operator(
            namespace, Schema(f"{name}{schema}"), is_custom=True, tags=tag_set(tags)
        )
        for argument in self._operator.schema.arguments:
            if torch.Tag.out in self._operator.tags:
                break
            if argument.keyword_only and argument.type.startswith("Tensor"):
                raise NotImplementedError(
                    "custom_op with kwarg-only Tensor args. Please make your tensors not "
                    f"kwarg-only. Got: {name}{schema}"
                )
        registry.replace(self._operator)

    @property
    def _qualname(self) -> str:
        return f"{self._namespace}::{self._name}"

    @property
    def _opoverload(self) -> OpOverload:
        return registry.packet(self._namespace, self._name).default

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    def register_kernel(self, device_types: Any, fn: Callable | None = None, /) -> Callable:
        """Registers the function that runs on some device types; also as a decorator."""

        def register(fn: Callable) -> Callable:
            for device in devices_of(device_types):
                if device != "default" and device not in _DEVICES:
                    raise ValueError(f"{self._qualname}: {device!r} is no device type")
                self._operator.kernels[device] = fn
            return fn

        return register if fn is None else register(fn)

    def register_fake(self, fn: Callable, /) -> Callable:
        """Registers the function that gives results without numbers; also as a decorator."""
        self._operator.fake = fn
        return fn

    def register_autograd(
        self, backward: Callable, /, *, setup_context: Callable | None = None
    ) -> None:
        """Registers backward(ctx, *gradients), and setup_context(ctx, inputs, output)."""
        if self._operator.schema.mutates:
            raise RuntimeError(
                f"Cannot register autograd formula for non-functional operator {self} with schema "
                f"{self._name}{self._schema}. Please create a functional operator and register an "
                "autograd formula for that."
            )
        self._operator.backward = backward
        self._operator.setup_context = setup_context

    def register_vmap(self, func: Callable | None = None) -> Callable:
        """Registers func(info, in_dims, *args), which gives (results, out_dims) for a batch."""

        def register(func: Callable) -> None:
            self._operator.vmap = func

        return register if func is None else register(func)

    def register_autocast(self, device_type: str, cast_inputs: torch.dtype) -> None:
        """Makes autocast convert the floating arguments to a dtype first."""
        if device_type not in ("cpu", "cuda", "xpu"):
            raise ValueError(f"Unknown device type: {device_type}")
        self._operator.autocast[device_type] = cast_inputs

    def register_torch_dispatch(
        self, torch_dispatch_class: type, fn: Callable | None = None, /
    ) -> Callable:
        """Registers fn(cls, func, types, args, kwargs) for tensors of a subclass with a
        __torch_dispatch__, or fn(mode, func, ...) for a dispatch mode; also as a decorator.
        """

        def register(fn: Callable) -> Callable:
            self._operator.dispatched[torch_dispatch_class] = fn
            return fn

        return register if fn is None else register(fn)

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """A block in which a device's kernel is off, and the operator's own function runs."""
        before = device_type in self._operator.disabled
        (self._operator.disabled.discard if enabled else self._operator.disabled.add)(device_type)
        try:
            yield
        finally:
            (self._operator.disabled.add if before else self._operator.disabled.discard)(
                device_type
            )


def custom_op(
    name: str,
    fn: Callable | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: Any = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Makes an operator of a function; also as a decorator.

    name: `namespace::name`. mutates_args: the arguments that it writes into. device_types: where
    the function runs; everywhere unless given. schema: `(Tensor x) -> Tensor`, by the annotations
    unless given.
    """

    def inner(fn: Callable) -> CustomOpDef:
        namespace, op_name = parse_qualname(name)
        text = schema
        if text is None:
            text = infer_schema(fn, mutates_args=mutates_args, tags=tags)
        made = CustomOpDef(namespace, op_name, text, fn, tags)
        if schema is not None:
            _check_mutated(made, mutates_args)
        made.register_kernel(device_types, fn)
        return made

    return inner if fn is None else inner(fn)


def _check_mutated(made: CustomOpDef, mutates_args: str | Iterable[str]) -> None:
    written = {a.name for a in made._operator.schema.arguments if a.mutated}
    if mutates_args != "unknown" and set(mutates_args) != written:
        raise ValueError(
            f"Attempted to create a custom op with `mutates_args={mutates_args}` and "
            f"`schema={made._schema}. The schema suggests that the op mutates {written} which is "
            "different from what was provided to us in `mutates_args`. Please make these "
            "consistent."
        )
