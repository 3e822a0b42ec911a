"""grad, vjp, jvp, Jacobians and Hessians of functions."""

import pytest
import rushlight as torch
from rushlight import func, nn
from rushlight.autograd import functional


def x():
    return torch.tensor([1.0, 2.0])


def test_gradients_and_values():
    assert func.grad(lambda v: (v**3).sum())(x()).tolist() == [3.0, 12.0]
    gradient, value = func.grad_and_value(lambda v: (v * v).sum())(x())
    assert gradient.tolist() == [2.0, 4.0] and value.item() == 5.0
    gradient, aux = func.grad(lambda v: (v.sum(), v * 3), has_aux=True)(x())
    assert gradient.tolist() == [1.0, 1.0] and aux.tolist() == [3.0, 6.0]
    gradient, (value, aux) = func.grad_and_value(lambda v: (v.sum(), v), has_aux=True)(x())
    assert value.item() == 3.0 and aux.tolist() == [1.0, 2.0]
    for result in (gradient, value, aux):
        assert not result.requires_grad


def test_chosen_arguments():
    def product(a, b):
        return (a * b).sum()

    both = func.grad(product, argnums=(0, 1))(x(), x() * 2)
    assert [g.tolist() for g in both] == [[2.0, 4.0], [1.0, 2.0]]
    assert func.grad(product, argnums=-1)(x(), x() * 2).tolist() == [1.0, 2.0]
    found = func.grad(lambda tree: (tree["a"] * tree["b"]).sum())({"a": x(), "b": x() + 1})
    assert found["a"].tolist() == [2.0, 3.0] and found["b"].tolist() == [1.0, 2.0]


def test_nested():
    second = func.grad(lambda v: func.grad(lambda w: (w**3).sum())(v).sum())
    assert second(x()).tolist() == [6.0, 12.0]
    mixed = func.grad(lambda v: func.grad(lambda w: (v * w * w).sum())(v).sum())
    assert mixed(x()).tolist() == [4.0, 8.0]


def test_what_the_function_closes_over_is_differentiated_later():
    weight = torch.tensor([3.0, 4.0], requires_grad=True)
    found = func.grad(lambda v: (v * v * weight).sum())(x())
    assert found.requires_grad
    found.sum().backward()
    assert weight.grad.tolist() == [2.0, 4.0]
    with torch.no_grad():
        assert not func.grad(lambda v: (v * v * weight).sum())(x()).requires_grad
    tracked = x().requires_grad_()
    found = func.grad(lambda v: (v**3).sum())(tracked)
    assert torch.autograd.grad(found.sum(), tracked)[0].tolist() == [6.0, 12.0]


def test_independent_results_have_zero_gradients():
    assert func.grad(lambda v: torch.tensor(1.0))(x()).tolist() == [0.0, 0.0]
    assert func.grad(lambda v: v.detach().sum())(x()).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: func.grad(lambda v: v * 2)(x()), "return a scalar Tensor, got tensor with 1 dims"),
        (lambda: func.grad(lambda v: 3)(x()), "to return a Tensor, got <class 'int'>"),
        (lambda: func.grad(torch.sum, argnums=1)(x()), "Got argnum=1, but only 1 positional"),
        (lambda: func.grad(torch.sum, argnums="a")(x()), "argnums must be int or Tuple"),
        (lambda: func.grad(torch.sum, argnums=())(x()), "argnums must be non-empty"),
        (lambda: func.grad(torch.sum, has_aux=True)(x()), r"should be a tuple: \(output, aux\)"),
        (lambda: func.grad(torch.sum)(torch.tensor([1])), "only Tensors of floating point dtype"),
        (lambda: func.vjp(torch.sin, x())[1](x()[:1]), r"Mismatch in shape: grad_output\[0\]"),
        (lambda: func.vjp(lambda v: {"a": v}, x())[1](x()), "Expected pytree structure of cotang"),
        (lambda: func.vjp(lambda v: 3, x()), "to return only tensors, got unsupported type"),
        (lambda: func.vjp(lambda v: [], x()), "non-empty output"),
        (lambda: func.jvp(torch.sin, x(), x()), "Expected primals to be a tuple"),
        (lambda: func.jvp(torch.sin, (x(),), x()), "to have the same python structure"),
        (lambda: func.jvp(torch.sin, (x(),), (x()[:1],)), "forward gradient that has a different"),
        (lambda: func.jvp(torch.sin, (), ()), "Expected primals to contain at least one Tensor"),
        (lambda: func.jvp(torch.sin, (x(),), (3,)), "Expected tangents to only contain Tensors"),
        (
            lambda: func.jvp(lambda v: torch.ones(3), (x(),), (x(),), strict=True),
            "output of f is independent of the inputs",
        ),
        (lambda: func.linearize(torch.sin, x())[1](x()[:1]), "tangent:0 with shape"),
    ],
)
def test_mistakes(call, text):
    with pytest.raises(RuntimeError, match=text):
        call()


