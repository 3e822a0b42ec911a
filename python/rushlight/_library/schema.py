"""Schemas of operators: what arguments they take, written as PyTorch writes them."""

from __future__ import annotations

import ast
import re
from typing import Any, NamedTuple

from rushlight import Tensor, device, dtype, layout, memory_format


class Argument(NamedTuple):
    """One argument: its type as the schema writes it, and whether the operator writes into it."""

    type: str
    name: str
    has_default: bool
    default: Any
    keyword_only: bool
    mutated: bool
    alias: str = ""  # the name of the memory it has: a in Tensor(a!)


_PART = re.compile(
    r"(?P<type>[A-Za-z_]\w*)(?P<alias>\([^)]*\))?(?P<rest>(?:\?|\[\d*\])*)\s*(?P<name>\w+)?"
    r"\s*(?:=\s*(?P<default>.+))?$"
)
_NAME = re.compile(r"(?:(?P<space>[\w]+)::)?(?P<name>\w+)(?:\.(?P<overload>\w+))?\s*(?=\()")
_WORDS = {"None": None, "True": True, "False": False, "true": True, "false": False}


def _split(text: str) -> list[str]:
    """Cuts at commas that are not inside brackets."""
    parts, depth, start = [], 0, 0
    for place, character in enumerate(text):
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def _default(text: str) -> Any:
    text = text.strip()
    if text in _WORDS:
        return _WORDS[text]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text  # a name: contiguous_format


class Schema:
    """A parsed schema."""

    def __init__(self, text: str) -> None:
        head = _NAME.match(text)
        body, arrow, results = text[head.end() if head else 0 :].rpartition("->")
        body = body.strip()
        if head is None or not arrow or not (body.startswith("(") and body.endswith(")")):
            raise ValueError(f'expected a schema like "name(Tensor x) -> Tensor", but got "{text}"')
        self.name = head["name"]
        self.overload = head["overload"] or ""
        self.text = text.partition("::")[2] if head["space"] else text
        self.arguments: list[Argument] = []
        keyword_only = False
        for part in _split(body[1:-1]):
            if part == "*":
                keyword_only = True
                continue
            self.arguments.append(_argument(part, keyword_only, text))
        results = results.strip()
        inside = results[1:-1] if results.startswith("(") else results
        self.results = [_argument(part, False, text) for part in _split(inside)]
        self.returns = [result.type for result in self.results]
        self.returns_tuple = results.startswith("(")

    @property
    def positional(self) -> list[Argument]:
        """The arguments that may be given by position."""
        return [argument for argument in self.arguments if not argument.keyword_only]

    @property
    def mutates(self) -> bool:
        """Whether the operator writes into an argument."""
        return any(argument.mutated for argument in self.arguments)

    def bind(self, name: str, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """The arguments of a call, complete and checked: positional ones, keyword-only ones."""
        positional = self.positional
        if len(args) > len(positional):
            raise RuntimeError(
                f"{name}() expected at most {len(positional)} argument(s) but received {len(args)} "
                f"argument(s). Declaration: {self.declaration(name)}"
            )
        given = dict(zip((argument.name for argument in positional), args, strict=False))
        for key, value in kwargs.items():
            if key in given or all(argument.name != key for argument in self.arguments):
                raise RuntimeError(
                    f"Unknown keyword argument '{key}' for operator '{name}'. Schema: "
                    f"{self.declaration(name)}"
                )
            given[key] = value
        for place, argument in enumerate(self.arguments):
            if argument.name in given:
                given[argument.name] = self._checked(name, place, argument, given[argument.name])
            elif argument.has_default:
                given[argument.name] = argument.default
            else:
                raise RuntimeError(
                    f"{name}() is missing value for argument '{argument.name}'. Declaration: "
                    f"{self.declaration(name)}"
                )
        keywords = {a.name: given[a.name] for a in self.arguments if a.keyword_only}
        return tuple(given[argument.name] for argument in positional), keywords

    def declaration(self, name: str) -> str:
        """The schema with the operator's full name."""
        return name.partition("::")[0] + "::" + self.text

    def _checked(self, name: str, place: int, argument: Argument, value: Any) -> Any:
        found, result = _converted(argument.type, value)
        if found:
            return result
        raise RuntimeError(
            f"{name}() Expected a value of type '{argument.type}' for argument '{argument.name}' "
            f"but instead found type '{type(value).__name__}'.\nPosition: {place}\n"
            f"Value: {value!r}\nDeclaration: {self.declaration(name)}"
        )


def _argument(part: str, keyword_only: bool, text: str) -> Argument:
    match = _PART.match(part)
    if match is None:
        raise ValueError(f'cannot read "{part}" in the schema "{text}"')
    default = match["default"]
    return Argument(
        match["type"] + match["rest"],
        match["name"] or "",
        default is not None,
        None if default is None else _default(default),
        keyword_only,
        match["alias"] is not None and "!" in match["alias"],
        (match["alias"] or "").strip("()!"),
    )


_CLASSES: dict[str, Any] = {
    "Tensor": Tensor,
    "int": int,
    "SymInt": int,
    "bool": bool,
    "str": str,
    "Scalar": (int, float, complex, bool),
    "ScalarType": dtype,
    "Device": (device, str),
    "Layout": layout,
    "MemoryFormat": memory_format,
}


def _converted(kind: str, value: Any) -> tuple[bool, Any]:
    """Whether a value is of a schema's type, and the value as that type."""
    if kind.endswith("?"):
        return (True, None) if value is None else _converted(kind[:-1], value)
    if kind.endswith("]"):
        item, _, count = kind[:-1].rpartition("[")
        if count and isinstance(value, (int, float)):
            value = [value] * int(count)
        if not isinstance(value, (list, tuple)):
            return False, value
        converted = [_converted(item, each) for each in value]
        return all(found for found, _ in converted), [each for _, each in converted]
    if kind in ("float", "SymFloat"):
        return isinstance(value, (int, float)), float(value) if isinstance(value, int) else value
    wanted = _CLASSES.get(kind)
    if wanted is None:
        return True, value
    return isinstance(value, wanted), value
