"""Compiled kernels as bytes, to be loaded in another process or on another machine."""

from __future__ import annotations

import collections
import dataclasses
import warnings

from rushlight import _C


@dataclasses.dataclass
class CacheInfo:
    """The names of what was saved or loaded, by kind."""

    artifacts: collections.defaultdict = dataclasses.field(
        default_factory=lambda: collections.defaultdict(list)
    )

    @property
    def kernel_artifacts(self) -> list[str]:
        """The kernels."""
        return self.artifacts["kernel"]

    @property
    def inductor_artifacts(self) -> list[str]:
        """The kernels, under PyTorch's name for them."""
        return self.artifacts["kernel"]

    def empty(self) -> bool:
        """Whether there is nothing."""
        return not any(self.artifacts.values())


def save_cache_artifacts() -> tuple[bytes, CacheInfo] | None:
    """The kernels that this process compiled or read, and their names; None where it has none.

    The bytes say which build of Rushlight they are of: another one leaves them out.
    """
    data, names = _C._save_kernel_artifacts()
    if not names:
        return None
    info = CacheInfo()
    info.artifacts["kernel"] = names
    return data, info


def load_cache_artifacts(serialized_artifacts: bytes) -> CacheInfo | None:
    """Makes saved kernels known: what needs one of them compiles nothing.

    None, with a warning, where the bytes are damaged.
    """
    if not isinstance(serialized_artifacts, (bytes, bytearray, memoryview)):
        raise TypeError(
            f"load_cache_artifacts expects bytes, got {type(serialized_artifacts).__name__}"
        )
    names = _C._load_kernel_artifacts(bytes(serialized_artifacts))
    if names is None:
        warnings.warn(
            "load_cache_artifacts: the bytes are not what save_cache_artifacts gave, or are "
            "damaged; nothing was loaded",
            stacklevel=2,
        )
        return None
    info = CacheInfo()
    info.artifacts["kernel"] = names
    return info
