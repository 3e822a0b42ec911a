"""The package functorch."""

import subprocess
import sys

import pytest
import rushlight as torch
from rushlight import functorch, nn


def test_make_functional():
    layer = nn.Linear(2, 1)
    function, parameters = functorch.make_functional(layer)
    x = torch.rand(3, 2)
    assert torch.equal(function(parameters, x), layer(x)) and parameters[0].requires_grad
    gradients = functorch.grad(lambda p: function(p, x).sum())(parameters)
    assert torch.allclose(gradients[0][0], x.sum(0))
    assert not functorch.make_functional(layer, disable_autograd_tracking=True)[1][0].requires_grad
    with pytest.raises(RuntimeError, match="has buffers"):
        functorch.make_functional(nn.BatchNorm1d(2))
    with pytest.raises(ValueError, match="zip"):
        function(parameters[:1], x)


def test_buffers_and_ensembles():
    norm = nn.BatchNorm1d(2).eval()
    function, parameters, buffers = functorch.make_functional_with_buffers(norm)
    x = torch.rand(3, 2)
    assert len(buffers) == 3 and torch.equal(function(parameters, buffers, x), norm(x))
    layers = [nn.Linear(2, 1) for _ in range(3)]
    function, parameters, buffers = functorch.combine_state_for_ensemble(layers)
    assert [p.shape for p in parameters] == [(3, 1, 2), (3, 1)] and buffers == ()
    results = torch.vmap(function, (0, 0, None))(parameters, buffers, x)
    assert torch.allclose(results, torch.stack([layer(x) for layer in layers]))


def test_programs_import_it(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import torch\nfrom functorch import vmap\n"
        "from functorch.experimental.control_flow import cond\n"
        "print(vmap is torch.func.vmap, cond is torch.cond)\n"
    )
    run = [sys.executable, "-m", "rushlight", str(program)]
    assert subprocess.run(run, capture_output=True, text=True).stdout == "True True\n"
