"""Sizes that an exported graph leaves open."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from rushlight import Tensor
from rushlight._dynamo.exc import UserError, UserErrorType
from rushlight.utils._pytree import tree_flatten, tree_map

if TYPE_CHECKING:
    from rushlight.export.exported_program import ExportedProgram

__all__ = ["AdditionalInputs", "Dim", "ShapesCollection", "dims"]


class _DimHint:
    """Whether a size may differ, and within which bounds, without a name for it."""

    def __init__(self, kind: str, min: int | None = None, max: int | None = None) -> None:
        self.kind, self.min, self.max = kind, min, max

    def __call__(self, min: int | None = None, max: int | None = None) -> _DimHint:
        """The same hint with bounds, both included."""
        if self.kind == "STATIC" or self.min is not None or self.max is not None:
            raise TypeError(f"'{type(self).__name__}' object is not callable")
        if (min or 0) < 0 or (max or 0) < 0:
            raise AssertionError(f"min and max must be non-negative, got min={min}, max={max}")
        if None not in (min, max) and min > max:
            raise AssertionError(f"min must be <= max, got min={min}, max={max}")
        return _DimHint(self.kind, min, max)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _DimHint) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.kind, self.min, self.max))

    def __repr__(self) -> str:
        parts = [self.kind]
        parts += [f"{n}={v}" for n, v in (("min", self.min), ("max", self.max)) if v is not None]
        return f"DimHint({', '.join(parts)})"


class Dim:
    """A size that may differ from call to call, the same wherever the name stands.

    min, max: what it may be, both included.
    """

    AUTO = _DimHint("AUTO")
    DYNAMIC = _DimHint("DYNAMIC")
    STATIC = _DimHint("STATIC")

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.min = 0 if min is None else min
        self.max = max
        if max is not None and max <= self.min:
            raise AssertionError(f"Cannot create Dim with inconsistent min={self.min}, max={max}")
        self.__name__ = name

    def __repr__(self) -> str:
        parts = [repr(self.__name__)]
        if self.min != 2:
            parts.append(f"min={self.min}")
        if self.max is not None:
            parts.append(f"max={self.max}")
        return f"Dim({', '.join(parts)})"

    def __add__(self, other: object) -> Dim:
        return _derived(self, 1, _integer(self, other, f"add {other} to"))

    __radd__ = __add__

    def __sub__(self, other: object) -> Dim:
        return _derived(self, 1, -_integer(self, other, f"subtract {other} from"))

    def __rsub__(self, other: object) -> Dim:
        raise NotImplementedError(f"Attempted to negate {self.__name__}. {_LINEAR}")

    def __mul__(self, other: object) -> Dim:
        if type(other) is not int or other <= 0:
            raise NotImplementedError(
                f"Attempted to multiply {other} with {self.__name__}, where a positive integer was "
                f"expected. {_LINEAR}"
            )
        return _derived(self, other, 0)

    __rmul__ = __mul__


_LINEAR = "(Only increasing linear operations with integer coefficients are supported.)"


def _integer(dim: Dim, other: object, action: str) -> int:
    if type(other) is not int:
        raise NotImplementedError(
            f"Attempted to {action} {dim.__name__}, where an integer was expected. {_LINEAR}"
        )
    return other


class _DerivedDim(Dim):
    """The size slope * root + offset."""

    def __init__(self, root: Dim, slope: int, offset: int) -> None:
        self.root, self.slope, self.offset = root, slope, offset
        self.min = slope * root.min + offset
        self.max = None if root.max is None else slope * root.max + offset
        self.__name__ = expression(root.__name__, slope, offset)

    def __repr__(self) -> str:
        return self.__name__


def _derived(dim: Dim, slope: int, offset: int) -> Dim:
    """The size slope * dim + offset, by the root of `dim`."""
    root, before, shift = dim, 1, 0
    if isinstance(dim, _DerivedDim):
        root, before, shift = dim.root, dim.slope, dim.offset
    slope, offset = slope * before, slope * shift + offset
    return root if (slope, offset) == (1, 0) else _DerivedDim(root, slope, offset)


def expression(name: str, slope: int, offset: int) -> str:
    """A size in terms of the one called `name`: "2*d + 1"."""
    product = name if slope == 1 else f"{slope}*{name}"
    return product if offset == 0 else f"{product} {'+' if offset > 0 else '-'} {abs(offset)}"


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Several Dims of the same range."""
    return tuple(Dim(name, min=min, max=max) for name in names)


class OpenSize(NamedTuple):
    """Dimension `dim` of leaf `leaf` of the arguments is open: it is slope * size + offset of the
    size called `name`.
    """

    leaf: int
    dim: int
    name: str
    slope: int = 1
    offset: int = 0

    @property
    def expression(self) -> str:
        """What it is in terms of the size: "d", "2*d + 1"."""
        return expression(self.name, self.slope, self.offset)

    def of(self, size: int) -> int:
        """What the dimension is where the size is this."""
        return self.slope * size + self.offset

    def root(self, given: int) -> int | None:
        """The size for which the dimension is `given`; None where there is none."""
        size, rest = divmod(given - self.offset, self.slope)
        return size if rest == 0 else None


