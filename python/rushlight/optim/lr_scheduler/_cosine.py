"""Schedules along half a cosine."""

from __future__ import annotations

import math

from ..optimizer import Optimizer
from ._base import (
    LRScheduler,
    _Flag,
    _param_groups_val_list,
    _update_param_group_val,
    _warn_get_lr_called_within_step,
)


class CosineAnnealingLR(LRScheduler):
    """From the initial rate to `eta_min` in `T_max` epochs, and back (Loshchilov & Hutter,
    2016).
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list:
        """The rates for `last_epoch`."""
        _warn_get_lr_called_within_step(self)
        low, period, epoch = self.eta_min, self.T_max, self.last_epoch
        if epoch == 0 or self._is_initial:
            return self._rates()
        if (epoch - 1 - period) % (2 * period) == 0:
            rise = (1 - math.cos(math.pi / period)) / 2
            return [rate + (base - low) * rise for base, rate in zip(self.base_lrs, self._rates())]
        ratio = (1 + math.cos(math.pi * epoch / period)) / (
            1 + math.cos(math.pi * (epoch - 1) / period)
        )
        return [ratio * (rate - low) + low for rate in self._rates()]

    def _get_closed_form_lr(self) -> list:
        share = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine again and again, each `T_mult` times as long as the one before."""

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, float | int):
            raise ValueError(
                f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}"
            )
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list:
        """The rates for the present place in the cycle."""
        _warn_get_lr_called_within_step(self)
        share = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]

    def step(self, epoch=None) -> None:
        """Goes on by one epoch, or to `epoch`, which may be fractional."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur = self.T_cur + 1
            if self.T_cur >= self.T_i:
                self.T_cur = self.T_cur % self.T_i
                self.T_i = self.T_i * self.T_mult
        else:
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            self._go_to(epoch)
        self.last_epoch = math.floor(epoch)
        with _Flag(self, "_get_lr_called_within_step"):
            for group, rate in zip(self.optimizer.param_groups, self.get_lr()):
                _update_param_group_val(group, "lr", rate)
        self._last_lr = _param_groups_val_list(self.optimizer, "lr")

    def _go_to(self, epoch: float) -> None:
        if epoch < self.T_0:
            self.T_i = self.T_0
            self.T_cur = epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
            self.T_i = self.T_0
        else:
            grown = epoch / self.T_0 * (self.T_mult - 1) + 1
            cycle = int(math.log(grown, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**cycle - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**cycle
