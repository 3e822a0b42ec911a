"""Transforms, constraints, and what distributions do with shapes and mistakes."""

import math

import pytest
import rushlight as torch

D = torch.distributions
C = D.constraints
F64 = torch.float64
SCALAR = [
    D.ExpTransform(),
    D.SigmoidTransform(),
    D.TanhTransform(),
    D.SoftplusTransform(),
    D.AffineTransform(1.0, -2.0),
    D.PowerTransform(torch.tensor(2.0, dtype=F64)),
    D.ComposeTransform([D.ExpTransform(), D.AffineTransform(0.0, 3.0)]),
    D.CumulativeDistributionTransform(D.Laplace(0.0, 1.0)),
    D.ExpTransform().inv,
]


@pytest.mark.parametrize("transform", SCALAR, ids=lambda x: type(x).__name__)
def test_scalar_transforms_invert_and_know_their_slope(transform) -> None:
    x = torch.tensor([0.2, 0.9, 1.7], dtype=F64, requires_grad=True)
    y = transform(x)
    assert torch.allclose(transform.inv(y), x)
    (slope,) = torch.autograd.grad(y.sum(), x)
    assert torch.allclose(transform.log_abs_det_jacobian(x, y), slope.abs().log())
    assert ((slope > 0) == (torch.as_tensor(transform.sign) > 0)).all()
    assert transform.inv.inv is transform


@pytest.mark.parametrize("make", [D.StickBreakingTransform, D.CorrCholeskyTransform])
def test_vector_transforms_know_the_volume(make) -> None:
    transform = make()
    x = torch.tensor([0.3, -0.4, 0.8], dtype=F64)
    y = transform(x)
    assert transform.codomain.check(y)
    assert torch.allclose(transform.inv(y), x)
    h = 1e-6
    columns = []
    for i in range(3):
        step = torch.zeros(3, dtype=F64)
        step[i] = h
        columns.append((transform(x + step) - transform(x - step)) / (2 * h))
    slopes = torch.stack(columns, -1)
    if make is D.StickBreakingTransform:
        rows = [slopes[0], slopes[1], slopes[2]]  # the last coordinate follows from the others
    else:
        rows = [slopes[1, 0], slopes[2, 0], slopes[2, 1]]
    a, b, c = (row.tolist() for row in rows)
    det = (
        a[0] * (b[1] * c[2] - b[2] * c[1])
        - a[1] * (b[0] * c[2] - b[2] * c[0])
        + a[2] * (b[0] * c[1] - b[1] * c[0])
    )
    got = transform.log_abs_det_jacobian(x, y).item()
    assert got == pytest.approx(math.log(abs(det)), abs=1e-6)


REGIONS = [
    C.real, C.positive, C.nonnegative, C.unit_interval, C.interval(-1.0, 2.0), C.less_than(3.0),
    C.greater_than(1.0), C.simplex, C.lower_cholesky, C.corr_cholesky, C.real_vector,
]  # fmt: skip


@pytest.mark.parametrize("region", REGIONS, ids=repr)
def test_registries_map_onto_constraints(region) -> None:
    x = torch.tensor([[0.3, -0.4, 0.1], [0.2, 0.5, -0.7], [0.1, 0.2, 0.3]], dtype=F64)
    transform = D.transform_to(region)
    assert region.check(transform(x)).all()
    if region is not C.lower_cholesky:
        bijection = D.biject_to(region)
        assert torch.allclose(bijection.inv(bijection(x)), x)


def test_constraints_say_no() -> None:
    assert C.simplex.check(torch.tensor([[0.5, 0.5], [0.5, 0.6]])).tolist() == [True, False]
    assert C.one_hot.check(torch.tensor([[0.0, 1.0], [1.0, 1.0]])).tolist() == [True, False]
    assert C.integer_interval(0, 3).check(torch.tensor([0.0, 1.5, 4.0])).tolist() == [
        True, False, False
    ]  # fmt: skip
    assert C.half_open_interval(0, 1).check(torch.tensor([0.0, 1.0])).tolist() == [True, False]
    assert not C.real.check(torch.tensor(math.nan))
    assert C.boolean.check(torch.tensor([0, 1, 2])).tolist() == [True, True, False]
    both = C.cat([C.positive, C.real], lengths=[1, 2])
    assert both.check(torch.tensor([-1.0, -1.0, 2.0])).tolist() == [False, True, True]
    with pytest.raises(ValueError, match="Cannot determine validity of dependent constraint"):
        C.dependent.check(torch.ones(1))
    assert repr(C.independent(C.positive, 1)) == (
        "IndependentConstraint(GreaterThan(lower_bound=0.0), 1)"
    )


