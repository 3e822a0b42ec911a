"""The base of all optimizers: parameter groups, state, and hooks around `step`."""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import rushlight as torch
from rushlight import Tensor

from ..utils._foreach_utils import _group_tensors_by_device_and_dtype
from ..utils.hooks import RemovableHandle

__all__ = [
    "Optimizer",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
]

ParamsT: TypeAlias = (
    Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
)  # what optimizers take

_global_optimizer_pre_hooks: OrderedDict = OrderedDict()
_global_optimizer_post_hooks: OrderedDict = OrderedDict()


class _RequiredParameter:
    """Stands for an option that has no default."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


def register_optimizer_step_pre_hook(hook) -> RemovableHandle:
    """Calls `hook(optimizer, args, kwargs)` before every step of every optimizer."""
    return _add(_global_optimizer_pre_hooks, hook)


def register_optimizer_step_post_hook(hook) -> RemovableHandle:
    """Calls `hook(optimizer, args, kwargs)` after every step of every optimizer."""
    return _add(_global_optimizer_post_hooks, hook)


def _add(hooks: OrderedDict, hook, prepend: bool = False) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def _typename(value: object) -> str:
    from ..nn.modules._members import typename

    return typename(value)


def _use_grad_for_differentiable(step):
    """Runs a step outside the graph, unless the optimizer is differentiable."""

    @functools.wraps(step)
    def wrapped(self, *args, **kwargs):
        with torch.set_grad_enabled(self.defaults["differentiable"]):
            return step(self, *args, **kwargs)

    return wrapped


def _without_grad(step):
    """Runs a step outside the graph."""

    @functools.wraps(step)
    def wrapped(self, *args, **kwargs):
        with torch.no_grad():
            return step(self, *args, **kwargs)

    return wrapped


def _evaluate(closure):
    """The loss of a closure, computed with gradients; None without a closure."""
    if closure is None:
        return None
    with torch.enable_grad():
        return closure()


def _get_value(x):
    return x.item() if isinstance(x, Tensor) else x


def _get_scalar_dtype(is_fused: bool | None = None) -> torch.dtype:
    """The dtype of step counters."""
    if is_fused:
        return torch.float32
    wide = torch.get_default_dtype() == torch.float64
    return torch.float64 if wide else torch.float32


def _to_scalar(x):
    """A tensor of one element without its dimensions."""
    return x.squeeze() if isinstance(x, Tensor) and x.dim() != 0 else x


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """The devices on which steps can be captured: none are here."""
    return []


def _default_to_fused_or_foreach(
    params: list[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Whether to step all parameters in one operator, or list by list, where nobody chose.

    One operator, where its bodies take the parameters and it need not be differentiable.
    """
    floating = all(p is None or p.is_floating_point() for p in params)
    return use_fused and not differentiable and floating, False


