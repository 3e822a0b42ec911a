"""Running a graph node by node, and making another graph of it the same way."""

from __future__ import annotations

from collections.abc import Iterator

from rushlight.fx import traceback
from rushlight.fx._symbolic_trace import Tracer
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, map_arg
from rushlight.fx.proxy import Proxy
from rushlight.nn.modules.module import Module


def _add_node(error: Exception, node: Node) -> None:
    """Has the text of an error say which node it is of."""
    text = f"While executing {node.format_node()}"
    if node.stack_trace:
        text += f"\nOriginal traceback:\n{node.stack_trace}"
    if error.args and not isinstance(error.args[0], str) or isinstance(error, KeyError):
        return  # of another form
    text = f"{error.args[0]}\n\n{text}" if error.args else text
    error.args = (text, *error.args[1:])


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
        self.name = "Interpreter"
        self.env: dict[Node, object] = {}
        self.extra_traceback = True  # errors name the node that they are of
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        seen: set[Node] = set()
        for node in reversed(self.graph.nodes):
            for source in node.all_input_nodes:
                if source not in seen:
                    seen.add(source)
                    self.user_to_last_uses.setdefault(node, []).append(source)

    def run(
        self,
        *args: object,
        initial_env: dict[Node, object] | None = None,
        enable_io_processing: bool = True,
    ) -> object:
        """What the graph gives for these inputs.

        initial_env: values of nodes, which are not run. enable_io_processing: arguments and result
        are those of the graph's code, which may be structures; else those of its nodes.
        """
        self.env = dict(initial_env or {})
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter: Iterator = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    _add_node(error, node)
                raise
            if self.garbage_collect_values:
                for ended in self.user_to_last_uses.get(node, ()):
                    self.env.pop(ended, None)
            if node.op == "output":
                result = self.env[node]
                return self.graph.process_outputs(result) if enable_io_processing else result
        return None

    def boxed_run(self, args_list: list) -> object:
        """As `run` of the arguments in a list, which is emptied, so that they can be freed."""
        values = list(args_list)
        args_list.clear()
        inputs = [node for node in self.graph.nodes if node.op == "placeholder"]
        env = dict(zip(inputs, values, strict=True))
        del values
        return self.run(initial_env=env)

    def run_node(self, n: Node) -> object:
        """What a node gives."""
        with traceback.set_current_meta(n, self.name):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple, dict]:
        """A node's arguments with values for nodes."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: object, n: Node) -> object:
        """The structure with values for nodes."""

        def value(node: Node) -> object:
            if node not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose "
                    "such issues"
                )
            return self.env[node]

        return map_arg(args, value)

    def fetch_attr(self, target: str) -> object:
        """The attribute at a path of the module."""
        found: object = self.module
        parts = target.split(".")
        for number, name in enumerate(parts):
            if not hasattr(found, name):
                raise RuntimeError(
                    f"Node referenced nonexistent target {'.'.join(parts[: number + 1])}"
                )
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


class TransformerTracer(Tracer):
    """Makes the nodes of a graph that a Transformer makes of another."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Every module: what called it called it whole."""
        return True


class Transformer(Interpreter):
    """Runs a graph on stand-ins, which gives another one; subclasses change kinds of nodes."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        self.name = "Transformer"
        self.tracer = TransformerTracer(self.new_graph)
        self.tracer.root = module

    def placeholder(self, target: str, args: tuple, kwargs: dict) -> Proxy:
        """An input."""
        default = (args[0],) if args else ()
        return Proxy(self.new_graph.placeholder(target, None, *default), self.tracer)

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
        with traceback.preserve_node_meta():
            result = super().run(enable_io_processing=False)
        if result is not None:
            old = self.graph.output_node()
            made = self.new_graph.output(self.tracer.create_arg(result), old.type)
            made.meta.update(old.meta)
        return GraphModule(self.module, self.new_graph)
