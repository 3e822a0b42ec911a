"""Pruning: parts of a parameter are held at zero by a mask.

The parameter NAME becomes NAME_orig, a buffer NAME_mask says what is kept, and a hook before
forward sets NAME to their product. Pruning again combines the masks.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

import rushlight as torch
from rushlight import Tensor
from rushlight.nn.modules.module import Module


class BasePruningMethod(ABC):
    """A way to choose what is pruned: compute_mask, and PRUNING_TYPE: 'unstructured' (elements),
    'structured' (along `self.dim`) or 'global'.
    """

    _tensor_name: str

    def __call__(self, module: Module, inputs: Any) -> None:
        """The hook before forward: sets the parameter to what is kept of it."""
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask of a tensor of importance, within the mask that there is already."""

    def apply_mask(self, module: Module) -> Tensor:
        """What is kept of the parameter."""
        name = self._name("pruned")
        mask, orig = getattr(module, name + "_mask"), getattr(module, name + "_orig")
        return mask.to(dtype=orig.dtype) * orig

    def _name(self, done: str) -> str:
        name = getattr(self, "_tensor_name", None)
        if name is None:
            raise AssertionError(f"Module has to be {done} before: the method has no parameter yet")
        return name

    @classmethod
    def apply(
        cls,
        module: Module,
        name: str,
        *args: Any,
        importance_scores: Tensor | None = None,
        **kwargs: Any,
    ) -> BasePruningMethod:
        """Prunes a parameter of a module; importance_scores decide in the place of its values."""
        method = _joined(module, name, cls(*args, **kwargs))
        first = not isinstance(method, PruningContainer)
        orig = getattr(module, name)
        if importance_scores is None:
            importance_scores = orig
        elif importance_scores.shape != orig.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, "
                f"got {importance_scores.shape} vs {orig.shape}"
            )
        if first:
            default = torch.ones_like(orig)
        else:
            default = getattr(module, name + "_mask").detach().clone()
        mask = method.compute_mask(importance_scores, default_mask=default)
        if first:
            module.register_parameter(name + "_orig", orig)
            del module._parameters[name]
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        for key in _hooks_of(module, name):
            del module._forward_pre_hooks[key]
        module.register_forward_pre_hook(method)
        return method

    def prune(
        self,
        t: Tensor,
        default_mask: Tensor | None = None,
        importance_scores: Tensor | None = None,
    ) -> Tensor:
        """A pruned copy of a tensor."""
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise AssertionError(
                "importance_scores should have the same shape as tensor t, got "
                f"{scores.shape} vs {t.shape}"
            )
        default = torch.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=default)

    def remove(self, module: Module) -> None:
        """Makes the pruning permanent: the parameter is what is kept, under its own name."""
        name = self._name("pruned")
        kept = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        orig = module._parameters.pop(name + "_orig")
        orig.data = kept.data
        del module._buffers[name + "_mask"]
        setattr(module, name, orig)


def _hooks_of(module: Module, name: str) -> list[int]:
    """The keys of the hooks that prune a parameter."""
    return [
        key
        for key, hook in module._forward_pre_hooks.items()
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name
    ]


def _joined(module: Module, name: str, method: BasePruningMethod) -> BasePruningMethod:
    """The method, after those that prune the parameter already."""
    method._tensor_name = name
    found = _hooks_of(module, name)
    if len(found) > 1:
        raise AssertionError(
            f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. "
            "Use a PruningContainer."
        )
    if not found:
        return method
    old = module._forward_pre_hooks[found[0]]
    container = PruningContainer(*old) if isinstance(old, PruningContainer) else None
    if container is None:
        container = PruningContainer(old)
    container.add_pruning_method(method)
    return container


