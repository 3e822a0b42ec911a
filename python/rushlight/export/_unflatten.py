"""The parts of an exported graph by the modules that were called: what `unflatten` builds of."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import Any

from rushlight import fx
from rushlight.export.exported_program import ExportedProgram
from rushlight.export.graph_signature import InputKind, TensorArgument
from rushlight.export.module_call import ROOT, ModuleCallSignature
from rushlight.fx import _pytree as fx_pytree
from rushlight.fx.node import Node, map_arg
from rushlight.fx.proxy import Proxy
from rushlight.utils import _pytree as pytree

Frame = tuple[str, str, str]  # of a call: its key, the module's path, its class


def _frames(node: Node) -> list[Frame]:
    """The calls that a node was made in, but for that of the root."""
    stack = node.meta.get("nn_module_stack", {})
    return [(key, path, kind) for key, (path, kind) in stack.items() if path]


class Part:
    """One call of a module: its graph, what it takes and gives, and the calls within it.

    inputs, outputs: nodes of the exported graph. children: parts by the path that the call has
    within this one. state: names of the tensors that the graph reads, by the attribute's path.
    """

    def __init__(self, path: str, kind: str) -> None:
        self.path, self.kind = path, kind
        self.graph = fx.Graph()
        self.inputs: list[Node] = []
        self.outputs: list[Node] = []
        self.children: dict[str, Part] = {}
        self.state: dict[str, str] = {}
        self.specs: dict[str, Any] = {}
        self.signature: ModuleCallSignature | None = None

    def shape(self) -> tuple:
        """What two parts have in common that are the same but for names."""
        numbers = {node: number for number, node in enumerate(self.graph.nodes)}

        def numbered(value: Any) -> Any:
            return map_arg(value, lambda node: ("node", numbers[node]))

        rows = []
        for node in self.graph.nodes:
            target = node.target
            if node.op == "placeholder":
                target = ""
            elif node.op == "call_module":
                target = self.children[target].shape()
            rows.append((node.op, target, repr(numbered(node.args)), repr(numbered(node.kwargs))))
        return self.path, tuple(rows)


class Builder:
    """Divides the graph of a program."""

    def __init__(self, program: ExportedProgram) -> None:
        self._program = program
        self._state: dict[Node, list[str]] = {}  # the names that tensors have
        self._arguments: list[Node] = []
        self._nodes: list[Node] = []
        self._signatures = {
            entry.fqn: entry.signature
            for entry in program.module_call_graph
            if entry.fqn and entry.signature is not None
        }
        specs = iter(program.graph_signature.input_specs)
        loose = []  # sizes, which belong to no module
        for node in program.graph.nodes:
            if node.op == "placeholder":
                spec = next(specs)
                if spec.kind is InputKind.USER_INPUT:
                    self._arguments.append(node)
                else:
                    aliases = [a for a, name in program._aliases.items() if name == spec.target]
                    self._state[node] = [str(spec.target), *aliases]
            elif node.op == "output":
                self._output = node
            elif "nn_module_stack" not in node.meta and self._is_loose(node, loose):
                loose.append(node)
            else:
                self._nodes.append(node)
        self._nodes = loose + self._nodes

    def _is_loose(self, node: Node, loose: list[Node]) -> bool:
        return all(source in loose or source.op == "placeholder" for source in node.all_input_nodes)

    def root(self) -> Part:
        """The call that was exported."""
        part = Part("", "")
        known = {node: part.graph.placeholder(node.name) for node in self._arguments}
        for node in self._arguments:
            known[node].meta = node.meta.copy()
        self._read_state(part, self._nodes, 0, known, self._output.all_input_nodes)
        self._fill(part, self._nodes, 0, known)
        part.graph.output(map_arg(self._output.args[0], lambda n: known[n]))
        return part

    # ---- One call ------------------------------------------------------------------------------

    def _groups(self, nodes: list[Node], depth: int) -> Iterator[tuple[Frame | None, list[Node]]]:
        """The nodes of the call itself, one at a time, and those of each call within it."""
        at, group = None, []
        for node in nodes:
            frames = _frames(node)
            frame = frames[depth] if len(frames) > depth else None
            if group and (frame is None or at is None or frame[0] != at[0]):
                yield at, group
                group = []
            at = frame
            group.append(node)
        if group:
            yield at, group

    def _needs(self, nodes: list[Node], depth: int, path: str) -> dict[Node, None]:
        """What the nodes of a call take from outside, but for the state of its module."""
        inside, found = set(nodes), {}
        for frame, group in self._groups(nodes, depth):
            taken: Iterable[Node]
            if frame is None:
                taken = [source for node in group for source in node.all_input_nodes]
            else:
                taken = self._needs(group, depth + 1, frame[1])
            found.update(dict.fromkeys(source for source in taken if source not in inside))
        return {node: None for node in found if not self._owns(path, node)}

    def _owns(self, path: str, node: Node) -> str | None:
        """The name of what a node reads, where it is of the module at the path or within it."""
        for name in self._state.get(node, ()):
            if not path or name.startswith(f"{path}."):
                return name
        return None

    def _read_state(
        self, part: Part, nodes: list[Node], depth: int, known: dict, results: Iterable[Node]
    ) -> None:
        """Adds readings of what the call's own nodes, and calls within it, take of its state."""
        wanted = dict.fromkeys(results)
        for frame, group in self._groups(nodes, depth):
            if frame is None:
                wanted.update(dict.fromkeys(s for node in group for s in node.all_input_nodes))
            else:
                wanted.update(self._needs(group, depth + 1, frame[1]))
        for node in self._state:  # in the order of the program
            name = self._owns(part.path, node)
            if node in wanted and name is not None and node not in known:
                local = name[len(part.path) + 1 :] if part.path else name
                known[node] = part.graph.get_attr(local)
                known[node].meta = node.meta.copy()
                part.state[local] = name

    def _fill(self, part: Part, nodes: list[Node], depth: int, known: dict[Node, Node]) -> None:
        counts: dict[str, int] = {}
        for frame, group in self._groups(nodes, depth):
            if frame is None:
                for node in group:
                    known[node] = part.graph.node_copy(node, lambda n: known[n])
                continue
            inner = self._part(frame, group, depth + 1)
            local = frame[1][len(part.path) + 1 :] if part.path else frame[1]
            name = self._name(part, local, inner, counts)
            self._call(part, name, inner, known)

    @staticmethod
    def _name(part: Part, local: str, inner: Part, counts: dict[str, int]) -> str:
        """How the call is called: as an earlier one that is the same, or with a number."""
        number = counts.get(local, 0)
        counts[local] = number + 1
        for other in range(number):
            name = f"{local}@{other}" if other else local
            if name in part.children and part.children[name].shape() == inner.shape():
                return name
        name = f"{local}@{number}" if number else local
        part.children[name] = inner
        return name

    def _part(self, frame: Frame, nodes: list[Node], depth: int) -> Part:
        key, path, kind = frame
        part = Part(path, kind)
        part.signature = self._signatures.get(key.removeprefix(ROOT))
        inside, order = set(nodes), {n: i for i, n in enumerate(self._program.graph.nodes)}
        part.inputs = sorted(self._needs(nodes, depth, path), key=order.__getitem__)
        part.outputs = [n for n in nodes if any(user not in inside for user in n.users)]
        known: dict[Node, Node] = {}
        if part.signature is not None:
            parameters = self._parameters(part)
            self._read_state(part, nodes, depth, known, ())
            self._open_arguments(part, parameters, known)
        else:
            for node in part.inputs:
                known[node] = part.graph.placeholder(node.name)
                known[node].meta = node.meta.copy()
            self._read_state(part, nodes, depth, known, ())
        self._fill(part, nodes, depth, known)
        if part.signature is not None:
            self._close_results(part, known)
        else:
            results = [known[node] for node in part.outputs]
            part.graph.output(results[0] if len(results) == 1 else results)
        return part

    def _call(self, part: Part, name: str, inner: Part, known: dict[Node, Node]) -> None:
        if inner.signature is not None:
            self._call_as_written(part, name, inner, known)
            return
        made = part.graph.call_module(name, tuple(known[node] for node in inner.inputs))
        if len(inner.outputs) == 1:
            known[inner.outputs[0]] = made
            made.meta = inner.outputs[0].meta.copy()
            return
        for number, node in enumerate(inner.outputs):
            known[node] = Proxy(made)[number].node
            known[node].meta = node.meta.copy()

    # ---- Calls as they were written --------------------------------------------------------------

    def _node(self, name: str) -> Node:
        return next(node for node in self._program.graph.nodes if node.name == name)

    @staticmethod
    def _spec(part: Part, spec: Any) -> Node:
        name = f"_spec_{len(part.specs)}"
        part.specs[name] = spec
        return part.graph.get_attr(name)

    @staticmethod
    def _parameters(part: Part) -> tuple[tuple[Node, ...], dict[str, Node]]:
        """The parameters by position and by name, as the module has them."""
        args_spec, kwargs_spec = part.signature.in_spec.children()
        names = [f"_positional_arg_{number}" for number in range(args_spec.num_children)]
        args = tuple(map(part.graph.placeholder, names))
        return args, {name: part.graph.placeholder(name) for name in kwargs_spec.context}

    def _open_arguments(self, part: Part, parameters: tuple, known: dict[Node, Node]) -> None:
        """Takes the parameters apart into the leaves of the call."""
        signature, graph = part.signature, part.graph
        leaves = graph.call_function(
            fx_pytree.tree_flatten_spec, (parameters, self._spec(part, signature.in_spec))
        )
        for number, arg in enumerate(signature.inputs):
            tensor = isinstance(arg, TensorArgument)
            name = arg.name if tensor else f"_constant_{number}"
            leaf = graph.call_function(operator.getitem, (leaves, number), name=name)
            if tensor:
                known[self._node(arg.name)] = leaf
        missing = [node.name for node in part.inputs if node not in known]
        if missing:
            raise NotImplementedError(
                f"unflatten: module '{part.path}' was exported with its signature, but takes "
                f"{missing} of its surroundings beside its arguments"
            )

    def _close_results(self, part: Part, known: dict[Node, Node]) -> None:
        signature = part.signature
        leaves = tuple(self._leaf(arg, known) for arg in signature.outputs)
        made = part.graph.call_function(
            pytree.tree_unflatten, (leaves, self._spec(part, signature.out_spec))
        )
        part.graph.output(made)

    def _leaf(self, arg: Any, known: dict[Node, Node]) -> Any:
        return known[self._node(arg.name)] if isinstance(arg, TensorArgument) else arg.value

    def _call_as_written(self, part: Part, name: str, inner: Part, known: dict) -> None:
        signature, graph = inner.signature, part.graph
        args_spec, kwargs_spec = signature.in_spec.children()
        leaves = [self._leaf(arg, known) for arg in signature.inputs]
        whole = graph.call_function(
            pytree.tree_unflatten, (leaves, self._spec(part, signature.in_spec))
        )
        args, kwargs = Proxy(whole)[0], Proxy(whole)[1]
        made = graph.call_module(
            name,
            tuple(args[number].node for number in range(args_spec.num_children)),
            {key: kwargs[key].node for key in kwargs_spec.context},
        )
        results = graph.call_function(
            fx_pytree.tree_flatten_spec, (made, self._spec(part, signature.out_spec))
        )
        for number, arg in enumerate(signature.outputs):
            item = Proxy(results)[number].node
            if isinstance(arg, TensorArgument):
                known[self._node(arg.name)] = item
