"""The von Mises distribution."""

from __future__ import annotations

import math
from typing import Any

import rushlight as torch
from rushlight import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.distribution import _EMPTY, Distribution, _size
from rushlight.distributions.utils import broadcast_all, lazy_property

__all__ = ["VonMises"]


def _log_modified_bessel(x: Tensor, order: int) -> Tensor:
    scaled = torch.special.i0e(x) if order == 0 else torch.special.i1e(x)
    return scaled.log() + x


class VonMises(Distribution):
    """Angles around `loc`, the more concentrated the greater `concentration`."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(
        self, loc: Tensor, concentration: Tensor, validate_args: bool | None = None
    ) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, torch.Size(), validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        log_prob = self.concentration * torch.cos(value - self.loc)
        return log_prob - math.log(2 * math.pi) - _log_modified_bessel(self.concentration, 0)

    @lazy_property
    def _loc(self) -> Tensor:
        return self.loc.to(torch.double)

    @lazy_property
    def _concentration(self) -> Tensor:
        return self.concentration.to(torch.double)

    @lazy_property
    def _proposal_r(self) -> Tensor:
        kappa = self._concentration
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        exact = (1 + rho**2) / (2 * rho)
        # For small concentrations the expansion, as the quotient loses its digits.
        taylor = 1 / kappa + kappa
        return torch.where(kappa < 1e-5, taylor, exact)

    @torch.no_grad()
    def sample(self, sample_shape: _size = _EMPTY) -> Tensor:
        """Samples by Best and Fisher's rejection from a wrapped Cauchy distribution."""
        shape = self._extended_shape(sample_shape)
        x = torch.empty(shape, dtype=self._loc.dtype, device=self.loc.device)
        loc, concentration, r = self._loc, self._concentration, self._proposal_r
        done = torch.zeros(x.shape, dtype=torch.bool, device=loc.device)
        while not done.all():
            u = torch.rand((3,) + x.shape, dtype=loc.dtype, device=loc.device)
            u1, u2, u3 = u.unbind()
            z = torch.cos(math.pi * u1)
            f = (1 + r * z) / (r + z)
            c = concentration * (r - f)
            accept = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
            if accept.any():
                x = torch.where(accept, (u3 - 0.5).sign() * f.acos(), x)
                done = done | accept
        return ((x + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    def expand(self, batch_shape: _size, _instance: Any = None) -> Distribution:
        validate_args = self.__dict__.get("_validate_args")
        return type(self)(
            self.loc.expand(batch_shape),
            self.concentration.expand(batch_shape),
            validate_args=validate_args,
        )

    @property
    def mean(self) -> Tensor:
        """The circular mean."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:  # type: ignore[override]
        """The circular variance."""
        return (
            1
            - (
                _log_modified_bessel(self.concentration, 1)
                - _log_modified_bessel(self.concentration, 0)
            ).exp()
        )
