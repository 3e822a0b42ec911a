"""The operators as functions, where old programs look for them: _VF.lstm, _VF.norm."""

from rushlight import _C


def __getattr__(name: str) -> object:
    return getattr(_C._VariableFunctions, name)
