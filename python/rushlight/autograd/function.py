"""Functions with a gradient of their own.

class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * grad

y = Cube.apply(x)
"""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable
from typing import Any

from rushlight import _C

__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "FunctionMeta",
    "InplaceFunction",
    "NestedIOFunction",
    "once_differentiable",
]

AUTOGRAD_FUNCTION_COUNTER = itertools.count()


class FunctionCtx:
    """What forward and backward of one call share."""

    def save_for_backward(self, *tensors: Any) -> None:
        """Keeps arguments or results for backward, which finds them in `saved_tensors`."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keeps tensors for jvp."""
        for tensor in tensors:
            if not isinstance(tensor, _C.Tensor) and tensor is not None:
                raise TypeError(
                    "save_for_forward expects all arguments to be tensors; you should save "
                    "non-tensors as attributes on ctx."
                )
        self.saved_for_forward = tensors
        if self.to_save is None:  # jvp finds them where backward finds its own
            self.to_save = tensors

    def mark_dirty(self, *args: Any) -> None:
        """Names the arguments that forward wrote in place; they must be results too."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: Any) -> None:
        """Names the results that have no gradient."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether gradients that nobody gave reach backward as zeros (else as None)."""
        self.materialize_grads = value

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Does nothing: views are found without being named."""
        warnings.warn(
            "mark_shared_storage is deprecated. Tensors with shared storages are automatically "
            "tracked. Note that calls to `set_()` are not tracked",
            FutureWarning,
            stacklevel=2,
        )


class _HookMixin:
    @staticmethod
    def _register_hook(backward_hooks: Any, hook: Callable) -> tuple:
        from collections import OrderedDict

        from rushlight.utils.hooks import RemovableHandle

        if backward_hooks is None:
            backward_hooks = OrderedDict()
        handle = RemovableHandle(backward_hooks)
        backward_hooks[handle.id] = hook
        return backward_hooks, handle


class BackwardCFunction(_C._FunctionBase, FunctionCtx, _HookMixin):
    """The context of a call, which is also the node of the graph."""

    boxed_grads_call = False

    def apply(self, *args: Any) -> Any:
        """Runs the user's backward; the engine calls it."""
        cls = self._forward_cls
        backward, vjp = cls.backward, cls.vjp
        has_backward = backward is not Function.backward
        has_vjp = vjp is not Function.vjp
        if has_backward and has_vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You "
                "should only implement one of them."
            )
        if not has_backward and not has_vjp and cls.jvp is not Function.jvp:
            return self._transposed_jvp(args)
        return (vjp if has_vjp else backward)(self, *args)

    def _transposed_jvp(self, gradients: tuple) -> tuple:
        """Backward of a function that only tells forward mode: jvp is linear, and its transpose
        what backward would give.
        """
        import rushlight as torch

        with torch.enable_grad():
            tangents = [
                torch.zeros(shape, dtype=dtype, requires_grad=wanted) if wanted else None
                for (shape, dtype), wanted in zip(
                    self._argument_forms, self.needs_input_grad, strict=True
                )
            ]
            results = self._forward_cls.jvp(self, *tangents)
        results = results if isinstance(results, tuple) else (results,)
        pairs = [
            (result, gradient)
            for result, gradient in zip(results, gradients, strict=False)
            if gradient is not None and result is not None and result.requires_grad
        ]
        given = [tangent for tangent in tangents if tangent is not None]
        found = [None] * len(given)
        if pairs:
            found = torch.autograd.grad(
                [result for result, _ in pairs],
                given,
                [gradient for _, gradient in pairs],
                create_graph=torch.is_grad_enabled(),
                allow_unused=True,
            )
        rest = iter(found)
        return tuple(None if tangent is None else next(rest) for tangent in tangents)

    def apply_boxed(self, *args: Any) -> Any:
        """Runs the user's backward with one list of gradients, where boxed_grads_call is set."""
        return self.apply(*args)

    def apply_jvp(self, *args: Any) -> Any:
        return self._forward_cls.jvp(self, *args)


class _ClearingFunction(BackwardCFunction):
    """The context of a function that sets clear_saved_tensors_on_access."""

    _was_read = False

    @property
    def saved_tensors(self) -> tuple:
        """What save_for_backward kept, once."""
        if self._was_read:
            raise RuntimeError(
                "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True "
                "is set on the autograd.Function. Either access saved_tensors only once, or set "
                "clear_saved_tensors_on_access=False."
            )
        self._was_read = True
        tensors = super().saved_tensors
        self.maybe_clear_saved_tensors()
        return tensors


class FunctionMeta(type):
    """Gives each function the class of its contexts."""

    def __init__(cls, name: str, bases: tuple, attrs: dict) -> None:
        members = {
            "_forward_cls": cls,
            "boxed_grads_call": getattr(cls, "boxed_grads_call", False),
        }
        clears = getattr(cls, "clear_saved_tensors_on_access", False)
        base = _ClearingFunction if clears else BackwardCFunction
        cls._backward_cls = type(name + "Backward", (base,), members)
        cls._autograd_function_id = next(AUTOGRAD_FUNCTION_COUNTER)
        super().__init__(name, bases, attrs)


