"""Saving and loading of a module's tensors: `state_dict` and `load_state_dict`."""

from __future__ import annotations

import warnings
from collections import OrderedDict, namedtuple
from typing import TypeVar

import rushlight as torch
from rushlight import Tensor

from ...utils.hooks import RemovableHandle
from ..parameter import Parameter, is_lazy
from ._members import Members

EXTRA_STATE = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class _WrappedHook:
    """A hook, which gets the module that it was registered on first where one is given.

    Pickles of PyTorch's modules have such, with the same state.
    """

    def __init__(self, hook, module=None) -> None:
        self.hook = hook
        self.with_module = module is not None
        self.module = module

    def __call__(self, *args, **kwargs):
        if self.with_module:
            return self.hook(self.module, *args, **kwargs)
        return self.hook(*args, **kwargs)

    def __getstate__(self) -> dict:
        state = {"hook": self.hook, "with_module": self.with_module}
        if self.with_module:
            state["module"] = self.module
        return state

    def __setstate__(self, state: dict) -> None:
        self.__init__(state["hook"], state.get("module"))


T_destination = TypeVar("T_destination", bound=dict)


class State:
    """The part of Module that saves and loads."""

    _version: int = 1

    def register_state_dict_post_hook(self, hook) -> RemovableHandle:
        """Calls `hook(module, state_dict, prefix, local_metadata)` after `state_dict`; it must
        return None.
        """
        hook._from_public_api = True
        return self._register_state_dict_hook(hook)

    def _register_state_dict_hook(self, hook) -> RemovableHandle:
        handle = RemovableHandle(self._state_dict_hooks)
        self._state_dict_hooks[handle.id] = hook
        return handle

    def register_state_dict_pre_hook(self, hook) -> RemovableHandle:
        """Calls `hook(module, prefix, keep_vars)` before `state_dict`."""
        handle = RemovableHandle(self._state_dict_pre_hooks)
        self._state_dict_pre_hooks[handle.id] = hook
        return handle

    def register_load_state_dict_pre_hook(self, hook) -> RemovableHandle:
        """Calls `hook(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys,
        error_msgs)` before this module loads."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(self, hook, with_module=False) -> RemovableHandle:
        handle = RemovableHandle(self._load_state_dict_pre_hooks)
        self._load_state_dict_pre_hooks[handle.id] = (
            _WrappedHook(hook, self) if with_module else hook
        )
        return handle

    def register_load_state_dict_post_hook(self, hook) -> RemovableHandle:
        """Calls `hook(module, incompatible_keys)` after this module loads; it may edit the keys."""
        handle = RemovableHandle(self._load_state_dict_post_hooks)
        self._load_state_dict_post_hooks[handle.id] = hook
        return handle

    def _save_to_state_dict(self, destination, prefix, keep_vars) -> None:
        """Adds the tensors of this module alone; a subclass may add more."""
        for name, parameter in self._parameters.items():
            if parameter is not None:
                destination[prefix + name] = parameter if keep_vars else parameter.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if keep_vars else buffer.detach()
        if type(self).get_extra_state is not Members.get_extra_state:
            destination[prefix + EXTRA_STATE] = self.get_extra_state()

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
        """All parameters and persistent buffers by dotted path, as an ordered dictionary.

        The tensors share memory with the module; they are detached unless `keep_vars`. The
        dictionary's
        `_metadata` holds the version of each module.
        """
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead. Refer to "
                "https://pytorch.org/docs/main/generated/torch.nn.Module.html"
                "#torch.nn.Module.state_dict "
                "for details.",
                FutureWarning,
                stacklevel=2,
            )
            destination = args[0] if destination is None else destination
            if len(args) > 1 and prefix == "":
                prefix = args[1]
            if len(args) > 2 and keep_vars is False:
                keep_vars = args[2]
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(
                    destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
                )
        for hook in self._state_dict_hooks.values():
            returned = hook(self, destination, prefix, local_metadata)
            if not getattr(hook, "_from_public_api", False):
                destination = destination if returned is None else returned
            elif returned is not None:
                raise RuntimeError("state_dict post-hook must return None")
        return destination

    def load_state_dict(self, state_dict, strict: bool = True, assign: bool = False):
        """Copies tensors into parameters and buffers here and below; gives the keys that did not
        match.

        With `strict`, missing and unexpected keys are errors. With `assign`, the given tensors
        take the
        places of the parameters and buffers instead of being copied into them.
        """
        if not isinstance(state_dict, _mapping_type()):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)
        if metadata is not None:
            state_dict._metadata = metadata
        arguments = (metadata, strict, assign, missing, unexpected, errors)
        _load_tree(self, state_dict, "", *arguments)
        if strict:
            if unexpected:
                keys = ", ".join(f'"{key}"' for key in unexpected)
                errors.insert(0, f"Unexpected key(s) in state_dict: {keys}. ")
            if missing:
                keys = ", ".join(f'"{key}"' for key in missing)
                errors.insert(0, f"Missing key(s) in state_dict: {keys}. ")
        if errors:
            lines = "\n\t".join(errors)
            raise RuntimeError(
                f"Error(s) in loading state_dict for {self.__class__.__name__}:\n\t{lines}"
            )
        return _IncompatibleKeys(missing, unexpected)

    def _load_from_state_dict(
        self,
        state_dict,
        prefix,
        local_metadata,
        strict,
        missing_keys,
        unexpected_keys,
        error_msgs,
    ) -> None:
        """Loads the tensors of this module alone; a subclass may convert older layouts here."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(
                state_dict,
                prefix,
                local_metadata,
                strict,
                missing_keys,
                unexpected_keys,
                error_msgs,
            )
        buffers = {
            name: buffer
            for name, buffer in self._buffers.items()
            if name not in self._non_persistent_buffers_set
        }
        own = {k: v for k, v in (*self._parameters.items(), *buffers.items()) if v is not None}
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, target in own.items():
            key = prefix + name
            if key in state_dict:
                error = _load_one(self, name, target, key, state_dict[key], assign)
                if error is not None:
                    error_msgs.append(error)
            elif strict:
                missing_keys.append(key)
        extra_key = prefix + EXTRA_STATE
        if type(self).set_extra_state is not Members.set_extra_state:
            if extra_key in state_dict:
                self.set_extra_state(state_dict[extra_key])
            elif strict:
                missing_keys.append(extra_key)
        elif strict and extra_key in state_dict:
            unexpected_keys.append(extra_key)
        if strict:
            unexpected_keys.extend(_unexpected(self, state_dict, prefix, own))


