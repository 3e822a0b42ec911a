"""Parameters that are functions of other parameters."""

from __future__ import annotations

import contextlib
import copy

import rushlight as torch
from rushlight import Tensor

from ..modules.container import ModuleDict, ModuleList
from ..modules.module import Module
from ..parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

_cached = 0
_cache: dict = {}


@contextlib.contextmanager
def cached():
    """In a `with` block, computes every parametrized tensor once only."""
    global _cached
    _cached += 1
    try:
        yield
    finally:
        _cached -= 1
        if not _cached:
            _cache.clear()


def _register(owner: Module, name: str, tensor: Tensor) -> None:
    if isinstance(tensor, Parameter):
        owner.register_parameter(name, tensor)
    else:
        owner.register_buffer(name, tensor)


def _set(target: Tensor, value: Tensor) -> None:
    """Lets `target` hold the values of `value`, shape and dtype included."""
    if not isinstance(value, Tensor):
        raise ValueError(f"`right_inverse` must return a tensor. Got {type(value).__name__}")
    if value.dtype != target.dtype:
        raise ValueError(
            f"The tensor returned by `right_inverse` has dtype {value.dtype} while "
            f"the original tensor has dtype {target.dtype}"
        )
    target.data = value.detach().clone() if value.data_ptr() == target.data_ptr() else value.data


class ParametrizationList(ModuleList):
    """The functions of one tensor, in order, and the tensors that they start from.

    These are `original`, or `original0`, `original1`, ... where the first function's
    `right_inverse` gives several.
    """

    original: Tensor
    unsafe: bool

    def __init__(self, modules, original: Tensor | Parameter, unsafe: bool = False) -> None:
        modules = list(modules)
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        value = original
        with torch.no_grad():
            for module in reversed(self):
                if hasattr(module, "right_inverse"):
                    with contextlib.suppress(NotImplementedError):
                        value = module.right_inverse(value)
        if not isinstance(value, Tensor) and not isinstance(value, tuple | list):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(value).__name__}"
            )
        self.is_tensor = isinstance(value, Tensor)
        self.ntensors = 1 if self.is_tensor else len(value)
        if self.is_tensor:
            if original.dtype != value.dtype and not unsafe:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {original.dtype}\nright_inverse(original).dtype: "
                    f"{value.dtype}"
                )
            with torch.no_grad():
                _set(original, value)
            _register(self, "original", original)
        else:
            for index, part in enumerate(value):
                if not isinstance(part, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors (list, "
                        f"tuple...). Got element {index} of the sequence with type "
                        f"{type(part).__name__}."
                    )
                if isinstance(original, Parameter):
                    part = Parameter(part, original.requires_grad)
                part.requires_grad_(original.requires_grad)
                _register(self, f"original{index}", part)
        if not unsafe:
            self._check(original)

    def _check(self, original: Tensor) -> None:
        result = self()
        if not isinstance(result, Tensor):
            raise ValueError(
                f"A parametrization must return a tensor. Got {type(result).__name__}."
            )
        if result.dtype != original.dtype:
            raise ValueError(
                "Registering a parametrization may not change the dtype of the tensor, unless "
                f"`unsafe` flag is enabled.\nunparametrized dtype: {original.dtype}\n"
                f"parametrized dtype: {result.dtype}"
            )
        if result.shape != original.shape:
            raise ValueError(
                "Registering a parametrization may not change the shape of the tensor, unless "
                f"`unsafe` flag is enabled.\nunparametrized shape: {original.shape}\n"
                f"parametrized shape: {result.shape}"
            )

    def _originals(self) -> list[Tensor]:
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{index}") for index in range(self.ntensors)]

    def right_inverse(self, value: Tensor) -> None:
        """Sets the originals so that the parametrized tensor becomes `value`."""
        with torch.no_grad():
            for module in reversed(self):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
                value = module.right_inverse(value)
            if self.is_tensor:
                _set(self.original, value)
                return
            if not isinstance(value, tuple | list) or len(value) != self.ntensors:
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors of length {self.ntensors}."
                )
            for original, part in zip(self._originals(), value):
                _set(original, part)

    def forward(self) -> Tensor:
        modules = iter(self)
        value = next(modules)(*self._originals())
        for module in modules:
            value = module(value)
        return value


