"""The names of `safetensors.torch`."""

from rushlight.safetensors import load, load_file, load_model, save, save_file, save_model

__all__ = ["load", "load_file", "load_model", "save", "save_file", "save_model"]