class PruningContainer(BasePruningMethod):
    """Methods that prune one parameter, one after another."""

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if args:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod | None) -> None:
        """Adds a method for the same parameter."""
        if method is not None and not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        own = getattr(self, "_tensor_name", None)
        if method is not None and own is not None and own != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{own}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        if method is not None and own is None:
            self._tensor_name = method._tensor_name
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: int) -> BasePruningMethod:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask of the last method, which sees only what the others kept."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        kind = getattr(method, "PRUNING_TYPE", None)
        if kind == "unstructured":
            seen: Any = mask == 1
        elif kind == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError(
                    "Pruning methods of PRUNING_TYPE 'structured' need to have the attribute "
                    "`dim` defined."
                )
            rank = t.dim()
            dim = method.dim % rank
            kept = mask.sum(dim=[d for d in range(rank) if d != dim]) != 0
            seen = tuple(kept if d == dim else slice(None) for d in range(rank))
        elif kind == "global":
            seen = (slice(None),) * t.dim()
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {kind}")
        combined = mask.clone()
        part = method.compute_mask(t[seen], default_mask=mask[seen])
        combined[seen] = part.to(dtype=combined.dtype)
        return combined


class Identity(BasePruningMethod):
    """Prunes nothing: the parameter gets a mask of ones."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask that there is."""
        return default_mask

    @classmethod
    def apply(cls, module: Module, name: str) -> Identity:
        """Gives a parameter of a module a mask of ones."""
        return super().apply(module, name)


class _Unstructured(BasePruningMethod):
    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: float) -> None:
        _check_amount(amount)
        self.amount = amount

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask without the elements of least importance."""
        count = _count_to_prune(self.amount, t.nelement())
        mask = default_mask.clone(memory_format=torch.contiguous_format)
        if count:
            mask.view(-1)[self._least(t, count)] = 0
        return mask

    def _least(self, t: Tensor, count: int) -> Tensor:
        raise NotImplementedError


class RandomUnstructured(_Unstructured):
    """Prunes elements at random: a number of them, or a share."""

    def __init__(self, amount: float) -> None:
        super().__init__(amount)

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask without elements chosen at random."""
        return super().compute_mask(t, default_mask)

    def _least(self, t: Tensor, count: int) -> Tensor:
        return torch.topk(torch.rand_like(t).view(-1), k=count).indices

    @classmethod
    def apply(cls, module: Module, name: str, amount: float) -> RandomUnstructured:
        """Prunes elements of a parameter of a module at random."""
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Unstructured):
    """Prunes the elements of least absolute value: a number of them, or a share."""

    def __init__(self, amount: float) -> None:
        super().__init__(amount)

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask without the elements of least absolute value."""
        return super().compute_mask(t, default_mask)

    def _least(self, t: Tensor, count: int) -> Tensor:
        return torch.topk(torch.abs(t).reshape(-1), k=count, largest=False).indices

    @classmethod
    def apply(
        cls, module: Module, name: str, amount: float, importance_scores: Tensor | None = None
    ) -> L1Unstructured:
        """Prunes the elements of least absolute value of a parameter of a module."""
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class _Structured(BasePruningMethod):
    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        _check_amount(amount)
        self.amount = amount
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask without the slices along `dim` of least importance."""
        if t.dim() <= 1:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor "
                f"of shape {t.shape} with {t.dim()} dims"
            )
        rank = t.dim()
        if not -rank <= self.dim < rank:
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        size = t.shape[self.dim]
        count = _count_to_prune(self.amount, size)
        if count == 0:
            return default_mask
        kept = torch.zeros(size, dtype=default_mask.dtype)
        kept[torch.topk(self._importance(t), k=size - count).indices] = 1
        shape = [1] * rank
        shape[self.dim] = size
        return default_mask * kept.reshape(shape)

    def _importance(self, t: Tensor) -> Tensor:
        raise NotImplementedError


