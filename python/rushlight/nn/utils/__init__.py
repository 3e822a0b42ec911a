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


def _bind_norms() -> None:
    """Has the names of functions mean these, not the modules of the same names that hold them."""
    from .spectral_norm import remove_spectral_norm, spectral_norm
    from .weight_norm import remove_weight_norm, weight_norm

    for function in (spectral_norm, remove_spectral_norm, weight_norm, remove_weight_norm):
        globals()[function.__name__] = function


def __getattr__(name: str):
    """Imports what needs modules, or is rarely needed, at its first use."""
    if name in _SUBMODULES:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    if name.startswith("fuse_") and name in __all__:
        from . import fusion

        return getattr(fusion, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
