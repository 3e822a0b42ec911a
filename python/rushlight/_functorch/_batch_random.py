"""Random numbers inside vmap: refused, the same for all elements, or different for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as torch
from rushlight import Tensor
from rushlight._functorch._batched import Level

_REFUSED = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' "
    "or 'different' randomness flags on vmap or perform the randomness operation out of vmap"
)
_SHARED = (
    "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear "
    "like same randomness."
)
_SAME_OF_MANY = "Vmap does not currently support same randomness with a batched tensor input."
_FACTORIES = {"rand", "randn", "randint", "randperm", "normal"}
_LIKE = {"rand_like", "randn_like", "randint_like"}
_IN_PLACE = {
    "bernoulli_",
    "cauchy_",
    "exponential_",
    "geometric_",
    "log_normal_",
    "normal_",
    "random_",
    "uniform_",
}
# Of tensors of probabilities, means, rates.
_OF_TENSORS = {
    "bernoulli",
    "binomial",
    "multinomial",
    "normal",
    "poisson",
    "_sample_dirichlet",
    "_standard_gamma",
    "fractional_max_pool2d",
    "fractional_max_pool3d",
}
# Where training: position and name of the argument that says so.
_DROPOUT = {
    "dropout": 2,
    "dropout_": 2,
    "alpha_dropout": 2,
    "alpha_dropout_": 2,
    "feature_dropout": 2,
    "feature_dropout_": 2,
    "feature_alpha_dropout": 2,
    "feature_alpha_dropout_": 2,
    "native_dropout": 2,
    "rrelu": 3,
}
_ALWAYS = _FACTORIES | _LIKE | _IN_PLACE | _OF_TENSORS


def is_random(name: str, args: tuple, kwargs: dict) -> bool:
    """Whether a call draws random numbers."""
    if name in _ALWAYS:
        return True
    if name in _DROPOUT:
        position = _DROPOUT[name]
        training = args[position] if len(args) > position else kwargs.get("train")
        return bool(kwargs.get("training", training))
    if name == "scaled_dot_product_attention":
        return bool(kwargs.get("dropout_p", args[4] if len(args) > 4 else 0.0))
    return False


def call(level: Level, func: Callable, name: str, args: tuple, kwargs: dict) -> Any:
    """A call that draws random numbers inside a level's vmap."""
    if level.randomness == "error":
        raise RuntimeError(_REFUSED)
    batched = level.involves((args, kwargs))
    if name in _IN_PLACE:
        return _in_place(level, func, name, args, kwargs)
    if name in _LIKE:
        like = level.element(args, 0)
        if level.randomness == "same":
            return func(*like, **kwargs)
        whole = level.whole(args[0])
        if not batched:
            whole = whole.unsqueeze(0).expand(level.size, *whole.shape)
        return level.wrap(func(whole, *args[1:], **kwargs))
    if name in _DROPOUT and level.randomness == "same":
        return _same_dropout(level, func, name, args, kwargs)
    if level.randomness == "same":
        if batched:
            raise RuntimeError(_SAME_OF_MANY)
        return func(*args, **kwargs)
    return _each(level, func, name, args, kwargs)


def _in_place(level: Level, func: Callable, name: str, args: tuple, kwargs: dict) -> Any:
    target, rest = args[0], args[1:]
    if not level.is_batched(target):
        if level.randomness == "different":
            raise RuntimeError(_SHARED)
        if level.involves((rest, kwargs)):
            raise RuntimeError(_SAME_OF_MANY)
        return func(*args, **kwargs)
    if level.involves((rest, kwargs)):
        if level.randomness == "same":
            raise RuntimeError(_SAME_OF_MANY)
        for index in range(level.size):
            func(*level.element(args, index), **level.element(kwargs, index))
        return target
    whole = level.whole(target)
    if level.randomness == "different":
        func(whole, *rest, **kwargs)
    else:
        whole.copy_(func(torch.empty_like(whole[0]), *rest, **kwargs).expand_as(whole))
    return target


def _same_dropout(level: Level, func: Callable, name: str, args: tuple, kwargs: dict) -> Any:
    """One mask for all elements."""
    given = args[0]
    if not level.is_batched(given):
        return func(*args, **kwargs)
    if name not in ("dropout", "dropout_"):
        raise RuntimeError(_SAME_OF_MANY)
    whole = level.whole(given)
    mask = func(torch.ones_like(whole[0]), *args[1:], **kwargs)
    if name == "dropout_":
        whole.mul_(mask)
        return given
    return level.wrap(whole * mask)


def _each(level: Level, func: Callable, name: str, args: tuple, kwargs: dict) -> Any:
    """Numbers of its own for each element; at once where the shape alone says what to draw."""
    from rushlight._functorch._batch_rules import one_by_one

    if name in ("dropout", "alpha_dropout") and level.is_batched(args[0]):
        return level.wrap(func(level.whole(args[0]), *args[1:], **kwargs))
    if name in ("rand", "randn") and "out" not in kwargs:
        options = {key: value for key, value in kwargs.items() if key != "size"}
        shape = torch.empty(*([kwargs["size"]] if "size" in kwargs else args), device="meta").shape
        return level.wrap(func((level.size, *shape), **options))
    if name == "scaled_dot_product_attention" or level.involves((args, kwargs)):
        return one_by_one(level, func, name, args, kwargs)
    drawn = [func(*args, **kwargs) for _ in range(level.size)]
    if isinstance(drawn[0], Tensor):
        return level.wrap(torch.stack(drawn))
    return level.wrap(tuple(torch.stack(column) for column in zip(*drawn, strict=True)))
