"""How a function of elements is carried out on the whole batch.

Element-wise operators (the operator table knows them) run once, their arguments lined up from the
right. `_batch_shapes` has the functions that have dimensions, `_batch_layers` products and layers,
`_batch_random` what draws random numbers. Every other function runs once for each element, and the
results are stacked: slow, and right.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import rushlight as torch
from rushlight import _C, Tensor
from rushlight._functorch import _batch_function, _batch_layers, _batch_random, _batch_shapes
from rushlight._functorch._batched import Level, text, without_overrides

_ITEM = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling "
    ".item() on a Tensor, please try to rewrite what you're doing with other operations."
)
_BRANCH = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. "
    "We don't support that yet; torch.where chooses by element."
)
_BACKWARD = (
    "backward() called inside a functorch transform. This is not supported, please use "
    "functorch.grad or functorch.vjp instead or call backward() outside of functorch transforms."
)
_NUMBERS = "vmap: {} reads the numbers of a tensor, which inside vmap stands for many"
_SHAPE = (
    "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap "
    "over {}."
)
_OBJECT = "vmap: {} changes what a tensor is, and not its numbers: that is not possible inside vmap"
_REFUSED = {
    _ITEM: "item __float__ __int__ __index__ __complex__",
    _BRANCH: "__bool__ is_nonzero",
    _BACKWARD: "backward",
    "accessing `data` under vmap transform is not allowed": "get_data set_data",
    _NUMBERS: "tolist numpy __array__ data_ptr untyped_storage storage __dlpack__ equal allclose "
    "__contains__ __reduce_ex__ __deepcopy__ tensor",
    _SHAPE: "nonzero nonzero_numpy argwhere masked_select unique unique_consecutive _unique2 "
    "unique_dim bincount",
    _OBJECT: "set_ resize_ resize_as_ as_strided_ squeeze_ unsqueeze_ t_ transpose_ swapdims_ "
    "swapaxes_ detach_ rename_ share_memory_ set_grad",
}
_TEXTS = ("__repr__", "__str__", "__format__")
_ESCAPED = (
    "vmap: the tensor given to {} may have escaped from inside a function being vmapped: a tensor "
    "made inside a vmap cannot be used after it"
)
_REFUSALS = {name: text for text, names in _REFUSED.items() for name in names.split()}
# Answered by the element that the tensor stands for.
_OF_THE_ELEMENT = set(
    "size dim ndimension numel nelement element_size is_floating_point is_complex is_signed "
    "__len__ is_inference is_conj is_neg is_same_size get_shape get_ndim get_dtype get_layout "
    "get_itemsize get_nbytes get_is_sparse get_is_quantized get_is_mkldnn get_is_nested get_names "
    "is_tensor".split()
)
_OF_ONE = {"is_contiguous", "stride", "type", "is_pinned", "storage_offset"}
# Asked of the whole batch, or done to it: what concerns the tape, the dtype or the device.
_OF_THE_WHOLE = set(
    "detach requires_grad_ clone contiguous retain_grad register_hook alias get_requires_grad "
    "get_is_leaf get_grad_fn get_grad get__version get_output_nr get_retains_grad get_device "
    "set_requires_grad get_is_cuda get_is_cpu get_is_meta get_is_xpu get_is_mps to float double "
    "half bfloat16 int long short char byte bool cpu type_as zeros_like ones_like empty_like "
    "full_like zero_ as_tensor asarray real imag view_as_real view_as_complex conj resolve_conj "
    "resolve_neg is_distributed".split()
)
# Element-wise, though the table has them as compositions of element-wise operators.
_COMPOSED = set(
    "square float_power floor_divide fmod remainder relu6 positive ldexp masked_fill isclose "
    "heaviside dropout_backward conj_physical mvlgamma polygamma softshrink prelu_ gcd lcm "
    "special_erfcx special_i0e special_i1 special_i1e i0 igamma igammac special_zeta "
    "special_ndtri special_log_ndtr".split()
)


def name_of(func: Callable) -> str:
    """The name of an operator, one for function, method and operator; get_NAME for a property."""
    name = getattr(func, "__name__", "")
    if name in ("__get__", "__set__"):
        return f"{name.strip('_')}_{getattr(func.__self__, '__name__', '')}"
    if getattr(func, "__module__", None) == "rushlight._tensor":
        return name.lstrip("_")
    return name


@functools.lru_cache(None)
def elementwise_names() -> frozenset[str]:
    """The operators each element of whose result follows from one of each argument's."""
    names = {row["name"] for row in _C._operator_table() if row["kind"] == "elementwise"}
    names |= _COMPOSED
    return frozenset(names | {alias for alias, name in _C._operator_aliases() if name in names})


def call_escaped(func: Callable, args: tuple, kwargs: dict) -> Any:
    """A function called after the vmap with a tensor made inside it."""
    name = name_of(func)
    if name in _TEXTS:
        return text(args[0])
    if name in _OF_THE_ELEMENT:
        with without_overrides():
            return func(*args, **kwargs)
    raise RuntimeError(_ESCAPED.format(name))


