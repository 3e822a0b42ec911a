"""One run of a function as an fx graph of the functions of the library that it calls.

A function mode writes down calls as the program makes them, F.softmax as such, not the operators
that it is made of. Tensors are known by their objects. Sizes are followed (see _sizes); whatever
else Python reads of a tensor is what it was in this run, and reading values warns.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any

import rushlight as torch
from rushlight import fx
from rushlight.fx.node import Node
from rushlight.jit._sizes import TracedSize, traced_size
from rushlight.nn.modules.module import Module
from rushlight.overrides import TorchFunctionMode
from rushlight.utils._pytree import tree_map


class TracerWarning(Warning):
    """What tracing warns of: a trace that may not do what the program does for other inputs."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Has Python pass over these warnings where the library itself gives them."""
        warnings.filterwarnings("ignore", category=TracerWarning, module="rushlight.(?!jit)")


# Which kind of Python's value a method makes of a tensor's.
_READS = {
    "__bool__": "boolean", "__int__": "integer", "__index__": "index", "__float__": "float",
    "__complex__": "number", "item": "number", "tolist": "list", "numpy": "NumPy array",
    "__contains__": "boolean", "is_nonzero": "boolean",
}  # fmt: skip
_OPERATORS = {
    "__getitem__": operator.getitem, "__setitem__": operator.setitem,
    "__delitem__": operator.delitem,
}  # fmt: skip


def _refuse_input(value: Any) -> None:
    raise RuntimeError(
        f"Type '{type(value).__name__}' cannot be traced. Only Tensors and (possibly nested) "
        "Lists, Dicts, and Tuples of Tensors can be traced"
    )


