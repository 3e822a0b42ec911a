"""FlopCounterMode: floating-point operations of products, convolutions and attention in a block.

A multiplication and an addition count as two. Backward is counted when it runs, by what it has to
multiply. What fused recurrent layers do inside is not counted.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import rushlight as torch
from rushlight import Tensor
from rushlight.overrides import TorchFunctionMode

__all__ = ["FlopCounterMode", "register_flop_formula"]

flop_registry: dict[Any, Callable] = {}


def _packet(target: Any) -> Any:
    return getattr(target, "overloadpacket", target)


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable:
    """Decorator: the formula of operators, called with the shapes of their arguments and with
    out_shape; with the arguments themselves and out_val where get_raw.
    """

    def register(formula: Callable) -> Callable:
        formula._get_raw = get_raw
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            flop_registry[_packet(target)] = formula
        return formula

    return register


def _shapes(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.shape
    if isinstance(value, (list, tuple)):
        return type(value)(_shapes(item) for item in value)
    return value


class _Cost:
    """One call's operations: forward, and backward for each argument that requires grad."""

    def __init__(self, name: str, forward: int, backward: dict[str, int]) -> None:
        self.name = name
        self.forward = forward
        self.backward = backward


def _tracked(tensor: Any) -> bool:
    return isinstance(tensor, Tensor) and tensor.requires_grad


def _product(name: str, one: Tensor, other: Tensor) -> _Cost | None:
    """one @ other: as PyTorch counts, products with a vector are none."""
    if one.dim() < 2 or other.dim() < 2:
        return None
    batch = torch.broadcast_shapes(one.shape[:-2], other.shape[:-2])
    count = 2 * math.prod(batch) * one.shape[-2] * one.shape[-1] * other.shape[-1]
    back = count * (_tracked(one) + _tracked(other))
    kind = "mm" if other.dim() == 2 else "bmm"
    return _Cost(name or kind, count, {kind: back})


def _linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> _Cost:
    count = 2 * input.numel() * weight.shape[0]
    back = count * (_tracked(input) + _tracked(weight))
    return _Cost("mm" if bias is None else "addmm", count, {"mm": back})


def _convolution(result: Tensor, transposed: bool, args: tuple, kwargs: dict) -> _Cost:
    names = "input weight bias stride padding"
    names += " output_padding groups dilation" if transposed else " dilation groups"
    given = {**dict(zip(names.split(), args, strict=False)), **kwargs}
    x, weight, groups = given["input"], given["weight"], given.get("groups", 1)
    spatial = weight.dim() - 2
    places = (x if transposed else result).shape[-spatial:]
    batch = x.shape[0] if x.dim() == spatial + 2 else 1
    count = 2 * batch * math.prod(places) * weight.numel()
    back = count * _tracked(x) + count * groups * _tracked(weight)
    return _Cost("convolution", count, {"convolution_backward": back})


def _attention(query: Tensor, key: Tensor, value: Tensor, *_: Any, **__: Any) -> _Cost:
    batch = math.prod(query.shape[:-2])
    scores = 2 * batch * query.shape[-2] * key.shape[-2] * query.shape[-1]
    mixed = 2 * batch * query.shape[-2] * key.shape[-2] * value.shape[-1]
    back = scores * (_tracked(query) + _tracked(key))
    back += mixed * ((_tracked(query) or _tracked(key)) + _tracked(value))
    return _Cost("bmm", scores + mixed, {"bmm": back})


def _einsum(equation: str, *operands: Any) -> _Cost | None:
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    text = equation.replace(" ", "")
    if len(operands) != 2 or "." in text:
        return None
    sizes: dict[str, int] = {}
    for labels, operand in zip(text.partition("->")[0].split(","), operands, strict=True):
        sizes.update(zip(labels, operand.shape, strict=True))
    count = 2 * math.prod(sizes.values())
    return _Cost("bmm", count, {"bmm": count * sum(map(_tracked, operands))})


