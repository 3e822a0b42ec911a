"""Three steps of every optimizer against values worked out beforehand."""

import pytest
import rushlight as torch
from rushlight import optim

CASES = [
    ("SGD", {"lr": 0.1}, [0.391, -1.008, 1.738]),
    (
        "SGD",
        {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
        [-0.29092, 0.111947, 0.301974],
    ),
    (
        "SGD",
        {"lr": 0.1, "momentum": 0.9, "dampening": 0.5, "maximize": True},
        [1.91125, -3.35, 4.5525],
    ),
    ("Adam", {"lr": 0.1}, [0.702116, -1.706274, 2.711329]),
    (
        "Adam",
        {"lr": 0.1, "weight_decay": 0.1, "amsgrad": True},
        [0.701732, -1.705348, 2.709591],
    ),
    ("AdamW", {"lr": 0.1}, [0.6994, -1.700549, 2.702597]),
    (
        "AdamW",
        {"lr": 0.1, "weight_decay": 0.5, "maximize": True},
        [1.137747, -1.99251, 2.845779],
    ),
    ("Adagrad", {"lr": 0.1}, [0.743056, -1.733046, 2.725789]),
    ("Adadelta", {"lr": 1.0}, [0.988357, -1.987934, 2.987559]),
    ("Adamax", {"lr": 0.1}, [0.738477, -1.751521, 2.761439]),
    ("NAdam", {"lr": 0.1}, [0.714571, -1.704639, 2.697788]),
    ("RAdam", {"lr": 0.1}, [0.453399, -1.168654, 2.014838]),
    (
        "RMSprop",
        {"lr": 0.1, "momentum": 0.9, "centered": True},
        [-1.423437, 1.524002, -1.25022],
    ),
    ("Rprop", {"lr": 0.1}, [0.636, -1.636, 2.636]),
    ("ASGD", {"lr": 0.1}, [0.390987, -1.00797, 1.737952]),
    ("Adafactor", {"lr": 0.1}, [0.434781, -1.405764, 2.389658]),
]


def run(name, options, dtype=torch.float32):
    parameter = torch.tensor([1.0, -2.0, 3.0], dtype=dtype, requires_grad=True)
    optimizer = getattr(optim, name)([parameter], **options)
    for step in range(3):
        shift = torch.tensor([0.5, 0.0, -1.0], dtype=dtype)
        parameter.grad = parameter.detach() * (step + 1) + shift
        optimizer.step()
    return parameter, optimizer


@pytest.mark.parametrize(("name", "options", "expected"), CASES)
def test_three_steps(name, options, expected):
    parameter, _ = run(name, options)
    assert parameter.tolist() == pytest.approx(expected, abs=5e-6)


@pytest.mark.parametrize(("name", "options", "expected"), CASES[:7])
def test_native_and_plain_steps_agree(name, options, expected):
    """The differentiable form is the formula in single operators."""
    parameter, _ = run(name, options, torch.float64)
    plain = torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64)
    start = plain.clone().requires_grad_(True)
    moving = start.clone()
    optimizer = getattr(optim, name)([moving], differentiable=True, **options)
    for step in range(3):
        shift = torch.tensor([0.5, 0.0, -1.0], dtype=torch.float64)
        moving.grad = moving.detach() * (step + 1) + shift
        optimizer.step()
    # Step counters are float32, so the corrections of the plain form are, too.
    assert moving.tolist() == pytest.approx(parameter.tolist(), rel=1e-5)


@pytest.mark.parametrize(("name", "options", "expected"), CASES[:7])
def test_narrow_parameters_move_alike(name, options, expected):
    parameter, _ = run(name, options, torch.bfloat16)
    assert parameter.dtype == torch.bfloat16
    assert parameter.tolist() == pytest.approx(expected, abs=0.1)


def test_muon_makes_the_update_orthogonal():
    parameter = torch.tensor([[1.0, 2.0], [3.0, 4.0], [-1.0, 1.0]], requires_grad=True)
    optimizer = optim.Muon([parameter], lr=0.1)
    parameter.grad = parameter.detach().clone()
    optimizer.step()
    expected = [0.983631, 1.938617, 2.91259, 3.896849, -0.925414, 0.940006]
    assert parameter.flatten().tolist() == pytest.approx(expected, abs=2e-2)


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_finds_the_minimum_of_rosenbrocks_valley(search):
    parameter = torch.tensor([-1.0, 2.0], requires_grad=True)
    optimizer = optim.LBFGS([parameter], max_iter=50, line_search_fn=search)

    def closure():
        optimizer.zero_grad()
        x, y = parameter[0], parameter[1]
        loss = (1 - x) ** 2 + 10 * (y - x**2) ** 2
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)
    assert parameter.tolist() == pytest.approx([1.0, 1.0], abs=1e-4)


def test_parameters_without_gradient_stay():
    moved, still = (torch.ones(1, requires_grad=True) for _ in range(2))
    optimizer = optim.AdamW([moved, still], lr=0.1)
    moved.grad = torch.ones(1)
    optimizer.step()
    assert still.item() == 1.0
    assert moved.item() < 1.0
    assert still not in optimizer.state


def test_momentum_of_parameters_that_join_later():
    first, second = (torch.zeros(1, requires_grad=True) for _ in range(2))
    optimizer = optim.SGD([first, second], lr=1.0, momentum=0.5)
    first.grad = torch.ones(1)
    optimizer.step()
    second.grad = torch.ones(1)
    optimizer.step()
    assert first.item() == -2.5
    assert second.item() == -1.0


def test_rate_may_be_a_tensor():
    parameter = torch.ones(1, requires_grad=True)
    optimizer = optim.SGD([parameter], lr=torch.tensor(0.5))
    parameter.grad = torch.ones(1)
    optimizer.step()
    assert parameter.item() == 0.5


@pytest.mark.parametrize("layout", ["last", "mixed", "gaps"])
@pytest.mark.parametrize(
    "make",
    [
        lambda ps: optim.SGD(ps, 0.1, momentum=0.9, weight_decay=0.01),
        lambda ps: optim.Adam(ps, 0.1, amsgrad=True),
        lambda ps: optim.AdamW(ps, 0.1),
    ],
)
def test_steps_do_not_depend_on_the_layout(make, layout):
    torch.manual_seed(0)
    start, grads = torch.randn(4, 5, 3, 2), torch.randn(3, 4, 5, 3, 2)
    ends = []
    for lay in (torch.clone, lambda t: t.contiguous(memory_format=torch.channels_last)):
        p = lay(start)
        if layout == "gaps" and ends:
            p = torch.empty(4, 5, 3, 4)[..., ::2].copy_(start)
        p.requires_grad_()
        optimizer = make([p])
        for grad in grads:
            p.grad = grad.clone() if layout == "mixed" else lay(grad)
            optimizer.step()
        ends.append(p.detach())
    assert ends[0].equal(ends[1])