class Recorder(TorchFunctionMode):
    """Writes calls into `graph`; the attributes that it reads are in `constants` or of `root`."""

    def __init__(self, root: Module | None) -> None:
        super().__init__()
        self.graph = fx.Graph()
        self.constants: dict[str, torch.Tensor] = {}
        self.is_open = True
        # By identity, with the tensor, which keeps its object and so its identity.
        self._nodes: dict[int, tuple[torch.Tensor, Node]] = {}
        self._attributes: dict[int, str] = {}
        if root is not None:
            members = [*root.named_parameters(), *root.named_buffers()]
            self._attributes = {id(tensor): name for name, tensor in reversed(members)}

    # ---- Inputs and results --------------------------------------------------------------------

    def input(self, name: str, value: Any) -> None:
        """Adds an input, and the reading of the tensors in it where it is a structure."""
        self._open(self.graph.placeholder(name), value)

    def _open(self, node: Node, value: Any) -> None:
        if isinstance(value, torch.Tensor):
            self._nodes[id(value)] = (value, node)
            return
        if isinstance(value, dict):
            items = value.items()
        elif isinstance(value, (list, tuple)):
            items = enumerate(value)
        else:
            _refuse_input(value)
        for key, item in items:
            self._open(self.graph.call_function(operator.getitem, (node, key)), item)

    def output(self, value: Any, strict: bool) -> None:
        """Ends the graph with this result."""
        self._check_output(value, strict)
        self.graph.output(self.argument(value))
        self.is_open = False
        self.graph.eliminate_dead_code()
        self.graph.lint()

    def _check_output(self, value: Any, strict: bool) -> None:
        if isinstance(value, (list, dict)) and strict:
            kind = type(value).__name__
            text = (
                f"Encountering a {kind} at the output of the tracer might cause the trace to be "
                "incorrect, this is only valid if the container structure does not change based on "
                "the module's inputs. Consider using a constant container instead (e.g. for `list`,"
                " use a `tuple` instead. for `dict`, use a `NamedTuple` instead). If you absolutely"
                " need this and know the side effects, pass strict=False to trace() to allow this "
                "behavior."
            )
            if kind == "dict":
                raise RuntimeError(text)
            warnings.warn(text, TracerWarning, stacklevel=5)
        if value is None:
            raise RuntimeError(
                "The traced function didn't return any values! Side-effects are not captured in "
                "traces, so it would be a no-op."
            )
        items = value.values() if isinstance(value, dict) else value
        if isinstance(value, (list, tuple, dict)):
            for item in items:
                self._check_output(item, strict)
        elif not isinstance(value, torch.Tensor):
            raise RuntimeError(
                "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output "
                "from traced functions"
            )

    # ---- Calls ---------------------------------------------------------------------------------

    def argument(self, value: Any) -> Any:
        """A value with nodes in the place of tensors and sizes."""
        if isinstance(value, torch.Tensor):
            return self._node(value)
        if isinstance(value, TracedSize):
            return value._node
        if isinstance(value, torch.Size):
            return tuple(self.argument(item) for item in value)
        if isinstance(value, slice):
            return slice(*map(self.argument, (value.start, value.stop, value.step)))
        if isinstance(value, (list, tuple, dict)):
            return tree_map(lambda leaf: self.argument(leaf), value) if value else value
        return value

    def _node(self, tensor: torch.Tensor) -> Node:
        if id(tensor) not in self._nodes:
            self._nodes[id(tensor)] = (tensor, self._constant(tensor))
        return self._nodes[id(tensor)][1]

    def _constant(self, tensor: torch.Tensor) -> Node:
        """The reading of a tensor that no call of the run gave."""
        with torch._C.DisableTorchFunction():
            made = tensor.requires_grad and tensor.grad_fn is not None
        if made:
            raise RuntimeError(
                "Cannot insert a Tensor that requires grad as a constant. Consider making it a "
                "parameter or input, or detaching the gradient"
            )
        name = self._attributes.get(id(tensor))
        if name is None:
            name = f"_constant{len(self.constants)}"
            self.constants[name] = tensor
        return self.graph.get_attr(name)

    def __torch_function__(
        self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        owner, name = getattr(func, "__self__", None), getattr(func, "__name__", "")
        if name == "__get__" and type(owner).__name__ == "tensor_property":
            return self._property(owner.__name__, func, args)
        plain = tree_map(lambda leaf: int(leaf) if type(leaf) is TracedSize else leaf, args)
        if name == "size" and getattr(torch.Tensor, name, None) is func:
            return self._size(func(*plain, **kwargs), args[0], *args[1:], **kwargs)
        if name in _READS and getattr(torch.Tensor, name, None) is func:
            self._warn(name)
            return func(*plain, **kwargs)
        named = tree_map(lambda leaf: int(leaf) if type(leaf) is TracedSize else leaf, kwargs)
        given, given_named = self.argument(args), self.argument(kwargs)
        result = func(*plain, **named)
        if name == "__iter__":
            items = [args[0][number] for number in range(len(args[0]))]
            for number, item in enumerate(items):
                self._open(self.graph.call_function(operator.getitem, (given[0], number)), item)
            return iter(items)
        if not _has_tensor(result) and name not in ("__setitem__", "__delitem__"):
            return result
        node = self._call(func, name, args, given, given_named)
        if not isinstance(result, torch.Tensor):
            if result is not None:
                self._open_result(node, result)
            return result
        self._nodes[id(result)] = (result, node)
        return result

    def _call(self, func: Callable, name: str, tensors: tuple, args: tuple, kwargs: dict) -> Node:
        if name in _OPERATORS:
            return self.graph.call_function(_OPERATORS[name], args, kwargs)
        if getattr(torch.Tensor, name, None) is func:
            if not isinstance(tensors[0], torch.Tensor):  # 1 + x
                return self.graph.call_function(getattr(torch, name), args, kwargs)
            return self.graph.call_method(name, args, kwargs)
        return self.graph.call_function(func, args, kwargs)

    def _open_result(self, node: Node, result: Any) -> None:
        """The tensors in a result that is a structure."""
        items = result.items() if isinstance(result, dict) else enumerate(result)
        for key, item in items:
            if isinstance(item, torch.Tensor):
                part = self.graph.call_function(operator.getitem, (node, key))
                self._nodes[id(item)] = (item, part)
            elif isinstance(item, (list, tuple, dict)):
                part = self.graph.call_function(operator.getitem, (node, key))
                self._open_result(part, item)

    def _property(self, name: str, func: Callable, args: tuple) -> Any:
        value = func(*args)
        if name == "shape":
            return self._size(value, args[0])
        if isinstance(value, torch.Tensor):
            node = self.graph.call_function(getattr, (self._node(args[0]), name))
            self._nodes[id(value)] = (value, node)
        return value

    def _size(self, value: Any, tensor: torch.Tensor, dim: Any = None) -> Any:
        """Sizes as numbers that know where they come from."""
        if id(tensor) not in self._nodes:
            return value  # of a constant
        node = self._node(tensor)
        if dim is not None:
            return traced_size(value, self.graph.call_method("size", (node, int(dim))), self)
        made = [
            traced_size(size, self.graph.call_method("size", (node, number)), self)
            for number, size in enumerate(value)
        ]
        return torch.Size(made)

    def _warn(self, name: str) -> None:
        warnings.warn(
            f"Converting a tensor to a Python {_READS[name]} might cause the trace to be incorrect."
            " We can't record the data flow of Python values, so this value will be treated as a "
            "constant in the future. This means that the trace might not generalize to other "
            "inputs!",
            TracerWarning,
            stacklevel=4,
        )


def _has_tensor(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return True
    if isinstance(value, dict):
        return any(map(_has_tensor, value.values()))
    return isinstance(value, (list, tuple)) and any(map(_has_tensor, value))
