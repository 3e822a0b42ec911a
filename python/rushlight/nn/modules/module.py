"""The base of all neural network modules."""

from __future__ import annotations

from collections import OrderedDict

from rushlight._public import publish

from ...utils.hooks import RemovableHandle
from . import _hooks
from ._conversion import Conversion
from ._hooks import (
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from ._members import Members
from ._state import EXTRA_STATE as _EXTRA_STATE_KEY_SUFFIX  # noqa: F401
from ._state import (
    State,
    T_destination,
    _IncompatibleKeys,
    _WrappedHook,
)
from ._traversal import Traversal

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

# Read at every call, so bound once; these objects are changed in place and never replaced.
_forward_hooks = _hooks._global_forward_hooks
_forward_pre_hooks = _hooks._global_forward_pre_hooks
_backward_hooks = _hooks._global_backward_hooks
_backward_pre_hooks = _hooks._global_backward_pre_hooks


# For programs that register hooks of their own.
_global_buffer_registration_hooks = _hooks._global_buffer_registration_hooks
_global_module_registration_hooks = _hooks._global_module_registration_hooks
_global_parameter_registration_hooks = _hooks._global_parameter_registration_hooks


def _addindent(text: str, spaces: int) -> str:
    """Indents every line but the first."""
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * spaces + line for line in rest)])