class Range(NamedTuple):
    """What a size may be; max None: anything."""

    min: int
    max: int | None

    @property
    def lower(self) -> int:
        """The least it may be."""
        return self.min

    @property
    def upper(self) -> int | float:
        """The most it may be; infinity where it may be anything."""
        return math.inf if self.max is None else self.max

    def __repr__(self) -> str:
        return f"VR[{self.min}, {'int_oo' if self.max is None else self.max}]"


_HINTED = "s_"  # how the sizes of hints are called


def _fail(text: str) -> None:
    raise UserError(UserErrorType.INVALID_INPUT, text)


def open_sizes(
    function: Callable, args: tuple, kwargs: Mapping[str, Any], shapes: Any
) -> tuple[list[OpenSize], dict[str, Range], bool]:
    """The open sizes that dynamic_shapes asks for, the range of each, and whether hints are."""
    found: list[OpenSize] = []
    ranges: dict[str, Range] = {}
    if shapes is None:
        return found, ranges, False
    bound = inspect.signature(function).bind(*args, **kwargs).arguments
    if isinstance(shapes, Mapping):
        if set(shapes) - set(bound):
            _fail(
                "When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg "
                f"names {list(bound)} of `inputs`, but here they are {list(shapes)}. Alternatively,"
                " you could also ignore arg names entirely and specify `dynamic_shapes` as a "
                "list/tuple matching `inputs`."
            )
        pairs = [(shapes.get(name), value, name) for name, value in bound.items()]
    else:
        if len(shapes) != len(bound):
            _fail(
                f"dynamic_shapes has {len(shapes)} entries, the call has {len(bound)} arguments: "
                f"{list(bound)}"
            )
        pairs = [(s, value, name) for s, (name, value) in zip(shapes, bound.items())]
    leaf = 0
    for shape, value, name in pairs:
        leaf = _walk(shape, value, name, leaf, found, ranges)
    hinted = any(name.startswith(_HINTED) for name in ranges)
    _check_agreement(found, tree_flatten((args, kwargs))[0])
    return found, ranges, hinted


def _check_agreement(sizes: list[OpenSize], leaves: list) -> None:
    """UserError where two dimensions of one name say that it is two sizes."""
    known: dict[str, tuple[OpenSize, int]] = {}
    for size in sizes:
        given = leaves[size.leaf].shape[size.dim]
        first, shape = known.setdefault(size.name, (size, given))
        if size.root(given) != first.root(shape):
            raise UserError(
                UserErrorType.CONSTRAINT_VIOLATION,
                f"Constraints violated ({size.name})! dimension {first.dim} of input {first.leaf} "
                f"is {first.expression} = {shape}, and dimension {size.dim} of input {size.leaf} "
                f"is {size.expression} = {given}: not of one {size.name}",
            )


def _walk(shape: Any, value: Any, name: str, leaf: int, found: list, ranges: dict) -> int:
    """Notes the open sizes of one argument, whose first leaf is `leaf`; gives the leaf after it."""
    if isinstance(value, Tensor):
        entries = shape.items() if isinstance(shape, Mapping) else enumerate(shape or ())
        for dim, size in entries:
            _note(size, value, name, leaf, dim, found, ranges)
        return leaf + 1
    count = len(tree_flatten(value)[0])
    if shape is None:
        return leaf + count
    if isinstance(value, Mapping) and isinstance(shape, Mapping):
        for key, item in value.items():
            leaf = _walk(shape.get(key), item, f"{name}[{key!r}]", leaf, found, ranges)
        return leaf
    if isinstance(value, (tuple, list)) and isinstance(shape, (tuple, list)):
        if len(value) != len(shape):
            _fail(
                f"dynamic_shapes of {name} has {len(shape)} entries, the argument has {len(value)}"
            )
        for number, (entry, item) in enumerate(zip(shape, value)):
            leaf = _walk(entry, item, f"{name}[{number}]", leaf, found, ranges)
        return leaf
    _fail(
        f"dynamic_shapes of {name} is {shape!r}, which does not fit an argument of type "
        f"{type(value).__name__}"
    )


