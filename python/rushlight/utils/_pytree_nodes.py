"""The containers that trees are made of: how each is taken apart, named and put together."""

from __future__ import annotations

import dataclasses
import threading
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from rushlight import Size


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """The place of an item in a sequence."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """The item."""
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    """The key of an item in a mapping."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """The item."""
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """The name of a child that is an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """The child."""
        return getattr(obj, self.name)


class NodeDef(NamedTuple):
    """How a kind of node is taken apart and put together."""

    type: Any
    flatten_fn: Callable
    unflatten_fn: Callable
    flatten_with_keys_fn: Callable | None


class _SerializeNodeDef(NamedTuple):
    typ: Any
    serialized_type_name: str
    to_dumpable_context: Callable | None
    from_dumpable_context: Callable | None


NO_SERIALIZED_TYPE_NAME_FOUND = "NO_SERIALIZED_TYPE_NAME_FOUND"
SUPPORTED_NODES: dict[Any, NodeDef] = {}
SUPPORTED_SERIALIZED_TYPES: dict[Any, _SerializeNodeDef] = {}
SERIALIZED_TYPE_TO_PYTHON_TYPE: dict[str, Any] = {}
CONSTANT_NODES: set[type] = set()
_NODE_REGISTRY_LOCK = threading.RLock()


def register_pytree_node(
    cls: type,
    flatten_fn: Callable,
    unflatten_fn: Callable,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable | None = None,
    from_dumpable_context: Callable | None = None,
    flatten_with_keys_fn: Callable | None = None,
) -> None:
    """Makes objects of a class nodes: flatten_fn(obj) gives the list of children and a context,
    unflatten_fn(children, context) an object again, flatten_with_keys_fn pairs of key and child.
    """
    with _NODE_REGISTRY_LOCK:
        if cls in SUPPORTED_NODES:
            raise ValueError(f"{cls} is already registered as pytree node.")
        if (to_dumpable_context is None) != (from_dumpable_context is None):
            raise ValueError(
                f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or "
                "registered."
            )
        SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
        name = serialized_type_name or NO_SERIALIZED_TYPE_NAME_FOUND
        SUPPORTED_SERIALIZED_TYPES[cls] = _SerializeNodeDef(
            cls, name, to_dumpable_context, from_dumpable_context
        )
        SERIALIZED_TYPE_TO_PYTHON_TYPE[name] = cls


def _deregister_pytree_node(cls: type) -> None:
    with _NODE_REGISTRY_LOCK:
        del SUPPORTED_NODES[cls]
        node = SUPPORTED_SERIALIZED_TYPES.pop(cls)
        SERIALIZED_TYPE_TO_PYTHON_TYPE.pop(node.serialized_type_name, None)
        CONSTANT_NODES.discard(cls)


