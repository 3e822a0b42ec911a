"""Where storages were saved from and where load puts them: taggers and deserializers of devices."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import NoReturn

from rushlight.storage import TypedStorage, UntypedStorage

__all__ = [
    "default_restore_location",
    "location_tag",
    "register_package",
    "validate_cuda_device",
    "validate_hpu_device",
]

Storage = TypedStorage | UntypedStorage
Tagger = Callable[[Storage], "str | None"]
Deserializer = Callable[[Storage, str], "Storage | None"]

_ADVICE = (
    "If you are running on a CPU-only machine, please use torch.load with "
    "map_location=torch.device('cpu') to map your storages to the CPU."
)
_packages: list[tuple[int, Tagger, Deserializer]] = []


def register_package(priority: int, tagger: Tagger, deserializer: Deserializer) -> None:
    """Adds a kind of place for storages; those of lower priority numbers are asked first.

    Args:
        tagger: gives the text that save writes for a storage, None where it is another kind's.
        deserializer: gives the storage, moved to the place that a text names; None as above.
    """
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=operator.itemgetter(0))


def location_tag(storage: Storage) -> str:
    """What save writes for the place of a storage: "cpu", "meta" or what a package says."""
    for _, tagger, _ in _packages:
        location = tagger(storage)
        if location:
            return location
    raise RuntimeError(f"don't know how to determine data location of {_name(storage)}")


def default_restore_location(storage: Storage, location: str) -> Storage:
    """The storage in the place that a text names. RuntimeError where nobody knows the place."""
    for _, _, deserializer in _packages:
        restored = deserializer(storage, location)
        if restored is not None:
            return restored
    raise RuntimeError(
        f"don't know how to restore data location of {_name(storage)} (tagged with {location})"
    )


def validate_cuda_device(location: str) -> NoReturn:
    """An error: there are no such devices."""
    raise RuntimeError(
        f"Attempting to deserialize object on device {location}: CUDA is not available here. "
        + _ADVICE
    )


def validate_hpu_device(location: str) -> NoReturn:
    """An error: there are no such devices."""
    raise RuntimeError(f"The HPU device module is not registered, got {location}. {_ADVICE}")


def _name(storage: Storage) -> str:
    return f"torch.storage.{type(storage).__name__}"


def _tag(kind: str) -> Tagger:
    return lambda storage: kind if storage.device.type == kind else None


def _restore_cpu(storage: Storage, location: str) -> Storage | None:
    return storage if location.partition(":")[0] == "cpu" else None


def _restore_meta(storage: Storage, location: str) -> Storage | None:
    if location != "meta":
        return None
    return UntypedStorage(storage.nbytes(), device="meta")


def _restore_elsewhere(storage: Storage, location: str) -> Storage | None:
    kind = location.partition(":")[0]
    if kind == "cuda":
        validate_cuda_device(location)
    if kind == "hpu":
        validate_hpu_device(location)
    return None


# The numbers are PyTorch's, so that packages come where they do there.
register_package(10, _tag("cpu"), _restore_cpu)
register_package(20, lambda storage: None, _restore_elsewhere)
register_package(22, _tag("meta"), _restore_meta)
