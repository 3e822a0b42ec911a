"""Mixtures of one family."""

from __future__ import annotations

from typing import Any

import rushlight as torch
from rushlight import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.categorical import Categorical
from rushlight.distributions.distribution import _EMPTY, Distribution, _size

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """Component k, along the last batch dimension, with the mixture's probability of k."""

    arg_constraints: dict[str, constraints.Constraint] = {}
    has_rsample = False

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                " The Mixture distribution needs to be an  instance of "
                "torch.distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution need to be an instance of "
                "torch.distributions.Distribution"
            )
        *rest, components = component_distribution.batch_shape
        rest_shape = torch.Size(rest)
        mixed = mixture_distribution.batch_shape
        for left, right in zip(reversed(mixed), reversed(rest_shape), strict=False):
            if left != right and 1 not in (left, right):
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixed}) is not "
                    "compatible with `component_distribution."
                    f"batch_shape`({rest_shape})"
                )
        categories = mixture_distribution.logits.shape[-1]
        if categories != components:
            raise ValueError(
                f"`mixture_distribution component` ({categories}) does not"
                " equal `component_distribution.batch_shape[-1]`"
                f" ({components})"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        self._num_component = components
        self._event_ndims = len(component_distribution.event_shape)
        super().__init__(
            rest_shape, component_distribution.event_shape, validate_args=validate_args
        )

    def expand(self, batch_shape: _size, _instance: Any = None) -> Distribution:
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        batch_shape = torch.Size(batch_shape)
        new._component_distribution = self._component_distribution.expand(
            batch_shape + (self._num_component,)
        )
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._num_component = self._num_component
        new._event_ndims = self._event_ndims
        event_shape = new._component_distribution.event_shape
        Distribution.__init__(new, batch_shape, event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """The distribution of components."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components."""
        return self._component_distribution

    def _average(self, value: Tensor) -> Tensor:
        """The mean over components of a value of each, by their probabilities."""
        probs = self.mixture_distribution.probs
        weights = probs.reshape(probs.shape + (1,) * self._event_ndims)
        return (weights * value).sum(-1 - self._event_ndims)

    def _for_each(self, x: Tensor) -> Tensor:
        """`x` with a dimension for the components."""
        return x.unsqueeze(-1 - self._event_ndims)

    @property
    def mean(self) -> Tensor:
        return self._average(self.component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        # The mean of the variances and the variance of the means.
        shift = self.component_distribution.mean - self._for_each(self.mean)
        return self._average(self.component_distribution.variance) + self._average(shift**2)

    def cdf(self, x: Tensor) -> Tensor:
        return self._average(self.component_distribution.cdf(self._for_each(x)))

    def log_prob(self, x: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(x)
        of_components = self.component_distribution.log_prob(self._for_each(x))
        return torch.logsumexp(self.mixture_distribution.logits + of_components, -1)

    def sample(self, sample_shape: _size = _EMPTY) -> Tensor:
        with torch.no_grad():
            chosen = self.mixture_distribution.sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            dim = drawn.dim() - self._event_ndims - 1
            index = chosen.reshape(chosen.shape + (1,) * (self._event_ndims + 1))
            index = index.expand(drawn.shape[:dim] + (1,) + self.event_shape)
            return drawn.gather(dim, index).squeeze(dim)

    def __repr__(self) -> str:
        args_string = f"\n  {self.mixture_distribution},\n  {self.component_distribution}"
        return "MixtureSameFamily" + "(" + args_string + ")"
