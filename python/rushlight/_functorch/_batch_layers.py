"""Batching rules of products, convolutions, pooling, normalization, losses and gradients."""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Any

import rushlight as torch
from rushlight import Tensor
from rushlight._functorch._batch_shapes import rule as _shape_rule
from rushlight._functorch._batched import Level, batch_over

RULES: dict[str, Callable] = {}


def rule(names: str) -> Callable:
    """Decorator: the batching rule of the functions of these names."""
    return _shape_rule(names, RULES)


def _bound(names: str, args: tuple, kwargs: dict) -> dict[str, Any] | None:
    """The arguments by name; None where there are others."""
    known = names.split()
    if len(args) > len(known) or set(kwargs) - set(known):
        return None
    return {**dict(zip(known, args, strict=False)), **kwargs}


def _product(level: Level, one: Tensor, other: Tensor) -> Tensor:
    """one @ other over the whole batch."""
    ranks = one.dim(), other.dim()
    if 0 in ranks:
        raise RuntimeError("both arguments to matmul need to be at least 1D, but they are 0D")
    rank = max(*ranks, 2)
    left = _padded(level, one.unsqueeze(-2) if ranks[0] == 1 else one, rank)
    right = _padded(level, other.unsqueeze(-1) if ranks[1] == 1 else other, rank)
    result = left @ right
    if ranks[1] == 1:
        result = result.squeeze(-1)
    if ranks[0] == 1:
        result = result.squeeze(-1 if ranks[1] == 1 else -2)
    return result


def _padded(level: Level, tensor: Tensor, rank: int) -> Tensor:
    """The whole batch with ones before the element's dimensions, up to `rank` of them."""
    if not level.is_batched(tensor):
        return tensor
    value = level.whole(tensor)
    missing = rank - tensor.dim()
    return value.reshape((level.size,) + (1,) * missing + tuple(value.shape[1:]))


