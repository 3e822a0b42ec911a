"""Limits on gradients, in place."""

from __future__ import annotations

import rushlight as torch
from rushlight import Tensor

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
]


def _listed(tensors) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _check_foreach(foreach: bool | None, tensors: list[Tensor]) -> None:
    """Multi-tensor forms are asked for by flag; here both ways compute the same."""
    if foreach:
        for tensor in tensors:
            if tensor.layout != torch.strided:
                raise RuntimeError(
                    f"foreach=True was passed, but can't use the foreach API on {tensor.layout} "
                    "tensors"
                )


def get_total_norm(
    tensors,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all tensors taken as one vector."""
    tensors = _listed(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return torch.tensor(0.0)
    with torch.no_grad():
        _check_foreach(foreach, tensors)
        norms = [torch.linalg.vector_norm(tensor, norm_type) for tensor in tensors]
        device = tensors[0].device
        total = torch.linalg.vector_norm(
            torch.stack([norm.to(device) for norm in norms]), norm_type
        )
    if error_if_nonfinite and torch.logical_or(total.isnan(), total.isinf()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, "
            "so it "
            "cannot be clipped. To disable this error and scale the gradients by the non-finite "
            "norm "
            "anyway, set `error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(
    parameters, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scales gradients by max_norm / (total_norm + 1e-6), where that is below 1."""
    grads = [p.grad for p in _listed(parameters) if p.grad is not None]
    if not grads:
        return
    with torch.no_grad():
        _check_foreach(foreach, grads)
        # A factor of 1 is multiplied, too: asking whether to skip would wait for the device.
        factor = torch.clamp(float(max_norm) / (total_norm + 1e-6), max=1.0)
        for grad in grads:
            grad.mul_(factor.to(grad.device))


def clip_grad_norm_(
    parameters,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales all gradients so that their joint norm is at most `max_norm`; gives the norm
    before.
    """
    if not isinstance(parameters, Tensor):
        given, parameters = parameters, list(parameters)
        if not parameters and not hasattr(given, "__len__"):
            import warnings

            warnings.warn(
                "`parameters` is an empty generator, no gradient clipping will occur.",
                stacklevel=3,
            )
    max_norm = float(max_norm)
    grads = [p.grad for p in _listed(parameters) if p.grad is not None]
    total_norm = get_total_norm(grads, norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total_norm, foreach)
    return total_norm


def clip_grad_norm(
    parameters,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The older name of `clip_grad_norm_`."""
    import warnings

    warnings.warn(
        "torch.nn.utils.clip_grad_norm is now deprecated in favor of "
        "torch.nn.utils.clip_grad_norm_.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters, clip_value: float, foreach: bool | None = None) -> None:
    """Limits every element of the gradients to [-clip_value, clip_value]."""
    clip_value = float(clip_value)
    grads = [p.grad for p in _listed(parameters) if p.grad is not None]
    with torch.no_grad():
        _check_foreach(foreach, grads)
        for grad in grads:
            grad.clamp_(min=-clip_value, max=clip_value)
