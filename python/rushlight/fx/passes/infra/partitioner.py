"""Groups of nodes that something can do, as large as they may be."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, qualified_name
from rushlight.fx.passes.operator_support import OperatorSupportBase
from rushlight.fx.passes.utils.fuser_utils import fuse_by_partitions

__all__ = ["CapabilityBasedPartitioner", "Partition"]


class Partition:
    """A group of nodes, with their places in the graph where they are known."""

    def __init__(
        self,
        id: int | None = None,
        nodes: Iterable[Node] | None = None,
        node_orders: Iterable[int] | None = None,
    ) -> None:
        self.id = id
        nodes = list(nodes or ())
        orders = list(node_orders) if node_orders is not None else [None] * len(nodes)
        self.nodes: dict[Node, int | None] = dict(zip(nodes, orders, strict=True))

    def __repr__(self) -> str:
        return str(self.nodes)

    def add_node(self, node: Node, node_order: int | None = None) -> None:
        """Adds a node."""
        self.nodes[node] = node_order

    def remove_node(self, node: Node) -> None:
        """Takes out a node."""
        del self.nodes[node]

    def size(self) -> int:
        """How many nodes there are."""
        return len(self.nodes)


class CapabilityBasedPartitioner:
    """Groups the nodes that `operator_support` supports, where no group needs its own results.

    allows_single_node_partition: groups of one node are kept, too. non_compute_ops: functions, by
    path, that do not count; allowed_single_node_partition_ops: functions that may be alone.
    skip_horizontal_fusion: groups that take nothing of each other stay apart.
    """

    def __init__(
        self,
        graph_module: GraphModule,
        operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False,
        non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None,
        skip_horizontal_fusion: bool = False,
    ) -> None:
        self.graph_module = graph_module
        self.operator_support = operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = list(non_compute_ops or ())
        self.allowed_single_node_partition_ops = list(allowed_single_node_partition_ops or ())
        self.skip_horizontal_fusion = skip_horizontal_fusion
        self._submodules = dict(graph_module.named_modules())

    def _is_node_supported(self, node: Node) -> bool:
        return self.operator_support.is_node_supported(self._submodules, node)

    def propose_partitions(self) -> list[Partition]:
        """The groups, those of later nodes first."""
        order = {node: number for number, node in enumerate(self.graph_module.graph.nodes)}
        groups: dict[int, Partition] = {}
        group_of: dict[Node, int] = {}
        ids = itertools.count()
        for node in reversed(self.graph_module.graph.nodes):
            if node.op in ("placeholder", "output") or not self._is_node_supported(node):
                continue
            own = next(ids)
            groups[own] = Partition(own, [node], [order[node]])
            group_of[node] = own
            near = dict.fromkeys(group_of[user] for user in node.users if user in group_of)
            others = [] if self.skip_horizontal_fusion else groups
            for other in [*near, *(g for g in list(others) if g not in near)]:
                own = self._merged(own, other, groups, group_of, order)
        return [group for group in groups.values() if self._is_worth_it(group)]

    def _merged(
        self, own: int, other: int, groups: dict, group_of: dict, order: dict[Node, int]
    ) -> int:
        """Puts two groups into one where that is possible; the group that the first is in then."""
        if own == other or other not in groups:
            return own
        together = {**groups[own].nodes, **groups[other].nodes}
        if self._needs_itself(set(together), groups, group_of):
            return own
        groups[other].nodes = together
        group_of.update(dict.fromkeys(groups.pop(own).nodes, other))
        return other

    @staticmethod
    def _needs_itself(inside: set[Node], groups: dict, group_of: dict) -> bool:
        """Whether a path leaves these nodes and comes back, other groups being one step each."""
        seen: set[Node] = set()
        waiting = [user for node in inside for user in node.users if user not in inside]
        while waiting:
            node = waiting.pop()
            if node in inside:
                return True
            if node in seen:
                continue
            group = groups[group_of[node]].nodes if node in group_of else (node,)
            seen.update(group)
            waiting += [user for member in group for user in member.users]
        return False

    def _is_worth_it(self, group: Partition) -> bool:
        if self.allows_single_node_partition:
            return True
        calls = [node for node in group.nodes if node.op != "get_attr"]
        names = [qualified_name(n.target) if callable(n.target) else n.target for n in calls]
        counted = [name for name in names if name not in self.non_compute_ops]
        alone = self.allowed_single_node_partition_ops
        return len(counted) > 1 or any(name in alone for name in counted)

    def fuse_partitions(self, partitions: list[Partition], prefix: str = "fused_") -> GraphModule:
        """The module with a submodule in the place of each group."""
        return fuse_by_partitions(
            self.graph_module, [partition.nodes for partition in partitions], prefix
        )

    def remove_bookend_non_compute_ops(self, partitions: list[Partition]) -> None:
        """Takes functions that do not count out of the groups' beginnings and ends."""
        for partition in partitions:
            changed = True
            while changed:
                changed = False
                inside = set(partition.nodes)
                for node in list(partition.nodes):
                    if not callable(node.target):
                        continue
                    if qualified_name(node.target) not in self.non_compute_ops:
                        continue
                    first = not any(source in inside for source in node.all_input_nodes)
                    last = not any(user in inside for user in node.users)
                    if first or last:
                        partition.remove_node(node)
                        inside.discard(node)
                        changed = True

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """Proposes groups, and puts submodules in their places."""
        return self.fuse_partitions(self.propose_partitions(), prefix)
