"""Structures of trees, and their text form."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from rushlight.utils import _pytree_nodes as _nodes
from rushlight.utils._pytree_nodes import STANDARD_DICT_TYPES, _get_node_type, _node_of

DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL = 1


class PyTreeSpec:
    """The structure of a tree: the kind of its root, what beside the children makes a root
    (context), and the structures of the children.
    """

    __slots__ = ("_children", "_context", "num_children", "num_leaves", "num_nodes", "type")

    def __init__(self, type: Any, context: Any, children_specs: list) -> None:
        self.type = type
        self._context = context
        self._children = list(children_specs)
        is_leaf = type is None
        self.num_children = 0 if is_leaf else len(self._children)
        self.num_nodes = 1 + sum(child.num_nodes for child in self._children)
        self.num_leaves = 1 if is_leaf else sum(child.num_leaves for child in self._children)

    def __repr__(self, indent: int = 0) -> str:
        if self.is_leaf():
            return "*"
        head = f"TreeSpec({getattr(self.type, '__name__', self.type)}, {self._context!r}, ["
        inner = indent + 2
        lines = [child.__repr__(inner) for child in self._children]
        return head + (",\n" + " " * inner).join(lines) + "])"

    def __hash__(self) -> int:
        node_type = self.type
        if node_type is None:
            return hash((None, None, ()))
        context = self._context
        if node_type is _nodes.defaultdict:
            context = (context[0], tuple(context[1]))
        elif node_type in STANDARD_DICT_TYPES:
            context = tuple(context)
        elif isinstance(context, list):
            context = str(context)
        return hash((node_type, context, tuple(self._children)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PyTreeSpec):
            return NotImplemented
        return (
            self.type == other.type
            and self._context == other._context
            and self._children == other._children
        )

    @property
    def context(self) -> Any:
        """What beside the children makes a root: the keys of a dict, the size of a deque."""
        return self._context

    @property
    def children_specs(self) -> list:
        """The structures of the children (deprecated: see children)."""
        import warnings

        warnings.warn(
            "`treespec.children_specs` is deprecated. Use `treespec.child(index)` to access a "
            "single child, or `treespec.children()` to get all children.",
            FutureWarning,
            stacklevel=2,
        )
        return self._children

    def is_leaf(self) -> bool:
        """Whether the tree is one leaf."""
        return self.num_nodes == 1 and self.num_leaves == 1

    def children(self) -> list:
        """The structures of the children."""
        return list(self._children)

    def child(self, index: int) -> PyTreeSpec:
        """The structure of one child."""
        return self._children[index]

    def flatten_up_to(self, tree: Any) -> list:
        """The subtrees of `tree` in the places of this structure's leaves."""
        found: list = []
        self._collect(tree, found)
        return found

    def _collect(self, tree: Any, found: list) -> None:
        if self.is_leaf():
            found.append(tree)
            return
        children, context = self._matching(tree)
        if len(children) != self.num_children:
            raise ValueError(
                f"Node arity mismatch; expected {self.num_children}, but got {len(children)}."
            )
        if context != self._context and self.type is not _nodes.deque:
            raise ValueError(
                f"Node context mismatch for custom node type {self.type!r}; expected "
                f"{self._context!r}, but got {context!r}."
            )
        for child, spec in zip(children, self._children, strict=True):
            spec._collect(child, found)

    def _matching(self, tree: Any) -> tuple[list, Any]:
        """The children of a tree whose root must fit this structure's."""
        node_type = _get_node_type(tree)
        both_mappings = self.type in STANDARD_DICT_TYPES and node_type in STANDARD_DICT_TYPES
        if node_type != self.type and not both_mappings:
            raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {type(tree)!r}.")
        if not both_mappings:
            return _node_of(node_type).flatten_fn(tree)
        if len(tree) != self.num_children:
            raise ValueError(
                f"Node arity mismatch; expected {self.num_children}, but got {len(tree)}."
            )
        keys = self._context[1] if self.type is _nodes.defaultdict else self._context
        if set(tree) != set(keys):
            missing = [key for key in keys if key not in tree]
            extra = [key for key in tree if key not in set(keys)]
            text = f"Node keys mismatch; missing key(s): {missing}" if missing else ""
            if extra:
                text += ("; " if text else "Node keys mismatch; ") + f"extra key(s): {extra}"
            raise ValueError(text + ".")
        return [tree[key] for key in keys], self._context

    def unflatten(self, leaves: Iterable) -> Any:
        """The tree of this structure with the given leaves."""
        given = leaves if isinstance(leaves, (list, tuple)) else list(leaves)
        if len(given) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(given)} but the spec refers "
                f"to a pytree that holds {self.num_leaves} items ({self})."
            )
        return self._build(iter(given))

    def _build(self, leaves: Any) -> Any:
        if self.is_leaf():
            return next(leaves)
        children = [child._build(leaves) for child in self._children]
        return _node_of(self.type).unflatten_fn(children, self._context)


