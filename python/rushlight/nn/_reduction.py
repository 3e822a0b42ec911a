"""How a loss is reduced, under the name that other code imports it by."""

from .functional._reduction import get_enum, legacy_get_enum, legacy_get_string

__all__ = ["get_enum", "legacy_get_enum", "legacy_get_string"]