def register_dataclass(
    cls: type,
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Makes objects of a dataclass nodes with its fields as children; those that are None are
    left out, and those in drop_field_names are not kept.
    """
    if field_names is None:
        if not dataclasses.is_dataclass(cls):
            raise ValueError(
                "field_names must be specified with a list of all fields used to initialize the "
                f"class, as it is not a dataclass: {cls}"
            )
        field_names = [field.name for field in dataclasses.fields(cls) if field.init]
    dropped = set(drop_field_names or ())
    if dataclasses.is_dataclass(cls):
        known = {field.name for field in dataclasses.fields(cls) if field.init}
        missing, unexpected = known - dropped - set(field_names), set(field_names) - known
        if missing or unexpected:
            raise ValueError(
                f"register_dataclass of {cls}: field_names lacks {sorted(missing)} and has "
                f"{sorted(unexpected)}, which are no fields; name all fields that __init__ takes, "
                "or drop them by drop_field_names"
            )
    names = [name for name in field_names if name not in dropped]

    def flatten_with_keys(obj: Any) -> tuple[list, list]:
        given = [name for name in names if getattr(obj, name) is not None]
        absent = [name for name in names if getattr(obj, name) is None]
        return [(GetAttrKey(name), getattr(obj, name)) for name in given], [given, absent]

    def flatten(obj: Any) -> tuple[list, list]:
        pairs, context = flatten_with_keys(obj)
        return [child for _, child in pairs], context

    def unflatten(children: Iterable, context: list) -> Any:
        given, absent = context
        return cls(**dict(zip(given, children, strict=True)), **dict.fromkeys(absent))

    _private_register_pytree_node(
        cls,
        flatten,
        unflatten,
        serialized_type_name=serialized_type_name,
        flatten_with_keys_fn=flatten_with_keys,
    )


def register_constant(cls: type) -> None:
    """Makes objects of a class nodes without children: they belong to the structure of a tree."""
    if cls.__eq__ is object.__eq__:
        raise TypeError(
            "register_constant(cls) expects `cls` to have a non-default `__eq__` implementation."
        )
    if cls.__hash__ is None:
        raise TypeError("register_constant(cls) expects `cls` to have a `__hash__` implementation.")

    def flatten(obj: Any) -> tuple[list, ConstantNode]:
        return [], ConstantNode(obj)

    with _NODE_REGISTRY_LOCK:
        _private_register_pytree_node(
            cls, flatten, lambda _, context: context.value, flatten_with_keys_fn=flatten
        )
        CONSTANT_NODES.add(cls)


@dataclasses.dataclass(frozen=True)
class ConstantNode:
    """The context of a constant."""

    value: Any


def is_constant_class(cls: type) -> bool:
    """Whether register_constant was told of the class."""
    return isinstance(cls, type) and cls in CONSTANT_NODES


def _is_constant_holder(spec: Any) -> bool:
    return isinstance(spec.context, ConstantNode)


def _retrieve_constant(spec: Any) -> Any:
    return spec.context.value


def _register_namedtuple(cls: type, *, serialized_type_name: str) -> None:
    """Gives a class of named tuples the name under which a structure of it is saved."""
    SUPPORTED_SERIALIZED_TYPES[cls] = _SerializeNodeDef(cls, serialized_type_name, None, None)
    SERIALIZED_TYPE_TO_PYTHON_TYPE[serialized_type_name] = cls


def _private_register_pytree_node(
    cls: type,
    flatten_fn: Callable,
    unflatten_fn: Callable,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable | None = None,
    from_dumpable_context: Callable | None = None,
    flatten_with_keys_fn: Callable | None = None,
) -> None:
    with _NODE_REGISTRY_LOCK:
        if cls in SUPPORTED_NODES:
            _deregister_pytree_node(cls)
        register_pytree_node(
            cls,
            flatten_fn,
            unflatten_fn,
            serialized_type_name=serialized_type_name,
            to_dumpable_context=to_dumpable_context,
            from_dumpable_context=from_dumpable_context,
            flatten_with_keys_fn=flatten_with_keys_fn,
        )


def _register_pytree_node(
    cls: type,
    flatten_fn: Callable,
    unflatten_fn: Callable,
    to_str_fn: Callable | None = None,
    maybe_from_str_fn: Callable | None = None,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable | None = None,
    from_dumpable_context: Callable | None = None,
    flatten_with_keys_fn: Callable | None = None,
) -> None:
    """The old name of register_pytree_node; a second registration replaces the first."""
    import warnings

    if to_str_fn is not None or maybe_from_str_fn is not None:
        warnings.warn(
            "`to_str_fn` and `maybe_from_str_fn` is deprecated. Please use `to_dumpable_context` "
            "and `from_dumpable_context` instead.",
            FutureWarning,
            stacklevel=2,
        )
    _private_register_pytree_node(
        cls,
        flatten_fn,
        unflatten_fn,
        serialized_type_name=serialized_type_name,
        to_dumpable_context=to_dumpable_context,
        from_dumpable_context=from_dumpable_context,
        flatten_with_keys_fn=flatten_with_keys_fn,
    )


def is_namedtuple_class(cls: type) -> bool:
    """Whether a class was made by namedtuple or NamedTuple."""
    if not isinstance(cls, type) or not issubclass(cls, tuple):
        return False
    fields = getattr(cls, "_fields", None)
    if not isinstance(fields, tuple) or not all(isinstance(name, str) for name in fields):
        return False
    return callable(getattr(cls, "_make", None)) and callable(getattr(cls, "_asdict", None))


def is_namedtuple_instance(obj: object) -> bool:
    """Whether an object is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: object | type) -> bool:
    """Whether an object, or a class, is a named tuple."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


_is_namedtuple_instance = is_namedtuple_instance


def is_structseq_class(cls: type) -> bool:
    """Whether a class is of tuples with named fields that C made, as `return_types` has them."""
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and isinstance(getattr(cls, "n_fields", None), int)
        and isinstance(getattr(cls, "n_sequence_fields", None), int)
        and isinstance(getattr(cls, "n_unnamed_fields", None), int)
    )


def is_structseq_instance(obj: object) -> bool:
    """Whether an object is of a class that is_structseq_class accepts."""
    return is_structseq_class(type(obj))


def is_structseq(obj: object | type) -> bool:
    """Whether an object, or a class, is a structseq."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def _tuple_flatten(d: tuple) -> tuple[list, None]:
    return list(d), None