def call(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    """A function called inside a level's vmap."""
    name = name_of(func)
    if _batch_random.is_random(name, args, kwargs):
        return _batch_random.call(level, func, name, args, kwargs)
    if not level.involves((args, kwargs)):
        return func(*args, **kwargs)
    if name in _OF_THE_ELEMENT:
        with without_overrides():
            return func(*args, **kwargs)
    if name in _REFUSALS:
        raise RuntimeError(_REFUSALS[name].format(name))
    if name in _TEXTS:
        return text(args[0])
    if kwargs.get("out") is not None:
        raise RuntimeError(f"vmap: {name} with out= is not possible; use the form without it")
    if name in _OF_ONE:
        return func(*level.element(args, 0), **level.element(kwargs, 0))
    if name in _OF_THE_WHOLE and "memory_format" not in kwargs:
        return _on_the_whole(level, func, args, kwargs)
    return _computed(level, func, name, args, kwargs)


def _on_the_whole(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    result = func(*(level.whole(arg) for arg in args), **kwargs)
    whole = level.whole(args[0])
    return args[0] if result is whole else level.wrap(result)


def _computed(level: Level, func: Callable, name: str, args: tuple, kwargs: dict) -> Any:
    operator = getattr(func, "_operator", None)
    if operator is not None and operator.vmap is not None:
        return _batch_function.by_library_rule(level, operator, args, kwargs)
    rule = _rule(name)
    if rule is not None:
        result = rule(level, func, args, kwargs)
        if result is not NotImplemented:
            return result
    if name.startswith("set_"):
        raise RuntimeError(_OBJECT.format(name))
    return one_by_one(level, func, name, args, kwargs)


def _rule(name: str) -> Callable | None:
    if name in elementwise_names():
        return elementwise
    if name[-1:] == "_" and name[:-1] in elementwise_names():
        return _elementwise_in_place
    return _batch_shapes.RULES.get(name) or _batch_layers.RULES.get(name)


def elementwise(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    """Once over the whole batch, the tensors lined up from the right as broadcasting does."""
    if level.involves([arg for arg in args if not isinstance(arg, Tensor)]):
        return NotImplemented  # a list of tensors
    aligned, aligned_kwargs = _aligned(level, args, kwargs)
    return level.wrap(func(*aligned, **aligned_kwargs))


def _elementwise_in_place(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    target = args[0]
    check_target(level, target, func)
    rank = target.dim()
    others = [arg for arg in (*args[1:], *kwargs.values()) if isinstance(arg, Tensor)]
    if any(other.dim() > rank for other in others):
        return NotImplemented  # the error that each element gives
    aligned, aligned_kwargs = _aligned(level, args, kwargs)
    func(level.whole(target), *aligned[1:], **aligned_kwargs)
    return target


def check_target(level: Level, target: Any, func: Callable) -> None:
    """An element of the batch may be written; what all elements share may not."""
    if not level.is_batched(target):
        raise RuntimeError(
            f"vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a "
            f"Tensor `other` in extra_args that has more elements than `self`. This happened due "
            f"to `other` being vmapped over but `self` not being vmapped over in {name_of(func)}. "
            "Please try to use out-of-place operators instead of inplace arithmetic."
        )


def _aligned(level: Level, args: tuple, kwargs: dict) -> tuple[list, dict]:
    given = [arg for arg in (*args, *kwargs.values()) if isinstance(arg, Tensor)]
    rank = max(arg.dim() for arg in given)
    common = _common_dtype(given) if rank > 0 else None

    def align(arg: Any) -> Any:
        if not isinstance(arg, Tensor):
            return arg
        if not level.is_batched(arg):
            # Numbers in tensors count less than tensors with dimensions; a batch of them has one.
            return arg.unsqueeze(0) if rank == 0 else arg
        own_rank = arg.dim()
        value = level.whole(arg)
        if own_rank == 0 and common is not None and value.dtype != torch.bool:
            wanted = _dtype_beside(common, value.dtype)
            value = value if value.dtype == wanted else value.to(wanted)
        if own_rank < rank:
            sizes = (level.size,) + (1,) * (rank - own_rank) + tuple(value.shape[1:])
            value = value.reshape(sizes)
        return value

    return [align(arg) for arg in args], {key: align(arg) for key, arg in kwargs.items()}


def _common_dtype(given: list[Tensor]) -> torch.dtype | None:
    """The dtype of the tensors with dimensions, where there are others beside them."""
    ranked = [arg.dtype for arg in given if arg.dim() > 0]
    if len(ranked) == len(given):
        return None
    return functools.reduce(torch.promote_types, ranked)


@functools.lru_cache(None)
def _dtype_beside(ranked: torch.dtype, number: torch.dtype) -> torch.dtype:
    """The dtype that a number in a tensor takes part in, beside a tensor with dimensions."""
    with without_overrides():
        return torch.result_type(
            torch.empty(1, dtype=ranked, device="meta"),
            torch.empty((), dtype=number, device="meta"),
        )


def one_by_one(level: Level, func: Callable, name: str, args: tuple, kwargs: dict) -> Any:
    """The function once for each element, results stacked: right for every function."""
    in_place = name.endswith("_") and not name.endswith("__")
    if in_place or name == "__setitem__":
        check_target(level, args[0], func)
    if level.size == 0:
        raise RuntimeError(f"vmap: {name} has no batching rule and cannot run on a batch of none")
    results = [func(*level.element(args, i), **level.element(kwargs, i)) for i in range(level.size)]
    if in_place:
        return args[0]
    return _stacked(level, name, results)


def _stacked(level: Level, name: str, results: list) -> Any:
    first = results[0]
    if isinstance(first, Tensor):
        if any(result.shape != first.shape for result in results):
            raise RuntimeError(_SHAPE.format(name))
        return level.wrap(torch.stack(results))
    if isinstance(first, (tuple, list)) and type(first) is not torch.Size:
        if any(len(result) != len(first) for result in results):
            raise RuntimeError(_SHAPE.format(name))
        items = [_stacked(level, name, list(column)) for column in zip(*results, strict=True)]
        if hasattr(first, "n_fields"):
            return type(first)(tuple(items))
        return type(first)(*items) if hasattr(first, "_fields") else type(first)(items)
    if any(result != first for result in results):
        raise RuntimeError(_NUMBERS.format(name))
    return first
