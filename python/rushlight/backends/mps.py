"""Metal on Apple's GPUs, which this build does not use."""

from __future__ import annotations

from typing import NoReturn


def _absent(what: str) -> NoReturn:
    raise RuntimeError(f"{what}: Rushlight is not compiled with the MPS backend")


def is_built() -> bool:
    """False."""
    return False


def is_available() -> bool:
    """False."""
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Whether this is macOS of that version or a newer one."""
    import platform

    version = [int(part) for part in platform.mac_ver()[0].split(".") if part]
    return bool(version) and version >= [major, minor]


def is_macos13_or_newer(minor: int = 0) -> bool:
    """Whether this is macOS 13 or newer."""
    return is_macos_or_newer(13, minor)


def get_name() -> str:
    """An error: there is no device to name."""
    _absent("get_name")


def get_core_count() -> int:
    """An error: there is no device whose cores to count."""
    _absent("get_core_count")
