"""Handles that take a registered hook away again."""

from __future__ import annotations

import weakref
from collections import OrderedDict

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]


class RemovableHandle:
    """Removes the hook it was returned for, by `remove()` or at the end of a `with` block."""

    id: int
    next_id: int = 0

    def __init__(self, hooks_dict: dict, *, extra_dict: object = None) -> None:
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        self.extra_dict_ref: tuple = ()
        if isinstance(extra_dict, dict):
            self.extra_dict_ref = (weakref.ref(extra_dict),)
        elif isinstance(extra_dict, list):
            self.extra_dict_ref = tuple(weakref.ref(each) for each in extra_dict)

    def remove(self) -> None:
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self) -> tuple:
        return self.hooks_dict_ref(), self.id, tuple(ref() for ref in self.extra_dict_ref)

    def __setstate__(self, state: tuple) -> None:
        # A weak reference cannot be pickled, so the dictionaries travel; a lost one is replaced
        # by an empty one.
        hooks, self.id = state[0], state[1]
        extra = state[2] if len(state) > 2 else ()
        self.hooks_dict_ref = weakref.ref(OrderedDict() if hooks is None else hooks)
        self.extra_dict_ref = tuple(weakref.ref(OrderedDict() if d is None else d) for d in extra)
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, type: object, value: object, tb: object) -> None:
        self.remove()


def unserializable_hook(f):
    """Marks a hook that serialization leaves out with a warning."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor) -> None:
    """Warns that the hooks of `tensor` are not serialized, unless each is marked as such."""
    for hook in (getattr(tensor, "_backward_hooks", None) or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            import warnings

            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized. If this is expected, "
                "you can decorate the function with @torch.utils.hooks.unserializable_hook "
                "to suppress this warning",
                stacklevel=2,
            )
