"""What programs ask of PyTorch's tracer: which fake mode is on."""

from __future__ import annotations

from typing import Any


def active_fake_mode() -> Any:
    """The innermost FakeTensorMode that is on, or None."""
    from rushlight._subclasses.fake_tensor import FakeTensorMode
    from rushlight.utils._python_dispatch import _get_current_dispatch_mode_stack

    modes = reversed(_get_current_dispatch_mode_stack())
    return next((mode for mode in modes if isinstance(mode, FakeTensorMode)), None)


def detect_fake_mode(inputs: Any = None) -> Any:
    """The FakeTensorMode of fake tensors among the inputs, else the one that is on, or None."""
    from rushlight._subclasses.fake_tensor import maybe_get_fake_mode
    from rushlight.utils._pytree import tree_leaves

    found = (maybe_get_fake_mode(leaf) for leaf in tree_leaves(inputs))
    return next(filter(None, found), None) or active_fake_mode()
