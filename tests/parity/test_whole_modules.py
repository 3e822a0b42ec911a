"""Whole modules, optimizers and the like in files that both packages read.

Where PyTorch is installed beside Rushlight each reads what the other wrote.
"""

from __future__ import annotations

import importlib
import importlib.util
import pathlib
import warnings
from collections.abc import Callable

import pytest

MAKERS: dict[str, Callable] = {
    "linear": lambda t: t.nn.Sequential(t.nn.Linear(2, 2), t.nn.GELU(), t.nn.LayerNorm(2)),
    "convolution": lambda t: t.nn.Sequential(
        t.nn.Conv2d(1, 2, 3, padding="same"), t.nn.BatchNorm2d(2), t.nn.MaxPool2d(2)
    ),
    "lstm": lambda t: t.nn.LSTM(2, 3, 2, bidirectional=True),
    "gru": lambda t: t.nn.GRU(2, 3, bias=False),
    "rnn": lambda t: t.nn.RNN(2, 3, nonlinearity="relu"),
    "cells": lambda t: t.nn.ModuleList([t.nn.LSTMCell(2, 3), t.nn.GRUCell(2, 3)]),
    "attention": lambda t: t.nn.MultiheadAttention(4, 2),
    "transformer": lambda t: t.nn.Transformer(4, 2, 1, 1, 8),
    "parameters": lambda t: t.nn.ParameterDict({"a": t.nn.ParameterList([t.ones(2)])}),
    "spectral norm": lambda t: t.nn.utils.spectral_norm(t.nn.Linear(2, 2)),
    "lazy": lambda t: t.nn.LazyLinear(2),
    "optimizer": lambda t: t.optim.Adam([t.nn.Parameter(t.ones(2))], lr=0.1),
    "schedule": lambda t: t.optim.lr_scheduler.CosineAnnealingLR(
        t.optim.SGD([t.nn.Parameter(t.ones(2))], lr=0.1), 3
    ),
    "distribution": lambda t: t.distributions.TransformedDistribution(
        t.distributions.Normal(t.zeros(1), t.ones(1)),
        [t.distributions.AffineTransform(0.0, 1.0), t.distributions.ExpTransform()],
    ),
    "data": lambda t: t.utils.data.Subset(t.utils.data.TensorDataset(t.ones(2)), [0]),
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("writer", ["torch", "rushlight"])
def test_files_of_whole_objects(writer: str, name: str, tmp_path: pathlib.Path) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed beside Rushlight")
    reader = "rushlight" if writer == "torch" else "torch"
    source, target = importlib.import_module(writer), importlib.import_module(reader)
    path = tmp_path / "object.pt"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = MAKERS[name](source)
        source.save(made, path)
        found = target.load(path, weights_only=False)
        wanted = MAKERS[name](target)
    assert type(found) is type(wanted)
    if not isinstance(made, source.nn.Module):
        return
    assert repr(found) == repr(made)
    for ours, theirs in zip(found.modules(), wanted.modules(), strict=True):
        assert set(vars(ours)) == set(vars(theirs))
    if name in ("lstm", "gru", "rnn"):
        x = source.randn(3, 1, 2)
        given, result = made(x)[0].tolist(), found(target.tensor(x.tolist()))[0].tolist()
        assert target.allclose(target.tensor(result), target.tensor(given), atol=1e-6)
