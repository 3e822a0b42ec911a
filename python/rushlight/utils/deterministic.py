"""Settings of deterministic algorithms."""

import sys
import types


class _Settings(types.ModuleType):
    """The module itself, so that its setting is checked when it is set."""

    _fill_uninitialized_memory = True

    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether memory that nobody has written is filled where algorithms are deterministic.

        Results here depend on no such memory; it is kept for programs that set it.
        """
        return self._fill_uninitialized_memory

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(f"fill_uninitialized_memory must be a bool, not {type(mode)}")
        self._fill_uninitialized_memory = mode


sys.modules[__name__].__class__ = _Settings
