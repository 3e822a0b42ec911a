"""Spectral normalization by a hook."""

import pytest
import rushlight as torch
from rushlight import nn
from rushlight.nn.utils import remove_spectral_norm, spectral_norm


def test_the_greatest_singular_value_becomes_one():
    layer = spectral_norm(nn.Linear(4, 3), n_power_iterations=50)
    assert sorted(dict(layer.named_parameters())) == ["bias", "weight_orig"]
    assert sorted(layer.state_dict()) == ["bias", "weight_orig", "weight_u", "weight_v"]
    layer(torch.rand(2, 4)).sum().backward()
    values = torch.linalg.svdvals(layer.weight.detach())
    torch.testing.assert_close(values[0], torch.tensor(1.0), rtol=1e-4, atol=1e-4)
    assert layer.weight_orig.grad.abs().sum() > 0


def test_iterations_stop_in_evaluation():
    layer = spectral_norm(nn.Conv2d(2, 4, 3))
    layer.eval()
    before = layer.weight_u.clone()
    layer(torch.rand(1, 2, 5, 5))
    assert torch.equal(layer.weight_u, before)
    layer.train()(torch.rand(1, 2, 5, 5))
    assert not torch.equal(layer.weight_u, before)
    assert spectral_norm(nn.ConvTranspose2d(2, 4, 3)).weight_u.shape == (4,)


def test_removal_keeps_the_weight():
    layer = spectral_norm(nn.Linear(4, 3))
    layer(torch.rand(2, 4))
    weight = layer.weight.detach().clone()
    remove_spectral_norm(layer)
    assert isinstance(layer.weight, nn.Parameter) and sorted(layer.state_dict()) == [
        "bias",
        "weight",
    ]
    torch.testing.assert_close(layer.weight.detach(), weight)
    with pytest.raises(ValueError, match="spectral_norm of 'weight' not found"):
        remove_spectral_norm(layer)


def test_mistakes():
    layer = spectral_norm(nn.Linear(4, 3))
    with pytest.raises(RuntimeError, match="Cannot register two spectral_norm hooks"):
        spectral_norm(layer)
    with pytest.raises(ValueError, match="Expected n_power_iterations to be positive"):
        spectral_norm(nn.Linear(4, 3), n_power_iterations=0)


def test_state_of_old_versions_gets_its_v():
    from rushlight.nn.utils import spectral_norm as function
    from rushlight.nn.utils.spectral_norm import SpectralNorm

    assert callable(function) and SpectralNorm.__name__ == "SpectralNorm"
    layer = function(torch.nn.Linear(3, 2))
    layer(torch.ones(1, 3))
    state = layer.state_dict()
    assert state._metadata[""]["spectral_norm"] == {"weight.version": 1}
    # Before version 1: the weight as used, and no v.
    v = state.pop("weight_v")
    state["weight"] = layer.weight.detach().clone()
    state._metadata[""].pop("spectral_norm")
    other = function(torch.nn.Linear(3, 2))
    other.load_state_dict(state)
    sigma = torch.dot(other.weight_u, other.weight_orig @ other.weight_v)
    wanted = torch.dot(layer.weight_u, layer.weight_orig @ v)
    torch.testing.assert_close(sigma, wanted)