class Optimizer:
    """Updates parameters from their gradients.

    `params` holds tensors, (name, tensor) pairs or groups: dictionaries with "params" and options
    that differ from `defaults`.
    """

    # The hooks of a step are called with (optimizer, args, kwargs); the first may give new ones.
    OptimizerPreHook: TypeAlias = Callable[
        [Any, tuple[Any, ...], dict[str, Any]], tuple[tuple[Any, ...], dict[str, Any]] | None
    ]
    OptimizerPostHook: TypeAlias = Callable[[Any, tuple[Any, ...], dict[str, Any]], None]

    _group_tensors_by_device_and_dtype = staticmethod(_group_tensors_by_device_and_dtype)

    def __init__(self, params, defaults: dict) -> None:
        self.defaults = defaults
        self._optimizer_step_pre_hooks: OrderedDict = OrderedDict()
        self._optimizer_step_post_hooks: OrderedDict = OrderedDict()
        self._optimizer_state_dict_pre_hooks: OrderedDict = OrderedDict()
        self._optimizer_state_dict_post_hooks: OrderedDict = OrderedDict()
        self._optimizer_load_state_dict_pre_hooks: OrderedDict = OrderedDict()
        self._optimizer_load_state_dict_post_hooks: OrderedDict = OrderedDict()
        self._patch_step_function()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                f"but got {_typename(params)}"
            )
        self.state: defaultdict = defaultdict(dict)
        self.param_groups: list[dict] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def __getstate__(self) -> dict:
        return {
            "defaults": self.defaults,
            "state": self.state,
            "param_groups": self.param_groups,
        }

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        for name in (
            "_optimizer_step_pre_hooks",
            "_optimizer_step_post_hooks",
            "_optimizer_state_dict_pre_hooks",
            "_optimizer_state_dict_post_hooks",
            "_optimizer_load_state_dict_pre_hooks",
            "_optimizer_load_state_dict_post_hooks",
        ):
            if name not in self.__dict__:
                self.__dict__[name] = OrderedDict()
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        lines = [self.__class__.__name__ + " ("]
        for index, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {index}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
            lines.append("")
        return "\n".join(lines[:-1]) + "\n)"

    # Hooks.

    def _patch_step_function(self) -> None:
        """Lets the hooks run around `step` of this class, once for each class."""
        cls = self.__class__
        if not getattr(cls.step, "hooked", None):
            cls.step = self.profile_hook_step(cls.step)
            cls.step.hooked = True

    @staticmethod
    def profile_hook_step(func):
        """`func`, a step, with the hooks run around it."""

        @functools.wraps(func)
        def wrapper(*args, **kwargs):
            self = args[0]
            before = (
                *_global_optimizer_pre_hooks.values(),
                *self._optimizer_step_pre_hooks.values(),
            )
            for hook in before:
                result = hook(self, args, kwargs)
                if result is None:
                    continue
                if not isinstance(result, tuple) or len(result) != 2:
                    raise RuntimeError(
                        f"{func} must return None or a tuple of (new_args, new_kwargs), "
                        f"but got {result}."
                    )
                args, kwargs = result
            out = func(*args, **kwargs)
            self._optimizer_step_code()
            after = (
                *self._optimizer_step_post_hooks.values(),
                *_global_optimizer_post_hooks.values(),
            )
            for hook in after:
                hook(self, args, kwargs)
            return out

        return wrapper

    def _optimizer_step_code(self) -> None:
        """Does nothing; profilers look for it."""

    def register_step_pre_hook(self, hook) -> RemovableHandle:
        """Calls `hook(optimizer, args, kwargs)` before each step; it may return other arguments."""
        return _add(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook) -> RemovableHandle:
        """Calls `hook(optimizer, args, kwargs)` after each step."""
        return _add(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook, prepend: bool = False) -> RemovableHandle:
        """Calls `hook(optimizer)` before `state_dict`."""
        return _add(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend: bool = False) -> RemovableHandle:
        """Calls `hook(optimizer, state_dict)` after `state_dict`; it may return another."""
        return _add(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend: bool = False) -> RemovableHandle:
        """Calls `hook(optimizer, state_dict)` before loading; it may return another."""
        return _add(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend: bool = False) -> RemovableHandle:
        """Calls `hook(optimizer)` after loading."""
        return _add(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # State.

    def state_dict(self) -> dict:
        """The state and the groups, with parameters numbered in order."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            packed = {key: value for key, value in group.items() if key != "params"}
            for parameter in group["params"]:
                numbers.setdefault(id(parameter), len(numbers))
            packed["params"] = [numbers[id(parameter)] for parameter in group["params"]]
            groups.append(packed)
        state = {
            (numbers[id(key)] if isinstance(key, Tensor) else key): value
            for key, value in self.state.items()
        }
        result = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            replacement = hook(self, result)
            if replacement is not None:
                result = replacement
        return result

    @staticmethod
    def _process_value_according_to_param_policy(
        param: Tensor, value: Tensor, param_id: int, param_groups: list[dict], key=None
    ) -> Tensor:
        """A loaded tensor on the device, and but for counters in the dtype, of its parameter."""
        fused = capturable = False
        for group in param_groups:
            if param_id in group["params"]:
                fused = bool(group.get("fused", False))
                capturable = bool(group.get("capturable", False))
                break
        if key == "step":
            if capturable or fused:
                return value.to(dtype=torch.float32, device=param.device)
            return value
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)

    def load_state_dict(self, state_dict: dict) -> None:
        """Takes back what `state_dict` gave; parameters correspond by their order."""
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            replacement = hook(self, state_dict)
            if replacement is not None:
                state_dict = replacement
        import copy

        groups = self.param_groups
        saved_groups = copy.deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        for group, saved in zip(groups, saved_groups):
            if len(group["params"]) != len(saved["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of "
                    "optimizer's group"
                )
        own = {
            number: parameter
            for group, saved in zip(groups, saved_groups)
            for number, parameter in zip(saved["params"], group["params"])
        }
        state: defaultdict = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in own:
                state[own[key]] = self._cast(own[key], value, key, state_dict["param_groups"])
            else:
                state[key] = value
        merged = []
        for group, saved in zip(groups, saved_groups):
            saved["params"] = group["params"]
            if "param_names" in group and "param_names" not in saved:
                saved["param_names"] = group["param_names"]
            merged.append(saved)
        self.__setstate__({"state": state, "param_groups": merged})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def _cast(self, param: Tensor, value, param_id: int, groups: list[dict], key=None):
        """Loaded state, its tensors cast to fit the parameter."""
        if isinstance(value, Tensor):
            return self._process_value_according_to_param_policy(
                param, value, param_id, groups, key
            )
        if isinstance(value, dict):
            return {k: self._cast(param, v, param_id, groups, key=k) for k, v in value.items()}
        if isinstance(value, list | tuple | set):
            return type(value)(self._cast(param, v, param_id, groups) for v in value)
        return value

    # Gradients and parameters.

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients of all parameters, or fills them with zeros."""
        for group in self.param_groups:
            for parameter in group["params"]:
                gradient = parameter.grad
                if gradient is None:
                    continue
                if set_to_none:
                    parameter.grad = None
                    continue
                if gradient.grad_fn is not None:
                    gradient.detach_()
                else:
                    gradient.requires_grad_(False)
                gradient.zero_()

    def step(self, closure=None):
        """Updates the parameters once; every optimizer defines it."""
        raise NotImplementedError

    def add_param_group(self, param_group: dict) -> None:
        """Adds a group; options it does not give are the defaults."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            param_group["params"] = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the "
                "ordering "
                "of tensors in sets will change between runs. Please use a list instead."
            )
        else:
            param_group["params"] = list(params)
        self._split_names(param_group)
        for parameter in param_group["params"]:
            if not isinstance(parameter, Tensor):
                raise TypeError(
                    "optimizer can only optimize Tensors, "
                    f"but one of the params is {_typename(parameter)}"
                )
            free = self.defaults.get("differentiable", None)
            if not free and not (parameter.is_leaf or parameter.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    "parameter group didn't specify a value of required optimization parameter "
                    f"{name}"
                )
            param_group.setdefault(name, default)
        params = param_group["params"]
        if len(params) != len(set(params)):
            import warnings

            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this "
                "will "
                "cause an error; see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=3,
            )
        known = {id(parameter) for group in self.param_groups for parameter in group["params"]}
        if any(id(parameter) in known for parameter in params):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def _split_names(self, group: dict) -> None:
        """Turns (name, tensor) pairs into "params" and "param_names"; all groups must agree."""
        named = [parameter for parameter in group["params"] if isinstance(parameter, tuple)]
        if named:
            if len(named) != len(group["params"]):
                raise ValueError(
                    "all optimizer params should be with/without names. Some param names are "
                    "missing"
                )
            group["param_names"] = [name for name, _ in named]
            group["params"] = [parameter for _, parameter in named]
        if self.param_groups:
            if ("param_names" in self.param_groups[0]) != ("param_names" in group):
                state = "with names" if "param_names" in self.param_groups[0] else "without names"
                given = "without names" if state == "with names" else "with names"
                raise ValueError(
                    "all optimizer param groups should be with/without names. "
                    f"cannot add param group {given} to the optimizer {state}"
                )
