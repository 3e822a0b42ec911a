"""Mistakes with the linear cross entropy, one a test."""

import dataclasses

import pytest
import rushlight as torch
import rushlight.nn as nn
import rushlight.nn.functional as F

X, W, TARGET = torch.ones(5, 4), torch.ones(7, 4), torch.zeros(5, dtype=torch.long)


@pytest.mark.parametrize(
    ("operands", "keywords", "error", "text"),
    [
        ((X[None], W, TARGET), {}, RuntimeError, "input with dimensionality 1 or 2, got 3"),
        ((X, W[0], TARGET), {}, RuntimeError, "dimensionality at least 2, got 1"),
        ((X, W[:, :3], TARGET), {}, RuntimeError, "last dimensions.*got 4 and 3"),
        ((X, W, TARGET.int()), {}, RuntimeError, "Long or Byte, but got Int"),
        ((X, W, TARGET + 7), {}, IndexError, "Target 7 is out of bounds"),
        ((X, W, TARGET[:3]), {}, ValueError, r"batch_size \(5\) to match target"),
        ((X, W.double(), TARGET), {}, RuntimeError, "same dtype"),
        ((X[0], W.view(7, 1, 4), TARGET[:1]), {}, RuntimeError, "requires batched input"),
        ((X, W, TARGET), {"linear_bias": X[0]}, RuntimeError, r"linear_bias shape \[7\]"),
        ((X, W, TARGET), {"weight": X[0]}, RuntimeError, "for all 7 classes"),
        ((X, W, TARGET), {"reduction": "all"}, ValueError, "all is not a valid value"),
        ((X, W, TARGET), {"label_smoothing": 2.0}, RuntimeError, "between 0.0 and 1.0"),
        ((X, W, TARGET), {"options": 3}, TypeError, "LinearCrossEntropyOptions or None, got int"),
        ((X, W, torch.ones(5, 7)), {"ignore_index": 1}, RuntimeError, "contains probabilities"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_operands(operands, keywords, error, text):
    with pytest.raises(error, match=text):
        F.linear_cross_entropy(*operands, **keywords)


@pytest.mark.parametrize(
    ("keywords", "text"),
    [
        ({"batch_chunk_size": 0}, "batch_chunk_size must be positive int or None, got 0"),
        ({"batch_chunk_size": "a"}, "batch_chunk_size must be positive int or None, got 'a'"),
        ({"chunking_method": "rows"}, "invalid chunking_method: 'rows'"),
        ({"chunking_method": "aspect_ratio:0"}, "invalid chunking_method: 'aspect_ratio:0'"),
        ({"acc_policy": "fast"}, "invalid acc_policy: 'fast'"),
        ({"acc_dtype": torch.int32}, "acc_dtype must be one of .* got torch.int32"),
    ],
    ids=str,
)
def test_options(keywords, text):
    with pytest.raises(ValueError, match=text):
        nn.LinearCrossEntropyOptions(**keywords)


@pytest.mark.parametrize(
    ("keywords", "error", "text"),
    [
        (
            {"batch_chunk_size": 3, "chunking_method": "aspect_ratio"},
            ValueError,
            r"give different chunk sizes \(3 vs 4\); pass only one",
        ),
        (
            {"batch_chunk_size": 4, "chunking_method": "aspect_ratio:2"},
            ValueError,
            r"give different chunk sizes \(4 vs 2\); pass only one",
        ),
        (
            {"acc_dtype": torch.float64},
            RuntimeError,
            "float32 acc_dtype with float16/bfloat16 inputs, but got torch.float64",
        ),
    ],
    ids=str,
)
def test_options_that_contradict(keywords, error, text):
    with pytest.raises(error, match=text):
        F.linear_cross_entropy(X, W, TARGET, options=nn.LinearCrossEntropyOptions(**keywords))


def test_options_do_not_change():
    with pytest.raises(dataclasses.FrozenInstanceError):
        nn.LinearCrossEntropyOptions().acc_policy = "compact"


def test_weight_of_the_module():
    with pytest.raises(RuntimeError, match="expected weight shape to be"):
        nn.LinearCrossEntropyLoss(4, 7, weight=torch.ones(6))
