"""Layers: initial values drawn in PyTorch's order, outputs, printing."""

import pytest
import rushlight as torch
from rushlight import nn


def close(tensor, expected, tolerance=2e-6):
    flat = tensor.detach().flatten().tolist()
    assert flat == pytest.approx(expected, abs=tolerance)


def test_linear_draws_weight_then_bias():
    torch.manual_seed(0)
    layer = nn.Linear(2, 3)
    close(layer.weight, [-0.005294, 0.379323, -0.581981, -0.520387, -0.272345, 0.189616])
    close(layer.bias, [-0.01401, 0.560658, -0.062752])


def test_linear_is_affine():
    layer = nn.Linear(2, 1)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[2.0, 3.0]]))
        layer.bias.fill_(1.0)
    assert layer(torch.tensor([[1.0, 10.0]])).tolist() == [[33.0]]
    assert nn.Linear(2, 1, bias=False).bias is None


def test_embedding_zeroes_the_padding_row():
    torch.manual_seed(0)
    layer = nn.Embedding(3, 2, padding_idx=1)
    close(layer.weight, [1.540996, -0.293429, 0.0, 0.0, -1.084522, -1.398595])
    layer(torch.tensor([1, 2, 1])).sum().backward()
    assert layer.weight.grad.tolist() == [[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]]
    assert nn.Embedding(3, 2, padding_idx=-1).padding_idx == 2


def test_embedding_from_a_table():
    table = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    layer = nn.Embedding.from_pretrained(table)
    assert layer(torch.tensor([1])).tolist() == [[3.0, 4.0]]
    assert not layer.weight.requires_grad
    assert nn.Embedding.from_pretrained(table, freeze=False).weight.requires_grad


def test_layer_norm():
    x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 6.0, 9.0]])
    expected = [-1.224736, 0.0, 1.224736, -1.135549, -0.162221, 1.29777]
    close(nn.LayerNorm(3)(x), expected)
    close(nn.LayerNorm((3,), elementwise_affine=False)(x), expected)
    assert nn.LayerNorm(3, bias=False).bias is None


def test_rms_norm():
    x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 6.0, 9.0]])
    close(nn.RMSNorm(3)(x), [0.46291, 0.92582, 1.38873, 0.600751, 0.901127, 1.351691])


def test_dropout_draws_pytorchs_mask_in_training_only():
    layer = nn.Dropout(0.5)
    torch.manual_seed(0)
    assert layer(torch.ones(8)).tolist() == [0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 2.0, 2.0]
    layer.eval()
    assert layer(torch.ones(3)).tolist() == [1.0, 1.0, 1.0]


def test_flatten_and_unflatten():
    x = torch.zeros(2, 3, 4)
    assert nn.Flatten()(x).shape == (2, 12)
    assert nn.Unflatten(1, (3, 1))(x).shape == (2, 3, 1, 4)


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        (nn.ReLU(), [0.0, 0.0, 2.0]),
        (nn.LeakyReLU(0.5), [-0.5, 0.0, 2.0]),
        (nn.Hardtanh(), [-1.0, 0.0, 1.0]),
        (nn.ReLU6(), [0.0, 0.0, 2.0]),
        (nn.GELU(), [-0.158655, 0.0, 1.9545]),
        (nn.GELU("tanh"), [-0.158808, 0.0, 1.954598]),
        (nn.SiLU(), [-0.268941, 0.0, 1.761594]),
        (nn.Softplus(), [0.313262, 0.693147, 2.126928]),
        (nn.ELU(), [-0.632121, 0.0, 2.0]),
        (nn.Mish(), [-0.303401, 0.0, 1.943959]),
        (nn.Tanhshrink(), [-0.238406, 0.0, 1.035972]),
        (nn.Softsign(), [-0.5, 0.0, 0.666667]),
        (nn.Sigmoid(), [0.268941, 0.5, 0.880797]),
        (nn.Softmax(dim=0), [0.042010, 0.114195, 0.843795]),
        (nn.LogSoftmax(dim=0), [-3.169846, -2.169846, -0.169846]),
        (nn.Identity(1, a=2), [-1.0, 0.0, 2.0]),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_activations(layer, expected):
    close(layer(torch.tensor([-1.0, 0.0, 2.0])), expected)


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        (nn.Linear(2, 3, bias=False), "Linear(in_features=2, out_features=3, bias=False)"),
        (
            nn.Embedding(4, 3, padding_idx=1, max_norm=1.0),
            "Embedding(4, 3, padding_idx=1, max_norm=1.0)",
        ),
        (
            nn.LayerNorm(3),
            "LayerNorm((3,), eps=1e-05, elementwise_affine=True, bias=True)",
        ),
        (nn.RMSNorm(3), "RMSNorm((3,), eps=None, elementwise_affine=True)"),
        (nn.GroupNorm(1, 3), "GroupNorm(1, 3, eps=1e-05, affine=True, bias=True)"),
        (nn.Dropout(0.1), "Dropout(p=0.1, inplace=False)"),
        (nn.ReLU(inplace=True), "ReLU(inplace=True)"),
        (nn.GELU("tanh"), "GELU(approximate='tanh')"),
        (nn.Softplus(), "Softplus(beta=1.0, threshold=20.0)"),
        (
            nn.BatchNorm1d(3),
            "BatchNorm1d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, "
            "track_running_stats=True)",
        ),
        (
            nn.Conv2d(2, 4, 3, padding=1, groups=2),
            "Conv2d(2, 4, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), groups=2)",
        ),
        (
            nn.MaxPool2d(2),
            "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)",
        ),
        (
            nn.LSTM(2, 4, 2, batch_first=True),
            "LSTM(2, 4, num_layers=2, batch_first=True)",
        ),
        (nn.Upsample(scale_factor=2), "Upsample(scale_factor=2.0, mode='nearest')"),
        (nn.Flatten(), "Flatten(start_dim=1, end_dim=-1)"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_repr(layer, text):
    assert repr(layer) == text


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: nn.Dropout(2.0), "dropout probability has to be between 0 and 1, but got 2.0"),
        (lambda: nn.GroupNorm(2, 3), "must be divisible by num_groups"),
        (lambda: nn.Conv1d(3, 2, 1, groups=2), "in_channels must be divisible by groups"),
        (lambda: nn.Conv1d(1, 1, 3, stride=2, padding="same"), "not supported for strided"),
        (lambda: nn.Conv1d(1, 1, 3, padding_mode="x"), "padding_mode must be one of"),
        (lambda: nn.LSTM(2, 2, proj_size=3), "proj_size has to be smaller than hidden_size"),
        (lambda: nn.GRU(2, 2, proj_size=1), "proj_size argument is only supported for LSTM"),
        (lambda: nn.RNN(2, 2, nonlinearity="x"), "Unknown nonlinearity 'x'"),
        (lambda: nn.MultiMarginLoss(p=3), "only p == 1 and p == 2 supported"),
        (lambda: nn.MultiheadAttention(0, 1), "must be greater than 0"),
    ],
)
def test_wrong_options(make, text):
    with pytest.raises(ValueError, match=text):
        make()


