"""The _foreach_ functions: one operator over the tensors of lists.

`_foreach_x(tensors, ...)` gives a tuple of results; `_foreach_x_(tensors, ...)` writes the tensors.
An operand is a number, a tensor, or a sequence with one item for each tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rushlight import _C
from rushlight._C import Tensor

_table = _C._VariableFunctions

_UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 "
    "neg reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc"
).split()
# Argument names after the list; the last is what a number or tensor for all may stand for.
_BINARY = {
    "add": ("other", "scalar", "scalars"),
    "sub": ("other", "scalar", "scalars"),
    "mul": ("other", "scalar", "scalars"),
    "div": ("other", "scalar", "scalars"),
    "maximum": ("other", "scalar", "scalars"),
    "minimum": ("other", "scalar", "scalars"),
    "clamp_min": ("other", "scalar", "scalars"),
    "clamp_max": ("other", "scalar", "scalars"),
    "pow": ("exponent",),
}


def _items(name: str, given: object, count: int) -> Sequence:
    """One operand for each tensor."""
    if not isinstance(given, (list, tuple)):
        return (given,) * count
    if len(given) != count:
        raise RuntimeError(
            f"{name}: Tensor lists must have the same number of tensors, got {count} and "
            f"{len(given)}"
        )
    return given


def _tensors(name: str, given: object) -> Sequence[Tensor]:
    if not isinstance(given, (list, tuple)):
        raise TypeError(
            f"{name}(): argument 'self' (position 1) must be tuple of Tensors, not "
            f"{type(given).__name__}"
        )
    if not given:
        raise RuntimeError(f"{name}: Tensor list must have at least one tensor.")
    return given


def _override(function: Callable, lists: tuple, args: tuple, kwargs: dict) -> tuple | None:
    """The result of an override among the tensors, in a tuple; None where there is none."""
    relevant = [item for part in lists if isinstance(part, (list, tuple)) for item in part]
    if not _C._has_torch_function(tuple(relevant)):
        return None
    return (_C._handle_torch_function(function, tuple(relevant), args, kwargs),)


def _finish(results: list, inplace: bool) -> tuple[Tensor, ...] | None:
    return None if inplace else tuple(results)


def _named(made: Callable, name: str, doc: str) -> Callable:
    made.__name__ = made.__qualname__ = name
    made.__doc__ = doc
    made.__module__ = "rushlight"
    return made


def _unary(name: str, inplace: bool) -> Callable:
    full = f"_foreach_{name}" + ("_" if inplace else "")
    one = getattr(_table, name + ("_" if inplace else ""))

    def run(self: Sequence[Tensor]) -> tuple[Tensor, ...] | None:
        found = _override(run, (self,), (self,), {})
        if found:
            return found[0]
        return _finish([one(tensor) for tensor in _tensors(full, self)], inplace)

    return _named(run, full, f"`{name}` of each tensor.")


def _operand(name: str, allowed: tuple, args: tuple, kwargs: dict) -> object:
    if args:
        return args[0]
    for key in allowed:
        if key in kwargs:
            return kwargs.pop(key)
    raise TypeError(f'{name}() missing 1 required positional arguments: "{allowed[0]}"')


def _binary(name: str, inplace: bool) -> Callable:
    full = f"_foreach_{name}" + ("_" if inplace else "")
    method = getattr(Tensor, name + ("_" if inplace else ""), None)
    names = _BINARY[name]

    def one(tensor: Tensor, other: object, **options: object) -> Tensor:
        if method is not None and not (name in ("maximum", "minimum") and inplace):
            if name in ("maximum", "minimum") and not isinstance(other, Tensor):
                limit = Tensor.clamp_min if name == "maximum" else Tensor.clamp_max
                return limit(tensor, other)
            return method(tensor, other, **options)
        limit = Tensor.clamp_min_ if name == "maximum" else Tensor.clamp_max_
        return limit(tensor, other)

    def run(self: Sequence[Tensor], *args: object, **kwargs: object) -> object:
        found = _override(run, (self, *args), (self, *args), kwargs)
        if found:
            return found[0]
        other = _operand(full, names, args, kwargs)
        if name == "pow" and not isinstance(self, (list, tuple)):
            return tuple(_table.pow(self, exponent) for exponent in _tensors(full, other))
        tensors = _tensors(full, self)
        others = _items(full, other, len(tensors))
        if set(kwargs) - {"alpha"} or ("alpha" in kwargs and name not in ("add", "sub")):
            raise TypeError(f"{full}() got an unexpected keyword argument '{next(iter(kwargs))}'")
        pairs = zip(tensors, others, strict=True)
        return _finish([one(tensor, item, **kwargs) for tensor, item in pairs], inplace)

    return _named(run, full, f"`{name}` of each tensor with its operand.")


def _ternary(name: str, inplace: bool) -> Callable:
    full = f"_foreach_{name}" + ("_" if inplace else "")
    method = getattr(Tensor, name + ("_" if inplace else ""))

    def run(
        self: Sequence[Tensor],
        tensor1: Sequence[Tensor],
        tensor2: Sequence[Tensor],
        value: object = 1,
        scalars: object = None,
    ) -> object:
        found = _override(run, (self, tensor1, tensor2), (self, tensor1, tensor2), {"value": value})
        if found:
            return found[0]
        tensors = _tensors(full, self)
        count = len(tensors)
        given = value if scalars is None else scalars
        if isinstance(given, Tensor):
            given = given.tolist()
        rows = zip(
            tensors,
            _items(full, tensor1, count),
            _items(full, tensor2, count),
            _items(full, given, count),
            strict=True,
        )
        return _finish([method(x, a, b, value=by) for x, a, b, by in rows], inplace)

    return _named(run, full, f"`{name}` of each tensor with its two.")


def _lerp(inplace: bool) -> Callable:
    full = "_foreach_lerp" + ("_" if inplace else "")
    method = Tensor.lerp_ if inplace else Tensor.lerp

    def run(
        self: Sequence[Tensor],
        tensors1: Sequence[Tensor],
        weight: object = None,
        weights: object = None,
    ) -> object:
        found = _override(run, (self, tensors1), (self, tensors1), {"weight": weight})
        if found:
            return found[0]
        tensors = _tensors(full, self)
        count = len(tensors)
        rows = zip(
            tensors,
            _items(full, tensors1, count),
            _items(full, weight if weights is None else weights, count),
            strict=True,
        )
        return _finish([method(x, end, by) for x, end, by in rows], inplace)

    return _named(run, full, "`lerp` of each tensor toward its end.")


def _foreach_norm(
    self: Sequence[Tensor], ord: float = 2, dtype: object = None
) -> tuple[Tensor, ...]:
    """The vector norm of each tensor."""
    found = _override(_foreach_norm, (self,), (self, ord, dtype), {})
    if found:
        return found[0]
    tensors = _tensors("_foreach_norm", self)
    return tuple(_table.linalg_vector_norm(x, ord, dtype=dtype) for x in tensors)


def _foreach_max(self: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The greatest element of each tensor."""
    found = _override(_foreach_max, (self,), (self,), {})
    return found[0] if found else tuple(x.max() for x in _tensors("_foreach_max", self))


