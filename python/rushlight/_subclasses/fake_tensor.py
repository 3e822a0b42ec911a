"""FakeTensor: a shape, a dtype and a device without elements, which operators take and give.

A fake tensor wraps a meta tensor and tells another device. In a FakeTensorMode all that factories
and operators give is fake, so a model can be made and run for its shapes alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import rushlight as torch
from rushlight import Tensor
from rushlight.overrides import TorchFunctionMode
from rushlight.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from rushlight.utils._pytree import tree_leaves, tree_map_only

aten = torch.ops.aten


class UnsupportedFakeTensorException(RuntimeError):
    """A tensor that cannot be fake."""


class DataDependentOutputException(RuntimeError):
    """An operator gives a number that depends on elements; `func` says which."""

    def __init__(self, func: Any) -> None:
        super().__init__(str(func))
        self.func = func


class DynamicOutputShapeException(RuntimeError):
    """The shape of an operator's result depends on elements; `func` says which."""

    def __init__(self, func: Any) -> None:
        super().__init__(str(func))
        self.func = func


class FakeTensor(Tensor):
    """A tensor without elements. `constant` is a real one that it is equal to, if there is one."""

    fake_mode: FakeTensorMode
    constant: Tensor | None

    @staticmethod
    def __new__(
        cls: type,
        fake_mode: FakeTensorMode,
        elem: Tensor,
        device: Any,
        constant: Tensor | None = None,
    ) -> FakeTensor:
        made = Tensor._make_wrapper_subclass(
            cls,
            elem.shape,
            strides=elem.stride(),
            storage_offset=elem.storage_offset(),
            dtype=elem.dtype,
            device=device,
        )
        made.fake_mode, made.elem, made.constant = fake_mode, elem, constant
        return made

    @property
    def fake_device(self) -> torch.device:
        """The device that it is said to be on."""
        return self.device

    @staticmethod
    def from_tensor(t: Tensor, fake_mode: FakeTensorMode) -> FakeTensor:
        """A fake one of a tensor's shape, dtype and device."""
        return fake_mode.from_tensor(t)

    def __repr__(self, *, tensor_contents: object = None) -> str:
        parts = [f"..., size={tuple(self.shape)}"]
        if self.dtype is not torch.get_default_dtype():
            parts.append(f"dtype={self.dtype}")
        if self.grad_fn is not None:
            parts.append(f"grad_fn=<{self.grad_fn.name()}>")
        elif self.requires_grad:
            parts.append("requires_grad=True")
        return f"FakeTensor({', '.join(parts)})"

    def tolist(self) -> Any:
        """The elements of a constant."""
        return _constant_of(self, aten._local_scalar_dense.default).tolist()

    def numpy(self, *, force: bool = False) -> Any:
        """The elements of a constant."""
        return _constant_of(self, aten._local_scalar_dense.default).numpy()

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: tuple, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        fakes = [x for x in tree_leaves((args, kwargs)) if isinstance(x, FakeTensor)]
        return fakes[0].fake_mode.dispatch(func, args, kwargs or {})


def _constant_of(tensor: FakeTensor, func: Any) -> Tensor:
    if tensor.constant is None:
        raise DataDependentOutputException(func)
    return tensor.constant


class _DataIsFake(TorchFunctionMode):
    """Makes the tensors fake that functions make of data."""

    _operators_only = True
    _names = ("tensor", "as_tensor", "asarray", "from_numpy", "frombuffer", "from_dlpack")

    def __init__(self, fake_mode: FakeTensorMode) -> None:
        super().__init__()
        self._fake_mode = fake_mode
        self._functions = {getattr(torch, name) for name in self._names}

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        if func not in self._functions:
            return func(*args, **(kwargs or {}))
        with _disable_current_modes():
            made = func(*args, **(kwargs or {}))
        return made if isinstance(made, FakeTensor) else self._fake_mode._constant(made)


