"""Functions of functions: gradients, Jacobians, products with them, and maps over a dimension."""

from __future__ import annotations

import importlib as _importlib

_HOME = {
    "_functorch.eager_transforms": (
        "debug_unwrap",
        "functionalize",
        "grad",
        "grad_and_value",
        "hessian",
        "jacfwd",
        "jacrev",
        "jvp",
        "linearize",
        "vjp",
    ),
    "_functorch.batch_norm_replacement": ("replace_all_batch_norm_modules_",),
    "_functorch.functional_call": ("functional_call", "stack_module_state"),
    "_functorch._rearrange": ("rearrange",),
    "_functorch.vmap": ("vmap",),
}
_MODULES = {name: module for module, names in _HOME.items() for name in names}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    found = getattr(_importlib.import_module(f"rushlight.{_MODULES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