def _tuple_flatten_with_keys(d: tuple) -> tuple[list, None]:
    return [(SequenceKey(i), child) for i, child in enumerate(d)], None


def _tuple_unflatten(values: Iterable, context: Any) -> tuple:
    return tuple(values)


def _list_flatten(d: list) -> tuple[list, None]:
    return d, None


_list_flatten_with_keys = _tuple_flatten_with_keys


def _list_unflatten(values: Iterable, context: Any) -> list:
    return list(values)


def _dict_flatten(d: dict) -> tuple[list, list]:
    return list(d.values()), list(d)


def _dict_flatten_with_keys(d: dict) -> tuple[list, list]:
    return [(MappingKey(key), child) for key, child in d.items()], list(d)


def _dict_unflatten(values: Iterable, context: list) -> dict:
    return dict(zip(context, values, strict=True))


def _namedtuple_flatten(d: Any) -> tuple[list, type]:
    return list(d), type(d)


def _namedtuple_flatten_with_keys(d: Any) -> tuple[list, type]:
    return [(GetAttrKey(f), child) for f, child in zip(d._fields, d, strict=True)], type(d)


def _namedtuple_unflatten(values: Iterable, context: type) -> Any:
    return context(*values)


_ordereddict_flatten = _odict_flatten = _dict_flatten
_ordereddict_flatten_with_keys = _dict_flatten_with_keys


def _ordereddict_unflatten(values: Iterable, context: list) -> OrderedDict:
    return OrderedDict(zip(context, values, strict=True))


_odict_unflatten = _ordereddict_unflatten


def _defaultdict_flatten(d: defaultdict) -> tuple[list, list]:
    return list(d.values()), [d.default_factory, list(d)]


def _defaultdict_flatten_with_keys(d: defaultdict) -> tuple[list, list]:
    return _dict_flatten_with_keys(d)[0], [d.default_factory, list(d)]


def _defaultdict_unflatten(values: Iterable, context: list) -> defaultdict:
    factory, keys = context
    return defaultdict(factory, zip(keys, values, strict=True))


def _deque_flatten(d: deque) -> tuple[list, int | None]:
    return list(d), d.maxlen


def _deque_flatten_with_keys(d: deque) -> tuple[list, int | None]:
    return _tuple_flatten_with_keys(d)[0], d.maxlen


def _deque_unflatten(values: Iterable, context: int | None) -> deque:
    return deque(values, maxlen=context)


