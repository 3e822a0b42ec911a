"""Settings of scripts: those that choose between PyTorch's kernels are kept and change nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from rushlight import compiler

__all__ = [
    "enable_onednn_fusion", "fuser", "onednn_fusion_enabled", "optimized_execution",
    "script_method",
]  # fmt: skip

_onednn = False


def enable_onednn_fusion(enabled: bool) -> None:
    """Sets what `onednn_fusion_enabled` says; operators are fused by this compiler in any case."""
    global _onednn
    _onednn = bool(enabled)


def onednn_fusion_enabled() -> bool:
    """What `enable_onednn_fusion` set last: False at first."""
    return _onednn


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A block in which scripts and traces are compiled, or with False run operator by operator."""
    if should_optimize:
        yield
        return
    with compiler.set_stance("force_eager"):
        yield


@contextlib.contextmanager
def fuser(name: str) -> Iterator[None]:
    """A block that asks for one of PyTorch's fusers, fuser0 to fuser3: this compiler fuses."""
    if name not in ("fuser0", "fuser1", "fuser2", "fuser3"):
        raise Exception(f"unrecognized fuser option (name: {name})")
    yield


def script_method(fn: Callable) -> Callable:
    """Marks a method of a ScriptModule to be scripted; all of them are here."""
    return fn