def test_embedding_padding_must_exist():
    with pytest.raises(AssertionError, match="Padding_idx must be within num_embeddings"):
        nn.Embedding(3, 2, padding_idx=3)


def test_lazy_linear_learns_its_width():
    layer = nn.LazyLinear(3)
    assert layer.has_uninitialized_params()
    with pytest.raises(RuntimeError, match="shape of an uninitialized parameter"):
        _ = layer.weight.shape
    assert layer(torch.ones(2, 5)).shape == (2, 3)
    assert type(layer) is nn.Linear
    assert layer.weight.shape == (3, 5)
    assert layer.in_features == 5


def test_empty_batch_leaves_running_statistics():
    norm = torch.nn.BatchNorm1d(3)
    norm(torch.zeros(0, 3))
    assert norm.running_mean.tolist() == [0.0, 0.0, 0.0]
    assert norm.running_var.tolist() == [1.0, 1.0, 1.0]
    assert norm.num_batches_tracked == 1


def test_glu_and_its_gradient_at_both_ends():
    x = torch.tensor([[2.0, 3.0, 4.0, -1000.0, 0.0, 1000.0]], requires_grad=True)
    y = torch.nn.functional.glu(x)
    assert y.tolist() == [[0.0, 1.5, 4.0]]
    y.sum().backward()
    assert x.grad.tolist() == [[0.0, 0.5, 1.0, 0.0, 0.75, 0.0]]
    z = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(torch.nn.functional.glu, (z,))
    assert torch.autograd.gradgradcheck(torch.nn.functional.glu, (z,))


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_batch_norm_by_its_formula(affine, training):
    torch.manual_seed(0)
    x = torch.randn(4, 3, 5, dtype=torch.float64, requires_grad=True)
    mean, var = torch.tensor([0.5, -1.0, 2.0]).double(), torch.tensor([1.0, 4.0, 0.25]).double()
    given = [torch.randn(3, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    given = given if affine else [None, None]

    def normed(x, weight=None, bias=None):
        running = (mean.clone(), var.clone())
        return torch.nn.functional.batch_norm(x, *running, weight, bias, training, 0.1, 1e-3)

    by = (x.mean((0, 2)), x.var((0, 2), correction=0)) if training else (mean, var)
    expected = (x - by[0][:, None]) / (by[1][:, None] + 1e-3).sqrt()
    if affine:
        expected = expected * given[0][:, None] + given[1][:, None]
    assert torch.allclose(normed(x, *given), expected)
    inputs = (x, *(t for t in given if t is not None))
    assert torch.autograd.gradcheck(normed, inputs)
    assert torch.autograd.gradgradcheck(normed, inputs)
