"""What distributions of one probability share, and those that are made of a `Categorical`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rushlight as torch
from rushlight import Tensor
from rushlight.distributions.utils import (
    _shape_of,
    broadcast_all,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)

if TYPE_CHECKING:
    from rushlight.distributions.categorical import Categorical


class _OneProbability:
    """Given by `probs` or by `logits`, the log odds; the other is computed when it is asked for."""

    _param: Tensor

    def _take(self, probs: Any, logits: Any) -> torch.Size:
        """Keeps the one that is given; returns the batch shape."""
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        given = probs if probs is not None else logits
        (self._param,) = broadcast_all(given)
        self._name_param(probs is not None)
        return _shape_of(self._param, given)

    def _take_counted(self, total_count: Any, probs: Any, logits: Any) -> torch.Size:
        """The same beside a number of trials, in the dtype of the one that is given."""
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        given = probs if probs is not None else logits
        count, self._param = broadcast_all(total_count, given)
        self.total_count = count.type_as(self._param)
        self._name_param(probs is not None)
        return self._param.size()

    def _name_param(self, is_probs: bool) -> None:
        if is_probs:
            self.probs = self._param
        else:
            self.logits = self._param

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._param.new(*args, **kwargs)

    @property
    def param_shape(self) -> torch.Size:
        """The shape of the parameter that was given."""
        return self._param.size()

    @lazy_property
    def logits(self) -> Tensor:
        """The log odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits, is_binary=True)


class _OfCategories:
    """The parameters of the `Categorical` that the distribution keeps."""

    _categorical: Categorical

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def param_shape(self) -> torch.Size:
        """The shape of the parameter that was given."""
        return self._categorical.param_shape