def _note(
    size: Any, tensor: Tensor, name: str, leaf: int, dim: int, found: list, ranges: dict
) -> None:
    if size is None or size == Dim.STATIC or isinstance(size, int):
        return
    if not -tensor.dim() <= dim < tensor.dim():
        _fail(f"dynamic_shapes of {name} names dimension {dim} of a {tensor.dim()}-D tensor")
    dim %= tensor.dim()
    if isinstance(size, _DimHint):
        size = Dim(f"{_HINTED}{len(ranges)}", min=size.min, max=size.max)
    elif not isinstance(size, Dim):
        _fail(
            f"dynamic_shapes of {name}[{dim}] must be None, an int, a Dim or a hint, got {size!r}"
        )
    given = tensor.shape[dim]
    if given < size.min or (size.max is not None and given > size.max):
        _fail(f"{name}.shape[{dim}] = {given} is outside the range of {size!r}")
    root, slope, offset = size, 1, 0
    if isinstance(size, _DerivedDim):
        root, slope, offset = size.root, size.slope, size.offset
    opened = OpenSize(leaf, dim, root.__name__, slope, offset)
    if opened.root(given) is None:
        _fail(
            f"{name}.shape[{dim}] = {given} is not of the form {size!r} for any integer "
            f"{root.__name__}"
        )
    found.append(opened)
    ranges[root.__name__] = Range(root.min, root.max)


def _bound(m: Any, args: tuple, kwargs: Mapping[str, Any] | None) -> dict[str, Any]:
    """The arguments of a call by the names of the definition."""
    function = m.forward if hasattr(m, "forward") else m
    return dict(inspect.signature(function).bind(*args, **(kwargs or {})).arguments)


class ShapesCollection:
    """Shapes by tensor, where structures of arguments are tedious to write down again.

    `shapes[x] = (dim, 4)` or `shapes[x] = {0: dim}`, then `export(..., dynamic_shapes=shapes)`.
    """

    def __init__(self) -> None:
        # By identity, with the tensor, which keeps its object and so its identity.
        self._shapes: dict[int, tuple[Tensor, Any]] = {}

    def __setitem__(self, t: Tensor, shape: Any) -> None:
        if not isinstance(t, Tensor):
            raise AssertionError(
                f"Cannot assign shape to non-tensor or non-_IntWrapper type {type(t)}"
            )
        known = self._shapes.setdefault(id(t), (t, shape))[1]
        if known != shape:
            raise AssertionError(
                f"Shapes assigned to input do not match: expected {known}, got {shape}"
            )

    def __getitem__(self, t: Tensor) -> Any:
        return self._shapes.get(id(t), (t, None))[1]

    def __len__(self) -> int:
        return len(self._shapes)

    def dynamic_shapes(
        self, m: Any, args: tuple, kwargs: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """What `export` takes for the call m(*args, **kwargs).

        ValueError where a tensor that was given a shape is not among the arguments.
        """
        found: set[int] = set()

        def shape(leaf: Any) -> Any:
            if id(leaf) not in self._shapes:
                return None
            found.add(id(leaf))
            return self._shapes[id(leaf)][1]

        shapes = tree_map(shape, _bound(m, args, kwargs))
        if len(found) < len(self._shapes):
            raise ValueError(
                "Some tensors that were assigned shapes were not found in args. Maybe such tensors "
                "were copied when passing them as args? Maybe such tensors are contained in classes"
                " that were not registered with pytree?"
            )
        return shapes


class AdditionalInputs:
    """Further calls: sizes that differ between them and the one that is exported are open.

    `calls.add(args, kwargs)`, then `export(..., dynamic_shapes=calls)`.
    """

    def __init__(self) -> None:
        self._calls: list[tuple[tuple, Mapping[str, Any] | None]] = []

    def add(self, args: tuple, kwargs: Mapping[str, Any] | None = None) -> None:
        """Adds the arguments of a call."""
        if type(args) is not tuple:
            raise AssertionError(f"Representative args {args} must be a tuple")
        if kwargs is not None and type(kwargs) is not dict:
            raise AssertionError(f"Representative kwargs {kwargs} must be None or a dict")
        self._calls.append((args, kwargs))

    def dynamic_shapes(
        self, m: Any, args: tuple, kwargs: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """What `export` takes for the call m(*args, **kwargs) where the others shall do, too."""
        first = _bound(m, args, kwargs)
        others = [_bound(m, *call) for call in self._calls]
        columns = [tree_flatten(call)[0] for call in others]

        def shape(leaf: Any, number: int) -> Any:
            values = [leaf, *(column[number] for column in columns)]
            if isinstance(leaf, Tensor):
                return tuple(
                    Dim.DYNAMIC if len(set(sizes)) > 1 else None
                    for sizes in zip(*(value.shape for value in values))
                )
            if all(value == leaf for value in values):
                return None
            if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
                return Dim.DYNAMIC
            raise ValueError(
                "The following inputs were found to have differing values, but they cannot be "
                f"marked as dynamic: {tuple(values)}."
            )

        numbers = iter(range(len(tree_flatten(first)[0])))
        return tree_map(lambda leaf: shape(leaf, next(numbers)), first)

    def verify(self, ep: ExportedProgram) -> None:
        """Runs the program on each call. AssertionError where it is not of its sizes."""
        module = ep.module()
        for args, kwargs in self._calls:
            module(*args, **(kwargs or {}))
