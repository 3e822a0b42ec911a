"""Choices about how modules convert their parameters."""

from __future__ import annotations

_choices = {"overwrite": False, "swap": False}


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether conversions of modules make new parameters rather than change those they have."""
    _choices["overwrite"] = value


def get_overwrite_module_params_on_conversion() -> bool:
    """What set_overwrite_module_params_on_conversion was given last."""
    return _choices["overwrite"]


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Kept for programs that set it: parameters keep their identity in conversions anyway."""
    _choices["swap"] = value


def get_swap_module_params_on_conversion() -> bool:
    """What set_swap_module_params_on_conversion was given last."""
    return _choices["swap"]