def _inject_class(module: Module) -> None:
    """Gives the module a class of its own, to which properties can be added."""
    cls = module.__class__

    def getstate(self):
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). See:\n"
            "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
        )

    def deepcopy(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        replica = self.__new__(self.__class__)
        memo[id(self)] = replica
        replica.__dict__ = copy.deepcopy(self.__dict__, memo)
        return replica

    members = {"__getstate__": getstate}
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = deepcopy
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)


def _inject_property(module: Module, name: str) -> None:
    def get(self):
        parametrization = self.parametrizations[name]
        if not _cached:
            return parametrization()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = parametrization()
        return _cache[key]

    def put(self, value) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(module.__class__, name, property(get, put))


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Lets `module.tensor_name` be `parametrization(original)`; assigning uses `right_inverse`.

    Several apply in order of registration. With `unsafe`, shape and dtype may change.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_chain(getattr(module, tensor_name), parametrization)
        chain = module.parametrizations[tensor_name]
        chain.append(parametrization)
        chain.unsafe |= unsafe
        if hasattr(parametrization, "right_inverse") and chain.is_tensor:
            with contextlib.suppress(NotImplementedError, RuntimeError):
                with torch.no_grad():
                    current = chain[0](chain.original)
                    for earlier in list(chain)[1:-1]:
                        current = earlier(current)
                chain.right_inverse(current)
        return module
    if tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        chain = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _inject_class(module)
            module.parametrizations = ModuleDict()
        _inject_property(module, tensor_name)
        module.parametrizations[tensor_name] = chain
        return module
    raise ValueError(
        f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with "
        "name "
        f"'{tensor_name}'"
    )


def _check_chain(present: Tensor, parametrization: Module) -> None:
    result = parametrization(present)
    if not isinstance(result, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
    if result.dtype != present.dtype or result.shape != present.shape:
        raise ValueError(
            "Registering a parametrization may not change the shape or the dtype of the tensor, "
            "unless the `unsafe` flag is enabled.\n"
            f"before: {present.shape}, {present.dtype}\nafter: {result.shape}, {result.dtype}"
        )


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether the module, or its tensor of that name, is parametrized."""
    chains = module.__dict__.get("_modules", {}).get("parametrizations")
    if not isinstance(chains, ModuleDict):
        return False
    return len(chains) > 0 if tensor_name is None else tensor_name in chains


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Makes the tensor an ordinary one again: its present value, or the original."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    chain = module.parametrizations[tensor_name]
    if chain.is_tensor:
        original = chain.original
        if leave_parametrized:
            with torch.no_grad():
                value = getattr(module, tensor_name)
            original.data = value.data
    elif leave_parametrized:
        value = getattr(module, tensor_name).detach()
        trainable = chain.original0.requires_grad
        original = Parameter(value, trainable) if trainable else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in "
            "terms of a sequence of tensors."
        )
    delattr(module.__class__, tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not len(module.parametrizations):
        delattr(module, "parametrizations")
        module.__class__ = module.__class__.__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class of the module, without what parametrizations have made of it."""
    return module.__class__.__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Gives one module the parametrizations of another, and the tensors under them."""
    if not is_parametrized(from_module):
        return to_module
    names = [tensor_name] if tensor_name is not None else list(from_module.parametrizations)
    for name in names:
        source = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, copy.deepcopy(getattr(from_module, name)))
        for parametrization in source:
            register_parametrization(to_module, name, parametrization, unsafe=source.unsafe)
        target = to_module.parametrizations[name]
        originals = ["original"] if source.is_tensor else []
        originals += [
            f"original{index}" for index in range(source.ntensors) if not source.is_tensor
        ]
        for original in originals:
            setattr(target, original, getattr(source, original))
    return to_module
