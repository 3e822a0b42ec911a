"""Modules as functions of their parameters (deprecated: see torch.func.functional_call)."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import rushlight as torch
from rushlight import Tensor
from rushlight.func import functional_call, stack_module_state
from rushlight.nn import Module


class FunctionalModule(Module):
    """module(parameters, *args): the module with other parameters."""

    def __init__(self, stateless_model: Module, names: Sequence[str]) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self._names = tuple(names)

    def forward(self, params: Sequence[Tensor], *args: object, **kwargs: object) -> object:
        given = dict(zip(self._names, params, strict=True))
        return functional_call(self.stateless_model, given, args, kwargs)


class FunctionalModuleWithBuffers(FunctionalModule):
    """module(parameters, buffers, *args): the module with others of both."""

    def forward(
        self,
        params: Sequence[Tensor],
        buffers: Sequence[Tensor],
        *args: object,
        **kwargs: object,
    ) -> object:
        return super().forward((*params, *buffers), *args, **kwargs)


def _split(model: Module, untracked: bool) -> tuple[Module, dict, dict]:
    model = copy.deepcopy(model)
    parameters = dict(model.named_parameters())
    if untracked:
        parameters = {name: p.detach() for name, p in parameters.items()}
    buffers = dict(model.named_buffers())
    return model.to("meta"), parameters, buffers


def make_functional(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModule, tuple[Tensor, ...]]:
    """The module as a function of its parameters, and copies of those."""
    if any(True for _ in model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use "
            "make_functional_with_buffers(model) instead."
        )
    stateless, parameters, _ = _split(model, disable_autograd_tracking)
    return FunctionalModule(stateless, list(parameters)), tuple(parameters.values())


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """The module as a function of its parameters and buffers, and copies of those."""
    stateless, parameters, buffers = _split(model, disable_autograd_tracking)
    made = FunctionalModuleWithBuffers(stateless, [*parameters, *buffers])
    return made, tuple(parameters.values()), tuple(buffers.values())


def combine_state_for_ensemble(
    models: Sequence[Module],
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """One function for modules of the same kind, and their parameters and buffers stacked."""
    if len(models) == 0:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    parameters, buffers = stack_module_state(list(models))
    stateless = _split(models[0], True)[0]
    made = FunctionalModuleWithBuffers(stateless, [*parameters, *buffers])
    with torch.no_grad():
        return made, tuple(p.detach() for p in parameters.values()), tuple(buffers.values())
