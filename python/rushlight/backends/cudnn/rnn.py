"""Recurrent networks by cuDNN, which this build does not use."""

from __future__ import annotations

from typing import Any

from rushlight import backends as _backends
from rushlight.backends import ContextProp  # noqa: F401

_MODES = {"RNN_RELU": 0, "RNN_TANH": 1, "LSTM": 2, "GRU": 3}
_values: dict[str, Any] = {"fp32_precision": "tf32"}


def get_cudnn_mode(mode: str) -> int:
    """cuDNN's number of a kind of recurrent network."""
    if mode not in _MODES:
        raise Exception(f"Unknown mode: {mode}")
    return _MODES[mode]


class Unserializable:
    """A holder whose content is left out of pickles."""

    def __init__(self, inner: object) -> None:
        self.inner = inner

    def get(self) -> object:
        """The content."""
        return self.inner

    def __getstate__(self) -> str:
        return "<unserializable>"

    def __setstate__(self, state: object) -> None:
        self.inner = None


def init_dropout_state(dropout: float, train: bool, dropout_seed: int, dropout_state: dict) -> None:
    """An error: there is no cuDNN that could draw dropout's numbers."""
    raise RuntimeError("init_dropout_state: Rushlight is not compiled with cuDNN")


class CudnnRNNModule(_backends.PropModule):
    """This module, with its setting."""

    fp32_precision = _backends._setting(_values, "fp32_precision", _backends._precision)
    init_dropout_state = staticmethod(init_dropout_state)


_backends._install(__name__, CudnnRNNModule)