class RandomStructured(_Structured):
    """Prunes slices along a dimension at random: a number of them, or a share."""

    def __init__(self, amount: float, dim: int = -1) -> None:
        super().__init__(amount, dim)

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask without slices chosen at random."""
        return super().compute_mask(t, default_mask)

    def _importance(self, t: Tensor) -> Tensor:
        return torch.rand(t.shape[self.dim])

    @classmethod
    def apply(cls, module: Module, name: str, amount: float, dim: int = -1) -> RandomStructured:
        """Prunes slices of a parameter of a module at random."""
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Structured):
    """Prunes the slices along a dimension of least L_n norm: a number of them, or a share."""

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask without the slices of least norm."""
        return super().compute_mask(t, default_mask)

    def _importance(self, t: Tensor) -> Tensor:
        dim = self.dim % t.dim()
        return torch.norm(t, p=self.n, dim=[d for d in range(t.dim()) if d != dim])

    @classmethod
    def apply(
        cls,
        module: Module,
        name: str,
        amount: float,
        n: Any,
        dim: int,
        importance_scores: Tensor | None = None,
    ) -> LnStructured:
        """Prunes the slices of least norm of a parameter of a module."""
        return super().apply(
            module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores
        )


class CustomFromMask(BasePruningMethod):
    """Prunes what a given mask says."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """What both masks keep."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape "
                f"{self.mask.shape}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module: Module, name: str, mask: Tensor) -> CustomFromMask:
        """Prunes a parameter of a module by a mask."""
        return super().apply(module, name, mask=mask)


def _check_amount(amount: Any) -> None:
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    is_count = isinstance(amount, numbers.Integral)
    if (is_count and amount < 0) or (not is_count and not 0.0 <= amount <= 1.0):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0, 1] or a non-negative "
            "integer"
        )


def _count_to_prune(amount: Any, size: int) -> int:
    if not isinstance(amount, numbers.Integral):
        return round(amount * size)
    if amount > size:
        raise ValueError(
            f"amount={amount} should be smaller than the number of parameters to prune={size}"
        )
    return int(amount)


def identity(module: Module, name: str) -> Module:
    """Gives a parameter a mask of ones; the module itself is changed and returned."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Prunes elements of a parameter at random; the module itself is changed and returned."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: Module, name: str, amount: float, importance_scores: Tensor | None = None
) -> Module:
    """Prunes elements of least absolute value; the module itself is changed and returned."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Prunes slices along `dim` at random; the module itself is changed and returned."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module,
    name: str,
    amount: float,
    n: Any,
    dim: int,
    importance_scores: Tensor | None = None,
) -> Module:
    """Prunes slices along `dim` of least norm; the module itself is changed and returned."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prunes a parameter by a mask; the module itself is changed and returned."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Any, pruning_method: Any, importance_scores: dict | None = None, **kwargs: Any
) -> None:
    """Prunes pairs (module, name) as one long tensor by an unstructured method."""
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    pairs = list(parameters)
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    own = [scores.get((module, name), getattr(module, name)) for module, name in pairs]
    masks = [
        getattr(module, name + "_mask", torch.ones_like(getattr(module, name)))
        for module, name in pairs
    ]
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    flat = torch.cat([score.detach().reshape(-1) for score in own])
    default = torch.cat([mask.reshape(-1) for mask in masks])
    final = PruningContainer(method).compute_mask(flat, default)
    for (module, name), part, mask in zip(
        pairs, final.split([mask.numel() for mask in masks]), masks, strict=True
    ):
        custom_from_mask(module, name, mask=part.reshape(mask.shape))


def remove(module: Module, name: str) -> Module:
    """Makes the pruning of a parameter permanent; the module itself is changed and returned."""
    found = _hooks_of(module, name)
    if not found:
        raise ValueError(
            f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
        )
    module._forward_pre_hooks.pop(found[0]).remove(module)
    return module


def is_pruned(module: Module) -> bool:
    """Whether a parameter of a module, or of one inside it, is pruned."""
    return any(
        isinstance(hook, BasePruningMethod)
        for _, inner in module.named_modules()
        for hook in inner._forward_pre_hooks.values()
    )
