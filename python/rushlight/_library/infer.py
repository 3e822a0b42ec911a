"""The schema of a function, from its annotations."""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any

import rushlight as torch

_BASE = {
    torch.Tensor: "Tensor",
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    torch.types.Number: "Scalar",
    int | float | bool: "Scalar",
    typing.Union[int, float, bool]: "Scalar",  # noqa: UP007
    torch.dtype: "ScalarType",
    torch.device: "Device",
}
_SEQUENCES = (list, collections.abc.Sequence)
_IN_LISTS = ("Tensor", "SymInt", "float", "bool", "Scalar", "str")


def tag_set(tags: Any) -> set[torch.Tag]:
    """The tags given: none, one or several."""
    if tags is None:
        return set()
    return {tags} if isinstance(tags, torch.Tag) else set(tags)


def _type(annotation: Any) -> str | None:
    """The schema's type for an annotation, None where there is none."""
    try:
        if annotation in _BASE:
            return _BASE[annotation]
    except TypeError:
        return None
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType) and type(None) in arguments:
        rest = [each for each in arguments if each is not type(None)]
        inner = _type(rest[0] if len(rest) == 1 else typing.Union[tuple(rest)])  # noqa: UP007
        return None if inner is None else inner + "?"
    if origin in _SEQUENCES and len(arguments) == 1:
        inner = _type(arguments[0])
        if inner is not None and inner.rstrip("?") in _IN_LISTS:
            return inner + "[]"
    return None


def infer_schema(
    prototype_function: Callable,
    /,
    *,
    mutates_args: Iterable[str] | str,
    op_name: str | None = None,
    tags: Any = (),
) -> str:
    """The schema of a function with annotations, after op_name where it is given.

    mutates_args: the names of the arguments that it writes into, or 'unknown'. tags: with
    Tag.inplace it gives the first argument, with Tag.out those by keyword that it writes into.
    """
    tags = tag_set(tags)
    signature = inspect.signature(prototype_function)

    def refuse(text: str) -> typing.NoReturn:
        raise ValueError(f"infer_schema(func): {text} Got func with signature {signature})")

    hints = _hints(prototype_function)
    parts, keyword_only, seen = [], False, set()
    for index, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            refuse("We do not support positional-only args, varargs, or varkwargs.")
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            parts.append("*")
        if parameter.annotation is parameter.empty:
            refuse(f"Parameter {name} must have a type annotation.")
        annotation = hints.get(name, parameter.annotation)
        kind = _type(annotation)
        if kind is None:
            refuse(
                f"Parameter {name} has unsupported type {annotation}. The valid types are: "
                f"{', '.join(sorted(set(_BASE.values())))}, optional ones and lists of them."
            )
        seen.add(name)
        if name in mutates_args or (mutates_args == "unknown" and kind.startswith("Tensor")):
            if not kind.startswith("Tensor"):
                refuse(f"Parameter {name} is in mutates_args but only Tensors can be mutated.")
            kind = kind.replace("Tensor", f"Tensor(a{index}!)", 1)
        parts.append(f"{kind} {name}{_default(name, parameter, refuse)}")
    if mutates_args != "unknown" and not set(mutates_args) <= seen:
        refuse(
            f"{set(mutates_args) - seen} in mutates_args were not found in the custom op's "
            "signature. mutates_args should contain the names of all args that the custom op "
            "mutates, or just the string 'unknown' if you don't know."
        )
    if signature.return_annotation is signature.empty:
        refuse("No return type annotation was provided. Please add one.")
    returned = _returned(hints.get("return", signature.return_annotation), refuse)
    if torch.Tag.inplace in tags:
        returned = parts[0].split(" ")[0]
    elif torch.Tag.out in tags:
        by_name = parts[parts.index("*") + 1 :] if "*" in parts else []
        written = [part.split(" ")[0] for part in by_name if "!" in part]
        returned = written[0] if len(written) == 1 else f"({', '.join(written)})"
    return f"{op_name or ''}({', '.join(parts)}) -> {returned}"


def _hints(function: Callable) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except (NameError, TypeError):
        return {}


def _default(name: str, parameter: inspect.Parameter, refuse: Callable) -> str:
    default = parameter.default
    if default is parameter.empty:
        return ""
    if default is None or isinstance(default, (int, float, bool)):
        return f"={default}"
    if isinstance(default, str):
        return f'="{default}"'
    if isinstance(default, (torch.dtype, torch.device)):
        return f'="{default}"' if isinstance(default, torch.device) else f"={str(default)[6:]}"
    return refuse(f"Parameter {name} has an unsupported default value type {type(default)}.")


def _returned(annotation: Any, refuse: Callable) -> str:
    if annotation is None or annotation is type(None):
        return "()"
    several = typing.get_origin(annotation) is tuple
    kinds = []
    for each in typing.get_args(annotation) if several else (annotation,):
        kind = _type(each)
        if kind is None or "?" in kind or kind in ("str", "ScalarType", "Device"):
            refuse(
                f"Return has unsupported type {each}. The valid types are: Tensor, Tensor[], "
                "SymInt, float, bool, Scalar."
            )
        kinds.append(kind)
    if several and len(kinds) > 1:
        return "(" + ", ".join(kinds) + ")"
    return kinds[0]
