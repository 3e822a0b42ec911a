"""The text of masked tensors."""

from __future__ import annotations

from typing import Any

from rushlight import Tensor

_ABSENT = "--"


def masked_text(data: Tensor, mask: Tensor) -> str:
    """A line a row, with two dashes for elements that are not there."""
    values, there = data.tolist(), mask.tolist()
    if data.ndim == 0:
        return f"{_number(values) if there else _ABSENT}, {there}"
    return "\n" + "\n".join(_lines(values, there, "  ")) + "\n"


def _number(value: Any) -> str:
    return f"{value:8.4f}" if isinstance(value, float) else str(value)


def _lines(values: list, there: list, indent: str) -> list[str]:
    if not values or not isinstance(values[0], list):
        cells = [_number(v) if t else f"{_ABSENT:>8}" for v, t in zip(values, there, strict=True)]
        return [f"{indent}[{', '.join(cells)}]"]
    blocks = [_lines(v, t, indent + "  ") for v, t in zip(values, there, strict=True)]
    for block in blocks[:-1]:
        block[-1] += ","
    return [f"{indent}[", *(line for block in blocks for line in block), f"{indent}]"]
