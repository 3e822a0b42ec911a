"""Activations and dropout."""

from __future__ import annotations

import rushlight as torch
from rushlight import Tensor


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """`input` where it exceeds `threshold`, else `value`."""
    if inplace:
        return torch.threshold_(input, threshold, value)
    return torch.threshold(input, threshold, value)


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(0, x)."""
    return torch.relu_(input) if inplace else torch.relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(0, x), 6)."""
    return torch._C._nn.relu6_(input) if inplace else torch._C._nn.relu6(input)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along `dim` times the sigmoid of the second half."""
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return torch._C._nn.glu(input, dim)


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """`input` limited to [min_val, max_val]."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    nn = torch._C._nn
    return (nn.hardtanh_ if inplace else nn.hardtanh)(input, min_val, max_val)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where positive, else alpha (exp(x) - 1)."""
    nn = torch._C._nn
    return (nn.elu_ if inplace else nn.elu)(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """The self-normalising exponential linear unit (Klambauer et al., 2017)."""
    return torch.selu_(input) if inplace else torch.selu(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """max(0, x) + min(0, alpha (exp(x / alpha) - 1))."""
    return torch.celu_(input, alpha) if inplace else torch.celu(input, alpha)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where positive, else negative_slope x."""
    nn = torch._C._nn
    return (nn.leaky_relu_ if inplace else nn.leaky_relu)(input, negative_slope)


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Leaky ReLU with a slope drawn from [lower, upper] in training, and their mean otherwise."""
    return (torch.rrelu_ if inplace else torch.rrelu)(input, lower, upper, training)


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    return input - input.tanh()


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    return input / (input.abs() + 1)


def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    return input.tanh()


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return input.sigmoid()


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """x / 6 + 1 / 2 limited to [0, 1]."""
    nn = torch._C._nn
    return (nn.hardsigmoid_ if inplace else nn.hardsigmoid)(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x times its hard sigmoid."""
    nn = torch._C._nn
    return (nn.hardswish_ if inplace else nn.hardswish)(input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x times its sigmoid."""
    nn = torch._C._nn
    return (nn.silu_ if inplace else nn.silu)(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x tanh(softplus(x))."""
    nn = torch._C._nn
    return (nn.mish_ if inplace else nn.mish)(input)


def _get_softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    import warnings

    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include "
        "dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(
    input: Tensor,
    dim: int | None = None,
    _stacklevel: int = 3,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """exp(x) divided by its sum along `dim`; `input` is cast to `dtype` first."""
    if dim is None:
        dim = _get_softmax_dim("softmax", input.dim(), _stacklevel)
    return input.softmax(dim) if dtype is None else input.softmax(dim, dtype=dtype)


def softmin(
    input: Tensor,
    dim: int | None = None,
    _stacklevel: int = 3,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """The softmax of -x."""
    if dim is None:
        dim = _get_softmax_dim("softmin", input.dim(), _stacklevel)
    return (-input).softmax(dim) if dtype is None else (-input).softmax(dim, dtype=dtype)


def log_softmax(
    input: Tensor,
    dim: int | None = None,
    _stacklevel: int = 3,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """The logarithm of the softmax along `dim`; `input` is cast to `dtype` first."""
    if dim is None:
        dim = _get_softmax_dim("log_softmax", input.dim(), _stacklevel)
    return input.log_softmax(dim) if dtype is None else input.log_softmax(dim, dtype=dtype)


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """A sample of the Gumbel-softmax distribution (Jang et al., 2017; Maddison et al., 2017).

    With `hard`, one-hot in value and soft in gradient.
    """
    if eps != 1e-10:
        import warnings

        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    exponential = torch.empty_like(logits, memory_format=torch.legacy_contiguous_format)
    noise = -exponential.exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    one_hot = torch.zeros_like(logits, memory_format=torch.legacy_contiguous_format)
    one_hot = one_hot.scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft


def _check_probability(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """In training, zeroes each element with probability `p` and scales the rest by 1 / (1 - p)."""
    _check_probability(p)
    return (torch.dropout_ if inplace else torch.dropout)(input, p, training)


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Dropout that keeps the mean and variance of self-normalised inputs."""
    _check_probability(p)
    return (torch.alpha_dropout_ if inplace else torch.alpha_dropout)(input, p, training)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Alpha dropout of whole channels."""
    _check_probability(p)
    chosen = torch.feature_alpha_dropout_ if inplace else torch.feature_alpha_dropout
    return chosen(input, p, training)


def _feature_dropout(
    input: Tensor, p: float, training: bool, inplace: bool, unbatched: bool
) -> Tensor:
    """Dropout of whole channels; an input without a batch gets one for the time being."""
    if unbatched:
        input = input.unsqueeze_(0) if inplace else input.unsqueeze(0)
    result = (torch.feature_dropout_ if inplace else torch.feature_dropout)(input, p, training)
    if unbatched:
        result = result.squeeze_(0) if inplace else result.squeeze(0)
    return result


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Dropout of whole channels of a (B, C, L) or (C, L) input."""
    _check_probability(p)
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. "
            "Note that dropout1d exists to provide channel-wise dropout on inputs with 1 spatial "
            "dimension, a channel dimension, and an optional batch dimension (i.e. 2D or 3D "
            "inputs)."
        )
    return _feature_dropout(input, p, training, inplace, input.dim() == 2)


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Dropout of whole channels of a (B, C, H, W) input."""
    _check_probability(p)
    dims = input.dim()
    if dims not in (3, 4):
        _warn_dims("dropout2d", dims, 2, "3D or 4D")
    if dims == 3:
        import warnings

        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout "
            "behavior is desired - input is interpreted as shape (N, C, L), where C is the channel "
            "dim. This behavior will change in a future release to interpret the input as one "
            "without "
            "a batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise dropout "
            "behavior, please switch to using dropout1d instead.",
            stacklevel=2,
        )
    return _feature_dropout(input, p, training, inplace, False)


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Dropout of whole channels of a (B, C, D, H, W) or (C, D, H, W) input."""
    _check_probability(p)
    dims = input.dim()
    if dims not in (4, 5):
        _warn_dims("dropout3d", dims, 3, "4D or 5D")
    return _feature_dropout(input, p, training, inplace, dims == 4)


def _warn_dims(name: str, dims: int, spatial: int, expected: str) -> None:
    import warnings

    warnings.warn(
        f"{name}: Received a {dims}-D input to {name}, which is deprecated and will result in an "
        "error "
        f"in a future release. To retain the behavior and silence this warning, please use dropout "
        f"instead. Note that {name} exists to provide channel-wise dropout on inputs with "
        f"{spatial} "
        "spatial dimensions, a channel dimension, and an optional batch dimension (i.e. "
        f"{expected} "
        "inputs).",
        stacklevel=3,
    )
