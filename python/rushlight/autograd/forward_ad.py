"""Forward mode: dual tensors carry a tangent, and what is computed from them has one.

    with dual_level():
        dual = make_dual(primal, tangent)
        result, derivative = unpack_dual(function(dual))

A tangent is found by two passes backward when it is asked for: the derivative, along the tangents
of all dual tensors, of what depends on them. So the operators must be twice differentiable
backward, gradients are recorded inside a level also under no_grad around it, and a tangent does not
pass a no_grad or a detach inside.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import rushlight as torch
from rushlight import Tensor
from rushlight.autograd._context import DecoratorContext

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]

_current_level = -1
_grad_was_enabled = False
_duals: list[tuple[Tensor, Tensor]] = []  # of the level in force, with their tangents


class UnpackedDualTensor(NamedTuple):
    """A tensor without its tangent, and the tangent, or None."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Begins a level, in which dual tensors can be made; gives its number."""
    global _current_level, _grad_was_enabled
    if _current_level >= 0:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _current_level = 0
    _grad_was_enabled = torch.is_grad_enabled()
    torch._C._set_grad_enabled(True)
    return _current_level


def exit_dual_level(*, level: int | None = None) -> None:
    """Ends the level: its dual tensors have no tangents any more."""
    global _current_level
    wanted = _current_level if level is None else level
    if wanted < 0:
        raise RuntimeError("Dual level must be a positive number.")
    if wanted != _current_level:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is "
            "not supported."
        )
    _current_level = -1
    _duals.clear()
    torch._C._set_grad_enabled(_grad_was_enabled)


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """The tensor with a tangent of its shape, for the level in force. Its class stays."""
    if (_current_level if level is None else level) < 0 or _current_level < 0:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first."
        )
    for name, value in (("primal", tensor), ("tangent", tangent)):
        if not (value.is_floating_point() or value.is_complex()):
            raise ValueError(
                f"Expected {name} to be floating point or complex, but got: {value.dtype}"
            )
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original "
            f"Tensor, this is not supported. Tensor is of size {list(tensor.shape)} while the "
            f"given forward gradient is of size {list(tangent.shape)}."
        )
    if any(tensor is dual for dual, _ in _duals):
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the "
            f"same level {_current_level} is not supported."
        )
    with torch.enable_grad():
        dual = tensor.view_as(tensor) if tensor.requires_grad else tensor.detach().requires_grad_()
    _duals.append((dual, tangent))
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The tensor without its tangent, and the tangent: None where it depends on no dual tensor."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"unpack_dual(): argument 'tensor' must be Tensor, not {type(tensor)}")
    if (_current_level if level is None else level) < 0 or _current_level < 0:
        return UnpackedDualTensor(tensor, None)
    tangent = _tangent(tensor)
    if tangent is None:
        return UnpackedDualTensor(tensor.view_as(tensor), None)
    others = _depends_on_others(tensor)
    primal = tensor.view_as(tensor) if others else tensor.detach()
    return UnpackedDualTensor(primal, tangent if others else tangent.detach())


def _tangent(tensor: Tensor) -> Tensor | None:
    for dual, tangent in _duals:
        if tensor is dual:
            return tangent
    if not tensor.requires_grad or not _duals:
        return None
    with torch.enable_grad():
        seed = torch.zeros_like(tensor).requires_grad_()
        duals = [dual for dual, _ in _duals]
        options: dict[str, Any] = {"allow_unused": True, "create_graph": True}
        products = torch.autograd.grad(tensor, duals, seed, retain_graph=True, **options)
        used = [
            (product, tangent)
            for product, (_, tangent) in zip(products, _duals, strict=True)
            if product is not None
        ]
        if not used:
            return None
        linear = [(product, tangent) for product, tangent in used if product.requires_grad]
        if not linear:
            return torch.zeros_like(tensor)
        (found,) = torch.autograd.grad(
            [product for product, _ in linear],
            [seed],
            [tangent.to(product.dtype) for product, tangent in linear],
            **options,
        )
    return torch.zeros_like(tensor) if found is None else found


def _depends_on_others(tensor: Tensor) -> bool:
    """Whether others than the dual tensors are to be differentiated."""
    from rushlight._functorch._tape import depends_on_others

    duals = [dual for dual, _ in _duals]
    tangents = any(tangent.requires_grad for _, tangent in _duals)
    return tangents or depends_on_others([tensor], duals)


class dual_level(DecoratorContext):
    """A level for the time of a block."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *_: object) -> None:
        exit_dual_level()

    def clone(self) -> dual_level:
        """A fresh context."""
        return self.__class__()
