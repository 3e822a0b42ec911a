"""Finding where a graph does what a pattern does."""

from __future__ import annotations

import dataclasses
from typing import Any

from rushlight import Tensor, _ops
from rushlight.fx.graph import Graph
from rushlight.fx.node import Node
from rushlight.fx.operator_schemas import normalize_function

__all__ = ["InternalMatch", "SubgraphMatcher"]


@dataclasses.dataclass
class InternalMatch:
    """A place where a graph does what a pattern does.

    anchors: the pattern's results. nodes_map: the graph's node, or the value, for each node of the
    pattern. placeholder_nodes: those of the pattern's inputs; returning_nodes: of its results.
    """

    anchors: list[Node]
    nodes_map: dict[Node, Any] = dataclasses.field(default_factory=dict)
    placeholder_nodes: list[Any] = dataclasses.field(default_factory=list)
    returning_nodes: list[Node] = dataclasses.field(default_factory=list)
    name_node_map: dict[str, Node] = dataclasses.field(default_factory=dict)

    def __copy__(self) -> InternalMatch:
        return InternalMatch(
            self.anchors,
            self.nodes_map.copy(),
            self.placeholder_nodes.copy(),
            self.returning_nodes.copy(),
        )


class SubgraphMatcher:
    """Finds the places where graphs do what `pattern` does.

    match_output, match_placeholder: an output is no result of anything; an input is an input.
    remove_overlapping_matches: a node is in one place at most. ignore_literals: numbers, texts and
    the like may differ.
    """

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        self.pattern = pattern
        self.match_output = match_output
        self.match_placeholder = match_placeholder
        self.remove_overlapping_matches = remove_overlapping_matches
        self.ignore_literals = ignore_literals
        if len(pattern.nodes) == 0:
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        output = pattern.output_node()
        self.pattern_placeholder_nodes = [n for n in pattern.nodes if n.op == "placeholder"]
        self.pattern_returning_nodes = output.all_input_nodes
        for node in self.pattern_placeholder_nodes:
            if not node.users:
                raise RuntimeError(
                    "SubgraphMatcher cannot be initialized with an pattern with dead code"
                )
        if match_output:
            self.pattern_anchors = [output]
        else:
            inner = [n for n in output.all_input_nodes if set(n.users) == {output}]
            self.pattern_anchors = inner or list(output.all_input_nodes)

    # ---- One node ------------------------------------------------------------------------------

    def _match_attributes(self, pn: Node, gn: Node) -> bool:
        mine, theirs = (_attribute(node) for node in (pn, gn))
        if isinstance(mine, Tensor):
            return isinstance(theirs, Tensor)
        return pn.target == gn.target

    def _nodes_are_equal(self, pn: Node, gn: Node) -> bool:
        if not self.match_placeholder and pn.op == "placeholder":
            return True
        if pn.op != gn.op:
            return False
        if pn.op in ("placeholder", "output"):
            return True
        if pn.op == "get_attr":
            return self._match_attributes(pn, gn)
        return pn.target == gn.target

    def _match_literals(self, pn: Any, gn: Any, match: InternalMatch) -> bool:
        if isinstance(pn, Node):
            if pn.op != "placeholder" or isinstance(gn, Node):
                return False
            if pn in match.nodes_map:
                return match.nodes_map[pn] == gn
            match.nodes_map[pn] = gn
            return True
        if isinstance(gn, Node):
            return False
        return self.ignore_literals or (type(gn) is type(pn) and gn == pn)

    def _match_args(self, pattern: Any, found: Any, match: InternalMatch) -> bool:
        if isinstance(pattern, Node) and isinstance(found, Node):
            return self._match_nodes(pattern, found, match)
        if isinstance(pattern, (list, tuple)) and isinstance(found, (list, tuple)):
            return len(pattern) == len(found) and all(
                self._match_args(p, f, match) for p, f in zip(pattern, found)
            )
        if isinstance(pattern, dict) and isinstance(found, dict):
            return set(pattern) == set(found) and all(
                self._match_args(pattern[key], found[key], match) for key in pattern
            )
        if isinstance(pattern, slice) and isinstance(found, slice):
            parts = ((s.start, s.stop, s.step) for s in (pattern, found))
            return self._match_args(*parts, match)
        return self._match_literals(pattern, found, match)

    def _match_nodes(self, pn: Node, gn: Node, match: InternalMatch) -> bool:
        if pn in match.nodes_map:
            return match.nodes_map[pn] is gn
        if any(gn is known for known in match.nodes_map.values()):
            return False
        if not self._nodes_are_equal(pn, gn):
            return False
        before = dict(match.nodes_map)
        match.nodes_map[pn] = gn
        if pn.op == "placeholder":
            return True
        if self._match_args(*(_arguments(node) for node in (pn, gn)), match):
            return True
        match.nodes_map = before
        return False

    # ---- All places ----------------------------------------------------------------------------

    def _is_contained(self, match: InternalMatch) -> bool:
        """Whether nobody outside uses what is inside, but for the results."""
        inside = {
            gn
            for pn, gn in match.nodes_map.items()
            if isinstance(gn, Node) and pn.op != "placeholder"
        }
        returned = {match.nodes_map[pn] for pn in self.pattern_returning_nodes}
        for gn in inside - returned:
            for user in gn.users:
                if user not in inside:
                    return False
        return True

    def _grown(
        self, match: InternalMatch, anchors: list[Node], graph: Graph
    ) -> list[InternalMatch]:
        """The match with each choice of nodes for these further results."""
        if not anchors:
            return [match]
        found = []
        for gn in graph.nodes:
            if not self._nodes_are_equal(anchors[0], gn):
                continue
            tried = match.__copy__()
            if self._match_nodes(anchors[0], gn, tried):
                found += self._grown(tried, anchors[1:], graph)
        return found

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The places in the order of the graph.

        node_name_match: only those whose result has a name with this text in it.
        """
        found = self._grown(InternalMatch(list(self.pattern_anchors)), self.pattern_anchors, graph)
        results, taken = [], set()
        for match in found:
            if not all(pn in match.nodes_map for pn in self.pattern_returning_nodes):
                continue
            if not self._is_contained(match):
                continue
            match.placeholder_nodes = [match.nodes_map[pn] for pn in self.pattern_placeholder_nodes]
            match.returning_nodes = [match.nodes_map[pn] for pn in self.pattern_returning_nodes]
            if node_name_match and not any(
                node_name_match in node.name for node in match.returning_nodes
            ):
                continue
            inside = {
                gn
                for pn, gn in match.nodes_map.items()
                if isinstance(gn, Node) and pn.op not in ("placeholder", "output")
            }
            if self.remove_overlapping_matches and inside & taken:
                continue
            taken |= inside
            results.append(match)
        return results


def _attribute(node: Node) -> Any:
    found = node.graph.owning_module
    for name in str(node.target).split("."):
        found = getattr(found, name, None)
    return found


def _arguments(node: Node) -> tuple[tuple, dict]:
    """The arguments; of aten operators by name, with defaults."""
    if isinstance(node.target, _ops.OpOverload):
        made = normalize_function(
            node.target, node.args, dict(node.kwargs), normalize_to_only_use_kwargs=True
        )
        if made is not None:
            return made
    return node.args, dict(node.kwargs)
