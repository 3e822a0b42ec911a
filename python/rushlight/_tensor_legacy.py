"""Methods of Tensor that old programs call, and those that run Python for each element."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NoReturn

from rushlight import _C
from rushlight._C import Tensor


def _writable(self: Tensor, name: str, *others: Tensor) -> None:
    if any(tensor.requires_grad for tensor in (self, *others)):
        raise RuntimeError(
            f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() "
            "instead."
        )
    for other in others:
        if other.dtype != self.dtype:
            raise TypeError(f"{name}: expected a tensor of {self.dtype} (got {other.dtype})")


def _replaced(self: Tensor, function: Callable, *others: Tensor) -> Tensor:
    """Sets each element to function(element, elements of the others in its place)."""
    if self.is_meta:
        return self
    columns = [tensor.expand_as(self).reshape(-1).tolist() for tensor in (self, *others)]
    values = [function(*items) for items in zip(*columns, strict=True)]
    kind = float if self.is_floating_point() else bool if self.dtype == _C.bool else int
    for value in values:
        if not isinstance(value, (int, float)):
            raise TypeError(f"must be {kind.__name__}, not {type(value).__name__}")
    flat = _C.tensor([kind(value) for value in values], dtype=self.dtype)
    return self.copy_(flat.reshape(self.shape))


def _apply_(self: Tensor, callable: Callable) -> Tensor:
    """Sets each element to callable(element); slow, as Python runs for each."""
    _writable(self, "apply_")
    return _replaced(self, callable)


def _map_(self: Tensor, other: Tensor, callable: Callable) -> Tensor:
    """Sets each element to callable(element, other's element), other broadcast; slow."""
    _writable(self, "map_", other)
    return _replaced(self, callable, other)


def _map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable) -> Tensor:
    """Sets each element to callable(element, x's element, y's element), broadcast; slow."""
    _writable(self, "map2_", x, y)
    return _replaced(self, callable, x, y)


def _resize(self: Tensor, *sizes: Any) -> Tensor:
    """The same elements in another shape (deprecated: see reshape)."""
    warnings.warn("non-inplace resize is deprecated", stacklevel=2)
    wanted = tuple(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    count = 1
    for size in wanted:
        count *= size
    if count != self.numel():
        text = "x".join(map(str, wanted))
        own = "x".join(map(str, self.shape))
        raise RuntimeError(
            f"requested resize to {text} ({count} elements in total), but the given tensor has a "
            f"size of {own} ({self.numel()} elements). autograd's resize can only change the shape "
            "of a given tensor, while preserving the number of elements. "
        )
    return self.contiguous().view(wanted)


def _resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """The same elements in another tensor's shape (deprecated: see view_as)."""
    return _resize(self, *tensor.shape)


def _module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """What becomes of a parameter when a state dict has `other` for it; see
    __future__.set_swap_module_params_on_conversion.
    """
    if _C._has_torch_function((self, other)):
        given = (self, other)
        options = {"assign": assign}
        return _C._handle_torch_function(Tensor.module_load, given, given, options)
    return other.detach() if assign else self.detach().clone().copy_(other)


def _reinforce(self: Tensor, reward: Any) -> NoReturn:
    raise RuntimeError(
        "reinforce() was removed.\nUse torch.distributions instead: log_prob of a sample, times "
        "the reward, is what to differentiate."
    )


def _removed(name: str, instead: str, arguments: str) -> Callable:
    namespace: dict[str, Any] = {}
    text = f"This function was deprecated since version 1.9 and is now removed. {instead}"
    exec(f"def {name}(self{arguments}):\n    raise RuntimeError({text!r})", namespace)
    return namespace[name]


_eig = _removed(
    "eig",
    "`torch.linalg.eig` returns complex tensors rather than real tensors mimicking them.",
    ", eigenvectors=False",
)
_lstsq = _removed("lstsq", "Use `torch.linalg.lstsq`, whose arguments are reversed.", ", other")
_solve = _removed("solve", "Use `torch.linalg.solve`, whose arguments are reversed.", ", other")
_symeig = _removed(
    "symeig",
    "Use `torch.linalg.eigh`, which reads the lower triangle, or `torch.linalg.eigvalsh`.",
    ", eigenvectors=False",
)


def _record_stream(self: Tensor, s: Any) -> NoReturn:
    raise RuntimeError(f"record_stream: a tensor on {self.device} belongs to no stream, got {s}")


def _flag(name: str, doc: str) -> property:
    def get(self: Tensor) -> bool:
        return False

    get.__doc__ = doc
    get.__name__ = name
    return property(get)


Tensor.apply_ = _apply_
Tensor.map_ = _map_
Tensor.map2_ = _map2_
Tensor.resize = _resize
Tensor.resize_as = _resize_as
Tensor.module_load = _module_load
Tensor.reinforce = _reinforce
Tensor.eig = _eig
Tensor.lstsq = _lstsq
Tensor.solve = _solve
Tensor.symeig = _symeig
Tensor.record_stream = _record_stream
Tensor.const_data_ptr = Tensor.data_ptr
Tensor.__long__ = Tensor.__int__
Tensor.__nonzero__ = Tensor.__bool__
Tensor.__div__ = Tensor.__truediv__
Tensor.__idiv__ = Tensor.__itruediv__
Tensor.name = property(lambda self: None, doc="None: names of graph inputs are not kept.")
Tensor.volatile = _flag("volatile", "False: no_grad took its place.")
for _device in ("ipu", "maia", "mtia", "vulkan"):
    setattr(
        Tensor, f"is_{_device}", _flag(f"is_{_device}", f"False: there is no {_device} device.")
    )

# What programs ask of PyTorch's core, and is nothing here.
_C._log_api_usage_once = lambda name: None
_C._get_tracing_state = lambda: None  # jit.trace records by functions, and has no state here


def _transforms_active() -> bool:
    """Whether some vmap is in force."""
    import sys

    module = sys.modules.get("rushlight._functorch._batched")
    return module is not None and bool(module.active_levels())


_C._are_functorch_transforms_active = _transforms_active