def _cost(name: str, result: Any, args: tuple, kwargs: dict) -> _Cost | None:
    """What a call costs; None for functions that are not counted."""
    if name in ("matmul", "mm", "bmm", "linalg_matmul"):
        return _product("" if name.endswith("matmul") else name, *args[:2])
    if name in ("addmm", "baddbmm"):
        return _product(name, *args[1:3])
    if name == "linear":
        return _linear(*args, **kwargs)
    if name == "einsum":
        return _einsum(*args)
    if name in ("conv1d", "conv2d", "conv3d"):
        return _convolution(result, False, args, kwargs)
    if name in ("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"):
        return _convolution(result, True, args, kwargs)
    if name == "scaled_dot_product_attention":
        return _attention(*args, **kwargs)
    return None


class FlopCounterMode(TorchFunctionMode):
    """A block whose floating-point operations are counted, in all and for each module.

    display: prints a table at the end. depth: how deep modules are listed. custom_mapping: formulas
    of operators, by torch.ops packet, which go before the known ones.
    """

    _operators_only = True

    def __init__(
        self,
        mods: Any = None,
        depth: int = 2,
        display: bool = True,
        custom_mapping: dict[Any, Any] | None = None,
    ) -> None:
        super().__init__()
        self.depth = depth
        self.display = display
        self.mods = mods
        self.formulas = {_packet(key): value for key, value in (custom_mapping or {}).items()}
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self._modules: list[str] = ["Global"]
        self._handles: list = []

    def get_total_flops(self) -> int:
        """All operations."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """The operations of each module, by operator."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """A table of the modules, their operations and their share of all."""
        depth = self.depth if depth is None else depth
        total = max(self.get_total_flops(), 1)
        rows = [("Module", "FLOP", "% Total")]
        for name in sorted(self.flop_counts, key=lambda name: (name != "Global", name)):
            level = 0 if name == "Global" else name.count(".") + 1
            if level > depth:
                continue
            counts = self.flop_counts[name]
            rows.append(_row(" " * level + name, sum(counts.values()), total))
            rows += [_row(" " * level + f" - {op}", n, total) for op, n in counts.items()]
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        lines = [
            f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}".rstrip() for a, b, c in rows
        ]
        lines.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join(lines)

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self._modules = ["Global"]
        from rushlight.nn.modules.module import (
            register_module_forward_hook,
            register_module_forward_pre_hook,
        )

        self._names: dict[int, str] = {}
        self._handles = [
            register_module_forward_pre_hook(self._entered),
            register_module_forward_hook(self._left, always_call=True),
        ]
        super().__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        for handle in self._handles:
            handle.remove()
        if self.display:
            print(self.get_table(self.depth))

    def _entered(self, module: Any, inputs: Any) -> None:
        if id(module) not in self._names:
            root = type(module).__name__
            for name, inner in module.named_modules():
                self._names.setdefault(id(inner), f"{root}.{name}" if name else root)
        self._modules.append(self._names[id(module)])

    def _left(self, module: Any, inputs: Any, output: Any) -> None:
        self._modules.pop()

    def _count(self, name: str, number: int, modules: list[str]) -> None:
        operator = getattr(torch.ops.aten, name)
        for module in dict.fromkeys(modules):
            self.flop_counts[module][operator] += number

    def _formula(self, name: str) -> Callable | None:
        for table in (self.formulas, flop_registry):
            for key, formula in table.items():
                if getattr(key, "__name__", "") == name:
                    return formula
        return None

    def __torch_function__(
        self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        cost = _cost(name, result, args, kwargs)
        kind = name if cost is None else cost.name
        formula = self._formula(kind) if self.formulas or flop_registry else None
        if formula is not None:
            raw = getattr(formula, "_get_raw", False)
            given = args if raw else _shapes(args)
            out = {"out_val": result} if raw else {"out_shape": _shapes(result)}
            self._count(kind, formula(*given, **kwargs, **out), self._modules)
        elif cost is not None:
            self._count(cost.name, cost.forward, self._modules)
        if cost is not None and isinstance(result, Tensor) and result.requires_grad:
            result.register_hook(self._backward_hook(cost, list(self._modules)))
        return result

    def _backward_hook(self, cost: _Cost, modules: list[str]) -> Callable:
        def count(gradient: Tensor) -> None:
            for name, number in cost.backward.items():
                if number:
                    self._count(name, number, modules)

        return count


def _row(name: str, number: int, total: int) -> tuple[str, str, str]:
    text = str(number)
    for limit, unit in ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "K")):
        if number >= limit:
            text = f"{number / limit:.3f}{unit}"
            break
    return name, text, f"{100 * number / total:.2f}%"
