"""Batching rules of functions with dimensions: reductions, scans, views, joins and indices.

Each rule is rule(level, func, args, kwargs). Dimensions count from the element's first, which is
the batch's second; a rule that has no answer for the arguments at hand gives NotImplemented, and
the function then runs once for each element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import rushlight as torch
from rushlight import Tensor
from rushlight._functorch._batched import Level, batch_over

RULES: dict[str, Callable] = {}


def rule(names: str, rules: dict[str, Callable] = RULES) -> Callable:
    """Decorator: the batching rule of the functions of these names."""

    def decorate(function: Callable) -> Callable:
        rules.update(dict.fromkeys(names.split(), function))
        return function

    return decorate


def shifted(dim: int, rank: int) -> int:
    """A dimension of an element as a dimension of the batch; negative ones count from the end."""
    bound = max(rank, 1)
    if not -bound <= dim < bound:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], but got "
            f"{dim})"
        )
    return dim % bound + 1


def _argument(args: tuple, kwargs: dict, position: int, name: str, default: Any) -> Any:
    return args[position] if len(args) > position else kwargs.get(name, default)


def _with(args: tuple, kwargs: dict, position: int, name: str, value: Any) -> tuple[tuple, dict]:
    """The arguments with another in one's place, first argument apart."""
    if len(args) > position:
        return (*args[1:position], value, *args[position + 1 :]), kwargs
    return args[1:], {**kwargs, name: value}


