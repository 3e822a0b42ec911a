"""Arguments of operators by their schemas: names, defaults, and which form a call is of."""

from __future__ import annotations

import inspect
import numbers
import types
import typing
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import rushlight as torch
from rushlight import _ops

__all__ = [
    "ArgsKwargsPair", "check_for_mutable_operation", "create_type_hint",
    "get_signature_for_torch_op", "normalize_function", "normalize_module", "type_matches",
]  # fmt: skip


class ArgsKwargsPair(NamedTuple):
    """The arguments of a call by position and by name."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


_TYPES = {
    "Tensor": torch.Tensor, "Device": torch.device, "Layout": torch.layout, "Stream": object,
    "number": numbers.Number,
    "Future": torch.futures.Future, "Generator": torch.Generator, "Dimname": str,
    "MemoryFormat": torch.memory_format, "ScalarType": torch.dtype, "Storage": torch.UntypedStorage,
    "QScheme": int, "int": int, "float": float, "bool": bool, "str": str, "complex": complex,
}  # fmt: skip


def _type(text: str) -> Any:
    """A type of a schema: List[int], Optional[Tensor]."""
    if text.endswith("]"):
        outer, _, inner = text[:-1].partition("[")
        return {"Optional": typing.Optional, "List": typing.List}[outer][_type(inner)]  # noqa: UP006
    return _TYPES[text]


def _signature(schema: Any) -> inspect.Signature:
    parameters = []
    for arg in schema.arguments:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        if arg.kwarg_only:
            kind = inspect.Parameter.KEYWORD_ONLY
        default = arg.default_value if arg.has_default_value() else inspect.Parameter.empty
        if arg.N and isinstance(default, int):
            default = [default] * arg.N
        name = {"self": "input", "from": "from_"}.get(arg.name, arg.name)
        parameters.append(
            inspect.Parameter(name, kind, default=default, annotation=_type(arg.type))
        )
    results = [_type(result.type) for result in schema.returns]
    returned = results[0] if len(results) == 1 else tuple(results) if results else None
    return inspect.Signature(parameters, return_annotation=returned)


def _schemas(op: Callable) -> list[Any]:
    """The schemas of a function that is an operator; none where it is no operator."""
    if isinstance(op, _ops.OpOverload):
        return [op._schema]
    if isinstance(op, _ops.OpOverloadPacket):
        packet = op
    elif type(op) is type(torch.add):
        packet = getattr(torch.ops.aten, op.__name__, None)
    else:
        packet = None
    if packet is None:
        return []
    return [getattr(packet, form)._schema for form in packet.overloads()]


def get_signature_for_torch_op(op: Callable, return_schemas: bool = False) -> Any:
    """The signatures of the forms of an operator, or None where `op` is no operator.

    return_schemas: the signatures and the schemas.
    """
    schemas = _schemas(op)
    signatures = [_signature(schema) for schema in schemas]
    if return_schemas:
        return (signatures, schemas) if schemas else (None, None)
    return signatures or None


def check_for_mutable_operation(target: Callable, args: tuple, kwargs: dict[str, Any]) -> None:
    """RuntimeError where a call of the function writes one of its arguments."""
    schemas = _schemas(target)
    fits = [schema for schema in schemas if _binds(_signature(schema), args, kwargs)]
    if fits and all(schema.is_mutable for schema in fits):
        raise RuntimeError(
            f"Tried to trace mutable operation {fits[0]}. FX only supports functional code, so "
            "operations that mutate operands in-place (e.g. via `out` arguments) are not supported"
        )


def _binds(signature: inspect.Signature, args: tuple, kwargs: dict[str, Any]) -> bool:
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def create_type_hint(x: object) -> object:
    """list[T] for a list of one type, tuple[T, ...] for a tuple of one; else what was given."""
    if not isinstance(x, (list, tuple)):
        return x
    if not x:
        return list[Any] if isinstance(x, list) else tuple[Any, ...]
    items = [create_type_hint(item) for item in x]
    if not all(isinstance(item, type) or typing.get_origin(item) for item in items):
        warnings.warn(
            f"We were not able to successfully create type hint from the type {x}", stacklevel=2
        )
        return x
    first = items[0]
    if any(item is not first and not issubclass(item, first) for item in items[1:]):
        first = Any
    return list[first] if isinstance(x, list) else tuple[first, ...]


def type_matches(signature_type: Any, argument_type: Any) -> bool:
    """Whether an argument of one type may be given where another is asked for."""
    if signature_type is argument_type or signature_type == argument_type:
        return True
    origin, inner = typing.get_origin(signature_type), typing.get_args(signature_type)
    if origin is typing.Union or isinstance(signature_type, types.UnionType):
        return any(type_matches(one, argument_type) for one in inner)
    given, parts = typing.get_origin(argument_type), typing.get_args(argument_type)
    if origin is list:
        if inner == (int,) and argument_type is int:
            return True  # one number stands for all
        fits = [inner[0] is part or _is_subclass(part, inner[0]) for part in parts]
        return given in (list, tuple) and bool(fits) and all(fits)
    if signature_type is numbers.Number and argument_type in (int, float, complex):
        return True
    return _is_subclass(argument_type, signature_type)


def _is_subclass(one: Any, other: Any) -> bool:
    return isinstance(one, type) and isinstance(other, type) and issubclass(one, other)


def _normalized(
    signature: inspect.Signature, args: tuple, kwargs: dict[str, Any], by_name: bool
) -> ArgsKwargsPair | None:
    allowed = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    if any(parameter.kind not in allowed for parameter in signature.parameters.values()):
        return None
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    positional = [] if by_name else list(bound.arguments)[: len(args)]
    return ArgsKwargsPair(
        tuple(bound.arguments[name] for name in positional),
        {name: value for name, value in bound.arguments.items() if name not in positional},
    )


def normalize_function(
    target: Callable,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    arg_types: tuple | None = None,
    kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments with defaults filled in, those given by position staying there.

    normalize_to_only_use_kwargs: all by name. None where nothing is known of the function.
    arg_types, kwarg_types: decide where several forms of an operator take the arguments;
    RuntimeError where they do not.
    """
    kwargs = kwargs or {}
    if isinstance(target, (types.FunctionType, type(torch.nn.functional.relu))):
        return _normalized(inspect.signature(target), args, kwargs, normalize_to_only_use_kwargs)
    fits = [s for s in get_signature_for_torch_op(target) or [] if _binds(s, args, kwargs)]
    if len(fits) > 1 and (arg_types is not None or kwarg_types is not None):
        fits = [s for s in fits if _types_match(s, arg_types or (), kwarg_types or {})][:1]
    elif len(fits) > 1:
        forms = "\n".join(map(str, fits))
        raise RuntimeError(
            f"Tried to normalize arguments to {torch.typename(target)} but the schema match was "
            "ambiguous! Please provide argument types to the normalize_arguments() call. Available "
            f"schemas:\n{forms}"
        )
    return _normalized(fits[0], args, kwargs, normalize_to_only_use_kwargs) if fits else None


def _types_match(signature: inspect.Signature, args: tuple, kwargs: dict[str, Any]) -> bool:
    if not _binds(signature, args, kwargs):
        return False
    given = signature.bind(*args, **kwargs).arguments
    return all(
        type_matches(signature.parameters[name].annotation, kind) for name, kind in given.items()
    )


def normalize_module(
    root: torch.nn.Module,
    target: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments of a call of a submodule of torch.nn; None for others."""
    try:
        module = root.get_submodule(target)
    except AttributeError:
        raise RuntimeError(
            f"Tried to normalize node with target {target} but root did not have that target!"
        ) from None
    if getattr(torch.nn, type(module).__name__, None) is not type(module):
        return None
    signature = inspect.signature(module.forward)
    return _normalized(signature, args, kwargs or {}, normalize_to_only_use_kwargs)
