"""Helpers around modules: clipping, flattening, sequences, parametrizations."""

from __future__ import annotations

from .clip_grad import (
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from .convert_parameters import parameters_to_vector, vector_to_parameters
from .init import skip_init
from .memory_format import (
    convert_conv2d_weight_memory_format,
    convert_conv3d_weight_memory_format,
)

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "convert_conv2d_weight_memory_format",
    "convert_conv3d_weight_memory_format",
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
    "fusion",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "prune",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "skip_init",
    "spectral_norm",
    "stateless",
    "vector_to_parameters",
    "weight_norm",
]

_SUBMODULES = ("fusion", "parametrizations", "parametrize", "prune", "rnn", "stateless")


def __getattr__(name: str):
    """Imports what needs modules, or is rarely needed, at its first use."""
    if name in _SUBMODULES:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    if name in ("spectral_norm", "remove_spectral_norm"):
        from . import _spectral_norm

        return getattr(_spectral_norm, name)
    if name.startswith("fuse_") and name in __all__:
        from . import fusion

        return getattr(fusion, name)
    if name in ("weight_norm", "remove_weight_norm"):
        from . import _weight_norm

        return getattr(_weight_norm, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