def _ints(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and all(isinstance(item, int) for item in value)


def _only_first(level: Level, args: tuple, kwargs: dict) -> bool:
    """Whether the first argument alone is batched."""
    return level.is_batched(args[0]) and not level.involves((args[1:], kwargs))


def _reduction(position: int = 1) -> Callable:
    """Reduces the dimensions given, or all."""

    def reduce(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
        if not _only_first(level, args, kwargs):
            return NotImplemented
        dim = _argument(args, kwargs, position, "dim", None)
        value, rank = level.whole(args[0]), args[0].dim()
        if len(args) > position and not (dim is None or isinstance(dim, int) or _ints(dim)):
            return NotImplemented  # another overload: std(unbiased)
        if rank == 0:
            value = value.unsqueeze(1)
            if _argument(args, kwargs, position + 1, "keepdim", False):
                return NotImplemented
        if isinstance(dim, int):
            dims: Any = shifted(dim, rank)
        elif dim is None or len(dim) == 0:
            dims = list(range(1, max(rank, 1) + 1))
        else:
            dims = [shifted(each, rank) for each in dim]
        rest, options = _with(args, kwargs, position, "dim", dims)
        return level.wrap(func(value, *rest, **options))

    return reduce


for _name in (
    "sum nansum mean nanmean amax amin logsumexp all any std var std_mean var_mean count_nonzero"
).split():
    RULES[_name] = _reduction()
RULES["linalg_vector_norm"] = _reduction(2)


@rule("prod argmax argmin max min median nanmedian")
def _reduce_one(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    if not _only_first(level, args, kwargs):
        return _pairwise(level, func, args, kwargs)
    value, rank = level.whole(args[0]), args[0].dim()
    dim = _argument(args, kwargs, 1, "dim", None)
    if dim is None:
        if func.__name__ == "prod":
            return level.wrap(func(value.reshape(level.size, -1), 1, *args[1:], **kwargs))
        if args[1:] or set(kwargs) - {"dim"}:
            return NotImplemented
        if value.numel() == 0:
            return NotImplemented
        found = func(value.reshape(level.size, -1), 1)
        return level.wrap(found if isinstance(found, Tensor) else found[0])
    if not isinstance(dim, int) or rank == 0:
        return NotImplemented
    rest, options = _with(args, kwargs, 1, "dim", shifted(dim, rank))
    return level.wrap(func(value, *rest, **options))


def _pairwise(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    from rushlight._functorch._batch_rules import elementwise

    two = len(args) == 2 and isinstance(args[1], Tensor) and not kwargs
    return elementwise(level, func, args, kwargs) if two else NotImplemented


def _along(position: int = 1, default: int | None = None) -> Callable:
    """Works along one dimension, the result keeping all of them."""

    def along(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
        dim = _argument(args, kwargs, position, "dim", default)
        rank = args[0].dim() if isinstance(args[0], Tensor) else 0
        if not _only_first(level, args, kwargs) or not isinstance(dim, int) or rank == 0:
            return NotImplemented
        rest, options = _with(args, kwargs, position, "dim", shifted(dim, rank))
        return level.wrap(func(level.whole(args[0]), *rest, **options))

    return along


for _name in "softmax log_softmax cumsum cumprod logcumsumexp cummax cummin unbind renorm".split():
    RULES[_name] = _along()
for _name in "_softmax _log_softmax _safe_softmax select select_copy narrow unflatten".split():
    RULES[_name] = _along()
for _name in "sort argsort msort glu".split():
    RULES[_name] = _along(1, -1)
RULES["unbind"] = _along(1, 0)
RULES["topk"] = _along(2, -1)
RULES["kthvalue"] = _along(2, -1)
RULES["diff"] = _along(2, -1)
RULES["chunk"] = _along(2, 0)
RULES["tensor_split"] = _along(2, 0)
for _name in "split split_with_sizes".split():
    RULES[_name] = _along(2, 0)
RULES["repeat_interleave"] = _along(2)
RULES["unfold"] = _along(1)


@rule("flip fliplr flipud roll")
def _turn(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    name = func.__name__
    if not _only_first(level, args, kwargs) or name in ("fliplr", "flipud") or kwargs:
        return NotImplemented
    value, rank = level.whole(args[0]), args[0].dim()
    if name == "roll":
        if len(args) < 3 or not (isinstance(args[2], int) or _ints(args[2])):
            return NotImplemented
        dims = [args[2]] if isinstance(args[2], int) else args[2]
        return level.wrap(func(value, args[1], [shifted(dim, rank) for dim in dims]))
    dims = args[1] if len(args) == 2 and not isinstance(args[1], int) else args[1:]
    return level.wrap(func(value, [shifted(dim, rank) for dim in dims]))


def _sizes(args: tuple, kwargs: dict, name: str) -> Sequence[int] | None:
    given = args[1] if len(args) == 2 and not isinstance(args[1], int) else args[1:]
    if not given and name in kwargs:
        given = kwargs[name]
    return given if _ints(tuple(given) if isinstance(given, (tuple, list)) else given) else None


@rule("view reshape")
def _reshape(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    sizes = _sizes(args, kwargs, "shape")
    if sizes is None or "dtype" in kwargs:
        return NotImplemented
    return level.wrap(func(level.whole(args[0]), (level.size, *sizes)))


@rule("view_as reshape_as expand_as")
def _as_other(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    name = func.__name__.removesuffix("_as")
    value = batch_over(args[0], level)
    return getattr(value, name)(tuple(args[1].shape))


@rule("expand broadcast_to")
def _expand(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    sizes = _sizes(args, kwargs, "size")
    rank = args[0].dim()
    if sizes is None or len(sizes) < rank:
        return NotImplemented
    value = level.whole(args[0])
    value = value.reshape((level.size,) + (1,) * (len(sizes) - rank) + tuple(value.shape[1:]))
    return level.wrap(value.expand((level.size, *sizes)))


@rule("repeat tile")
def _repeat(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    sizes = _sizes(args, kwargs, "repeats")
    rank = args[0].dim()
    if sizes is None or len(sizes) < rank:
        return NotImplemented
    value = level.whole(args[0])
    value = value.reshape((level.size,) + (1,) * (len(sizes) - rank) + tuple(value.shape[1:]))
    return level.wrap(value.repeat((1, *sizes)))


@rule("flatten")
def _flatten(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    rank = args[0].dim()
    value = level.whole(args[0])
    if rank == 0:
        return level.wrap(value.reshape(level.size, 1))
    start = shifted(_argument(args, kwargs, 1, "start_dim", 0), rank)
    return level.wrap(func(value, start, shifted(_argument(args, kwargs, 2, "end_dim", -1), rank)))


@rule("ravel")
def _ravel(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    return level.wrap(level.whole(args[0]).reshape(level.size, -1))


@rule("unsqueeze")
def _unsqueeze(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    dim = _argument(args, kwargs, 1, "dim", None)
    return level.wrap(func(level.whole(args[0]), shifted(dim, args[0].dim() + 1)))


@rule("squeeze")
def _squeeze(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    rank = args[0].dim()
    dim = _argument(args, kwargs, 1, "dim", None)
    if rank == 0:
        return level.wrap(level.whole(args[0]))
    if dim is None:
        dims = [i + 1 for i, size in enumerate(args[0].shape) if size == 1]
    else:
        dims = [shifted(each, rank) for each in ([dim] if isinstance(dim, int) else dim)]
    return level.wrap(func(level.whole(args[0]), tuple(dims)))


@rule("transpose swapaxes swapdims diagonal movedim moveaxis")
def _two_dims(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    rank, rest = args[0].dim(), args[1:]
    if func.__name__ == "diagonal":
        offset = _argument(args, kwargs, 1, "offset", 0)
        first = shifted(_argument(args, kwargs, 2, "dim1", 0), rank)
        second = shifted(_argument(args, kwargs, 3, "dim2", 1), rank)
        return level.wrap(func(level.whole(args[0]), offset, first, second))
    if len(rest) != 2 or kwargs or rank == 0:
        return NotImplemented
    dims = [
        shifted(dim, rank) if isinstance(dim, int) else [shifted(each, rank) for each in dim]
        for dim in rest
    ]
    return level.wrap(func(level.whole(args[0]), *dims))


@rule("permute")
def _permute(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    dims = _sizes(args, kwargs, "dims")
    if dims is None:
        return NotImplemented
    return level.wrap(func(level.whole(args[0]), [0, *(shifted(d, args[0].dim()) for d in dims)]))


@rule("t get_T numpy_T adjoint get_mT get_mH get_H")
def _turned(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    rank, value = args[0].dim(), level.whole(args[0])
    if func.__name__ in ("t", "adjoint", "__get__") and rank == 2:
        turned = value.transpose(1, 2)
        conjugated = getattr(func, "__self__", None) is not None and value.is_complex()
        return NotImplemented if conjugated or value.is_complex() else level.wrap(turned)
    return level.wrap(value) if rank < 2 and func.__name__ == "t" else NotImplemented


@rule("tril triu one_hot constant_pad_nd linalg_inv linalg_det linalg_cholesky linalg_eigh "
      "linalg_eigvalsh linalg_svd linalg_svdvals linalg_qr linalg_slogdet linalg_matrix_exp "
      "inverse det logdet slogdet matrix_exp matrix_power linalg_matrix_power cholesky "
      "pixel_shuffle pixel_unshuffle")  # fmt: skip
def _natural(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    """Works on the last dimensions, whatever is before them."""
    if not _only_first(level, args, kwargs) or args[0].dim() < 2:
        return NotImplemented
    if func.__name__ == "one_hot" and len(args) < 2:
        return NotImplemented
    return level.wrap(func(level.whole(args[0]), *args[1:], **kwargs))


@rule("cat concat concatenate stack")
def _join(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    tensors = args[0] if args else kwargs["tensors"]
    dim = _argument(args, kwargs, 1, "dim", kwargs.get("axis", 0))
    joins = func.__name__ != "stack"
    rank = max(tensor.dim() for tensor in tensors)
    if joins:  # empty tensors of one dimension join with everything
        tensors = [t for t in tensors if not (t.dim() == 1 and rank > 1 and t.shape[0] == 0)]
    wholes = [level.whole(batch_over(tensor, level)) for tensor in tensors]
    return level.wrap(func(wholes, shifted(dim, rank if joins else rank + 1)))


@rule("new_zeros new_ones new_empty new_full new_tensor new_empty_strided")
def _new(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    if level.involves((args[1:], kwargs)):
        return NotImplemented
    made = func(*level.element(args, 0), **kwargs)
    return level.wrap(made.expand(level.size, *made.shape).clone())


@rule("gather take_along_dim scatter scatter_ scatter_add scatter_add_ scatter_reduce "
      "scatter_reduce_")  # fmt: skip
def _gather(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    if len(args) < 3 or not isinstance(args[1], int) or args[0].dim() == 0:
        return NotImplemented
    in_place = func.__name__.endswith("_")
    if in_place and not level.is_batched(args[0]):
        return NotImplemented
    if any(isinstance(arg, Tensor) and arg.dim() != args[0].dim() for arg in args[2:]):
        return NotImplemented
    whole = [
        level.whole(batch_over(arg, level)) if isinstance(arg, Tensor) else arg for arg in args
    ]
    whole[1] = shifted(args[1], args[0].dim())
    result = func(*whole, **kwargs)
    return args[0] if in_place else level.wrap(result)


@rule("index_select index_add index_copy index_fill")
def _index_along(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    if len(args) < 3 or level.is_batched(args[2]) or args[0].dim() == 0:
        return NotImplemented
    if func.__name__ != "index_select" and len(args) > 3 and not isinstance(args[3], Tensor):
        return NotImplemented
    whole = [
        level.whole(batch_over(arg, level)) if isinstance(arg, Tensor) and i != 2 else arg
        for i, arg in enumerate(args)
    ]
    whole[1] = shifted(args[1], args[0].dim())
    return level.wrap(func(*whole, **kwargs))


def _as_index(index: Any) -> tuple:
    return index if isinstance(index, tuple) else (index,)


def _plain_index(index: tuple) -> bool:
    """Whether an index cuts and picks only: no tensors, lists or bools."""
    plain = (int, slice, type(None), type(Ellipsis))
    return all(isinstance(item, plain) and not isinstance(item, bool) for item in index)


@rule("__getitem__")
def _getitem(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    given, index = args[0], _as_index(args[1])
    masks = [i for i in index if isinstance(i, Tensor) and i.dtype in (torch.bool, torch.uint8)]
    if any(level.is_batched(mask) for mask in masks):
        raise RuntimeError(
            "vmap: We do not support batching operators that can support dynamic shape. Attempting "
            "to batch over indexing with a boolean mask."
        )
    if not level.involves(index):
        arrays = [place for place, i in enumerate(index) if isinstance(i, (Tensor, list))]
        if _plain_index(index) or (len(arrays) == 1 and not _has_ints(index)):
            return level.wrap(level.whole(given)[(slice(None), *index)])
        return NotImplemented
    if masks or not all(isinstance(item, (Tensor, int)) for item in index):
        return NotImplemented
    return level.wrap(_pick(level, given, index))


def _has_ints(index: tuple) -> bool:
    return any(isinstance(item, int) for item in index)


def _pick(level: Level, given: Tensor, index: tuple) -> Tensor:
    """Elements at batched positions, each from its own element of the batch."""
    rank = max(item.dim() for item in index if isinstance(item, Tensor))
    places = []
    for item in index:
        if level.is_batched(item):
            value = level.whole(item)
            sizes = (level.size,) + (1,) * (rank - item.dim()) + tuple(value.shape[1:])
            item = value.reshape(sizes)
        places.append(item)
    if not level.is_batched(given):
        return given[tuple(places)]
    own = torch.arange(level.size).reshape((level.size,) + (1,) * rank)
    return level.whole(given)[(own, *places)]


@rule("__setitem__")
def _setitem(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    given, index, value = args[0], _as_index(args[1]), args[2]
    if not level.is_batched(given) or not _plain_index(index):
        return NotImplemented
    target = level.whole(given)[(slice(None), *index)]
    if isinstance(value, Tensor):
        if value.dim() > target.dim() - 1:
            return NotImplemented
        value = level.whole(batch_over(value, level))
        missing = target.dim() - value.dim()
        value = value.reshape((level.size,) + (1,) * missing + tuple(value.shape[1:]))
        target.copy_(value)
    else:
        target.fill_(value)
    return None


@rule("copy_ fill_")
def _copy(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    if not level.is_batched(args[0]):
        return NotImplemented
    if isinstance(args[1], Tensor):
        _setitem(level, func, (args[0], (), args[1]), {})
    else:
        func(level.whole(args[0]), *args[1:], **kwargs)
    return args[0]


@rule("__iter__")
def _iterate(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    if args[0].dim() == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(level.wrap(level.whole(args[0]).unbind(1)))