class Module(Members, Traversal, Conversion, State):
    """Something that computes, and owns parameters, buffers and other modules.

    A subclass calls `super().__init__()` first, assigns its members as attributes and defines
    `forward`.
    """

    T_destination = T_destination
    dump_patches: bool = False
    training: bool
    call_super_init: bool = False
    _compiled_call_impl = None

    def __init__(self, *args, **kwargs) -> None:
        if not self.call_super_init:
            if kwargs:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument "
                    f"'{next(iter(kwargs))}'"
                )
            if args:
                raise TypeError(
                    f"{type(self).__name__}.__init__() takes 1 positional argument but "
                    f"{len(args) + 1} were given"
                )
        self.__dict__.update(
            training=True,
            _parameters={},
            _buffers={},
            _non_persistent_buffers_set=set(),
            _backward_pre_hooks=OrderedDict(),
            _backward_hooks=OrderedDict(),
            _is_full_backward_hook=None,
            _forward_hooks=OrderedDict(),
            _forward_hooks_with_kwargs=OrderedDict(),
            _forward_hooks_always_called=OrderedDict(),
            _forward_pre_hooks=OrderedDict(),
            _forward_pre_hooks_with_kwargs=OrderedDict(),
            _state_dict_hooks=OrderedDict(),
            _state_dict_pre_hooks=OrderedDict(),
            _load_state_dict_pre_hooks=OrderedDict(),
            _load_state_dict_post_hooks=OrderedDict(),
            _modules={},
        )
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def forward(self, *input) -> None:
        """What the module computes; every subclass defines it."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    # Set by compile(): what calls go through.
    _compiled_call_impl = None

    def _call_impl(self, *args, **kwargs):
        if (
            self._compiled_call_impl
            or self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or _forward_hooks
            or _forward_pre_hooks
            or _backward_hooks
            or _backward_pre_hooks
        ):
            if self._compiled_call_impl is not None:
                return self._compiled_call_impl(*args, **kwargs)
            return _hooks.call_with_hooks(self, args, kwargs)
        return self.forward(*args, **kwargs)

    __call__ = _call_impl

    def compile(self, *args, **kwargs) -> None:
        """Compiles the module's calls in place; takes what `torch.compile` takes."""
        from ...compiler import compile

        def call(*call_args, **call_kwargs):
            return _hooks.call_with_hooks(self, call_args, call_kwargs)

        call.__name__ = call.__qualname__ = f"{type(self).__name__}.__call__"
        self.__dict__["_compiled_call_impl"] = compile(call, *args, **kwargs)

    def __getstate__(self) -> dict:
        state = self.__dict__.copy()
        state.pop("_compiled_call_impl", None)  # copies are not compiled
        return state

    # Hooks around the call.

    def register_forward_pre_hook(
        self, hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, args)` before `forward`; what it returns replaces the arguments.

        With `with_kwargs`, calls `hook(module, args, kwargs)`, which returns None or both.
        """
        handle = RemovableHandle(
            self._forward_pre_hooks, extra_dict=self._forward_pre_hooks_with_kwargs
        )
        self._forward_pre_hooks[handle.id] = hook
        if with_kwargs:
            self._forward_pre_hooks_with_kwargs[handle.id] = True
        if prepend:
            self._forward_pre_hooks.move_to_end(handle.id, last=False)
        return handle

    def register_forward_hook(
        self,
        hook,
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Calls `hook(module, args, output)` after `forward`; what it returns replaces the output.

        With `with_kwargs`, calls `hook(module, args, kwargs, output)`. With `always_call`, the
        hook runs
        even if `forward` raises.
        """
        handle = RemovableHandle(
            self._forward_hooks,
            extra_dict=[self._forward_hooks_with_kwargs, self._forward_hooks_always_called],
        )
        self._forward_hooks[handle.id] = hook
        if with_kwargs:
            self._forward_hooks_with_kwargs[handle.id] = True
        if always_call:
            self._forward_hooks_always_called[handle.id] = True
        if prepend:
            self._forward_hooks.move_to_end(handle.id, last=False)
        return handle

    def register_full_backward_pre_hook(self, hook, prepend: bool = False) -> RemovableHandle:
        """Calls `hook(module, grad_output)` before the module's gradients are computed."""
        handle = RemovableHandle(self._backward_pre_hooks)
        self._backward_pre_hooks[handle.id] = hook
        if prepend:
            self._backward_pre_hooks.move_to_end(handle.id, last=False)
        return handle

    def register_backward_hook(self, hook) -> RemovableHandle:
        """Calls `hook(module, grad_input, grad_output)` at the node of the output; superseded."""
        if self._is_full_backward_hook is True:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a "
                "single Module. Please use only one of them."
            )
        self._is_full_backward_hook = False
        handle = RemovableHandle(self._backward_hooks)
        self._backward_hooks[handle.id] = hook
        return handle

    def register_full_backward_hook(self, hook, prepend: bool = False) -> RemovableHandle:
        """Calls `hook(module, grad_input, grad_output)` when the gradients of the inputs are known.

        What it returns replaces them. Entries for arguments that are not tensors are None.
        """
        if self._is_full_backward_hook is False:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a "
                "single Module. Please use only one of them."
            )
        self._is_full_backward_hook = True
        handle = RemovableHandle(self._backward_hooks)
        self._backward_hooks[handle.id] = hook
        if prepend:
            self._backward_hooks.move_to_end(handle.id, last=False)
        return handle

    def _get_backward_hooks(self) -> tuple[list, list]:
        """The full and the regular hooks, those for every module first."""
        full: list = []
        regular: list = []
        if _hooks._global_is_full_backward_hook is True:
            full += _hooks._global_backward_hooks.values()
        else:
            regular += _hooks._global_backward_hooks.values()
        if self._is_full_backward_hook is True:
            full += self._backward_hooks.values()
        else:
            regular += self._backward_hooks.values()
        return full, regular

    def _get_backward_pre_hooks(self) -> list:
        return [*_hooks._global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]

    # Printing, copying.

    def _get_name(self) -> str:
        return self.__class__.__name__

    def extra_repr(self) -> str:
        """What a subclass adds to the module's printed form."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [
            f"({name}): {_addindent(repr(module), 2)}" for name, module in self._modules.items()
        ]
        if not children and len(lines) <= 1:
            return f"{self._get_name()}({extra})"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines + children) + "\n)"

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        # Modules pickled by earlier versions lack the newer tables.
        for name in (
            "_forward_pre_hooks",
            "_forward_pre_hooks_with_kwargs",
            "_forward_hooks_with_kwargs",
            "_forward_hooks_always_called",
            "_state_dict_hooks",
            "_state_dict_pre_hooks",
            "_load_state_dict_pre_hooks",
            "_load_state_dict_post_hooks",
            "_backward_pre_hooks",
        ):
            if name not in self.__dict__:
                self.__dict__[name] = OrderedDict()
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    def _replicate_for_data_parallel(self):
        replica = self.__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        replica._parameters = {}
        replica._buffers = replica._buffers.copy()
        replica._modules = replica._modules.copy()
        replica._is_replica = True
        return replica


publish(__name__, _WrappedHook, _IncompatibleKeys)
