"""What old data loading programs import."""

from __future__ import annotations

import warnings

__all__ = ["worker_init_fn"]


def worker_init_fn(worker_id: int) -> None:
    """Does nothing: data loaders set their workers up themselves."""
    warnings.warn(
        "Usage of backward_compatibility.worker_init_fn is deprecated as DataLoader automatically "
        "applies sharding in every worker",
        stacklevel=2,
    )
