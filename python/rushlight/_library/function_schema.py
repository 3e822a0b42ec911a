"""FunctionSchema: what `OpOverload._schema` is: text that can be asked for its parts."""

from __future__ import annotations

import functools
from typing import NamedTuple

from rushlight._library.schema import Argument as ParsedArgument
from rushlight._library.schema import Schema


class AliasInfo(NamedTuple):
    """The memory that an argument or result names: `a` in Tensor(a!), and whether it is written."""

    before_set: frozenset[str]
    after_set: frozenset[str]
    is_write: bool


class Argument:
    """An argument or result of an operator. `type` is text, as PyTorch prints it: List[Tensor]."""

    def __init__(self, parsed: ParsedArgument) -> None:
        self.name = parsed.name
        self.type = self.real_type = _printed(parsed.type)
        self.N = _count(parsed.type)
        self.default_value = parsed.default
        self.kwarg_only = parsed.keyword_only
        self.alias_info = None
        if parsed.alias:
            sets = frozenset({parsed.alias})
            self.alias_info = AliasInfo(sets, sets, parsed.mutated)
        self.is_write = parsed.mutated
        self.is_out = parsed.mutated and parsed.keyword_only
        self._has_default = parsed.has_default

    def has_default_value(self) -> bool:
        """Whether a call may leave it out."""
        return self._has_default

    def __repr__(self) -> str:
        return f"Argument({self.type} {self.name})"


def _printed(kind: str) -> str:
    if kind.endswith("?"):
        return f"Optional[{_printed(kind[:-1])}]"
    if kind.endswith("]"):
        return f"List[{_printed(kind.rpartition('[')[0])}]"
    return {"Scalar": "number", "SymInt": "int", "ScalarType": "int", "Layout": "int"}.get(
        kind, kind
    )


def _count(kind: str) -> int | None:
    inside = kind.rstrip("?").rpartition("[")[2].removesuffix("]")
    return int(inside) if inside.isdigit() else None


class FunctionSchema(str):
    """A schema as text, "aten::add.Tensor(Tensor self, ...) -> Tensor", with its parts."""

    @functools.cached_property
    def _parsed(self) -> Schema:
        return Schema(str(self))

    @property
    def name(self) -> str:
        """As in aten::add."""
        return f"{self.partition('::')[0]}::{self._parsed.name}"

    @property
    def overload_name(self) -> str:
        """As in Tensor; empty for the default."""
        return self._parsed.overload

    @functools.cached_property
    def arguments(self) -> list[Argument]:
        """The arguments in order."""
        return [Argument(parsed) for parsed in self._parsed.arguments]

    @functools.cached_property
    def returns(self) -> list[Argument]:
        """The results in order."""
        return [Argument(parsed) for parsed in self._parsed.results]

    @property
    def is_mutable(self) -> bool:
        """Whether the operator writes into an argument."""
        return self._parsed.mutates
