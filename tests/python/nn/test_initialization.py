"""Initial values: PyTorch's streams and bounds."""

import math

import pytest
import rushlight as torch
from rushlight import nn

STREAMS = {
    "uniform_(x, -1, 1)": [-0.007487, 0.536444, -0.823045, -0.735939, -0.385154, 0.268157],
    "normal_(x, 1, 2)": [4.081992, 0.413142, -3.357579, 2.136863, -1.169045, -1.797191],
    "xavier_uniform_(x)": [-0.008201, 0.587645, -0.901601, -0.806181, -0.421915, 0.293752],
    "xavier_normal_(x, 2.0)": [
        1.949223,
        -0.371161,
        -2.755975,
        0.719015,
        -1.371824,
        -1.769099,
    ],
    "kaiming_uniform_(x)": [-0.012968, 0.929148, -1.425556, -1.274684, -0.667107, 0.464462],
    "kaiming_normal_(x, mode='fan_out', nonlinearity='relu')": [
        1.258218,
        -0.239584,
        -1.778974,
        0.464122,
        -0.885509,
        -1.141948,
    ],
    "trunc_normal_(x, 0.0, 1.0, -1.0, 1.0)": [
        0.403347,
        -0.293429,
        -0.719258,
        0.568431,
        -0.596635,
        0.182036,
    ],
    "trunc_normal_(x, 3.0, 1.0, -1.0, 1.0)": [
        0.499315,
        0.859598,
        0.905476,
        0.484673,
        0.396882,
        -0.253165,
    ],
    "sparse_(x, 0.5)": [0.0, 0.0, -0.021788, 0.0, 0.0, -0.013986],
}


@pytest.mark.filterwarnings("ignore:mean is more than 2 std")
@pytest.mark.parametrize("call", STREAMS)
def test_streams(call):
    torch.manual_seed(0)
    x = torch.empty(3, 2)
    result = eval(f"init.{call}", {"init": nn.init, "x": x})
    assert result is x
    assert x.flatten().tolist() == pytest.approx(STREAMS[call], abs=2e-6)


def test_constants():
    x = torch.empty(2, 2)
    assert nn.init.constant_(x, 3.0).tolist() == [[3.0, 3.0], [3.0, 3.0]]
    assert nn.init.ones_(x).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert nn.init.zeros_(x).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert nn.init.eye_(x).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_dirac_hands_channels_on():
    x = nn.init.dirac_(torch.empty(2, 2, 3))
    assert x.tolist() == [[[0, 1, 0], [0, 0, 0]], [[0, 0, 0], [0, 1, 0]]]


def test_values_are_set_outside_the_graph():
    parameter = nn.Parameter(torch.empty(2, 2))
    nn.init.normal_(parameter)
    assert parameter.is_leaf and parameter.grad_fn is None


def test_gain():
    assert nn.init.calculate_gain("linear") == 1
    assert nn.init.calculate_gain("tanh") == 5 / 3
    assert nn.init.calculate_gain("relu") == math.sqrt(2)
    assert nn.init.calculate_gain("leaky_relu", 2.0) == math.sqrt(2 / 5)
    with pytest.raises(ValueError, match="Unsupported nonlinearity step"):
        nn.init.calculate_gain("step")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: nn.init.eye_(torch.empty(2)), "Only tensors with 2 dimensions"),
        (lambda: nn.init.dirac_(torch.empty(2, 2)), "3, 4, or 5 dimensions"),
        (lambda: nn.init.xavier_uniform_(torch.empty(2)), "fewer than 2 dimensions"),
        (lambda: nn.init.kaiming_normal_(torch.empty(2, 2), mode="x"), "Mode x not supported"),
    ],
)
def test_wrong_shapes(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_nothing_to_fill_is_warned_about():
    with pytest.warns(UserWarning, match="zero-element tensors is a no-op"):
        nn.init.kaiming_uniform_(torch.empty(0, 2))


def test_older_names_still_work():
    with pytest.warns(FutureWarning, match="in favor of `nn.init.constant_`"):
        assert nn.init.constant(torch.empty(1), 2.0).tolist() == [2.0]
