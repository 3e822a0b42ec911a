"""Averages of weights over training (Izmailov et al., 2018)."""

from __future__ import annotations

import math

import rushlight as torch
from rushlight import Tensor

from ..nn.modules.module import Module
from .lr_scheduler import LRScheduler
from .lr_scheduler._base import _format_param
from .optimizer import Optimizer

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )


def get_ema_avg_fn(decay=0.999):
    """A function that moves one average towards the present value by 1 - decay."""
    _check_decay(decay)

    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged) -> Tensor:
        with torch.no_grad():
            return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_ema_multi_avg_fn(decay=0.999):
    """A function that moves lists of averages towards the present values by 1 - decay, in place."""
    _check_decay(decay)

    def ema_update(ema_param_list, current_param_list, _) -> None:
        with torch.no_grad():
            for average, current in zip(ema_param_list, current_param_list):
                if torch.is_floating_point(average) or torch.is_complex(average):
                    average.lerp_(current.to(average.dtype), 1 - decay)
                else:
                    average.copy_(average * decay + current * (1 - decay))

    return ema_update


def get_swa_avg_fn():
    """A function that takes one more value into an average with equal weights."""

    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged) -> Tensor:
        with torch.no_grad():
            return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def get_swa_multi_avg_fn():
    """A function that takes one more value into each of a list of averages, in place."""

    def swa_update(averaged_param_list, current_param_list, num_averaged) -> None:
        with torch.no_grad():
            for average, current in zip(averaged_param_list, current_param_list):
                average.add_((current - average) / (num_averaged + 1))

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages; `update_parameters` takes in the present
    ones.

    `avg_fn(average, current, count)` gives a new average; `multi_avg_fn(averages, currents, count)`
    changes lists in place. With `use_buffers`, buffers are averaged too; else they are copied.
    """

    n_averaged: Tensor

    def __init__(
        self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        import copy

        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", torch.tensor(0, dtype=torch.long, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def _averaged(self, module) -> list[Tensor]:
        buffers = module.buffers() if self.use_buffers else ()
        return [tensor.detach() for tensor in (*module.parameters(), *buffers)]

    def update_parameters(self, model) -> None:
        """Takes the parameters of `model` into the averages."""
        averages = self._averaged(self.module)
        currents = [
            current.to(average.device) for average, current in zip(averages, self._averaged(model))
        ]
        count = self.n_averaged.item()
        with torch.no_grad():
            if count == 0:
                for average, current in zip(averages, currents):
                    average.copy_(current)
            elif self.multi_avg_fn is not None:
                self.multi_avg_fn(averages, currents, self.n_averaged)
            else:
                function = self.avg_fn or get_swa_avg_fn()
                for average, current in zip(averages, currents):
                    average.copy_(function(average, current, self.n_averaged))
            if not self.use_buffers:
                for own, other in zip(self.module.buffers(), model.buffers()):
                    own.detach().copy_(other.detach().to(own.device))
            self.n_averaged += 1


def update_bn(loader, model, device=None) -> None:
    """Computes the running statistics of all batch normalisations anew, from the data of
    `loader`.
    """
    from ..nn.modules.batchnorm import _BatchNorm

    norms = [module for module in model.modules() if isinstance(module, _BatchNorm)]
    if not norms:
        return
    momenta = {}
    for norm in norms:
        norm.reset_running_stats()
        momenta[norm] = norm.momentum
        norm.momentum = None  # the plain average of all batches
    was_training = model.training
    model.train()
    with torch.no_grad():
        for batch in loader:
            if isinstance(batch, list | tuple):
                batch = batch[0]
            if device is not None:
                batch = batch.to(device)
            model(batch)
    for norm, momentum in momenta.items():
        norm.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Anneals the rate of every group to `swa_lr` in `anneal_epochs`, then keeps it."""

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float,
        anneal_epochs=10,
        anneal_strategy="cos",
        last_epoch=-1,
    ) -> None:
        for rate, group in zip(_format_param("swa_lr", optimizer, swa_lr), optimizer.param_groups):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must by one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._set_anneal_func(anneal_strategy)
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _set_anneal_func(self, strategy: str) -> None:
        self._anneal_strategy = strategy
        self.anneal_func = self._cosine_anneal if strategy == "cos" else self._linear_anneal

    @staticmethod
    def _linear_anneal(t: float) -> float:
        return t

    @staticmethod
    def _cosine_anneal(t: float) -> float:
        return (1 - math.cos(math.pi * t)) / 2

    @staticmethod
    def _get_initial_lr(lr, swa_lr, alpha):
        """The rate from which annealing by `alpha` gives `lr`."""
        return swa_lr if alpha == 1 else (lr - alpha * swa_lr) / (1 - alpha)

    def state_dict(self) -> dict:
        """Everything but the optimizer and the function."""
        return {
            key: value
            for key, value in self.__dict__.items()
            if key not in ("optimizer", "anneal_func")
        }

    def load_state_dict(self, state_dict: dict) -> None:
        """Takes back what `state_dict` gave."""
        self.__dict__.update(state_dict)
        self._set_anneal_func(self._anneal_strategy)

    def get_lr(self) -> list:
        """The rates for `last_epoch`."""
        if not self._get_lr_called_within_step:
            import warnings

            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use "
                "`get_last_lr()`.",
                UserWarning,
                stacklevel=2,
            )
        # last_epoch is 0 at the first step of training.
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        groups = self.optimizer.param_groups
        before = max(0, min(1, (step - 1) / max(1, self.anneal_epochs)))
        alpha_before = self.anneal_func(before)
        starts = []
        for group in groups:
            start = self._get_initial_lr(group["lr"], group["swa_lr"], alpha_before)
            starts.append(start)
        alpha = self.anneal_func(max(0, min(1, step / max(1, self.anneal_epochs))))
        return [
            group["swa_lr"] * alpha + start * (1 - alpha) for group, start in zip(groups, starts)
        ]
