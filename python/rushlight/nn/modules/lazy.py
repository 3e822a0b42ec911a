"""Modules that learn their shapes from the first input."""

from __future__ import annotations

from ..parameter import is_lazy

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin:
    """Makes a module lazy: `initialize_parameters` runs before the first `forward`.

    Afterwards the module becomes an instance of `cls_to_become`.
    """

    cls_to_become: type | None = None

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(
            self._infer_parameters, with_kwargs=True
        )

    def _save_to_state_dict(self, destination, prefix, keep_vars) -> None:
        for name, parameter in self._parameters.items():
            if parameter is not None:
                keep = is_lazy(parameter) or keep_vars
                destination[prefix + name] = parameter if keep else parameter.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                keep = is_lazy(buffer) or keep_vars
                destination[prefix + name] = buffer if keep else buffer.detach()

    def _lazy_load_hook(
        self,
        state_dict,
        prefix,
        local_metadata,
        strict,
        missing_keys,
        unexpected_keys,
        error_msgs,
    ) -> None:
        """Gives parameters without a shape the shapes of what is loaded."""
        import rushlight as torch

        for name, own in (*self._parameters.items(), *self._buffers.items()):
            loaded = state_dict.get(prefix + name)
            if own is not None and loaded is not None and is_lazy(own) and not is_lazy(loaded):
                with torch.no_grad():
                    own.materialize(loaded.shape)

    def initialize_parameters(self, *args, **kwargs) -> None:
        """Makes the parameters for the arguments of the first call; a lazy module defines it."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {self.__class__.__name__}"
        )

    def has_uninitialized_params(self) -> bool:
        """Whether any parameter or buffer still has no shape."""
        members = (*self._parameters.values(), *self._buffers.values())
        return any(is_lazy(member) for member in members)

    def _infer_parameters(self, module, args, kwargs=None) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        delattr(module, "_initialize_hook")
        delattr(module, "_load_hook")
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self):
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`. Run a dummy "
            "forward "
            "pass to correctly initialize the modules"
        )