class LeafSpec(PyTreeSpec):
    """The structure of a leaf."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None, [])

    def __repr__(self, indent: int = 0) -> str:
        return "*"


TreeSpec = PyTreeSpec
_LEAF_SPEC = LeafSpec()


def treespec_leaf() -> LeafSpec:
    """The structure of a leaf."""
    return _LEAF_SPEC


def treespec_tuple(iterable: Iterable[PyTreeSpec] = (), /) -> PyTreeSpec:
    """The structure of a tuple of trees of the given structures."""
    return PyTreeSpec(tuple, None, list(iterable))


def treespec_dict(mapping: Any = (), /, **kwargs: PyTreeSpec) -> PyTreeSpec:
    """The structure of a dict of trees of the given structures."""
    specs = dict(mapping, **kwargs)
    return PyTreeSpec(dict, list(specs), list(specs.values()))


def _ensure(treespec: object) -> PyTreeSpec:
    if not isinstance(treespec, PyTreeSpec):
        raise TypeError(
            "Expected `treespec` to be an instance of PyTreeSpec but got item of type "
            f"{type(treespec)}."
        )
    return treespec


def _to_json(treespec: PyTreeSpec) -> dict:
    if treespec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    known = _nodes.SUPPORTED_SERIALIZED_TYPES.get(treespec.type)
    if known is None or known.serialized_type_name == _nodes.NO_SERIALIZED_TYPE_NAME_FOUND:
        raise NotImplementedError(
            f"No registered serialization name for {treespec.type} found. Please update your "
            "_register_pytree_node call with a `serialized_type_name` kwarg."
        )
    if known.to_dumpable_context is None:
        try:
            context = json.dumps(treespec.context)
        except TypeError as error:
            raise TypeError(
                "Unable to serialize context. Please make the context json dump-able, or register "
                "a custom serializer using _register_pytree_node."
            ) from error
    else:
        context = json.dumps(known.to_dumpable_context(treespec.context))
    children = [_to_json(child) for child in treespec.children()]
    return {"type": known.serialized_type_name, "context": context, "children_spec": children}


def _from_json(data: dict) -> PyTreeSpec:
    name = data["type"]
    if name is None:
        return _LEAF_SPEC
    if name not in _nodes.SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(f"Could not deserialize treespec with type {name}")
    node_type = _nodes.SERIALIZED_TYPE_TO_PYTHON_TYPE[name]
    context = json.loads(data["context"])
    load = _nodes.SUPPORTED_SERIALIZED_TYPES[node_type].from_dumpable_context
    if load is not None:
        context = load(context)
    return PyTreeSpec(node_type, context, [_from_json(child) for child in data["children_spec"]])


def _check_protocol(protocol: object) -> None:
    if protocol != DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL:
        available = [DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL]
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: {available}")


def treespec_dumps(treespec: PyTreeSpec, protocol: int | None = None) -> str:
    """The structure as text, for treespec_loads."""
    _ensure(treespec)
    if protocol is None:
        protocol = DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL
    _check_protocol(protocol)
    return json.dumps([protocol, _to_json(treespec)])


def treespec_loads(serialized: str) -> PyTreeSpec:
    """The structure that treespec_dumps wrote."""
    protocol, data = json.loads(serialized)
    _check_protocol(protocol)
    return _from_json(data)


pytree_to_str = treespec_dumps
str_to_pytree = treespec_loads


def treespec_pprint(treespec: PyTreeSpec) -> str:
    """The structure as a tree whose leaves print as `*`."""
    import pprint

    return pprint.pformat(_ensure(treespec).unflatten([_LEAF_SPEC] * treespec.num_leaves))
