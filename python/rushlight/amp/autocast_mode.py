"""Regions in which operators choose the precision of their arguments."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable

from rushlight import _C

__all__ = [
    "autocast",
    "autocast_decorator",
    "custom_bwd",
    "custom_fwd",
    "is_autocast_available",
]

# Devices that scripts name; of these only the CPU is here.
_DEFAULTS = {
    "cpu": _C.bfloat16,
    "cuda": _C.float16,
    "hpu": _C.bfloat16,
    "ipu": _C.float16,
    "maia": _C.bfloat16,
    "mps": _C.float16,
    "mtia": _C.float16,
    "privateuseone": _C.float16,
    "xla": _C.bfloat16,
    "xpu": _C.float16,
}
_elsewhere: dict[str, tuple[bool, object]] = {}


def _check_device(device_type: object) -> str:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if device_type not in _DEFAULTS:
        raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
    return device_type


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast knows this type of device."""
    return device_type in _DEFAULTS


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether this thread is in an enabled region for the device."""
    if _check_device(device_type) == "cpu":
        return _C._autocast_state()[0]
    return _elsewhere.get(device_type, (False, None))[0]


def set_autocast_enabled(*args: object, **kwargs: object) -> None:
    """set_autocast_enabled(device_type, enabled)
    set_autocast_enabled(enabled)

    Opens or closes a region by hand; without a device, that of "cuda".
    """
    if len(args) + len(kwargs) == 1 and "device_type" not in kwargs:
        _set_enabled("cuda", *args, **kwargs)
    else:
        _set_enabled(*args, **kwargs)


def _set_enabled(device_type: str, enabled: bool) -> None:
    if _check_device(device_type) == "cpu":
        _, dtype, caches = _C._autocast_state()
        _C._set_autocast(enabled, dtype, caches)
    else:
        _elsewhere[device_type] = (enabled, get_autocast_dtype(device_type))


def get_autocast_dtype(device_type: str) -> object:
    """The dtype that operators get in a region for the device."""
    if _check_device(device_type) == "cpu":
        return _C._autocast_state()[1]
    return _elsewhere.get(device_type, (False, _DEFAULTS[device_type]))[1]


def set_autocast_dtype(device_type: str, dtype: object) -> None:
    """Sets the dtype that operators get in a region for the device."""
    if _check_device(device_type) == "cpu":
        enabled, _, caches = _C._autocast_state()
        _C._set_autocast(enabled, dtype, caches)
    else:
        _elsewhere[device_type] = (is_autocast_enabled(device_type), dtype)


def is_autocast_cache_enabled() -> bool:
    """Whether converted weights are kept until the outermost region ends."""
    return _C._autocast_state()[2]


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Sets whether converted weights are kept until the outermost region ends."""
    active, dtype, _ = _C._autocast_state()
    _C._set_autocast(active, dtype, enabled)


class autocast:
    """Region in which products run in a lower precision and losses in f32.

    A context manager and a decorator. `dtype` is bfloat16 (the default) or float16 on the CPU.
    A region with `enabled=False` inside another one has no autocast.
    """

    def __init__(
        self,
        device_type: str,
        dtype: object = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        self.device = _check_device(device_type)
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        self._cache_enabled = (
            is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        )
        self._enabled = enabled
        if device_type != "cpu" and enabled:
            warnings.warn(
                f"User provided device_type of '{device_type}', but {device_type.upper()} is not "
                "available. Disabling",
                stacklevel=2,
            )
            self._enabled = False
        allowed = (_C.bfloat16, _C.float16, _C.float32)
        if device_type == "cpu" and self._enabled and self.fast_dtype not in allowed[:2]:
            warnings.warn(
                "In CPU autocast, but the target dtype is not supported. Disabling autocast.\n"
                "CPU Autocast only supports dtype of torch.bfloat16, torch.float16 currently.",
                stacklevel=2,
            )
            self._enabled = False

    def __enter__(self) -> autocast:
        self._before = (
            is_autocast_enabled(self.device),
            get_autocast_dtype(self.device),
            is_autocast_cache_enabled(),
        )
        set_autocast_enabled(self.device, self._enabled)
        set_autocast_dtype(self.device, self.fast_dtype)
        set_autocast_cache_enabled(self._cache_enabled)
        _C.autocast_increment_nesting()
        return self

    def __exit__(self, *_: object) -> None:
        if _C.autocast_decrement_nesting() == 0:
            _C.clear_autocast_cache()
        enabled, dtype, caches = self._before
        set_autocast_enabled(self.device, enabled)
        set_autocast_dtype(self.device, dtype)
        set_autocast_cache_enabled(caches)

    def __call__(self, function: Callable) -> Callable:
        return autocast_decorator(self, function)


def autocast_decorator(autocast_instance: autocast, func: Callable) -> Callable:
    """The function, each call of it inside the region."""

    @functools.wraps(func)
    def inside(*args: object, **kwargs: object) -> object:
        with autocast_instance:
            return func(*args, **kwargs)

    return inside


def _converted(value: object, dtype: object) -> object:
    if isinstance(value, _C.Tensor):
        eligible = value.is_floating_point() and value.dtype is not _C.float64
        return value.to(dtype) if eligible else value
    if isinstance(value, dict):
        return {key: _converted(item, dtype) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_converted(item, dtype) for item in value)
    return value


def custom_fwd(
    fwd: Callable | None = None, *, device_type: str, cast_inputs: object = None
) -> Callable:
    """Decorates `forward` of an autograd.Function.

    With `cast_inputs` its floating tensors come in that dtype and it runs without autocast;
    otherwise it runs as the caller does, and its backward too.
    """
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    _check_device(device_type)

    @functools.wraps(fwd)
    def decorated(*args: object, **kwargs: object) -> object:
        args[0]._dtype = get_autocast_dtype(device_type)
        if cast_inputs is None:
            args[0]._fwd_used_autocast = is_autocast_enabled(device_type)
            return fwd(*args, **kwargs)
        active = is_autocast_enabled(device_type)
        args[0]._fwd_used_autocast = False
        if not active:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(*_converted(args, cast_inputs), **_converted(kwargs, cast_inputs))

    return decorated


def custom_bwd(bwd: Callable | None = None, *, device_type: str) -> Callable:
    """Decorates `backward` of an autograd.Function: it runs in the region of its forward."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    _check_device(device_type)

    @functools.wraps(bwd)
    def decorated(*args: object, **kwargs: object) -> object:
        used = args[0]._fwd_used_autocast
        with autocast(device_type, enabled=used, dtype=args[0]._dtype):
            return bwd(*args, **kwargs)

    return decorated