def test_shapes_and_expansion() -> None:
    d = D.Independent(D.Normal(torch.zeros(3, 2), torch.ones(3, 2)), 1)
    assert (d.batch_shape, d.event_shape) == ((3,), (2,))
    assert d.sample((4,)).shape == (4, 3, 2)
    assert d.log_prob(torch.zeros(4, 3, 2)).shape == (4, 3)
    wide = d.expand((5, 3))
    assert wide.sample().shape == (5, 3, 2)
    mixture = D.MixtureSameFamily(
        D.Categorical(torch.ones(2)), D.Normal(torch.zeros(2), torch.ones(2))
    )
    assert mixture.sample((6,)).shape == (6,)
    assert repr(D.Normal(0.0, torch.ones(3))) == (
        "Normal(loc: torch.Size([3]), scale: torch.Size([3]))"
    )
    assert repr(D.Bernoulli(0.25)) == "Bernoulli(probs: 0.25)"


def test_logits_and_probabilities_agree() -> None:
    logits = torch.tensor([0.3, -1.0, 2.0])
    assert torch.allclose(D.Bernoulli(logits=logits).probs, torch.sigmoid(logits))
    assert torch.allclose(D.Categorical(logits=logits).probs, torch.softmax(logits, -1))
    weights = torch.tensor([1.0, 3.0])
    assert D.Categorical(weights).probs.tolist() == [0.25, 0.75]


def test_validation_can_be_left_out() -> None:
    assert D.Normal(0.0, -1.0, validate_args=False).scale.item() == -1
    assert math.isnan(D.Normal(0.0, 1.0, validate_args=False).log_prob(torch.tensor(math.nan)))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: D.Normal(0.0, -1.0), r"Expected parameter scale \(Tensor of shape \(\)\)"),
        (lambda: D.Uniform(1.0, 0.0), "to satisfy the constraint"),
        (lambda: D.Bernoulli(), "Either `probs` or `logits` must be specified, but not both."),
        (lambda: D.Categorical(torch.tensor(0.5)), "must be at least one-dimensional"),
        (lambda: D.Dirichlet(torch.tensor(0.5)), "must be at least one-dimensional"),
        (lambda: D.Geometric(0.0), "to be positive but found invalid values"),
        (lambda: D.LKJCholesky(1), "greater than or equal to 2. Found dim=1"),
        (lambda: D.Normal("a", 1.0), "Input arguments must all be instances of Number"),
        (lambda: D.Normal(0.0, 1.0).log_prob(1.0), "value argument to log_prob must be a Tensor"),
        (lambda: D.Poisson(1.0).log_prob(torch.tensor(0.5)), "to be within the support"),
        (
            lambda: D.Normal(torch.zeros(2), 1.0).log_prob(torch.zeros(3)),
            "not broadcastable with batch_shape",
        ),
        (
            lambda: D.Independent(D.Normal(0.0, 1.0), 1),
            "Expected reinterpreted_batch_ndims <= len",
        ),
    ],
)
def test_mistakes(call, text) -> None:
    with pytest.raises(ValueError, match=text):
        call()


def test_names_that_libraries_extend():
    class Own:
        def __init__(self, value):
            self.value = value

    @D.register_kl(Own, Own)
    def rule(p, q):
        return torch.tensor(q.value - p.value)

    assert D.kl_divergence(Own(1.0), Own(3.0)) == 2
    with pytest.raises(TypeError, match="Expected type_q to be a Distribution subclass but got 1"):
        D.register_kl(Own, 1)
    assert isinstance(D.ExpTransform().inv, D.transforms._InverseTransform)