def _get_node_type(tree: Any) -> Any:
    """The kind of a node: its class, but `namedtuple` for every named tuple."""
    node_type = type(tree)
    if node_type not in SUPPORTED_NODES and is_namedtuple_class(node_type):
        return namedtuple
    return node_type


def _node_of(node_type: Any) -> NodeDef | None:
    """How a kind of node is taken apart, None for leaves."""
    found = SUPPORTED_NODES.get(node_type)
    if found is None and is_structseq_class(node_type):
        with _NODE_REGISTRY_LOCK:
            _private_register_pytree_node(
                node_type,
                _tuple_flatten,
                lambda values, _: node_type(tuple(values)),
                flatten_with_keys_fn=_tuple_flatten_with_keys,
            )
            found = SUPPORTED_NODES[node_type]
    return found


def _dump_namedtuple(context: type) -> str:
    known = SUPPORTED_SERIALIZED_TYPES.get(context)
    if known is None or known.serialized_type_name == NO_SERIALIZED_TYPE_NAME_FOUND:
        raise NotImplementedError(
            f"Can't serialize TreeSpec of namedtuple class {context} because we didn't register a "
            "serializated_type_name. Please register using `_register_namedtuple`."
        )
    return known.serialized_type_name


def _load_namedtuple(dumped: str) -> type:
    if dumped not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(
            f"Can't deserialize TreeSpec of namedtuple class {dumped} because we couldn't find a "
            "serializated name."
        )
    return SERIALIZED_TYPE_TO_PYTHON_TYPE[dumped]


def _dump_defaultdict(context: list) -> dict:
    factory, keys = context
    place = None
    if factory is not None:
        place = {
            "default_factory_module": factory.__module__,
            "default_factory_name": factory.__qualname__,
        }
    return {**(place or {}), "dict_context": keys}


def _load_defaultdict(dumped: dict) -> list:
    import importlib

    factory = None
    if "default_factory_module" in dumped:
        factory = importlib.import_module(dumped["default_factory_module"])
        for name in dumped["default_factory_name"].split("."):
            factory = getattr(factory, name)
    return [factory, dumped["dict_context"]]


for _cls, _flatten, _unflatten, _with_keys in (
    (tuple, _tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys),
    (list, _list_flatten, _list_unflatten, _list_flatten_with_keys),
    (dict, _dict_flatten, _dict_unflatten, _dict_flatten_with_keys),
    (OrderedDict, _odict_flatten, _odict_unflatten, _ordereddict_flatten_with_keys),
    (deque, _deque_flatten, _deque_unflatten, _deque_flatten_with_keys),
):
    register_pytree_node(
        _cls,
        _flatten,
        _unflatten,
        serialized_type_name=f"{_cls.__module__}.{_cls.__name__}",
        flatten_with_keys_fn=_with_keys,
    )
register_pytree_node(
    namedtuple,
    _namedtuple_flatten,
    _namedtuple_unflatten,
    serialized_type_name="collections.namedtuple",
    to_dumpable_context=_dump_namedtuple,
    from_dumpable_context=_load_namedtuple,
    flatten_with_keys_fn=_namedtuple_flatten_with_keys,
)
register_pytree_node(
    defaultdict,
    _defaultdict_flatten,
    _defaultdict_unflatten,
    serialized_type_name="collections.defaultdict",
    to_dumpable_context=_dump_defaultdict,
    from_dumpable_context=_load_defaultdict,
    flatten_with_keys_fn=_defaultdict_flatten_with_keys,
)
register_pytree_node(
    Size,
    _tuple_flatten,
    lambda values, _: Size(tuple(values)),
    flatten_with_keys_fn=_tuple_flatten_with_keys,
)
STANDARD_DICT_TYPES = frozenset({dict, OrderedDict, defaultdict})
BUILTIN_TYPES = frozenset({tuple, list, namedtuple, deque}) | STANDARD_DICT_TYPES