def test_mistakes_of_values():
    with pytest.raises(ValueError, match="Thing passed to transform API must be Tensor, got"):
        func.grad(torch.sum)(3)
    with pytest.raises(ValueError, match="jacrev: `chunk_size` should be greater than 0"):
        func.jacrev(torch.sin, chunk_size=0)


def test_vector_jacobian_products():
    output, pull = func.vjp(lambda a, b: {"y": a * b, "z": a.sum()}, x(), x() * 3)
    assert output["y"].tolist() == [3.0, 12.0] and not output["y"].requires_grad
    one, other = pull({"y": torch.tensor([1.0, 10.0]), "z": torch.tensor(100.0)})
    assert one.tolist() == [103.0, 160.0] and other.tolist() == [1.0, 20.0]
    assert pull({"y": x(), "z": torch.tensor(0.0)})[1].tolist() == [1.0, 4.0]
    _, pull, aux = func.vjp(lambda v: (v * 2, v + 1), x(), has_aux=True)
    assert aux.tolist() == [2.0, 3.0]
    rows = func.vmap(pull)(torch.eye(2))[0]
    assert torch.equal(rows, torch.eye(2) * 2)


def test_jacobian_vector_products():
    output, tangent = func.jvp(lambda a, b: a * b, (x(), x()), (x(), torch.ones(2)))
    assert output.tolist() == [1.0, 4.0] and tangent.tolist() == [2.0, 6.0]
    output, tangent = func.jvp(lambda v: torch.ones(3), (x(),), (x(),))
    assert tangent.tolist() == [0.0, 0.0, 0.0]
    output, push = func.linearize(lambda v: v**2, x())
    assert output.tolist() == [1.0, 4.0]
    assert push(torch.ones(2)).tolist() == [2.0, 4.0]
    assert push(x()).tolist() == [2.0, 8.0]
    second = func.jvp(lambda v: func.jvp(torch.sin, (v,), (v,))[1], (x(),), (torch.ones(2),))[1]
    torch.testing.assert_close(second, x().cos() - x() * x().sin())


def mix(a, b):
    return torch.outer(a, b).tanh(), (a.sum() * b).sin()


@pytest.mark.parametrize("transform", [func.jacrev, func.jacfwd])
def test_jacobians_agree_with_autograd_functional(transform):
    given = (torch.rand(2, dtype=torch.float64), torch.rand(3, dtype=torch.float64))
    found = transform(mix, argnums=(0, 1))(*given)
    wanted = functional.jacobian(mix, given)
    for row, wanted_row in zip(found, wanted, strict=True):
        for block, wanted_block in zip(row, wanted_row, strict=True):
            assert block.shape == wanted_block.shape and not block.requires_grad
            torch.testing.assert_close(block, wanted_block)
    single, aux = transform(lambda v: (v**2, v), has_aux=True)(x())
    assert single.tolist() == [[2.0, 0.0], [0.0, 4.0]] and aux.tolist() == [1.0, 2.0]
    tree = transform(lambda tree: {"y": tree["a"] * 2})({"a": x()})
    assert tree["y"]["a"].tolist() == [[2.0, 0.0], [0.0, 2.0]]


def test_hessians():
    assert func.hessian(lambda v: (v**3).sum())(x()).tolist() == [[6.0, 0.0], [0.0, 12.0]]
    blocks = func.hessian(lambda a, b: (a * b).sum(), argnums=(0, 1))(x(), x())
    assert blocks[0][0].tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert blocks[0][1].tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_transforms_inside_vmap():
    rows = torch.rand(3, 2)
    found = func.vmap(func.grad(lambda v: (v**3).sum()))(rows)
    torch.testing.assert_close(found, 3 * rows**2)
    found = func.vmap(func.jacrev(torch.sin))(rows)
    torch.testing.assert_close(found, torch.diag_embed(rows.cos()))
    found = func.vmap(func.jacfwd(torch.sin))(rows)
    torch.testing.assert_close(found, torch.diag_embed(rows.cos()))
    found = func.vmap(func.hessian(lambda v: (v**3).sum()))(rows)
    torch.testing.assert_close(found, torch.diag_embed(6 * rows))
    found = func.vmap(lambda p, t: func.jvp(torch.sin, (p,), (t,))[1], (None, 0))(rows[0], rows)
    torch.testing.assert_close(found, rows[0].cos() * rows)
    summed = func.grad(lambda v: func.vmap(lambda row: (row**2).sum())(v).sum())(rows)
    torch.testing.assert_close(summed, 2 * rows)


def net():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 5)
    )


def test_gradients_of_each_sample():
    model = net()
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    images, labels = torch.rand(4, 1, 8, 8), torch.randint(0, 5, (4,))

    def loss(parameters, image, label):
        scores = func.functional_call(model, parameters, (image.unsqueeze(0),))
        return nn.functional.cross_entropy(scores, label.unsqueeze(0))

    found = func.vmap(func.grad(loss), (None, 0, 0))(parameters, images, labels)
    for i in range(4):
        model.zero_grad()
        nn.functional.cross_entropy(model(images[i : i + 1]), labels[i : i + 1]).backward()
        for name, parameter in model.named_parameters():
            torch.testing.assert_close(found[name][i], parameter.grad, rtol=1e-4, atol=1e-5)


