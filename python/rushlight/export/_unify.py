"""One graph for all sizes, from the graphs of calls with several sizes.

Numbers that differ between the graphs are expressed by the open sizes: as a size, a multiple or a
part of one, one plus a constant, a product of two, or a sum of two plus a constant. The graphs are
of at least three choices of sizes where the ranges allow it, so that a number that only happens to
fit is found out.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Mapping
from typing import Any

from rushlight import Tensor, fx, ops
from rushlight._dynamo.exc import UserError, UserErrorType
from rushlight.export._trace import TracedCall
from rushlight.export.dynamic_shapes import OpenSize, Range


def choices(sizes: Mapping[str, int], ranges: Mapping[str, Range], spread: bool) -> list[dict]:
    """Sizes to trace with: those given, and three others within the ranges.

    spread: multiples of those given, where code relies on their divisors.
    """
    others: list[dict[str, int]] = [{}, {}, {}]
    for number, (name, size) in enumerate(sizes.items()):
        low, high = max(ranges[name].min, 2), ranges[name].max
        wanted = (
            [size * 2, size * 3, size * 5]
            if spread
            else [size + 1 + number, 2 * size + 3 + 2 * number, 3 * size + 8 + 5 * number]
        )
        inside = [n for n in wanted if n >= low and (high is None or n <= high)]
        top = low + 64 if high is None else high
        step = size if spread else 1
        spare = (n for n in range(low - low % step, top + 1, step) if low <= n != size)
        inside += itertools.islice((n for n in spare if n not in inside), 3 - len(inside))
        for choice, n in zip(others, itertools.cycle(inside or [size])):
            choice[name] = n
    return [dict(sizes), *others]


def _fail(text: str) -> None:
    raise UserError(
        UserErrorType.CONSTRAINT_VIOLATION,
        f"Constraints violated: the graphs of calls with different sizes differ: {text}. A size "
        "that the program depends on has to be given as None or Dim.STATIC",
    )


class Unifier:
    """Writes what differs between traced calls into the first one's graph."""

    def __init__(
        self, traces: list[TracedCall], chosen: list[dict[str, int]], sizes: list[OpenSize]
    ) -> None:
        self._traces = traces
        self._graph = traces[0].graph
        self._values = {name: [choice[name] for choice in chosen] for name in chosen[0]}
        # Where a size can be read: plainly, where it stands so anywhere.
        plainest = sorted(reversed(sizes), key=lambda size: (size.slope, size.offset) == (1, 0))
        self._places = {size.name: size for size in plainest}
        self._sizes: dict[str, fx.Node] = {}

    def run(self) -> None:
        """Compares all nodes; UserError where the graphs do not agree."""
        lists = [list(trace.graph.nodes) for trace in self._traces]
        for others in lists[1:]:
            if [_kind(n) for n in others] != [_kind(n) for n in lists[0]]:
                _fail("not the same operators run")
        self._numbers = {node: number for nodes in lists for number, node in enumerate(nodes)}
        for trace in self._traces[1:]:
            self._same_constants(trace)
        for node, *others in zip(*lists):
            with self._graph.inserting_before(node):
                where = node.name if node.op != "output" else "the results"
                node.args = self._merge(node.args, [n.args for n in others], where)
                node.kwargs = self._merge(node.kwargs, [n.kwargs for n in others], where)

    def _same_constants(self, trace: TracedCall) -> None:
        first = self._traces[0].constants
        for name, value in trace.constants.items():
            own = first.get(name)
            if own is value:
                continue
            if own is None or own.shape != value.shape or not bool((own == value).all()):
                _fail(f"the tensor {name} is made anew in each call and depends on a size")

    def _merge(self, value: Any, others: list, where: str) -> Any:
        if isinstance(value, fx.Node):
            numbers = {self._numbers.get(n, -1) for n in [value, *others]}
            if len(numbers) != 1:
                _fail(f"{where} reads different values")
            return value
        if isinstance(value, (tuple, list)):
            if any(len(other) != len(value) for other in others):
                _fail(f"{where} has lists of different lengths")
            items = [self._merge(item, list(rest), where) for item, *rest in zip(value, *others)]
            return tuple(items) if isinstance(value, tuple) else items
        if isinstance(value, Mapping):
            return {k: self._merge(v, [o.get(k) for o in others], where) for k, v in value.items()}
        if all(type(other) is type(value) and other == value for other in others):
            return value
        if type(value) is int:
            return self._expressed([value, *others], where)
        if type(value) is float and all(float(n).is_integer() for n in (value, *others)):
            # A count of elements, by which something is divided.
            count = self._expressed([int(n) for n in (value, *others)], where)
            return self._call(operator.mul, value, count, 1.0)
        _fail(f"{where} has {', '.join(map(str, [value, *others]))}")

    def _size(self, name: str) -> fx.Node:
        if name not in self._sizes:
            place = self._places[name]
            argument = self._traces[0].arguments[place.leaf]
            last = self._traces[0].arguments[-1]
            with self._graph.inserting_after(last):
                node = self._graph.call_function(
                    ops.aten.sym_size.int, (argument, place.dim), name="sym_size_int"
                )
                node.meta["val"] = place.of(self._values[name][0])
                self._sizes[name] = self._root(node, place)
        return self._sizes[name]

    def _root(self, node: fx.Node, place: OpenSize) -> fx.Node:
        """The size of which the node is slope * size + offset, right after the node."""
        size = self._values[place.name][0]
        if place.offset != 0:
            with self._graph.inserting_after(node):
                node = self._call(operator.sub, place.slope * size, node, place.offset)
        if place.slope != 1:
            with self._graph.inserting_after(node):
                node = self._call(operator.floordiv, size, node, place.slope)
        return node

    def _call(self, function: Any, value: float, *args: Any) -> fx.Node:
        node = self._graph.call_function(function, args)
        node.meta["val"] = value
        return node

    def _expressed(self, found: list[int], where: str) -> fx.Node:
        for name, sizes in self._values.items():
            node = self._of_one(found, name, sizes)
            if node is not None:
                return node
        for (a, first), (b, second) in itertools.combinations_with_replacement(
            self._values.items(), 2
        ):
            factor = _quotient(found, [x * y for x, y in zip(first, second)])
            if factor is not None:
                size = first[0] * second[0]
                node = self._call(operator.mul, size, self._size(a), self._size(b))
                return node if factor == 1 else self._call(operator.mul, found[0], node, factor)
        for (a, first), (b, second) in itertools.combinations(self._values.items(), 2):
            rest = {n - x - y for n, x, y in zip(found, first, second)}
            if len(rest) == 1:
                size = first[0] + second[0]
                node = self._call(operator.add, size, self._size(a), self._size(b))
                offset = rest.pop()
                return node if offset == 0 else self._call(operator.add, found[0], node, offset)
        _fail(
            f"{where} has the numbers {', '.join(map(str, found))} where the sizes are "
            f"{self._values}, and they are no simple expression of these"
        )

    def _of_one(self, found: list[int], name: str, sizes: list[int]) -> fx.Node | None:
        """The numbers as slope * size + offset, or as (size + offset) // part."""
        if len(set(sizes)) < 2:
            return None
        at = next(i for i, size in enumerate(sizes) if size != sizes[0])
        slope, rest = divmod(found[at] - found[0], sizes[at] - sizes[0])
        offset = found[0] - slope * sizes[0]
        if rest == 0 and all(slope * s + offset == n for s, n in zip(sizes, found)) and slope:
            node = self._size(name)
            if slope != 1:
                node = self._call(operator.mul, slope * sizes[0], node, slope)
            return node if offset == 0 else self._call(operator.add, found[0], node, offset)
        for part in range(2, 65):
            for offset in range(0, part):
                if all((s + offset) // part == n for s, n in zip(sizes, found)):
                    node = self._size(name)
                    if offset:
                        node = self._call(operator.add, sizes[0] + offset, node, offset)
                    return self._call(operator.floordiv, found[0], node, part)
        return None


def _kind(node: fx.Node) -> tuple:
    return node.op, node.target


def _quotient(found: list[int], products: list[int]) -> int | None:
    factor, rest = divmod(found[0], products[0]) if products[0] else (0, 1)
    fits = rest == 0 and factor and all(factor * p == n for p, n in zip(products, found))
    return factor if fits else None


def resized(leaves: list, sizes: list[OpenSize], choice: Mapping[str, int]) -> list:
    """The leaves with their open sizes as chosen; elements are repeated or left out."""
    made = list(leaves)
    for size in sizes:
        leaf, dim = size.leaf, size.dim
        tensor: Tensor = made[leaf]
        old, new = tensor.shape[dim], size.of(choice[size.name])
        if old != new:
            picked = ops.aten.arange.default(new) % max(old, 1)
            made[leaf] = tensor.index_select(dim, picked)
    return made
