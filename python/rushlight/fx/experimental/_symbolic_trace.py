"""make_fx with open sizes: one graph out of traces with several sizes (see export/_unify.py).

As in PyTorch, sizes that are equal in the call are taken for one, and sizes 0 and 1 are fixed. A
size that the program depends on is fixed, too: one for which other operators would run, or which
fits no simple expression. So are all sizes of a program with branches of torch.cond.
"""

from __future__ import annotations

from collections.abc import Callable

from rushlight import Tensor
from rushlight._dynamo.exc import UserError
from rushlight._subclasses.fake_tensor import FakeTensorMode
from rushlight.export import _unify
from rushlight.export.dynamic_shapes import OpenSize, Range
from rushlight.utils._pytree import tree_flatten, tree_map_only, tree_unflatten


def _open_sizes(leaves: list) -> list[OpenSize]:
    """All sizes above 1, of one name where they are equal."""
    return [
        OpenSize(leaf, dim, f"s{size}")
        for leaf, tensor in enumerate(leaves)
        if isinstance(tensor, Tensor)
        for dim, size in enumerate(tensor.shape)
        if size > 1
    ]


class SymbolicTracer:
    """Traces with `trace(args)` for the shapes of tensors without memory."""

    def __init__(self, trace: Callable, args: tuple) -> None:
        self._trace = trace
        self._mode = FakeTensorMode(allow_non_fake_inputs=True)
        fakes = tree_map_only(Tensor, self._mode.from_tensor, args)
        self._leaves, self._spec = tree_flatten(fakes)
        self._sizes = _open_sizes(self._leaves)

    def run(self) -> object:
        """A trace of which as many sizes are open as the program allows."""
        names = list(dict.fromkeys(size.name for size in self._sizes))
        whole = self._unified(names)
        if whole is not None:
            return whole
        kept: list[str] = []
        found = self._traced([], {})
        for name in names:
            made = self._unified([*kept, name])
            if made is not None:
                kept, found = [*kept, name], made
        return found

    def _traced(self, sizes: list[OpenSize], choice: dict[str, int]) -> object:
        with self._mode:
            leaves = _unify.resized(self._leaves, sizes, choice)
            return self._trace(tree_unflatten(leaves, self._spec))

    def _unified(self, names: list[str]) -> object | None:
        """A trace of which these sizes are open; None where the program fixes one of them."""
        sizes = [size for size in self._sizes if size.name in names]
        given = {size.name: self._leaves[size.leaf].shape[size.dim] for size in sizes}
        ranges = {name: Range(2, None) for name in given}
        for spread in (False, True):
            chosen = _unify.choices(given, ranges, spread)
            traces = []
            for choice in chosen:
                try:
                    traces.append(self._traced(sizes, choice))
                except (RuntimeError, ValueError, IndexError):
                    if choice == chosen[0]:
                        raise
                    break
            if len(traces) < len(chosen) or traces[0].modules:
                continue  # branches of torch.cond are graphs of one call's sizes
            try:
                _unify.Unifier(traces, chosen, sizes).run()
            except UserError:
                continue
            return traces[0]
        return None