class _SingleLevelFunction(_C._FunctionBase, FunctionCtx, _HookMixin, metaclass=FunctionMeta):
    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Computes the results: forward(ctx, *args), or forward(*args) beside a setup_context."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Any) -> Any:
        """Prepares ctx for backward, after a forward that takes no ctx."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Gives one gradient an argument of forward, from one a result."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    # vjp is another name of backward.
    @staticmethod
    def vjp(ctx: Any, *grad_outputs: Any) -> Any:
        return _SingleLevelFunction.backward(ctx, *grad_outputs)

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Forward mode; the derivatives of the results from those of the arguments."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with "
            "forward mode AD."
        )


class Function(_SingleLevelFunction):
    """Base of functions with a gradient of their own; call them by `apply`."""

    generate_vmap_rule = False
    # Backward gets one list of gradients, ctx and [g, ...], which it may empty to free them.
    boxed_grads_call = False
    # What save_for_backward kept can be read once, and is free then unless the graph is kept.
    clear_saved_tensors_on_access = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{self.__class__} should not be instantiated. Methods on autograd functions are all "
            "static, so you should invoke them on the class itself. Instantiating an autograd "
            "function will raise an error in a future version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use "
            "new-style autograd function with static forward method. "
            "(Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod "
            "or set generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Runs forward and records the call where an argument requires grad."""
        if cls.setup_context is not _SingleLevelFunction.setup_context:
            args = _bind_defaults(cls.forward, *args, **kwargs)
        elif kwargs:
            raise TypeError(f"{cls.__name__}.apply() takes no keyword arguments")
        if _C._len_torch_function_stack() and _vmap_active():
            from rushlight._functorch._batch_function import apply_batched

            return apply_batched(cls, super().apply, args)
        results = super().apply(*args)
        if cls.backward is Function.backward and cls.vjp is Function.vjp:
            _note_arguments(results, args)
        return results


def _note_arguments(results: Any, args: tuple) -> None:
    """Keeps what the tangents of a call's arguments would look like."""
    for result in results if isinstance(results, tuple) else (results,):
        node = getattr(result, "grad_fn", None)
        if isinstance(node, BackwardCFunction):
            node._argument_forms = [
                (arg.shape, arg.dtype) if isinstance(arg, _C.Tensor) else (None, None)
                for arg in args
            ]


def _vmap_active() -> bool:
    """Whether some vmap is in force: its module is loaded, then."""
    import sys

    module = sys.modules.get("rushlight._functorch._batched")
    return module is not None and bool(module.active_levels())


def _bind_defaults(function: Callable, *args: Any, **kwargs: Any) -> tuple:
    if not kwargs and function.__code__.co_argcount == len(args):
        return args
    import inspect

    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args


def _is_setup_context_defined(function: Callable) -> bool:
    return function is not _SingleLevelFunction.setup_context


class _FailLater(Function):
    """Hands tensors on; an error when somebody differentiates through it."""

    @staticmethod
    def forward(ctx: Any, message: str, *tensors: Any) -> Any:
        ctx.message = message
        return tuple(tensor.detach() for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(ctx.message)


def once_differentiable(fn: Callable) -> Callable:
    """Decorates a backward that is no graph of operators: differentiating it is an error."""

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any) -> Any:
        enabled = _C.is_grad_enabled()
        _C._set_grad_enabled(False)
        try:
            outputs = fn(ctx, *args)
        finally:
            _C._set_grad_enabled(enabled)
        if not enabled or not any(isinstance(a, _C.Tensor) and a.requires_grad for a in args):
            return outputs
        single = not isinstance(outputs, tuple)
        outputs = (outputs,) if single else outputs
        positions = [i for i, output in enumerate(outputs) if output is not None]
        tensors = [outputs[i].detach().requires_grad_() for i in positions]
        failing = _FailLater.apply(
            "trying to differentiate twice a function that was marked with @once_differentiable",
            *tensors,
        )
        marked = list(outputs)
        for position, tensor in zip(positions, failing, strict=False):
            marked[position] = tensor
        return marked[0] if single else tuple(marked)

    return wrapper


class InplaceFunction(Function):
    """Kept for old code: a Function that remembers whether it works in place."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


def _map_nested(value: Any, visit: Callable) -> Any:
    if isinstance(value, _C.Tensor):
        return visit(value)
    if isinstance(value, dict):
        return {key: _map_nested(item, visit) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_map_nested(item, visit) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(_map_nested(item, visit) for item in value)
    return value


class NestedIOFunction(Function):
    """Kept for old code; a plain Function here."""

    def forward_extended(self, *input: Any) -> None:
        """What old subclasses define in place of forward."""
        raise NotImplementedError

    def backward_extended(self, *grad_output: Any) -> None:
        """What old subclasses define in place of backward."""
        raise NotImplementedError
