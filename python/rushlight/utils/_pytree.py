# ruff: noqa: F401
"""Trees of containers: flattened to lists of leaves, put together again, mapped.

Lists, tuples, dicts, named tuples, deques and results with named fields are nodes, and what
register_pytree_node adds; everything else, None included, is a leaf.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from types import UnionType
from typing import Any, TypeVar

from rushlight.utils._pytree_nodes import (
    BUILTIN_TYPES,
    CONSTANT_NODES,
    NO_SERIALIZED_TYPE_NAME_FOUND,
    SERIALIZED_TYPE_TO_PYTHON_TYPE,
    STANDARD_DICT_TYPES,
    SUPPORTED_NODES,
    SUPPORTED_SERIALIZED_TYPES,
    ConstantNode,
    GetAttrKey,
    MappingKey,
    NodeDef,
    SequenceKey,
    _defaultdict_flatten,
    _defaultdict_flatten_with_keys,
    _defaultdict_unflatten,
    _deque_flatten,
    _deque_flatten_with_keys,
    _deque_unflatten,
    _deregister_pytree_node,
    _dict_flatten,
    _dict_flatten_with_keys,
    _dict_unflatten,
    _get_node_type,
    _is_constant_holder,
    _is_namedtuple_instance,
    _list_flatten,
    _list_flatten_with_keys,
    _list_unflatten,
    _namedtuple_flatten,
    _namedtuple_flatten_with_keys,
    _namedtuple_unflatten,
    _node_of,
    _odict_flatten,
    _odict_unflatten,
    _ordereddict_flatten,
    _ordereddict_flatten_with_keys,
    _ordereddict_unflatten,
    _private_register_pytree_node,
    _register_namedtuple,
    _register_pytree_node,
    _retrieve_constant,
    _SerializeNodeDef,
    _tuple_flatten,
    _tuple_flatten_with_keys,
    _tuple_unflatten,
    is_constant_class,
    is_namedtuple,
    is_namedtuple_class,
    is_namedtuple_instance,
    is_structseq,
    is_structseq_class,
    is_structseq_instance,
    register_constant,
    register_dataclass,
    register_pytree_node,
)
from rushlight.utils._pytree_spec import (
    _LEAF_SPEC,
    DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL,
    LeafSpec,
    PyTreeSpec,
    TreeSpec,
    _ensure,
    pytree_to_str,
    str_to_pytree,
    treespec_dict,
    treespec_dumps,
    treespec_leaf,
    treespec_loads,
    treespec_pprint,
    treespec_tuple,
)

__all__ = [
    "Context",
    "DumpableContext",
    "FlattenFn",
    "FromDumpableContextFn",
    "LeafSpec",
    "PyTree",
    "PyTreeSpec",
    "ToDumpableContextFn",
    "TreeSpec",
    "UnflattenFn",
    "is_namedtuple",
    "is_namedtuple_class",
    "is_namedtuple_instance",
    "is_structseq",
    "is_structseq_class",
    "is_structseq_instance",
    "key_get",
    "keystr",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
    "treespec_dumps",
    "treespec_loads",
    "treespec_pprint",
]

T = TypeVar("T")
Context = Any
PyTree = Any
DumpableContext = Any
FlattenFn = FlattenFunc = Callable[[PyTree], tuple[list, Context]]
UnflattenFn = UnflattenFunc = Callable[[Iterable, Context], PyTree]
ToDumpableContextFn = Callable[[Context], DumpableContext]
FromDumpableContextFn = Callable[[DumpableContext], Context]
KeyEntry = Any
KeyPath = tuple[KeyEntry, ...]
FlattenWithKeysFn = FlattenWithKeysFunc = Callable[[PyTree], tuple[list, Any]]


def tree_is_leaf(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> bool:
    """Whether a tree is one leaf."""
    if is_leaf is not None and is_leaf(tree):
        return True
    return _node_of(_get_node_type(tree)) is None


_is_leaf = tree_is_leaf


def _flatten(tree: PyTree, leaves: list, is_leaf: Callable | None) -> PyTreeSpec:
    node_type = _get_node_type(tree)
    node = _node_of(node_type)
    if node is None or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return _LEAF_SPEC
    children, context = node.flatten_fn(tree)
    return PyTreeSpec(node_type, context, [_flatten(child, leaves, is_leaf) for child in children])


def tree_flatten(
    tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
) -> tuple[list, TreeSpec]:
    """The leaves, in order, and the structure that puts them together again."""
    leaves: list = []
    spec = _flatten(tree, leaves, is_leaf)
    return leaves, spec


def tree_unflatten(leaves: Iterable, treespec: TreeSpec) -> PyTree:
    """The tree of a structure with the given leaves."""
    return _ensure(treespec).unflatten(leaves)


def tree_iter(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> Iterator:
    """The leaves one after another."""
    node = _node_of(_get_node_type(tree))
    if node is None or (is_leaf is not None and is_leaf(tree)):
        yield tree
        return
    for child in node.flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> list:
    """The leaves, in order."""
    return list(tree_iter(tree, is_leaf))


def tree_structure(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> TreeSpec:
    """The structure of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list:
    """The leaves of the arguments of a call."""
    return tree_leaves((*args, *kwargs.values()))


