"""Where nodes come from: what tracing writes into the meta of the nodes that it makes."""

from __future__ import annotations

import contextlib
import copy
import enum
import functools
import linecache
import os
import sys
import threading
import traceback
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rushlight.fx.graph import Graph
    from rushlight.fx.node import Node

__all__ = [
    "NodeSource", "NodeSourceAction", "annotate", "annotate_fn", "format_stack", "get_current_meta",
    "get_current_replay_node", "get_graph_provenance_json", "has_preserved_node_meta",
    "preserve_node_meta", "reset_grad_fn_seq_nr", "set_current_meta", "set_current_replay_node",
    "set_grad_fn_seq_nr", "set_stack_trace",
]  # fmt: skip

# What a node that is made of another takes over from it.
_COPIED = ("nn_module_stack", "source_fn_stack", "original_aten", "custom", "quantization_tag")


class _State(threading.local):
    def __init__(self) -> None:
        self.meta: dict[str, Any] = {}
        self.preserve = False
        self.replayed: Node | None = None


_state = _State()


class NodeSourceAction(enum.Enum):
    """What a pass did: it made a node of another, or put it in the place of another."""

    CREATE = "create"
    REPLACE = "replace"


class NodeSource:
    """Which node of which graph a node was made of, by which pass; `from_node` goes on from there.

    NodeInfo: the name, target and graph of the node.
    """

    class NodeInfo:
        """A node as it was."""

        def __init__(self, name: str, target: str, graph_id: int) -> None:
            self.name = name
            self.target = target
            self.graph_id = graph_id

    def __init__(
        self,
        node: Node | None,
        pass_name: str = "",
        action: NodeSourceAction | list[NodeSourceAction] | None = None,
    ) -> None:
        self.pass_name = pass_name
        if action is None:
            action = []
        self.action = [action] if isinstance(action, NodeSourceAction) else list(action)
        self.node_info = None
        self.from_node: list[NodeSource] = []
        if node is not None:
            self.node_info = self.NodeInfo(node.name, str(node.target), id(node.graph))
            self.from_node = copy.copy(node.meta.get("from_node", []))

    @property
    def name(self) -> str:
        """The name of the node, or nothing."""
        return self.node_info.name if self.node_info else ""

    @property
    def target(self) -> str:
        """The target of the node, as text."""
        return self.node_info.target if self.node_info else ""

    @property
    def graph_id(self) -> int:
        """The identity of the graph; -1 where there is none."""
        return self.node_info.graph_id if self.node_info else -1

    def _actions(self) -> str:
        return "+".join(action.name.lower() for action in self.action)

    def print_readable(self, indent: int = 0) -> str:
        """The node and those that it goes back to, a line each."""
        if indent > 9:
            return ""
        text = (
            f"{' ' * indent}(name={self.name}, pass_name={self.pass_name}, "
            f"action={self._actions()}, graph_id={self.graph_id})\n"
        )
        return text + "".join(source.print_readable(indent + 4) for source in self.from_node)

    def __repr__(self) -> str:
        return self.print_readable()

    def to_dict(self) -> dict[str, Any]:
        """The same as data."""
        return {
            "name": self.name,
            "target": self.target,
            "graph_id": self.graph_id,
            "pass_name": self.pass_name,
            "action": self._actions(),
            "from_node": [source.to_dict() for source in self.from_node],
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeSource) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.name, self.target, self.graph_id, self.pass_name))


_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def is_of_program(frame: types.FrameType) -> bool:
    """Whether a frame runs code of the program and not of the library."""
    return not frame.f_code.co_filename.startswith((_PACKAGE, "<"))


def program_stack(
    keep: Callable[[types.FrameType], bool], end: types.CodeType | None
) -> str | None:
    """The frames that `keep` wants, as the text of a traceback, up to one that runs `end`."""
    lines: list[str] = []
    frame = sys._getframe(1)
    while frame is not None and frame.f_code is not end:
        if keep(frame):
            file, number = frame.f_code.co_filename, frame.f_lineno
            code = linecache.getline(file, number).strip()
            lines.append(f'File "{file}", line {number}, in {frame.f_code.co_name}\n    {code}')
        frame = frame.f_back
    return "\n  ".join(reversed(lines)) or None