@rule("matmul mm bmm mv dot vdot linalg_matmul __matmul__ inner")
def _matmul(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    if len(args) != 2 or kwargs:
        return NotImplemented
    ranks = args[0].dim(), args[1].dim()
    wanted = {"mm": (2, 2), "bmm": (3, 3), "mv": (2, 1), "dot": (1, 1), "vdot": (1, 1)}
    wanted["inner"] = (1, 1)
    name = func.__name__
    if ranks != wanted.get(name, ranks) or args[0].dtype.is_complex:
        return NotImplemented
    return level.wrap(_product(level, *args))


@rule("linear")
def _linear(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    given = _bound("input weight bias", args, kwargs)
    if given is None:
        return NotImplemented
    given.setdefault("bias", None)
    x, weight, bias = given["input"], given["weight"], given["bias"]
    if not level.involves((weight, bias)):
        return level.wrap(func(level.whole(x), weight, bias))
    if weight.dim() != 2:
        return NotImplemented
    result = level.wrap(_product(level, x, weight.mT))
    return result if bias is None else result + bias


@rule("einsum")
def _einsum(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    equation, operands = args[0].replace(" ", ""), args[1:]
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    inputs, arrow, output = equation.partition("->")
    free = [letter for letter in string.ascii_letters if letter not in equation]
    if not arrow or not free or "." in equation:
        return NotImplemented
    labels = [
        free[0] + label if level.is_batched(operand) else label
        for label, operand in zip(inputs.split(","), operands, strict=True)
    ]
    text = ",".join(labels) + "->" + free[0] + output
    return level.wrap(func(text, *(level.whole(operand) for operand in operands)))


@rule("conv1d conv2d conv3d")
def _convolution(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    given = _bound("input weight bias stride padding dilation groups", args, kwargs)
    if given is None:
        return NotImplemented
    x, weight, bias = given["input"], given["weight"], given.get("bias")
    spatial = weight.dim() - 2
    single = x.dim() == spatial + 1
    if single:
        x = x.unsqueeze(0)
    if not level.involves((weight, bias)):
        whole = level.whole(x)
        result = func(whole.flatten(0, 1), **{**_rest(given), "weight": weight, "bias": bias})
        result = result.unflatten(0, (level.size, -1))
    else:
        result = _grouped(level, func, x, weight, bias, given)
    result = level.wrap(result)
    return result.squeeze(0) if single else result


def _rest(given: dict) -> dict:
    return {key: value for key, value in given.items() if key not in ("input", "weight", "bias")}


def _grouped(
    level: Level, func: Callable, x: Tensor, weight: Tensor, bias: Any, given: dict
) -> Tensor:
    """Each element's filters as a group of one convolution."""
    whole_x = level.whole(batch_over(x, level))
    whole_weight = level.whole(batch_over(weight, level))
    options = _rest(given)
    options["groups"] = level.size * options.get("groups", 1)
    if bias is not None:
        options["bias"] = level.whole(batch_over(bias, level)).flatten()
    channels = whole_x.transpose(0, 1).flatten(1, 2)
    result = func(channels, whole_weight.flatten(0, 1), **options)
    return result.unflatten(1, (level.size, -1)).transpose(0, 1)


def _spatial(name: str) -> int:
    return int(next(character for character in name if character.isdigit()))


@rule("max_pool1d max_pool2d max_pool3d max_pool1d_with_indices max_pool2d_with_indices "
      "max_pool3d_with_indices avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d "
      "adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d "
      "adaptive_max_pool3d upsample_nearest1d upsample_nearest2d upsample_nearest3d "
      "upsample_linear1d upsample_bilinear2d upsample_bicubic2d upsample_trilinear3d "
      "reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d "
      "replication_pad3d")  # fmt: skip
def _planes(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    """Works on each plane by itself: the batch joins the planes' own."""
    if not level.is_batched(args[0]) or level.involves((args[1:], kwargs)):
        return NotImplemented
    whole, spatial = level.whole(args[0]), _spatial(func.__name__)
    extra = args[0].dim() - spatial
    if extra not in (1, 2):
        return NotImplemented
    if extra == 1:
        return level.wrap(func(whole, *args[1:], **kwargs))
    result = func(whole.flatten(0, 1), *args[1:], **kwargs)
    sizes = (level.size, args[0].shape[0])
    if isinstance(result, Tensor):
        return level.wrap(result.unflatten(0, sizes))
    return level.wrap(tuple(part.unflatten(0, sizes) for part in result))


@rule("pad")
def _pad(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    given = _bound("input pad mode value", args, kwargs)
    if given is None or given.get("mode", "constant") != "constant":
        return NotImplemented
    if len(given["pad"]) > 2 * args[0].dim():
        return NotImplemented
    return level.wrap(func(level.whole(args[0]), *args[1:], **kwargs))


@rule("layer_norm rms_norm")
def _normalize(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    names = "input normalized_shape weight bias eps cudnn_enable"
    if func.__name__ == "rms_norm":
        names = "input normalized_shape weight eps"
    given = _bound(names, args, kwargs)
    if given is None:
        return NotImplemented
    scale = {key: given[key] for key in ("weight", "bias") if given.get(key) is not None}
    if not level.involves(scale):
        return level.wrap(func(level.whole(args[0]), *args[1:], **kwargs))
    plain = {**given, **dict.fromkeys(scale), "input": level.whole(given["input"])}
    ordered = [plain.get(name) for name in names.split() if name in plain]
    result = func(*ordered)
    result = level.wrap(result) if level.is_batched(given["input"]) else result
    result = result * scale["weight"] if "weight" in scale else result
    return result + scale["bias"] if "bias" in scale else result


@rule("batch_norm instance_norm")
def _batch_norm(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    mean, training = args[3], args[5]
    if training and mean is not None and not level.is_batched(mean):
        raise RuntimeError(
            "Batch norm got a batched tensor as input while the running_mean or running_var, "
            "which will be updated in place, were not batched. If you are using a module and do "
            "not need eval mode, please set `track_running_stats` to be False; if you are using a "
            "prebuilt module, func.replace_all_batch_norm_modules_ does that"
        )
    return NotImplemented


@rule("embedding")
def _embedding(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    if level.is_batched(args[0]):
        return NotImplemented
    return level.wrap(func(args[0], level.whole(args[1]), *args[2:], **kwargs))


@rule("scaled_dot_product_attention")
def _attention(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    given = _bound("query key value attn_mask dropout_p is_causal scale enable_gqa", args, kwargs)
    if given is None or given.get("enable_gqa"):
        return NotImplemented
    query, key, value = given.pop("query"), given.pop("key"), given.pop("value")
    rank = query.dim()
    mask = given.get("attn_mask")
    if (key.dim(), value.dim()) != (rank, rank) or (mask is not None and mask.dim() > rank):
        return NotImplemented
    if mask is not None:
        given["attn_mask"] = _padded(level, mask, rank)
    wholes = [level.whole(batch_over(each, level)) for each in (query, key, value)]
    given.pop("dropout_p", None)
    return level.wrap(func(*wholes, **given))


_LOSSES = {
    "mse_loss": "self target reduction",
    "l1_loss": "self target reduction",
    "smooth_l1_loss": "self target reduction beta",
    "huber_loss": "self target reduction delta",
    "soft_margin_loss": "self target reduction",
    "binary_cross_entropy": "self target weight reduction",
    "binary_cross_entropy_with_logits": "self target weight pos_weight reduction",
}


@rule(" ".join(_LOSSES))
def _loss(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    """Each loss by itself first, then their mean or sum for each element."""
    given = _bound(_LOSSES[func.__name__], args, kwargs)
    if given is None or level.involves((given.get("weight"), given.get("pos_weight"))):
        return NotImplemented
    one, other = given.pop("self"), given.pop("target")
    reduction = given.pop("reduction", 1)
    if tuple(one.shape) != tuple(other.shape):
        return NotImplemented
    both = (level.whole(batch_over(each, level)) for each in (one, other))
    losses = level.wrap(func(*both, **{**given, "reduction": 0}))
    return losses if reduction == 0 else losses.mean() if reduction == 1 else losses.sum()


@rule("cross_entropy_loss nll_loss_nd")
def _cross_entropy(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    names = "self target weight reduction ignore_index label_smoothing"
    given = _bound(names, args, kwargs)
    if given is None or given.get("weight") is not None:
        return NotImplemented
    scores, target = given.pop("self"), given.pop("target")
    reduction, ignored = given.pop("reduction", 1), given.get("ignore_index", -100)
    given.pop("weight", None)
    if scores.dim() not in (1, 2) or target.dim() != scores.dim() - 1:
        return NotImplemented
    whole = level.whole(batch_over(scores, level))
    wanted = level.whole(batch_over(target, level))
    rows = whole.reshape(-1, whole.shape[-1])
    losses = func(rows, wanted.reshape(-1), weight=None, reduction=0, **given)
    losses = losses.reshape(wanted.shape)
    if reduction and target.dim() == 1:
        losses = losses.sum(1)
    if reduction == 1:
        counted = (wanted != ignored).reshape(level.size, -1).sum(1)
        losses = losses / counted.to(losses.dtype)
    return level.wrap(losses)


@rule("grad")
def _grad(level: Level, func: Callable, args: tuple, kwargs: dict) -> Any:
    """autograd.grad: once, where the batch's elements are apart; else for each by itself."""
    given = _bound(
        "outputs inputs grad_outputs retain_graph create_graph only_inputs allow_unused "
        "is_grads_batched materialize_grads",
        args,
        kwargs,
    )
    outputs, inputs = _listed(given.pop("outputs")), _listed(given.pop("inputs"))
    seeds = given.pop("grad_outputs", None)
    seeds = [None] * len(outputs) if seeds is None else _listed(seeds)
    if all(map(level.is_batched, (*outputs, *inputs))):
        wholes = [level.whole(each) for each in outputs]
        seeds = [
            torch.ones_like(whole) if seed is None and whole.dim() == 1 else _seed(level, seed)
            for whole, seed in zip(wholes, seeds, strict=True)
        ]
        found = func(wholes, [level.whole(each) for each in inputs], seeds, **given)
        return tuple(None if each is None else level.wrap(each) for each in found)
    given["retain_graph"] = True
    wholes = [level.whole(each) for each in inputs]
    rows = [
        func(level.element(tuple(outputs), i), wholes, level.element(tuple(seeds), i), **given)
        for i in range(level.size)
    ]
    result = []
    for index, each in enumerate(inputs):
        column = [row[index] for row in rows]
        if all(found is None for found in column):
            result.append(None)
            continue
        column = [torch.zeros_like(wholes[index]) if c is None else c for c in column]
        if level.is_batched(each):
            column = [found[i] for i, found in enumerate(column)]
        result.append(level.wrap(torch.stack(column)))
    return tuple(result)


def _listed(value: Any) -> list:
    return [value] if isinstance(value, Tensor) else list(value)


def _seed(level: Level, seed: Any) -> Any:
    return None if seed is None else level.whole(batch_over(seed, level))
