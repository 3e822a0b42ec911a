"""Process-wide settings and small questions about objects."""

from __future__ import annotations

from rushlight import _C
from rushlight._C import Tensor

_deterministic = {"mode": False, "warn_only": False}
_other = {"warn_always": False, "interop_threads": 1}
_matmul = {"asked": "highest", "backend": "none"}


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Asks for deterministic results. They always are: only what the getters say changes."""
    _deterministic.update(mode=bool(mode), warn_only=bool(warn_only))


def are_deterministic_algorithms_enabled() -> bool:
    """Whether deterministic results were asked for."""
    return _deterministic["mode"]


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether they were asked for with warn_only."""
    return _deterministic["warn_only"]


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """The same setting by level: 0 or 'default', 1 or 'warn', 2 or 'error'."""
    levels = {"default": 0, "warn": 1, "error": 2}
    if isinstance(debug_mode, str):
        if debug_mode not in levels:
            raise RuntimeError(
                "invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got "
                f"{debug_mode}"
            )
        debug_mode = levels[debug_mode]
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(
            f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}"
        )
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode() -> int:
    """The level that set_deterministic_debug_mode sets."""
    if not _deterministic["mode"]:
        return 0
    return 1 if _deterministic["warn_only"] else 2


def set_float32_matmul_precision(precision: str) -> None:
    """How many significant bits the factors of f32 matrix products keep.

    'highest': all 24 (default). 'high': at least 16. 'medium': at least 8, as bfloat16. Sums are
    f32 always. Fewer bits are kept only where that is faster: on CPUs with matrix tiles (AMX).
    There `torch.backends.fp32_precision = "bf16x6"` keeps all 24 bits and is faster all the same.
    Raises RuntimeError for any other value.
    """
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(
            "set_float32_matmul_precision: precision must be 'highest', 'high' or 'medium', got "
            f"{precision!r}"
        )
    _matmul["asked"] = precision
    _apply_matmul_precision()


def get_float32_matmul_precision() -> str:
    """What set_float32_matmul_precision was given last."""
    return _matmul["asked"]


def _ask_backend_precision(precision: str) -> None:
    """What `torch.backends` asks of f32 products; 'none' leaves it to the setting above.

    'ieee', 'tf32' and 'bf16' are 'highest', 'high' and 'medium'. 'bf16x6' takes each factor for the
    exact sum of three bf16 and leaves out the three smallest of their nine products, which are
    below half of the last bit: results are as near as those of f32 multiply-adds, with other bits.
    """
    _matmul["backend"] = precision
    _apply_matmul_precision()


def _apply_matmul_precision() -> None:
    names = {
        "none": _matmul["asked"],
        "ieee": "highest",
        "bf16x6": "split",
        "tf32": "high",
        "bf16": "medium",
    }
    _C._set_float32_matmul_precision(names[_matmul["backend"]])


def set_warn_always(b: bool, /) -> None:
    """Whether each warning is given every time."""
    _other["warn_always"] = bool(b)


def is_warn_always_enabled() -> bool:
    """What set_warn_always was given last."""
    return _other["warn_always"]


def set_num_interop_threads(num: int) -> None:
    """Kept for programs that set it: there is one pool of threads, set by set_num_threads."""
    if num < 1:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    _other["interop_threads"] = num


def get_num_interop_threads() -> int:
    """What set_num_interop_threads was given last."""
    return _other["interop_threads"]


def set_flush_denormal(mode: bool) -> bool:
    """Whether denormal numbers can be flushed to zero: they never are, so only False succeeds."""
    return not mode


def is_tensor(obj: object, /) -> bool:
    """Whether obj is a Tensor."""
    return isinstance(obj, Tensor)


def is_storage(obj: object, /) -> bool:
    """Whether obj is a storage."""
    from rushlight.storage import TypedStorage, UntypedStorage

    return isinstance(obj, (TypedStorage, UntypedStorage))


def typename(obj: object, /) -> str:
    """The name of an object's type, as PyTorch's legacy tensor types spell it."""
    if isinstance(obj, Tensor):
        return obj.type()
    kind = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(kind, "__module__", "")
    if module in ("builtins", "", None):
        return kind.__qualname__
    return f"{module}.{kind.__qualname__}"


def set_default_tensor_type(t: object, /) -> None:
    """Sets the default dtype by a legacy tensor type or its name."""
    _C.set_default_dtype(_C.Tensor([]).type(t).dtype)
