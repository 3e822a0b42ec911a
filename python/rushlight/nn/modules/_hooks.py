"""Hooks that act on every module, and the calls that run hooks around `forward`."""

from __future__ import annotations

import warnings
from collections import OrderedDict

import rushlight as torch
from rushlight import Tensor

from ...utils.hooks import RemovableHandle

_global_buffer_registration_hooks: OrderedDict = OrderedDict()
_global_module_registration_hooks: OrderedDict = OrderedDict()
_global_parameter_registration_hooks: OrderedDict = OrderedDict()

_global_backward_pre_hooks: OrderedDict = OrderedDict()
_global_backward_hooks: OrderedDict = OrderedDict()
_global_forward_pre_hooks: OrderedDict = OrderedDict()
_global_forward_hooks: OrderedDict = OrderedDict()
_global_forward_hooks_always_called: OrderedDict = OrderedDict()
_global_forward_hooks_with_kwargs: OrderedDict = OrderedDict()
_global_is_full_backward_hook: bool | None = None


def _add(hooks: OrderedDict, hook) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def register_module_buffer_registration_hook(hook) -> RemovableHandle:
    """Calls `hook(module, name, buffer)` at every `register_buffer`; what it returns is
    registered instead.
    """
    return _add(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook) -> RemovableHandle:
    """Calls `hook(module, name, submodule)` at every `register_module`; what it returns is
    registered instead.
    """
    return _add(_global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook) -> RemovableHandle:
    """Calls `hook(module, name, param)` at every `register_parameter`; what it returns is
    registered instead.
    """
    return _add(_global_parameter_registration_hooks, hook)


def register_module_forward_pre_hook(hook) -> RemovableHandle:
    """Calls `hook(module, args)` before the `forward` of every module; it may return other
    arguments.
    """
    return _add(_global_forward_pre_hooks, hook)


def register_module_forward_hook(
    hook, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Calls `hook(module, args[, kwargs], output)` after the `forward` of every module."""
    handle = RemovableHandle(
        _global_forward_hooks,
        extra_dict=[_global_forward_hooks_always_called, _global_forward_hooks_with_kwargs],
    )
    _global_forward_hooks[handle.id] = hook
    if with_kwargs:
        _global_forward_hooks_with_kwargs[handle.id] = True
    if always_call:
        _global_forward_hooks_always_called[handle.id] = True
    return handle


def register_module_backward_hook(hook) -> RemovableHandle:
    """Calls `hook(module, grad_input, grad_output)` for every module; superseded by the full
    form.
    """
    return _add_global_backward(hook, False)


def register_module_full_backward_pre_hook(hook) -> RemovableHandle:
    """Calls `hook(module, grad_output)` before the gradients of any module are computed."""
    return _add(_global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook) -> RemovableHandle:
    """Calls `hook(module, grad_input, grad_output)` when a module's input gradients are known."""
    return _add_global_backward(hook, True)


def _add_global_backward(hook, full: bool) -> RemovableHandle:
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is (not full):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a "
            "global Module hook. Please use only one of them."
        )
    _global_is_full_backward_hook = full
    return _add(_global_backward_hooks, hook)


def has_global_hooks() -> bool:
    """Whether any hook runs around the call of every module."""
    return bool(
        _global_forward_hooks
        or _global_forward_pre_hooks
        or _global_backward_hooks
        or _global_backward_pre_hooks
    )


def call_with_hooks(module, args: tuple, kwargs: dict):
    """Runs `module.forward` with all hooks; hooks marked "always call" run even if something
    raises.
    """
    done: set[int] = set()
    try:
        return _run(module, args, kwargs, done)
    except Exception:
        _run_always_called(module, args, kwargs, done)
        raise


def _run(module, args: tuple, kwargs: dict, done: set[int]):
    args, kwargs = _run_forward_pre_hooks(module, args, kwargs)
    full, regular = module._get_backward_hooks()
    before = module._get_backward_pre_hooks()
    gates = None
    if full or before:
        from ._backward_gates import BackwardGates

        gates = BackwardGates(module, full, before)
        args = gates.wrap_inputs(args)
    result = module.forward(*args, **kwargs)
    for identity, hook in (*_global_forward_hooks.items(), *module._forward_hooks.items()):
        done.add(identity)
        returned = _call_forward_hook(module, identity, hook, args, kwargs, result)
        if returned is not None:
            result = returned
    if gates is not None:
        if not isinstance(result, (Tensor, tuple)):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of "
                f"Tensors but received {type(result)}",
                stacklevel=4,
            )
        result = gates.wrap_outputs(result)
    if regular:
        _attach_regular_backward_hooks(module, result, regular)
    return result


def _run_forward_pre_hooks(module, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    for identity, hook in (*_global_forward_pre_hooks.items(), *module._forward_pre_hooks.items()):
        if identity in module._forward_pre_hooks_with_kwargs:
            returned = hook(module, args, kwargs)
            if returned is None:
                continue
            if not isinstance(returned, tuple) or len(returned) != 2:
                raise RuntimeError(
                    "forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
                    f"but got {returned}."
                )
            args, kwargs = returned
        else:
            returned = hook(module, args)
            if returned is not None:
                args = returned if isinstance(returned, tuple) else (returned,)
    return args, kwargs


def _call_forward_hook(module, identity: int, hook, args: tuple, kwargs: dict, result):
    if (
        identity in module._forward_hooks_with_kwargs
        or identity in _global_forward_hooks_with_kwargs
    ):
        return hook(module, args, kwargs, result)
    return hook(module, args, result)


def _run_always_called(module, args: tuple, kwargs: dict, done: set[int]) -> None:
    for identity, hook in (*_global_forward_hooks.items(), *module._forward_hooks.items()):
        always = (
            identity in module._forward_hooks_always_called
            or identity in _global_forward_hooks_always_called
        )
        if not always or identity in done:
            continue
        try:
            _call_forward_hook(module, identity, hook, args, kwargs, None)
        except Exception as error:
            warnings.warn(
                "module forward hook with ``always_call=True`` raised an exception that was "
                "silenced "
                f"as another error was raised in forward: {error!s}",
                stacklevel=4,
            )


def _attach_regular_backward_hooks(module, result, hooks: list) -> None:
    """Registers the older kind of backward hook on the node that made the first output."""
    found = result
    while not isinstance(found, torch.Tensor):
        if isinstance(found, dict):
            found = next(value for value in found.values() if isinstance(value, Tensor))
        else:
            found = found[0]
    node = found.grad_fn
    if node is None:
        return
    for hook in hooks:
        node.register_hook(_bind(hook, module))


def _bind(hook, module):
    def bound(grad_input, grad_output):
        return hook(module, grad_input, grad_output)

    return bound
