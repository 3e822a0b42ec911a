"""rearrange: axes named in a pattern, moved, split and joined."""

from __future__ import annotations

import math
import re

from rushlight import Tensor


def rearrange(
    tensor: Tensor | list[Tensor] | tuple[Tensor, ...], pattern: str, **axes_lengths: int
) -> Tensor:
    """A view or copy with its axes as the pattern says: rearrange(x, "b (h w) -> h w b", h=2).

    `(a b)` is an axis made of several, `...` stands for axes without names, `1` for an axis of size
    one. Sizes that do not follow from the tensor are given by name. A list is stacked first.
    """
    if not isinstance(tensor, Tensor):
        import rushlight as torch

        tensor = torch.stack(tuple(tensor))
    left, right = _parse(pattern)
    names, sizes = _split_sizes(tensor, left, pattern, axes_lengths)
    wanted = _flat(right, names)
    if sorted(name for name in names if sizes[name] != 1 or name in wanted) != sorted(wanted):
        missing = set(names) ^ set(wanted)
        raise ValueError(
            f"Identifiers only on one side of rearrange expression {pattern!r} (should be on "
            f"both): {sorted(missing)}"
        )
    split = tensor.reshape([sizes[name] for name in names])
    order = [names.index(name) for name in wanted]
    dropped = [index for index in range(len(names)) if index not in order]
    moved = split.permute(order + dropped)
    result = []
    for group in right:
        if group == ["..."]:
            result += [sizes[name] for name in names if name.startswith("...")]
        else:
            result.append(math.prod(sizes[name] for name in _flat([group], names)))
    return moved.reshape(result)


def _parse(pattern: str) -> tuple[list[list[str]], list[list[str]]]:
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError(f"rearrange pattern must contain one '->', but got {pattern!r}")
    return _parse_side(sides[0], pattern), _parse_side(sides[1], pattern)


def _parse_side(side: str, pattern: str) -> list[list[str]]:
    """Groups of names, one for each axis of that side."""
    groups: list[list[str]] = []
    inside: list[str] | None = None
    seen: set[str] = set()
    for token in re.findall(r"\.\.\.|[()]|\w+|\S", side):
        if token == "(":
            if inside is not None:
                raise ValueError(f"brackets inside brackets in rearrange pattern {pattern!r}")
            inside = []
        elif token == ")":
            if inside is None:
                raise ValueError(f"unbalanced parentheses in rearrange pattern {pattern!r}")
            groups.append(inside)
            inside = None
        elif token == "..." or token == "1" or token.isidentifier():
            if token != "1" and token in seen:
                raise ValueError(f"{token!r} appears twice in a side of rearrange {pattern!r}")
            seen.add(token)
            names = [] if token == "1" else [token]
            if inside is not None:
                inside += names
            else:
                groups.append(names)
        else:
            raise ValueError(f"unexpected {token!r} in rearrange pattern {pattern!r}")
    if inside is not None:
        raise ValueError(f"unbalanced parentheses in rearrange pattern {pattern!r}")
    return groups


def _flat(groups: list[list[str]], names: list[str]) -> list[str]:
    """The axes in order, those that the ellipsis stands for included."""
    result: list[str] = []
    for group in groups:
        for name in group:
            if name == "...":
                result += [each for each in names if each.startswith("...")]
            else:
                result.append(name)
    return result


def _split_sizes(
    tensor: Tensor, left: list[list[str]], pattern: str, given: dict[str, int]
) -> tuple[list[str], dict[str, int]]:
    """The elementary axes of the tensor, in order, and their sizes."""
    extra = tensor.dim() - (len(left) - (1 if ["..."] in left else 0))
    if extra < 0 or (extra > 0 and ["..."] not in left):
        raise ValueError(
            f"rearrange {pattern!r} names {len(left)} axes, but the tensor has {tensor.dim()}"
        )
    names: list[str] = []
    sizes = dict(given)
    position = 0
    for group in left:
        if group == ["..."]:
            for index in range(extra):
                names.append(f"...{index}")
                sizes[names[-1]] = tensor.shape[position]
                position += 1
            continue
        _fit_group(group, tensor.shape[position], sizes, pattern)
        names += group
        position += 1
    unused = set(given) - set(names)
    if unused:
        raise ValueError(f"rearrange {pattern!r} has no axes {sorted(unused)}")
    return names, sizes


def _fit_group(group: list[str], size: int, sizes: dict[str, int], pattern: str) -> None:
    unknown = [name for name in group if name not in sizes]
    known = math.prod(sizes[name] for name in group if name in sizes)
    if len(unknown) > 1:
        raise ValueError(f"rearrange {pattern!r}: the sizes of {unknown} do not follow")
    if unknown and known and size % known == 0:
        sizes[unknown[0]] = size // known
    elif unknown or known != size:
        raise ValueError(
            f"rearrange {pattern!r}: axis of size {size} is not made of {group}, of which "
            f"{known} is given"
        )