def tree_map(
    func: Callable,
    tree: PyTree,
    *rests: PyTree,
    is_leaf: Callable[[PyTree], bool] | None = None,
) -> PyTree:
    """The tree with func(leaf, what the other trees have in its place...) in each leaf's place."""
    leaves, treespec = tree_flatten(tree, is_leaf)
    columns = [leaves] + [treespec.flatten_up_to(other) for other in rests]
    return treespec.unflatten(list(map(func, *columns)))


def tree_map_(
    func: Callable,
    tree: PyTree,
    *rests: PyTree,
    is_leaf: Callable[[PyTree], bool] | None = None,
) -> PyTree:
    """Calls func as tree_map does, for what it does to the leaves; gives the tree."""
    leaves, treespec = tree_flatten(tree, is_leaf)
    columns = [leaves] + [treespec.flatten_up_to(other) for other in rests]
    for arguments in zip(*columns, strict=True):
        func(*arguments)
    return tree


def _predicate(type_or_types_or_pred: Any) -> Callable[[Any], bool]:
    if isinstance(type_or_types_or_pred, (type, tuple, UnionType)):
        return lambda leaf: isinstance(leaf, type_or_types_or_pred)
    if callable(type_or_types_or_pred):
        return type_or_types_or_pred
    raise TypeError("Argument must be a type, a tuple of types, or a callable.")


def map_only(type_or_types_or_pred: Any, /) -> Callable:
    """Decorator: the function is called with what is of a type, or passes a test, and everything
    else stays as it is.
    """
    applies = _predicate(type_or_types_or_pred)

    def decorate(func: Callable) -> Callable:
        @functools.wraps(func)
        def mapped(leaf: Any) -> Any:
            return func(leaf) if applies(leaf) else leaf

        return mapped

    return decorate


def tree_map_only(
    type_or_types_or_pred: Any,
    /,
    func: Callable,
    tree: PyTree,
    is_leaf: Callable[[PyTree], bool] | None = None,
) -> PyTree:
    """tree_map of the leaves that are of a type, or pass a test."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: Any,
    /,
    func: Callable,
    tree: PyTree,
    is_leaf: Callable[[PyTree], bool] | None = None,
) -> PyTree:
    """tree_map_ of the leaves that are of a type, or pass a test."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(
    pred: Callable[[Any], bool], tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
) -> bool:
    """Whether pred holds for every leaf."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(
    pred: Callable[[Any], bool], tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
) -> bool:
    """Whether pred holds for some leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(
    type_or_types: Any,
    /,
    pred: Callable[[Any], bool],
    tree: PyTree,
    is_leaf: Callable[[PyTree], bool] | None = None,
) -> bool:
    """Whether pred holds for every leaf of a type."""
    return all(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def tree_any_only(
    type_or_types: Any,
    /,
    pred: Callable[[Any], bool],
    tree: PyTree,
    is_leaf: Callable[[PyTree], bool] | None = None,
) -> bool:
    """Whether pred holds for some leaf of a type."""
    return any(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def _generate_key_paths(
    path: KeyPath, tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
) -> Iterator[tuple[KeyPath, Any]]:
    node = _node_of(_get_node_type(tree))
    if node is None or (is_leaf is not None and is_leaf(tree)):
        yield path, tree
        return
    if node.flatten_with_keys_fn is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {type(tree)}. Please pass a "
            "flatten_with_keys_fn argument to register_pytree_node."
        )
    for key, child in node.flatten_with_keys_fn(tree)[0]:
        yield from _generate_key_paths((*path, key), child, is_leaf)


def tree_flatten_with_path(
    tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """Pairs of path and leaf, in order, and the structure."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_leaves_with_path(
    tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
) -> list[tuple[KeyPath, Any]]:
    """Pairs of path and leaf, in order."""
    return list(_generate_key_paths((), tree, is_leaf))


def tree_map_with_path(
    func: Callable,
    tree: PyTree,
    *rests: PyTree,
    is_leaf: Callable[[PyTree], bool] | None = None,
) -> PyTree:
    """tree_map of a func that is given the path of the leaf first."""
    pairs, treespec = tree_flatten_with_path(tree, is_leaf)
    columns = list(zip(*pairs, strict=True)) if pairs else [(), ()]
    columns += [treespec.flatten_up_to(other) for other in rests]
    return treespec.unflatten([func(*arguments) for arguments in zip(*columns, strict=True)])


def keystr(kp: KeyPath) -> str:
    """A path as Python would write the access."""
    return "".join(str(key) for key in kp)


def key_get(obj: Any, kp: KeyPath) -> Any:
    """What is found in a tree along a path."""
    for key in kp:
        obj = key.get(obj)
    return obj


def _broadcast_to_and_flatten(
    tree: PyTree, treespec: TreeSpec, is_leaf: Callable[[PyTree], bool] | None = None
) -> list | None:
    """A leaf for each leaf of the structure, those of `tree` repeated over the subtrees that are
    in their places; None where the structures do not fit.
    """
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    node_type = _get_node_type(tree)
    if treespec.is_leaf() or node_type != treespec.type:
        return None
    children, context = _node_of(node_type).flatten_fn(tree)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    result: list = []
    for child, spec in zip(children, treespec.children(), strict=True):
        flat = _broadcast_to_and_flatten(child, spec, is_leaf)
        if flat is None:
            return None
        result += flat
    return result
