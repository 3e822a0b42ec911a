"""Dividing a graph into submodules that are called one after another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, map_arg
from rushlight.fx.proxy import Proxy
from rushlight.nn.modules.module import Module

__all__ = ["Partition", "split_module"]

_OUTSIDE = ("placeholder", "get_attr", "output")  # nodes that no submodule has


class Partition:
    """The nodes that become one submodule.

    inputs, outputs: names of nodes that it takes from and gives to others. dependencies,
    dependents: names of partitions before and after it.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.submod_name = f"submod_{name}"
        self.node_names: list[str] = []
        self.inputs: dict[str, None] = {}
        self.outputs: dict[str, None] = {}
        self.dependencies: dict[str, None] = {}
        self.dependents: dict[str, None] = {}
        self.graph = Graph()
        self.environment: dict[Node, Node] = {}
        self.targets: dict[str, Any] = {}

    def __repr__(self) -> str:
        return (
            f"name: {self.name},\n nodes: {self.node_names},\n inputs: {list(self.inputs)},\n "
            f"outputs: {list(self.outputs)},\n "
            f"partitions depended on: {list(self.dependencies)},\n "
            f"partition dependents: {list(self.dependents)}"
        )


def _member(root: Module, path: str) -> Any:
    found: Any = root
    for name in path.split("."):
        found = getattr(found, name)
    return found


class _Splitter:
    def __init__(self, m: GraphModule, split: Callable[[Node], Any], affix: str | None) -> None:
        self.module = m
        self.nodes = {node.name: node for node in m.graph.nodes}
        self.partitions: dict[str, Partition] = {}
        self.partition_of: dict[Node, str] = {}
        self._affix = "" if affix is None else f"{affix}_"
        for node in m.graph.nodes:
            if node.op not in _OUTSIDE:
                name = f"{self._affix}{split(node)}"
                self.partition_of[node] = name
                part = self.partitions.setdefault(name, Partition(name))
                part.node_names.append(node.name)
        for node in m.graph.nodes:
            if node.op not in ("placeholder", "get_attr"):
                for source in node.all_input_nodes:
                    self._note_use(source, node)

    def _note_use(self, source: Node, user: Node) -> None:
        before, after = self.partition_of.get(source), self.partition_of.get(user)
        if before == after:
            return
        if before is not None:
            self.partitions[before].outputs.setdefault(source.name)
            if after is not None:
                self.partitions[before].dependents.setdefault(after)
        if after is not None:
            self.partitions[after].inputs.setdefault(source.name)
            if before is not None:
                self.partitions[after].dependencies.setdefault(before)

    def sorted(self) -> list[str]:
        """Partitions after those that they depend on. RuntimeError where there is no such order."""
        waiting = {name: dict(part.dependencies) for name, part in self.partitions.items()}
        ready = [name for name, before in waiting.items() if not before]
        order = []
        while ready:
            name = ready.pop()
            order.append(name)
            for after in self.partitions[name].dependents:
                del waiting[after][name]
                if not waiting[after]:
                    ready.append(after)
        if len(order) != len(self.partitions):
            raise RuntimeError("cycle exists between partitions!")
        return order

    def fill(
        self, own_names: bool, input_names: bool, tuples: bool, paths: dict[str, str] | None
    ) -> None:
        """Writes the graphs of the submodules."""
        for part in self.partitions.values():
            for number, name in enumerate(part.inputs):
                source = self.nodes[name]
                kind = source.type if source.op == "placeholder" else None
                made = part.graph.placeholder(name if input_names else f"arg_{number}", kind)
                made.meta = source.meta.copy()
                part.environment[source] = made
        for node, name in self.partition_of.items():
            self._copy(node, self.partitions[name], own_names, paths)
        for part in self.partitions.values():
            results = tuple(part.environment[self.nodes[name]] for name in part.outputs)
            single = len(results) == 1 and not tuples
            part.graph.output(results[0] if single else results)

    def _copy(
        self, node: Node, part: Partition, own_names: bool, paths: dict[str, str] | None
    ) -> None:
        target = node.target
        if node.op == "call_module":
            target = str(node.target).replace(".", "_")
            part.targets[target] = _member(self.module, node.target)
            if paths is not None:
                paths[f"{part.submod_name}.{target}"] = str(node.target)
        made = part.graph.create_node(
            node.op,
            target,
            map_arg(node.args, lambda n: part.environment[n]),
            map_arg(node.kwargs, lambda n: part.environment[n]),
            node.name if own_names else None,
            node.type,
        )
        made.meta = node.meta.copy()
        part.environment[node] = made

    def whole(self, order: list[str], interleaved: bool, tuples: bool) -> GraphModule:
        """The module that calls them.

        interleaved: a submodule is called where the last of its inputs is there, in the order of
        the nodes.
        """
        graph, known, members = Graph(), {}, {}

        def outside(node: Node) -> None:
            if node.op == "placeholder":
                known[node.name] = graph.placeholder(str(node.target), node.type, *node.args)
            else:
                known[node.name] = graph.get_attr(str(node.target))
                members[node.target] = _member(self.module, node.target)
            known[node.name].meta = node.meta.copy()

        def call(name: str) -> None:
            part = self.partitions[name]
            members[part.submod_name] = GraphModule(part.targets, part.graph)
            made = graph.call_module(part.submod_name, tuple(known[n] for n in part.inputs))
            if len(part.outputs) > 1 or (tuples and part.outputs):
                for number, output in enumerate(part.outputs):
                    known[output] = Proxy(made)[number].node
            elif part.outputs:
                known[next(iter(part.outputs))] = made

        for node in self.nodes.values():
            if node.op in ("placeholder", "get_attr"):
                outside(node)
        if interleaved:
            order = self._by_nodes(order)
        for name in order:
            call(name)
        for node in self.nodes.values():
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: known[n.name])
                graph.output(result, node.type).meta = node.meta.copy()
        return GraphModule(members, graph)

    def _by_nodes(self, order: list[str]) -> list[str]:
        """The same order as far as it has to be, else that of the partitions' first nodes."""
        first = list(self.partitions)
        done: list[str] = []
        while len(done) < len(order):
            done.append(
                next(
                    name
                    for name in first
                    if name not in done and set(self.partitions[name].dependencies) <= set(done)
                )
            )
        return done


def split_module(
    m: GraphModule,
    root_m: Module,
    split_callback: Callable[[Node], int],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False,
    keep_original_node_name: bool | None = False,
    keep_original_input_name: bool = True,
    *,
    partition_affix: str | None = None,
    tuple_return: bool = False,
) -> GraphModule:
    """A module that calls a submodule `submod_NAME` for each name that split_callback gives.

    split_callback: a number or text for each node that calls something. root_m: not read; the
    module has its members. qualname_map: is filled with the paths that submodules had, by their new
    ones. keep_original_order: submodules in the order of their first nodes.
    keep_original_node_name: nodes have the names that they had. keep_original_input_name: so have
    inputs of submodules, else they are arg_0 and so on. partition_affix: a text before NAME.
    tuple_return: submodules give tuples always. RuntimeError where submodules would need each
    other's results.
    """
    splitter = _Splitter(m, split_callback, partition_affix)
    order = splitter.sorted()
    splitter.fill(
        bool(keep_original_node_name), keep_original_input_name, tuple_return, qualname_map
    )
    return splitter.whole(order, bool(keep_original_order), tuple_return)
