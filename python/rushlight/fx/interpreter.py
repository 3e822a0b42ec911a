"""Running a graph node by node, and making another graph of it the same way."""

from __future__ import annotations

from collections.abc import Iterator

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, map_arg
from rushlight.fx.proxy import Proxy, Tracer


class Interpreter:
    """Runs a GraphModule; subclasses change what a kind of node does."""

    def __init__(
        self,
        module: GraphModule,
        garbage_collect_values: bool = True,
        graph: Graph | None = None,
    ) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph = graph if graph is not None else module.graph
        self.garbage_collect_values = garbage_collect_values
        self.env: dict[Node, object] = {}
        self._ended: dict[Node, list[Node]] = {}
        seen: set[Node] = set()
        for node in reversed(self.graph.nodes):
            for source in node.all_input_nodes:
                if source not in seen:
                    seen.add(source)
                    self._ended.setdefault(node, []).append(source)

    def run(
        self,
        *args: object,
        initial_env: dict[Node, object] | None = None,
        enable_io_processing: bool = True,
    ) -> object:
        """What the graph gives for these inputs."""
        self.env = dict(initial_env or {})
        self.args_iter: Iterator = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            self.env[node] = self.run_node(node)
            if node.op == "output":
                return self.env[node]
            if self.garbage_collect_values:
                for ended in self._ended.get(node, ()):
                    self.env.pop(ended, None)
        return None

    def run_node(self, n: Node) -> object:
        """What a node gives."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple, dict]:
        """A node's arguments with values for nodes."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: object, n: Node) -> object:
        """The structure with values for nodes."""

        def value(node: Node) -> object:
            if node not in self.env:
                raise RuntimeError(f"Node {n} referenced nonexistent value {node}!")
            return self.env[node]

        return map_arg(args, value)

    def fetch_attr(self, target: str) -> object:
        """The attribute at a path of the module."""
        found: object = self.module
        for name in target.split("."):
            if not hasattr(found, name):
                raise RuntimeError(f"Node referenced nonexistent target {target}")
            found = getattr(found, name)
        return found

    def placeholder(self, target: str, args: tuple, kwargs: dict) -> object:
        """The next input."""
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target: str, args: tuple, kwargs: dict) -> object:
        """An attribute."""
        return self.fetch_attr(target)

    def call_function(self, target, args: tuple, kwargs: dict) -> object:
        """A function's result."""
        return target(*args, **kwargs)

    def call_method(self, target: str, args: tuple, kwargs: dict) -> object:
        """A method's result."""
        this, *rest = args
        return getattr(this, target)(*rest, **kwargs)

    def call_module(self, target: str, args: tuple, kwargs: dict) -> object:
        """A submodule's result."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: str, args: tuple, kwargs: dict) -> object:
        """The result."""
        return args[0]


class _TransformerTracer(Tracer):
    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph

    def _leaf(self, item: object) -> object:
        return item.node if isinstance(item, Proxy) else item


class Transformer(Interpreter):
    """Runs a graph on stand-ins, which gives another one; subclasses change kinds of nodes."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.tracer = _TransformerTracer(self.new_graph)
        self.tracer.root = module

    def placeholder(self, target: str, args: tuple, kwargs: dict) -> Proxy:
        """An input."""
        default = (args[0],) if args else ()
        return Proxy(self.new_graph.create_node("placeholder", target, default), self.tracer)

    def get_attr(self, target: str, args: tuple, kwargs: dict) -> Proxy:
        """An attribute."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_function(self, target, args: tuple, kwargs: dict) -> object:
        """A function's call."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_method(self, target: str, args: tuple, kwargs: dict) -> object:
        """A method's call."""
        return self.tracer.create_proxy("call_method", target, args, kwargs)

    def call_module(self, target: str, args: tuple, kwargs: dict) -> object:
        """A submodule's call."""
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The new graph as a module."""
        result = super().run()
        if result is not None:
            self.new_graph.output(self.tracer.create_arg(result))
        return GraphModule(self.module, self.new_graph, type(self.module).__name__)
