"""Export to ONNX, which Rushlight has not: modules ask here whether they are being exported."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["export", "is_in_onnx_export"]


def is_in_onnx_export() -> bool:
    """False: nothing is exported to ONNX here."""
    return False


def export(model: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError: there is torch.export, but no ONNX."""
    raise NotImplementedError(
        f"onnx.export: ONNX is not supported, got a {type(model).__name__}; torch.export.export "
        "gives the graph of its operators"
    )