def test_ensembles():
    models = [net() for _ in range(3)]
    parameters, buffers = func.stack_module_state(models)
    assert buffers == {} and all(p.is_leaf and p.requires_grad for p in parameters.values())
    images = torch.rand(2, 1, 8, 8)

    def call(parameters, images):
        return func.functional_call(models[0], parameters, (images,))

    found = func.vmap(call, (0, None))(parameters, images)
    torch.testing.assert_close(found, torch.stack([model(images) for model in models]))


@pytest.mark.parametrize(
    ("models", "text"),
    [
        (lambda: [], "at least one model, got 0"),
        (lambda: [nn.Linear(2, 2), nn.ReLU()], "all models to be of the same class"),
        (lambda: [nn.Linear(2, 2), nn.Linear(2, 2).eval()], "same training/eval mode"),
    ],
)
def test_mistakes_of_stacks(models, text):
    with pytest.raises(RuntimeError, match=text):
        func.stack_module_state(models())


def test_calls_with_other_parameters():
    model = nn.Linear(2, 2)
    model.tied = model.weight
    zeros, bias = torch.zeros(2, 2), torch.ones(2)
    assert func.functional_call(model, ({"weight": zeros}, {"bias": bias}), x()).tolist() == [1, 1]
    assert func.functional_call(model, {"weight": zeros, "other": bias}, x()).shape == (2,)
    assert not hasattr(model, "other") and model.weight.abs().sum() > 0
    with pytest.raises(ValueError, match=r"\['weight'\] appeared in multiple dictionaries"):
        func.functional_call(model, ({"weight": zeros}, {"weight": zeros}), x())
    with pytest.raises(ValueError, match="multiple values for keys .* which are tied"):
        func.functional_call(model, {"weight": zeros, "tied": torch.ones(2, 2)}, x())
    with pytest.raises(RuntimeError, match=r"for Linear:\n\tMissing key\(s\): 'bias'"):
        func.functional_call(model, {"weight": zeros}, x(), strict=True)
    with pytest.raises(TypeError, match="3 is not an instance of torch.Tensor"):
        func.functional_call(model, {"bias": 3}, x())


def test_batch_norm_without_running_statistics():
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    with pytest.raises(RuntimeError, match="running_mean or running_var"):
        func.vmap(model)(torch.rand(2, 4, 2))
    assert func.replace_all_batch_norm_modules_(model) is model
    assert model[1].running_mean is None
    rows = torch.rand(2, 4, 2)
    torch.testing.assert_close(func.vmap(model)(rows), torch.stack([model(r) for r in rows]))


def test_functionalize_changes_nothing():
    given = x()
    assert func.functionalize(lambda v: v.add_(1))(given).tolist() == [2.0, 3.0]
    assert given.tolist() == [2.0, 3.0]
    with pytest.raises(RuntimeError, match="valid options for argument 'remove'"):
        func.functionalize(torch.sin, remove="all")


def test_unwrapping():
    seen = []
    func.vmap(lambda v: seen.append(func.debug_unwrap(v)) or v)(x())
    assert torch.equal(seen[0], x())
    assert func.debug_unwrap(seen[0]) is seen[0]


@pytest.mark.parametrize(
    ("pattern", "sizes", "wanted"),
    [
        ("b c h w -> b h w c", {}, lambda t: t.permute(0, 2, 3, 1)),
        ("b c h w -> b (c h w)", {}, lambda t: t.reshape(2, 30)),
        ("b c ... -> c b ...", {}, lambda t: t.transpose(0, 1)),
        ("... w -> w ...", {}, lambda t: t.movedim(-1, 0)),
        ("b (x c) h w -> b x c h w", {"c": 1}, lambda t: t.unsqueeze(2)),
        (
            "b c (u h) w -> (b u) c h w",
            {"u": 2},
            lambda t: t.reshape(2, 3, 2, 1, 5).transpose(1, 2).reshape(4, 3, 1, 5),
        ),
        ("b c h w -> b 1 c h w", {}, lambda t: t.unsqueeze(1)),
    ],
)
def test_rearrange(pattern, sizes, wanted):
    tensor = torch.arange(60.0).reshape(2, 3, 2, 5)
    assert torch.equal(func.rearrange(tensor, pattern, **sizes), wanted(tensor))


@pytest.mark.parametrize(
    "pattern", ["a b", "a -> a", "a b c d -> a b c", "a a b c -> a b c", "(a b c d -> a", "a? -> a"]
)
def test_mistakes_of_rearrange(pattern):
    with pytest.raises(ValueError, match="rearrange"):
        func.rearrange(torch.ones(1, 2, 3, 4), pattern)
