"""Helpers around training: data loading, checkpointing, hooks."""

__all__ = ["checkpoint", "data", "dlpack", "hooks"]


def __getattr__(name: str) -> object:
    """Imports a submodule at its first use, so that importing the package stays cheap."""
    if name in __all__:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
