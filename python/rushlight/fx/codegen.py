"""What decides how a graph's code is called: CodeGen, and one for arguments that are structures."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from typing import NamedTuple

from rushlight.fx import _pytree as fx_pytree
from rushlight.utils import _pytree as pytree


@dataclasses.dataclass
class PythonCode:
    """The source of a graph's `forward`, and the global names that it uses.

    _lineno_map: the number of the node that each line of the function's body is of, by the number
    of the line; the body starts after line _prologue_start.
    """

    src: str
    globals: dict[str, object]
    _lineno_map: dict[int, int | None] | None
    _prologue_start: int = 0


class CodeGen:
    """Writes the first line and the return of a graph's code; subclasses change how it is called.

    A subclass that takes or gives other arguments says in `process_inputs` and `process_outputs`
    how they become the graph's own, which interpreters go by.
    """

    _func_name = "forward"

    def __init__(self) -> None:
        self._body_transformer: Callable[[list[str]], list[str]] | None = None

    def gen_fn_def(
        self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False
    ) -> str:
        """The first line: `free_vars` are the placeholders as parameters.

        expanded_def: with a parameter a line.
        """
        names = free_vars if free_vars[:1] == ["self"] else ["self", *free_vars]
        inside = ", ".join(names)
        if expanded_def:
            inside = "\n" + "".join(f"    {name},\n" for name in names)
        return f"def {self._func_name}({inside}){maybe_return_annotation}:"

    def generate_output(
        self,
        output_args: object,
        *,
        descs: Sequence[str] | None = None,
        repr_fn: Callable[[object], str] | None = None,
    ) -> str:
        """The return: `repr_fn` writes an argument as code."""
        return f"return {(repr_fn or repr)(output_args)}"

    def process_inputs(self, *args: object) -> object:
        """The values of the placeholders in a call with these arguments."""
        return args

    def process_outputs(self, outputs: object) -> object:
        """What a call gives where the graph's output is this."""
        return outputs

    def additional_globals(self) -> list[tuple[str, object]]:
        """Names that the first line and the return use, and what they mean."""
        return []

    def _definition(self, names: list[str], annotation: str, expanded: bool) -> str:
        """gen_fn_def, of subclasses too that know no expanded_def."""
        if expanded and "expanded_def" in inspect.signature(self.gen_fn_def).parameters:
            return self.gen_fn_def(names, annotation, expanded_def=True)
        return self.gen_fn_def(names, annotation)

    def _return(self, output_args: object, repr_fn: Callable[[object], str]) -> str:
        """generate_output, of subclasses too that know no repr_fn."""
        known = inspect.signature(self.generate_output).parameters
        if "repr_fn" in known:
            return self.generate_output(output_args, repr_fn=repr_fn)
        return self.generate_output(output_args)


class _PyTreeInfo(NamedTuple):
    """The parameters of a function, and the structures of its arguments and of its result."""

    orig_args: list[str]
    in_spec: pytree.TreeSpec
    out_spec: pytree.TreeSpec | None


class _PyTreeCodeGen(CodeGen):
    """Code that takes and gives structures; placeholders are their leaves.

    The module that runs it has `_in_spec` and `_out_spec`.
    """

    def __init__(self, pytree_info: _PyTreeInfo) -> None:
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs: object) -> object:
        """The leaves of the arguments; the module itself, which is one, is left out."""
        spec, names = self.pytree_info.in_spec, self.pytree_info.orig_args
        given = (None, *inputs) if names[:1] == ["self"] else inputs
        leaves = fx_pytree.tree_flatten_spec(tuple(given), spec)
        return leaves[1:] if names[:1] == ["self"] else leaves

    def process_outputs(self, out: object) -> object:
        """The structure that these leaves are of."""
        if self.pytree_info.out_spec is None:
            return out
        if not isinstance(out, (list, tuple)):
            out = [out]
        return pytree.tree_unflatten(list(out), self.pytree_info.out_spec)

    def gen_fn_def(
        self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False
    ) -> str:
        """The first line, with the function's own parameters, and one that takes them apart."""
        names = self.pytree_info.orig_args
        line = super().gen_fn_def(names[:], maybe_return_annotation, expanded_def=expanded_def)
        if not free_vars:
            return line
        leaves = [name.partition(":")[0].partition("=")[0] for name in free_vars]
        if "self" in names:
            leaves.insert(0, "self")
        typed = [name for name in free_vars if ":" in name]
        types = "\n    " + "".join(f"{name}; " for name in typed) + "\n" if typed else ""
        return (
            f"{line}{types}\n    {', '.join(leaves)}, = "
            f"fx_pytree.tree_flatten_spec([{', '.join(names)}], self._in_spec)"
        )

    def generate_output(
        self,
        output_args: object,
        *,
        descs: Sequence[str] | None = None,
        repr_fn: Callable[[object], str] | None = None,
    ) -> str:
        """The return of a structure."""
        text = (repr_fn or repr)(output_args)
        if self.pytree_info.out_spec is None:
            return f"return {text}"
        return f"return pytree.tree_unflatten({text}, self._out_spec)"

    def additional_globals(self) -> list[tuple[str, object]]:
        """The functions that take structures apart and put them together."""
        return [("fx_pytree", fx_pytree), ("pytree", pytree)]
