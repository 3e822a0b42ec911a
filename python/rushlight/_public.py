"""Where classes of private files say that they are: in the module that programs know them from.

Their text (`<rushlight.optim.lr_scheduler.StepLR object>`) and their pickles name that module.
"""

from __future__ import annotations

__all__ = ["publish"]


def publish(module: str, *objects: object) -> None:
    """Makes objects say that they are of a module, which has them under their own names."""
    for each in objects:
        each.__module__ = module
