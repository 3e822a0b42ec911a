"""Tensors and submodules of a module by dotted names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rushlight import Tensor
from rushlight.nn.modules.module import Module

_MISSING = object()


def _find(module: Module, name: str) -> tuple[dict | None, object]:
    """The dict of a module's parameters, buffers or attributes that has a name, and what it has."""
    for table in (module._parameters, module._buffers, vars(module)):
        if name in table:
            return table, table[name]
    return None, _MISSING


def swap_tensor(
    module: Module, name: str, tensor: Tensor | None, allow_missing: bool = False
) -> Tensor | None:
    """Puts a tensor where the module has `name`, as it is, and gives the one that was there."""
    if not isinstance(module, Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if not isinstance(tensor, (Tensor, type(None))) and tensor is not _MISSING:
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    if "." in name or not name:
        raise KeyError(f'tensor name can\'t be empty or contain "."; got "{name}"')
    table, found = _find(module, name)
    if table is None and not allow_missing:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    if not isinstance(found, (Tensor, type(None))) and found is not _MISSING:
        raise TypeError(f"attribute `{name}`: {found} is not an instance of torch.Tensor")
    table = vars(module) if table is None else table
    if tensor is _MISSING:
        del table[name]
    else:
        table[name] = tensor
    return found


def set_tensor(module: Module, name: str, tensor: Tensor) -> None:
    """Puts a tensor where the module has `name`."""
    swap_tensor(module, name, tensor)


def swap_submodule(module: Module, name: str, submodule: Module) -> Module:
    """Puts a module where the module has the child `name`, and gives the one that was there."""
    if name not in module._modules:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    if not isinstance(submodule, Module):
        raise TypeError(f"{submodule} is not an instance of torch.nn.Module")
    found, module._modules[name] = module._modules[name], submodule
    return found


class NamedMemberAccessor:
    """A module's tensors and submodules by names such as "layer.0.weight"."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def _owner(self, name: str) -> tuple[Module, str]:
        prefix, _, last = name.rpartition(".")
        return self.get_submodule(prefix), last

    def get_submodule(self, name: str) -> Module:
        """The submodule of a name; the module itself for an empty one."""
        return self.module.get_submodule(name)

    def swap_submodule(self, path: str, value: Module) -> Module:
        """Puts a submodule in its place, and gives the one that was there."""
        owner, name = self._owner(path)
        return swap_submodule(owner, name, value)

    def get_tensor(self, name: str) -> Tensor:
        """The tensor of a name."""
        owner, last = self._owner(name)
        found = getattr(owner, last)
        if not isinstance(found, Tensor) and found is not None:
            raise TypeError(f"{found} is not an instance of torch.Tensor")
        return found

    def set_tensor(self, name: str, value: Tensor) -> None:
        """Puts a tensor in its place."""
        self.swap_tensor(name, value)

    def del_tensor(self, name: str) -> None:
        """Takes a tensor away."""
        self.swap_tensor(name, _MISSING)

    def swap_tensor(self, name: str, value: Tensor, allow_missing: bool = False) -> Tensor:
        """Puts a tensor in its place, and gives the one that was there."""
        owner, last = self._owner(name)
        return swap_tensor(owner, last, value, allow_missing)

    def get_tensors(self, names: Iterable[str]) -> list[Tensor]:
        """The tensors of several names."""
        return [self.get_tensor(name) for name in names]

    def set_tensors(self, names: Iterable[str], values: Iterable[Tensor]) -> None:
        """Puts several tensors in their places."""
        self.swap_tensors(names, values)

    def set_tensors_dict(self, named_tensors: dict[str, Tensor]) -> None:
        """The same, of a dict."""
        self.swap_tensors_dict(named_tensors)

    def del_tensors(self, names: Iterable[str]) -> None:
        """Takes several tensors away."""
        for name in names:
            self.del_tensor(name)

    def swap_tensors(
        self, names: Iterable[str], values: Iterable[Tensor], allow_missing: bool = False
    ) -> list[Tensor]:
        """Puts several tensors in their places, and gives those that were there."""
        pairs = zip(names, values, strict=True)
        return [self.swap_tensor(name, value, allow_missing) for name, value in pairs]

    def swap_tensors_dict(
        self, named_tensors: dict[str, Tensor], allow_missing: bool = False
    ) -> tuple[dict[str, Tensor], list[str]]:
        """The same, of a dict; gives what was there, and the names that were missing."""
        before: dict[str, Tensor] = {}
        missing: list[str] = []
        try:
            for name, tensor in named_tensors.items():
                found = self.swap_tensor(name, tensor, allow_missing=True)
                before[name] = found
                if found is _MISSING:
                    missing.append(name)
        except Exception:
            for name, tensor in before.items():
                self.swap_tensor(name, tensor, allow_missing=True)
            raise
        if missing and not allow_missing:
            for name, tensor in before.items():
                self.swap_tensor(name, tensor, allow_missing=True)
            raise RuntimeError(f"Missing key(s): {', '.join(map(repr, missing))}.")
        return before, missing

    def check_keys(self, keys: Iterable[str]) -> tuple[list[str], list[str]]:
        """Names of the module's tensors that are not among the keys, and keys that are no names."""
        keys = set(keys)
        valid = {name for name, _ in self.named_tensors(remove_duplicate=False)}
        return sorted(valid - keys), sorted(keys - valid)

    def named_parameters(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """The parameters with their names."""
        yield from self.module.named_parameters(remove_duplicate=remove_duplicate)

    def named_buffers(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their names."""
        yield from self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_tensors(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Parameters, then buffers, with their names."""
        yield from self.named_parameters(remove_duplicate)
        yield from self.named_buffers(remove_duplicate)

    def named_modules(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
        """The submodules with their names."""
        yield from self.module.named_modules(remove_duplicate=remove_duplicate)
