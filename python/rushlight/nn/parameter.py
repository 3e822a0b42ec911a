"""Tensors that a module owns: parameters, buffers, and those whose shape is not known yet."""

from __future__ import annotations

from collections import OrderedDict

import rushlight as torch
from rushlight import Tensor

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "UninitializedTensorMixin",
    "is_lazy",
]

# Operations on a parameter give plain tensors, so the class takes no part in function overrides.
_no_override = torch._C._disabled_torch_function_impl


class _ParameterMeta(type(Tensor)):
    def __instancecheck__(cls, instance: object) -> bool:
        if cls is Parameter and isinstance(instance, Tensor):
            if getattr(instance, "_is_param", False):
                return True
        return super().__instancecheck__(instance)


class _BufferMeta(type(Tensor)):
    def __instancecheck__(cls, instance: object) -> bool:
        if cls is Buffer and isinstance(instance, Tensor):
            if getattr(instance, "_is_buffer", False):
                return True
        return super().__instancecheck__(instance)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that a module lists among its parameters when it is assigned as an attribute.

    Shares the memory of `data`. A subclass of Tensor other than Parameter stays of its own class
    and is marked.
    """

    __torch_function__ = _no_override

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if not isinstance(requires_grad, bool):
            raise TypeError(
                "Parameter(): argument 'requires_grad' (position 2) must be bool, not "
                f"{type(requires_grad).__name__}"
            )
        if data is None:
            data = torch.empty(0)
        if type(data) is Tensor or type(data) is Parameter:
            return Tensor._make_subclass(cls, data, requires_grad)
        marked = data.detach().requires_grad_(requires_grad)
        if type(marked) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} requires "
                "that detach() "
                f"returns an instance of the same type, but return type {type(marked).__name__} "
                "was found "
                "instead. To use the type as a Parameter, please correct the detach() semantics "
                "defined by "
                "its __torch_dispatch__() implementation."
            )
        marked._is_param = True
        return marked

    def __deepcopy__(self, memo: dict) -> Parameter:
        if id(self) in memo:
            return memo[id(self)]
        data = self.data.clone(memory_format=torch.preserve_format)
        result = type(self)(data, self.requires_grad)
        memo[id(self)] = result
        return result

    def __repr__(self) -> str:
        return "Parameter containing:\n" + Tensor.__repr__(
            self.detach().requires_grad_(self.requires_grad)
        )

    __str__ = __repr__

    def __reduce_ex__(self, proto: int) -> tuple:
        state = self.__dict__
        if not state:
            return _rebuild_parameter, (self.data, self.requires_grad, OrderedDict())
        return _rebuild_parameter_with_state, (
            self.data,
            self.requires_grad,
            OrderedDict(),
            dict(state),
        )


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: OrderedDict) -> Parameter:
    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(
    data: Tensor, requires_grad: bool, backward_hooks: OrderedDict, state: dict
) -> Parameter:
    parameter = Parameter(data, requires_grad)
    parameter.__dict__.update(state)
    return parameter


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that a module lists among its buffers when it is assigned as an attribute."""

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Tensor:
        if data is None:
            data = torch.empty(0)
        buffer = data.detach().requires_grad_(data.requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer

    __torch_function__ = _no_override


_UNINITIALIZED = (
    "Attempted to use an uninitialized parameter in {}. This error happens when you are using a "
    "`LazyModule` or explicitly manipulating `torch.nn.parameter.{}` objects. When using "
    "LazyModules "
    "Call `forward` with a dummy batch to initialize the parameters before calling torch functions"
)


class UninitializedTensorMixin:
    """What a tensor without a shape can and cannot do; `materialize` gives it one."""

    _allowed_methods = frozenset(
        {
            "__hash__",
            "size",
            "copy_",
            "is_complex",
            "is_floating_point",
            "half",
            "float",
            "double",
            "bfloat16",
            "char",
            "short",
            "int",
            "long",
            "cuda",
            "cpu",
            "to",
            "get_device",
            "_has_compatible_shallow_copy_type",
        }
    )

    def materialize(self, shape, device=None, dtype=None) -> None:
        """Becomes an ordinary parameter or buffer of `shape`, with undefined values."""
        if device is None:
            device = self.data.device
        if dtype is None:
            dtype = self.data.dtype
        self.data = torch.empty(shape, device=device, dtype=dtype)
        self.__class__ = self.cls_to_become

    @property
    def shape(self):
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually "
            "happens "
            "in `load_state_dict` when trying to load an uninitialized parameter into an "
            "initialized one. "
            "Call `forward` to initialize the parameters before accessing their attributes."
        )

    def share_memory_(self):
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to "
            "initialize the "
            "parameters before calling `module.share_memory()`."
        )

    def __repr__(self) -> str:
        return f"<{self.__class__.__name__}>"

    def __reduce_ex__(self, proto: int) -> tuple:
        return self.__class__, (self.requires_grad,)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        # Descriptors (grad, device, dtype, ...) come as the bound `__get__` and `__set__` of a
        # property.
        name = getattr(func, "__name__", "")
        if name in cls._allowed_methods or func.__class__.__name__ == "method-wrapper":
            return super().__torch_function__(func, types, args, kwargs or {})
        raise ValueError(_UNINITIALIZED.format(func, cls.__name__))


def is_lazy(param: object) -> bool:
    """Whether `param` waits for its shape."""
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad=True, device=None, dtype=None) -> UninitializedParameter:
        return Tensor._make_subclass(cls, torch.empty(0, device=device, dtype=dtype), requires_grad)

    def __deepcopy__(self, memo: dict) -> UninitializedParameter:
        if id(self) in memo:
            return memo[id(self)]
        result = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        memo[id(self)] = result
        return result


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape is not known yet."""

    cls_to_become = Tensor

    def __new__(
        cls, requires_grad=False, device=None, dtype=None, persistent=True
    ) -> UninitializedBuffer:
        result = Tensor._make_subclass(
            cls, torch.empty(0, device=device, dtype=dtype), requires_grad
        )
        result.persistent = persistent
        result._is_buffer = True
        return result
