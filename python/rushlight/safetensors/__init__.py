"""Safetensors files: named tensors, mapped without a copy, with every part of the header checked.

The functions are those of the `safetensors` and `safetensors.torch` packages.
"""

from rushlight.safetensors._files import (
    SafetensorError,
    load,
    load_file,
    load_model,
    safe_open,
    save,
    save_file,
    save_model,
)

__all__ = [
    "SafetensorError",
    "load",
    "load_file",
    "load_model",
    "safe_open",
    "save",
    "save_file",
    "save_model",
]