def _foreach_clone(self: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """A copy of each tensor."""
    found = _override(_foreach_clone, (self,), (self,), {})
    return found[0] if found else tuple(x.clone() for x in _tensors("_foreach_clone", self))


def _foreach_mm(self: Sequence[Tensor], mat2: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The product of each pair of matrices."""
    found = _override(_foreach_mm, (self, mat2), (self, mat2), {})
    if found:
        return found[0]
    tensors = _tensors("_foreach_mm", self)
    pairs = zip(tensors, _items("_foreach_mm", mat2, len(tensors)), strict=True)
    return tuple(a.mm(b) for a, b in pairs)


def _foreach_zero_(self: Sequence[Tensor]) -> None:
    """Zeros in every tensor."""
    found = _override(_foreach_zero_, (self,), (self,), {})
    if found:
        return found[0]
    for tensor in _tensors("_foreach_zero_", self):
        tensor.zero_()
    return None


def _foreach_copy_(
    self: Sequence[Tensor], src: Sequence[Tensor], non_blocking: bool = False
) -> None:
    """Copies each source to its tensor."""
    found = _override(_foreach_copy_, (self, src), (self, src, non_blocking), {})
    if found:
        return found[0]
    tensors = _tensors("_foreach_copy_", self)
    pairs = zip(tensors, _items("_foreach_copy_", src, len(tensors)), strict=True)
    for tensor, source in pairs:
        tensor.copy_(source, non_blocking)
    return None


def _all() -> dict[str, Callable]:
    made = [_lerp(False), _lerp(True)]
    for inplace in (False, True):
        made += [_unary(name, inplace) for name in _UNARY]
        made += [_binary(name, inplace) for name in _BINARY]
        made += [_ternary(name, inplace) for name in ("addcmul", "addcdiv")]
    made += [_foreach_norm, _foreach_max, _foreach_clone, _foreach_mm]
    made += [_foreach_zero_, _foreach_copy_]
    return {function.__name__: function for function in made}


globals().update(_all())
