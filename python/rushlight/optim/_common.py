"""What the steps of several optimizers share."""

from __future__ import annotations

import rushlight as torch
from rushlight import Tensor

from .optimizer import _get_scalar_dtype

_FUSED_DTYPES = frozenset((torch.float32, torch.float64, torch.bfloat16, torch.float16))


def check_lr(lr) -> None:
    """Raises unless the learning rate is a number of at least 0, or a tensor of one element."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    check_at_least_zero(lr, "learning rate")


def check_at_least_zero(value, name: str) -> None:
    """Raises unless 0 <= value."""
    if not 0.0 <= value:
        raise ValueError(f"Invalid {name}: {value}")


def check_betas(betas) -> None:
    """Raises unless both averages' decay rates are in [0, 1)."""
    for index, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {index}: {beta}")


def check_fused(fused, foreach, differentiable: bool) -> None:
    """Raises where flags exclude each other."""
    if fused:
        if differentiable:
            raise RuntimeError("`fused` does not support `differentiable`")
        if foreach:
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def check_differentiable_foreach(foreach, differentiable: bool) -> None:
    """Raises where a multi-tensor step would have to be differentiable."""
    if foreach and differentiable:
        raise RuntimeError("`foreach` does not support `differentiable`")


def check_fused_params(groups: list[dict]) -> None:
    """Raises unless a fused step can update every parameter."""
    for group in groups:
        for parameter in group["params"]:
            if not torch.is_floating_point(parameter):
                raise RuntimeError(
                    "`fused=True` requires all the params to be floating point Tensors of "
                    "supported "
                    "devices: ['cpu', 'cuda', 'xpu', 'mps', 'hpu', 'mtia'] but "
                    f"{parameter.dtype} and {parameter.device.type}"
                )


def fused(name: str):
    """The native operator that steps all parameters in one call; None where this build lacks it."""
    return getattr(torch, name, None)


def fits_fused(params: list[Tensor], grads: list[Tensor]) -> bool:
    """Whether one native call can update all of them."""
    for parameter, gradient in zip(params, grads):
        dtype = parameter.dtype
        if dtype not in _FUSED_DTYPES or gradient.dtype != dtype or not parameter.is_cpu:
            return False
    return not any(gradient.is_sparse for gradient in grads)


def check_steps(state_steps: list) -> None:
    """Raises unless all step counters are tensors."""
    if not all(isinstance(step, Tensor) for step in state_steps):
        raise RuntimeError(
            "API has changed, `state_steps` argument must contain a list of singleton tensors"
        )


def check_capturable(params: list[Tensor], *others: list[Tensor]) -> None:
    """Raises unless parameters and counters are on devices whose work can be captured."""
    devices = ["cuda", "xpu", "hpu", "privateuseone", "xla"]
    for group in zip(params, *others):
        if any(tensor.device.type not in devices for tensor in group):
            raise AssertionError(
                "If capturable=True, params and state_steps must be on supported devices: "
                f"{devices}."
            )


def new_step(parameter: Tensor, capturable: bool, fused: bool | None = None) -> Tensor:
    """A step counter at 0: on the CPU, unless the step itself runs on the device."""
    if capturable or fused:
        dtype = _get_scalar_dtype(fused)
        return torch.zeros((), dtype=dtype, device=parameter.device)
    return torch.tensor(0.0, dtype=_get_scalar_dtype())


def zeros_for(parameter: Tensor) -> Tensor:
    """Zeros laid out as the parameter."""
    return torch.zeros_like(parameter, memory_format=torch.preserve_format)


def advance(state_steps: list[Tensor]) -> None:
    """Adds 1 to every counter."""
    for step in state_steps:
        step += 1


def as_real(*tensors: Tensor) -> list[Tensor]:
    """Views of complex tensors as pairs of real numbers."""
    return [torch.view_as_real(t) if t.is_complex() else t for t in tensors]


def upgrade_steps(state: dict, groups: list[dict], default_of) -> None:
    """Makes tensors of counters that older files hold as numbers."""
    values = [value for value in state.values() if isinstance(value, dict)]
    if values and "step" in values[0] and not isinstance(values[0]["step"], Tensor):
        for value in values:
            value["step"] = torch.tensor(float(value["step"]), dtype=_get_scalar_dtype())
    for group in groups:
        for name, default in default_of.items():
            group.setdefault(name, default)


def collect(group: dict, name: str) -> tuple[list[Tensor], list[Tensor], bool]:
    """The parameters with gradients, those gradients, and whether any is complex; none sparse."""
    params, grads, has_complex = [], [], False
    for parameter in group["params"]:
        gradient = parameter.grad
        if gradient is None:
            continue
        if gradient.is_sparse:
            raise RuntimeError(f"{name} does not support sparse gradients")
        has_complex = has_complex or parameter.is_complex()
        params.append(parameter)
        grads.append(gradient)
    return params, grads, has_complex