def fake_meta(nodes: Any) -> None:
    """Has `meta["val"]` of the nodes of a graph be fake, so that the graph keeps no elements."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    for node in nodes:
        value = node.meta.get("val")
        if isinstance(value, Tensor) and not isinstance(value, FakeTensor):
            node.meta["val"] = mode.from_tensor(value)


class FakeTensorMode(TorchDispatchMode):
    """Context in which tensors have no elements: operators give shapes, dtypes and devices.

    allow_non_fake_inputs: takes real tensors for fake ones; else they are errors. Numbers that
    depend on elements are a DataDependentOutputException, shapes a DynamicOutputShapeException.
    """

    def __init__(
        self,
        *,
        allow_fallback_kernels: bool = True,
        allow_non_fake_inputs: bool = False,
        shape_env: Any = None,
        static_shapes: bool | None = None,
        export: bool = False,
    ) -> None:
        super().__init__()
        if shape_env is not None:
            raise NotImplementedError("FakeTensorMode: there are no symbolic sizes (shape_env)")
        self.allow_non_fake_inputs = allow_non_fake_inputs
        self.shape_env = None
        self._data: list[_DataIsFake] = []

    def __enter__(self) -> FakeTensorMode:
        self._data.append(_DataIsFake(self))
        self._data[-1].__enter__()
        super().__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._data.pop().__exit__(*error)

    def from_tensor(
        self, tensor: Tensor, *, static_shapes: bool | None = None, **_: object
    ) -> FakeTensor:
        """A fake tensor of a tensor's shape, strides, dtype and device; a leaf as that is one."""
        if isinstance(tensor, FakeTensor):
            if tensor.fake_mode is not self:
                raise AssertionError("Mixing fake modes NYI")
            return tensor
        with _disable_current_modes(), torch.no_grad():
            elem = torch.empty_strided(
                tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta"
            )
        made = FakeTensor(self, elem, tensor.device)
        if isinstance(tensor, torch.nn.Parameter):
            return torch.nn.Parameter(made, tensor.requires_grad)
        return made.requires_grad_() if tensor.requires_grad else made

    def of_layout(self, shape: Any, stride: Any, dtype: Any, device: Any = "cpu") -> FakeTensor:
        """A fake tensor of this shape, these strides, this dtype and this device."""
        with _disable_current_modes(), torch.no_grad():
            elem = torch.empty_strided(shape, stride, dtype=dtype, device="meta")
        return FakeTensor(self, elem, torch.device(device))

    def _constant(self, tensor: Tensor) -> FakeTensor:
        made = self.from_tensor(tensor)
        made.constant = tensor if tensor.numel() == 1 else None
        return made

    def __torch_dispatch__(
        self, func: Any, types: tuple, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        return self.dispatch(func, args, kwargs or {})

    def dispatch(self, func: Any, args: tuple, kwargs: dict) -> Any:
        """What an operator gives for fake tensors."""
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        self._check_fake(func, tensors, args)
        if func is aten._local_scalar_dense.default:
            return _constant_of(tensors[0], func).item()
        device = kwargs.get("device")
        if device is None:
            device = tensors[0].device if tensors else torch.device("cpu")
        if "device" in kwargs or not tensors:
            on_meta = {**kwargs, "device": "meta"}
        else:
            on_meta = kwargs
        given, named = tree_map_only(Tensor, self._meta, (args, on_meta))
        # What only writes, such as an optimizer's step, has no shapes to give.
        made = self._run(func, given, named) if func._schema.returns else None
        known = {id(x.elem): x for x in tensors if isinstance(x, FakeTensor)}
        result = tree_map_only(
            Tensor,
            lambda x: known[id(x)] if id(x) in known else FakeTensor(self, x, device),
            made,
        )
        self._follow_constants(func, args, kwargs, tensors, result)
        return result

    def _run(self, func: Any, args: tuple, kwargs: dict) -> Any:
        """Runs an operator on meta tensors."""
        try:
            with _disable_current_modes():
                return func(*args, **kwargs)
        except NotImplementedError as error:
            raise DynamicOutputShapeException(func) from error

    def _follow_constants(
        self, func: Any, args: tuple, kwargs: dict, tensors: list[Tensor], result: Any
    ) -> None:
        """Computes what is made of constants alone; what else is written is constant no more."""
        if tensors and all(getattr(x, "constant", None) is not None for x in tensors):
            given, named = tree_map_only(FakeTensor, lambda x: x.constant, (args, kwargs))
            with _disable_current_modes():
                real = func(*given, **named)
            for fake, value in zip(tree_leaves(result), tree_leaves(real), strict=True):
                if isinstance(fake, FakeTensor):
                    fake.constant = value if value.numel() == 1 else None
            return
        for number, argument in enumerate(func._schema.arguments):
            if argument.is_write:
                value = args[number] if number < len(args) else kwargs.get(argument.name)
                for leaf in tree_leaves(value):
                    if isinstance(leaf, FakeTensor):
                        leaf.constant = None

    def _check_fake(self, func: Any, tensors: list[Tensor], args: tuple) -> None:
        for tensor in tensors:
            if isinstance(tensor, FakeTensor):
                if tensor.fake_mode is not self:
                    raise AssertionError("Mixing fake modes NYI")
            elif not self.allow_non_fake_inputs:
                raise AssertionError(
                    "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode "
                    f"with 'allow_non_fake_inputs'. Found in {func} with a tensor of shape "
                    f"{tuple(tensor.shape)}"
                )

    def _meta(self, tensor: Tensor) -> Tensor:
        return (tensor if isinstance(tensor, FakeTensor) else self.from_tensor(tensor)).elem


def is_fake(x: object) -> bool:
    """Whether something is a fake tensor, or a subclass that wraps fake ones."""
    if isinstance(x, FakeTensor):
        return True
    if hasattr(type(x), "__tensor_flatten__"):
        return all(is_fake(getattr(x, name)) for name in x.__tensor_flatten__()[0])
    return False


def maybe_get_fake_mode(t: object) -> FakeTensorMode | None:
    """The mode of a fake tensor, None for others."""
    return t.fake_mode if isinstance(t, FakeTensor) else None


@contextlib.contextmanager
def unset_fake_temporarily() -> Iterator[None]:
    """Context in which no mode is on."""
    with _disable_current_modes():
        yield
