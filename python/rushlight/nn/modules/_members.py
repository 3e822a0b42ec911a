"""How a module keeps parameters, buffers and submodules: registration and attribute access."""

from __future__ import annotations

from rushlight import Tensor

from ..parameter import Buffer, Parameter
from . import _hooks


def typename(value: object) -> str:
    """The name of a value's type in messages, with its module; for a tensor the tensor type."""
    if isinstance(value, Tensor):
        return value.type()
    cls = type(value)
    if cls.__module__ in ("builtins", "__builtin__", None, ""):
        return cls.__qualname__
    return f"{cls.__module__}.{cls.__qualname__}"


def _check_name(module, kind: str, name: object, table: dict) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
    if kind == "module":
        if hasattr(module, name) and name not in table:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'module name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError('module name can\'t be empty string ""')
        return
    if "." in name:
        raise KeyError(f'{kind} name can\'t contain "."')
    if name == "":
        raise KeyError(f'{kind} name can\'t be empty string ""')
    if hasattr(module, name) and name not in table:
        raise KeyError(f"attribute '{name}' already exists")


def _through(hooks: dict, module, name: str, value):
    """`value`, or what the registration hooks put in its place."""
    for hook in hooks.values():
        replacement = hook(module, name, value)
        if replacement is not None:
            value = replacement
    return value


class Members:
    """The part of Module that registers and finds what a module owns."""

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _non_persistent_buffers_set: set[str]

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a buffer: state that moves and is saved with the module but is not trained.

        A buffer that is not persistent is left out of `state_dict`.
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        _check_name(self, "buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' "
                "(torch Tensor or None required)"
            )
        hooks = _hooks._global_buffer_registration_hooks
        self._buffers[name] = _through(hooks, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter; None keeps the name and is left out of `parameters` and
        `state_dict`.
        """
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        _check_name(self, "parameter", name, self._parameters)
        if param is None:
            self._parameters[name] = None
            return
        if not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{typename(param)}' object to parameter '{name}' "
                "(torch.nn.Parameter or None required)"
            )
        if param.grad_fn:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be "
                "created "
                f"explicitly. To express '{name}' as a function of another Tensor, compute the "
                "value in "
                "the forward() method."
            )
        hooks = _hooks._global_parameter_registration_hooks
        self._parameters[name] = _through(hooks, self, name, param)

    def add_module(self, name: str, module) -> None:
        """Adds a submodule, reachable as an attribute of that name."""
        if not isinstance(module, Members) and module is not None:
            raise TypeError(f"{typename(module)} is not a Module subclass")
        _check_name(self, "module", name, self._modules)
        hooks = _hooks._global_module_registration_hooks
        self._modules[name] = _through(hooks, self, name, module)

    def register_module(self, name: str, module) -> None:
        """The same as `add_module`."""
        self.add_module(name, module)

    def __getattr__(self, name: str):
        # Runs for every parameter and submodule that `forward` reads, so it is spelled out.
        members = self.__dict__
        if "_parameters" in members:
            table = members["_parameters"]
            if name in table:
                return table[name]
        if "_modules" in members:
            table = members["_modules"]
            if name in table:
                return table[name]
        if "_buffers" in members:
            table = members["_buffers"]
            if name in table:
                return table[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value) -> None:
        members = self.__dict__
        parameters = members.get("_parameters")
        modules = members.get("_modules")
        buffers = members.get("_buffers")
        if isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, parameters)
            self.register_parameter(name, value)
        elif parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as parameter '{name}' "
                    "(torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
        elif isinstance(value, Members):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, modules)
            hooks = _hooks._global_module_registration_hooks
            modules[name] = _through(hooks, self, name, value)
        elif modules is not None and name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as child module '{name}' "
                    "(torch.nn.Module or None expected)"
                )
            modules[name] = None
        elif isinstance(value, Tensor) and isinstance(value, Buffer):
            if buffers is None:
                raise AttributeError("cannot assign buffer before Module.__init__() call")
            self._forget(name, buffers)
            self.register_buffer(name, value, value.persistent)
        elif buffers is not None and name in buffers:
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{typename(value)}' as buffer '{name}' "
                    "(torch.nn.Buffer, torch.Tensor or None expected)"
                )
            hooks = _hooks._global_buffer_registration_hooks
            buffers[name] = _through(hooks, self, name, value)
        else:
            object.__setattr__(self, name, value)

    def _forget(self, name: str, keep: dict) -> None:
        """Removes `name` from everything but `keep`, to make room for another kind of member."""
        members = self.__dict__
        members.pop(name, None)
        for table in ("_parameters", "_buffers", "_modules"):
            if table in members and members[table] is not keep:
                members[table].pop(name, None)
        if keep is not members.get("_buffers"):
            members.get("_non_persistent_buffers_set", set()).discard(name)

    def __delattr__(self, name: str) -> None:
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = [
            *dir(self.__class__),
            *self.__dict__,
            *self._parameters,
            *self._modules,
            *self._buffers,
        ]
        return sorted(name for name in names if not name[0].isdigit())

    def get_extra_state(self):
        """State beside parameters and buffers, saved in `state_dict`; a subclass may offer it."""
        raise RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called. Please "
            "file "
            "an issue to report this bug."
        )

    def set_extra_state(self, state) -> None:
        """Takes back what `get_extra_state` gave."""
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called. Please "
            "file "
            "an issue to report this bug."
        )
