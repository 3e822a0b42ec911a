"""How tensors are pickled, copied and seen as storages: methods of Tensor that are Python."""

from __future__ import annotations

import warnings
from collections import OrderedDict

from rushlight import _C
from rushlight._C import Tensor


def _storage_module():
    from rushlight import storage

    return storage


def _untyped_storage(self: Tensor):
    """The bytes behind the tensor."""
    _storage_module()  # gives the core the class of what it returns
    return _c_untyped_storage(self)


_c_untyped_storage = Tensor.untyped_storage


def _typed_storage(self: Tensor):
    return _storage_module().TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype)


_warned = False


def _storage(self: Tensor):
    """The storage as elements of the tensor's dtype (deprecated: see untyped_storage)."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will "
            "be the only storage class. To access UntypedStorage directly, use "
            "tensor.untyped_storage() instead of tensor.storage()",
            stacklevel=2,
        )
    return self._typed_storage()


def _share_memory_(self: Tensor) -> Tensor:
    """Moves the tensor's storage to memory that other processes can see; the tensor itself."""
    if _C._has_torch_function_unary(self):
        return _C._handle_torch_function(Tensor.share_memory_, (self,), (self,), {})
    self.untyped_storage().share_memory_()
    return self


def _is_shared(self: Tensor) -> bool:
    """Whether other processes can see the tensor's memory."""
    if _C._has_torch_function_unary(self):
        return _C._handle_torch_function(Tensor.is_shared, (self,), (self,), {})
    return self.untyped_storage().is_shared()


_c_set_ = Tensor.set_


def _set_(self: Tensor, *args: object, **kwargs: object) -> Tensor:
    """set_()
    set_(source)
    set_(source, storage_offset, size, stride)

    Makes the tensor show a tensor's memory, or a storage from an offset, by size and stride.
    """
    return _set_from(self, *args, **kwargs)


def _set_from(self: Tensor, source: object = None, *args: object, **kwargs: object) -> Tensor:
    if source is None:
        return _c_set_(self)
    if isinstance(source, Tensor):
        return _c_set_(self, source, *args, **kwargs)
    untyped = source.untyped()
    count = untyped.nbytes() // self.element_size()
    if not args and not kwargs:
        args = (0, (count,), (1,))
    flat = _C._tensor_of_storage(untyped, self.dtype, 0, (count,), (1,))
    return _c_set_(self, flat, *args, **kwargs)


def _new(self: Tensor, *args: object, **kwargs: object) -> Tensor:
    """new(*args, device=None)
    new(storage)
    new(other)
    new(size, *, device=None)

    The legacy constructor for this tensor's dtype: sizes, or data.
    """
    if "size" in kwargs:
        return self.new_empty(kwargs.pop("size"), **kwargs)
    for name in ("storage", "other"):
        if name in kwargs:
            args = (*args, kwargs.pop(name))
    if len(args) == 1 and hasattr(args[0], "untyped"):
        return self.new_empty(0).set_(args[0])
    if len(args) == 1 and not isinstance(args[0], int) and not kwargs:
        if isinstance(args[0], type(self.shape)):
            return self.new_empty(args[0])
        return self.new_tensor(args[0])
    return self.new_empty(args or (0,), **kwargs)


def _storage_type(self: Tensor) -> type:
    """The legacy class of the tensor's storage, such as FloatStorage."""
    storage = _storage_module()
    return getattr(storage, storage._LEGACY_NAMES.get(self.dtype, "UntypedStorage"))


def _own_state(self: Tensor) -> object:
    """Attributes and slots beyond the tensor itself, or None."""
    attributes = dict(self.__dict__)
    slots = {}
    for cls in type(self).__mro__:
        for name in getattr(cls, "__slots__", ()):
            if hasattr(self, name):
                slots[name] = getattr(self, name)
    if slots:
        return attributes, slots
    return attributes or None


def _reduce_plain(self: Tensor) -> tuple:
    """The function and arguments that make a plain tensor with the same data again."""
    from rushlight import _utils

    size, stride = tuple(self.shape), self.stride()
    if self.is_meta:
        return _utils._rebuild_meta_tensor_no_storage, (
            self.dtype,
            size,
            stride,
            self.requires_grad,
        )
    hooks: OrderedDict = OrderedDict()
    arguments = (self.storage_offset(), size, stride, self.requires_grad, hooks)
    if self.dtype in _storage_module()._LEGACY_NAMES:
        return _utils._rebuild_tensor_v2, (self._typed_storage(), *arguments)
    return _utils._rebuild_tensor_v3, (self.untyped_storage(), *arguments, self.dtype)


def _rebuild_from_type_v2(func, new_type: type, args: tuple, state: object) -> Tensor:
    """What func makes, as an object of class new_type with the state it had."""
    from rushlight._utils import _set_obj_state

    made = func(*args)
    if type(made) is not new_type:
        made = made.as_subclass(new_type)
    setstate = getattr(type(made), "__setstate__", Tensor.__setstate__)
    if setstate is not Tensor.__setstate__:
        made.__setstate__(state)
        return made
    return _set_obj_state(made, state)


def _reduce_ex(self: Tensor, protocol: int) -> tuple:
    if type(self) is Tensor:
        state = self.__dict__ or None
        if not state:
            return _reduce_plain(self)
    elif _C._has_torch_function_unary(self):
        return _C._handle_torch_function(Tensor.__reduce_ex__, (self,), (self, protocol), {})
    else:
        state = None
    function, arguments = _reduce_plain(self)
    return _rebuild_from_type_v2, (function, type(self), arguments, _own_state(self) or state)


def _setstate(self: Tensor, state: object) -> None:
    from rushlight._utils import _set_obj_state

    _set_obj_state(self, state)


def _deepcopy(self: Tensor, memo: dict) -> Tensor:
    """A copy of a leaf; tensors that share memory share the memory of their copies too."""
    if _C._has_torch_function_unary(self):
        return _C._handle_torch_function(Tensor.__deepcopy__, (self,), (self, memo), {})
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
            "protocol at the moment. If you were attempting to deepcopy a module, this may be "
            "because of a tensor that an earlier forward pass left in it: detach it first."
        )
    if id(self) in memo:
        return memo[id(self)]
    import copy

    with _C.DisableTorchFunctionSubclass():
        if self.is_meta:
            fresh = self.detach().clone()
        else:
            storage = copy.deepcopy(self.untyped_storage(), memo)
            fresh = _C._tensor_of_storage(
                storage, self.dtype, self.storage_offset(), self.shape, self.stride()
            )
        if type(self) is not Tensor:
            fresh = Tensor._make_subclass(type(self), fresh)
        if self.requires_grad:
            fresh.requires_grad_()
        memo[id(self)] = fresh
        if self.grad is not None:
            fresh.grad = copy.deepcopy(self.grad, memo)
        if self.__dict__:
            fresh.__dict__.update(copy.deepcopy(self.__dict__, memo))
    return fresh


Tensor.untyped_storage = _untyped_storage
Tensor._typed_storage = _typed_storage
Tensor.storage = _storage
Tensor.storage_type = _storage_type
Tensor.set_ = _set_
Tensor.share_memory_ = _share_memory_
Tensor.is_shared = _is_shared
Tensor.new = _new
Tensor.__reduce_ex__ = _reduce_ex
Tensor.__setstate__ = _setstate
Tensor.__deepcopy__ = _deepcopy