@contextlib.contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """A block in which new nodes take over the meta that is set now."""
    before, meta = _state.preserve, _state.meta
    _state.preserve = enable
    _state.meta = meta.copy()
    try:
        yield
    finally:
        _state.preserve, _state.meta = before, meta


def has_preserved_node_meta() -> bool:
    """Whether new nodes take over the meta that is set now."""
    return _state.preserve


def get_current_meta() -> dict[str, Any]:
    """The meta that new nodes take over."""
    return _state.meta


def _copied_meta() -> dict[str, Any]:
    return dict(_state.meta)


@contextlib.contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """A block in which new nodes have these items in `meta["custom"]`."""
    meta = _state.meta
    had, before = "custom" in meta, meta.get("custom", {})
    meta["custom"] = {**before, **annotation_dict}
    try:
        yield
    finally:
        if had:
            meta["custom"] = before
        else:
            del meta["custom"]


def annotate_fn(annotation_dict: dict[str, Any]) -> Callable:
    """Decorates a function: it runs in a block of `annotate`."""

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with annotate(annotation_dict):
                return function(*args, **kwargs)

        return wrapper

    return decorate


def set_stack_trace(stack: list[str]) -> None:
    """Sets the stack trace of new nodes, where meta is taken over."""
    if _state.preserve and stack:
        _state.meta["stack_trace"] = "".join(stack)


def format_stack() -> list[str]:
    """The stack trace that was set, or the one of the caller."""
    if _state.preserve:
        return [_state.meta.get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])


def set_grad_fn_seq_nr(seq_nr: int) -> None:
    """Notes the number of a function of backward, where meta is taken over."""
    if _state.preserve:
        meta = _state.meta
        meta["grad_fn_seq_nr"] = [*meta.get("grad_fn_seq_nr", []), seq_nr]
        meta["in_grad_fn"] = meta.get("in_grad_fn", 0) + 1


def reset_grad_fn_seq_nr() -> None:
    """Takes back what the last `set_grad_fn_seq_nr` noted."""
    meta = _state.meta
    if not _state.preserve or "in_grad_fn" not in meta:
        return
    if meta["in_grad_fn"] == 1:
        del meta["grad_fn_seq_nr"], meta["in_grad_fn"]
    else:
        meta["in_grad_fn"] -= 1
        meta["grad_fn_seq_nr"] = meta["grad_fn_seq_nr"][:-1]


@contextlib.contextmanager
def set_current_meta(node: Node, pass_name: str = "") -> Iterator[None]:
    """A block in which new nodes are made of `node`, where meta is taken over."""
    if not _state.preserve or not node.meta:
        yield
        return
    before = _state.meta
    _state.meta = {**before, **{key: node.meta[key] for key in _COPIED if key in node.meta}}
    if node.stack_trace:
        _state.meta["stack_trace"] = node.stack_trace
    _state.meta["from_node"] = [NodeSource(node, pass_name, NodeSourceAction.CREATE)]
    try:
        yield
    finally:
        _state.meta = before


@contextlib.contextmanager
def set_current_replay_node(node: Node | None) -> Iterator[None]:
    """A block in which `node` is the one that is run again."""
    before, _state.replayed = _state.replayed, node
    try:
        yield
    finally:
        _state.replayed = before


def get_current_replay_node() -> Node | None:
    """The node that is run again now."""
    return _state.replayed


def get_graph_provenance_json(graph: Graph) -> dict[str, Any]:
    """Where the calls of a graph come from, as data by the names of nodes."""
    return {
        node.name: [source.to_dict() for source in node.meta.get("from_node", [])]
        for node in graph.nodes
        if node.op == "call_function"
    }