def _mapping_type() -> type:
    from collections.abc import Mapping

    return Mapping


def _load_tree(module, state_dict, prefix, metadata, strict, assign, missing, unexpected, errors):
    local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
    if assign:
        local_metadata["assign_to_params_buffers"] = assign
    module._load_from_state_dict(
        state_dict, prefix, local_metadata, True, missing, unexpected, errors
    )
    for name, child in module._modules.items():
        if child is None:
            continue
        path = f"{prefix}{name}."
        below = {key: value for key, value in state_dict.items() if key.startswith(path)}
        _load_tree(child, below, path, metadata, strict, assign, missing, unexpected, errors)
    keys = _IncompatibleKeys(missing, unexpected)
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, keys) is not None:
            raise AssertionError(
                "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to "
                "return "
                "new values, if incompatible_keys need to be modified, it should be done inplace."
            )


def _unexpected(module, state_dict, prefix: str, own: dict):
    """Keys under `prefix` that belong neither to `own` tensors nor to a submodule."""
    for key in state_dict:
        if not key.startswith(prefix) or key == prefix + EXTRA_STATE:
            continue
        name, dot, _ = key[len(prefix) :].partition(".")
        if name not in (module._modules if dot else own):
            yield key


def _load_one(module, name: str, target: Tensor, key: str, value, assign: bool) -> str | None:
    """Loads one tensor; gives the message if that fails."""
    if not isinstance(value, Tensor):
        return (
            f'While copying the parameter named "{key}", expected torch.Tensor or '
            "Tensor-like object "
            f"from checkpoint but received {type(value)}"
        )
    if not is_lazy(target):
        # Files older than 0.4 hold a scalar as a vector of one element.
        if target.dim() == 0 and value.dim() == 1 and len(value) == 1:
            value = value[0]
        if value.shape != target.shape:
            return (
                f"size mismatch for {key}: copying a param with shape {value.shape} from "
                "checkpoint, "
                f"the shape in current model is {target.shape}."
            )
    if target.is_meta and not value.is_meta and not assign:
        warnings.warn(
            f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter "
            "in the "
            "current model, which is a no-op. (Did you mean to pass `assign=True` to assign items "
            "in "
            "the state dictionary to their corresponding key in the module instead of copying "
            "them in "
            "place?)",
            stacklevel=4,
        )
    try:
        with torch.no_grad():
            if assign:
                _assign(module, name, target, value)
            else:
                target.copy_(value)
    except Exception as error:
        return (
            f'While copying the parameter named "{key}", whose dimensions in the model are '
            f"{target.size()} and whose dimensions in the checkpoint are {value.size()}, "
            f"an exception occurred : {error.args}."
        )
    return None


def _assign(module, name: str, target: Tensor, value: Tensor) -> None:
    if isinstance(target, Parameter):
        if isinstance(value, Parameter):
            value.requires_grad_(target.requires_grad)
        else:
            value = Parameter(value, requires_grad=target.requires_grad)
    setattr(module, name, value)
