"""Pooling against plain loops over windows in NumPy, and what PyTorch 2.13 does at the edges."""

import itertools

import numpy as np
import pytest
import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F

NN = torch._C._nn


def positions(size, out, kernel, stride, pad, dilation):
    """Of each window along a dimension, the places inside the input and the padded length."""
    found = []
    for i in range(out):
        start = i * stride - pad
        inside = [start + k * dilation for k in range(kernel)]
        found.append(
            ([p for p in inside if 0 <= p < size], min(start + kernel, size + pad) - start)
        )
    return found


def adapted(size, out):
    return [(list(range(i * size // out, -(-(i + 1) * size // out))), None) for i in range(out)]


def count(size, kernel, stride, pad, dilation, ceil):
    room = size + 2 * pad - dilation * (kernel - 1) - 1
    out = (-(-room // stride) if ceil else room // stride) + 1
    return out - 1 if ceil and (out - 1) * stride >= size + pad else out


def windows_of(shape, axes):
    """For each result, the indices into the flat plane of its window, and its padded volume."""
    for at in itertools.product(*(range(len(axis)) for axis in axes)):
        own = [axis[i] for axis, i in zip(axes, at)]
        flat = [np.ravel_multi_index(p, shape) for p in itertools.product(*(o[0] for o in own))]
        yield flat, np.prod([o[1] for o in own]) if own[0][1] is not None else None


def reference(x, axes, reduce):
    dims = len(axes)
    planes = x.reshape(-1, int(np.prod(x.shape[-dims:])))
    found = [
        [reduce(plane, flat, padded) for flat, padded in windows_of(x.shape[-dims:], axes)]
        for plane in planes
    ]
    return np.array(found).reshape(*x.shape[:-dims], *(len(axis) for axis in axes))


def regular_axes(shape, dims, kernel, stride, pad, dilation=1, ceil=False):
    return [
        positions(n, count(n, kernel, stride, pad, dilation, ceil), kernel, stride, pad, dilation)
        for n in shape[-dims:]
    ]


def argmax(plane, flat, _):
    best = flat[0]
    for i in flat:
        if plane[i] > plane[best] or np.isnan(plane[i]):
            best = i
    return best


def tensor_of(array, dtype=None):
    return torch.from_numpy(np.ascontiguousarray(array)).to(dtype or torch.float32)


def random_input(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def last(x):
    return x.to(memory_format=torch.channels_last if x.dim() == 4 else torch.channels_last_3d)


MAX = {1: torch.max_pool1d_with_indices, 2: NN.max_pool2d_with_indices}
MAX[3] = NN.max_pool3d_with_indices
SHAPES = {1: (2, 3, 11), 2: (2, 3, 9, 12), 3: (2, 2, 5, 7, 6)}
CASES = [(2, 2, 0, 1, False), (3, 2, 1, 1, False), (3, 1, 1, 1, True), (2, 3, 1, 2, True)]
CASES += [(4, 3, 2, 1, True), (3, 2, 1, 2, False)]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_max_pool(dims, case):
    x = random_input(*SHAPES[dims])
    axes = regular_axes(x.shape, dims, *case)
    where = reference(x, axes, argmax)
    planes = x.reshape(*x.shape[:2], -1)
    best = np.take_along_axis(planes, where.reshape(*x.shape[:2], -1), 2).reshape(where.shape)
    kernel, stride, pad, dilation, ceil = case
    arguments = [kernel], [stride], [pad], [dilation], ceil
    values, indices = MAX[dims](tensor_of(x), *arguments)
    assert np.array_equal(values.numpy(), best)
    assert np.array_equal(indices.numpy(), where)
    alone = getattr(torch, f"max_pool{dims}d")(tensor_of(x), *arguments)
    assert np.array_equal(alone.numpy(), best)
    for dtype in (torch.float64, torch.bfloat16, torch.float16):
        halved = tensor_of(x, dtype)
        values, indices = MAX[dims](halved, *arguments)
        exact = MAX[dims](halved.double(), *arguments)
        assert torch.equal(values.double(), exact[0]) and torch.equal(indices, exact[1])
    if dims > 1:
        given = last(tensor_of(x))
        values, indices = MAX[dims](given, *arguments)
        assert np.array_equal(values.numpy(), best) and np.array_equal(indices.numpy(), where)
        assert values.stride(1) == 1 and indices.stride(1) == 1


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_max_pool_of_integers(dtype):
    x = torch.tensor([[[1, 7, 3], [4, 5, 6], [9, 2, 8]]], dtype=dtype)
    values, indices = NN.max_pool2d_with_indices(x, 2, 1)
    assert values.tolist() == [[[7, 7], [9, 8]]] and values.dtype == dtype
    assert indices.tolist() == [[[1, 1], [6, 8]]]


def test_nan_is_the_greatest_and_the_last_counts():
    nan, low = float("nan"), -float("inf")
    x = torch.tensor([[[1.0, nan, 2.0], [nan, 0.0, 5.0], [7.0, 7.0, low]]])
    for given in (x, last(x[None])[0]):
        values, indices = NN.max_pool2d_with_indices(given, 2, 1)
        assert indices.tolist() == [[[3, 1], [3, 7]]]
        assert values.isnan().tolist() == [[[True, True], [True, False]]]
    assert NN.max_pool2d_with_indices(torch.full((1, 2, 2), low), 2)[1].item() == 0
    assert NN.adaptive_max_pool2d(x, 1)[1].item() == 3


def mean(plane, flat, divisor):
    return plane[flat].astype(np.float64).sum() / divisor


@pytest.mark.parametrize(
    "case", [(2, 2, 0, False), (3, 2, 1, False), (3, 2, 1, True), (4, 1, 2, True)]
)
@pytest.mark.parametrize("counts", [True, False, 5])
@pytest.mark.parametrize("dims", [2, 3])
def test_avg_pool(dims, counts, case):
    x = random_input(*SHAPES[dims])
    kernel, stride, pad, ceil = case
    axes = regular_axes(x.shape, dims, kernel, stride, pad, 1, ceil)

    def average(plane, flat, padded):
        divisor = counts if counts == 5 and counts is not True else padded if counts else len(flat)
        return mean(plane, flat, divisor)

    function = getattr(NN, f"avg_pool{dims}d")
    arguments = [kernel], [stride], [pad], ceil, counts is not False
    divisor = 5 if counts == 5 and counts is not True else None
    expected = reference(x, axes, average)
    for dtype, near in ((torch.float32, 1e-6), (torch.float64, 1e-12), (torch.bfloat16, 0.02)):
        exact = reference(tensor_of(x, dtype).double().numpy(), axes, average)
        made = function(tensor_of(x, dtype), *arguments, divisor)
        np.testing.assert_allclose(made.double().numpy(), exact, near, near)
    made = function(last(tensor_of(x)), *arguments, divisor)
    np.testing.assert_allclose(made.numpy(), expected, 1e-5, 1e-6)


def test_avg_pool_of_integers_truncates():
    x = torch.tensor([[[1, 2, -3, -4], [4, 0, -1, -1]]])
    assert NN.avg_pool2d(x, 2).tolist() == [[[1, -2]]]
    assert NN.avg_pool2d(x, 2, divisor_override=3).tolist() == [[[2, -3]]]


@pytest.mark.parametrize("out", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_adaptive(dims, out):
    x = random_input(*SHAPES[dims])
    axes = [adapted(n, out) for n in x.shape[-dims:]]
    averages = reference(x, axes, lambda plane, flat, _: mean(plane, flat, len(flat)))
    where = reference(x, axes, argmax)
    functions = [getattr(F, f"adaptive_{kind}_pool{dims}d") for kind in ("avg", "max")]
    for given in (tensor_of(x), last(tensor_of(x)) if dims > 1 else tensor_of(x)):
        np.testing.assert_allclose(functions[0](given, out).numpy(), averages, 1e-5, 1e-6)
        _, indices = functions[1](given, out, True)
        assert np.array_equal(indices.numpy(), where)


def test_adaptive_keeps_sizes_that_are_none():
    x = tensor_of(random_input(1, 2, 4, 6))
    assert F.adaptive_avg_pool2d(x, (None, 3)).shape == (1, 2, 4, 3)
    assert nn.AdaptiveMaxPool2d((2, None))(x).shape == (1, 2, 2, 6)


def distinct(*shape):
    """No ties: maxima do not move under small steps."""
    torch.manual_seed(1)
    values = torch.randperm(int(np.prod(shape))).double() / 10
    return values.reshape(shape).requires_grad_()


X = {1: (2, 2, 7), 2: (2, 2, 5, 6), 3: (1, 2, 4, 4, 5)}
GRADIENTS = [
    (1, lambda x: torch.max_pool1d(x, 3, 2, 1)),
    (2, lambda x: torch.max_pool2d(x, 3, 2, 1)),
    (2, lambda x: torch.max_pool2d(last(x), 3, 2, 1)),
    (2, lambda x: NN.max_pool2d_with_indices(x, 2, 1)[0]),
    (2, lambda x: NN.max_pool2d_with_indices(last(x), 2, 1)[0]),
    (3, lambda x: torch.max_pool3d(x, 2, 2, 1)),
    (3, lambda x: NN.max_pool3d_with_indices(x, 2, 1)[0]),
    (1, lambda x: torch.avg_pool1d(x, 3, 2, 1)),
    (2, lambda x: NN.avg_pool2d(x, 3, 2, 1, True, False)),
    (2, lambda x: NN.avg_pool2d(last(x), 3, 2, 1)),
    (2, lambda x: NN.avg_pool2d(x, 2, 1, 0, False, True, 3)),
    (3, lambda x: NN.avg_pool3d(x, 2, 2, 1, True)),
    (1, lambda x: F.adaptive_avg_pool1d(x, 3)),
    (2, lambda x: F.adaptive_avg_pool2d(x, (2, 4))),
    (2, lambda x: F.adaptive_avg_pool2d(last(x), (2, 4))),
    (2, lambda x: F.adaptive_avg_pool2d(x, 1)),
    (3, lambda x: F.adaptive_avg_pool3d(x, (2, 3, 3))),
    (1, lambda x: F.adaptive_max_pool1d(x, 3)),
    (2, lambda x: F.adaptive_max_pool2d(x, (2, 4))),
    (3, lambda x: F.adaptive_max_pool3d(x, (2, 3, 3))),
    (2, lambda x: F.lp_pool2d(x + 1, 2, 2)),
    (2, lambda x: F.local_response_norm(x, 2)),
    (2, lambda x: F.unfold(x, (2, 3), 2, 1, 2)),
    (2, lambda x: F.fold(x.reshape(2, 4, 15), (4, 6), (2, 2))),
    (2, lambda x: F.interpolate(x, (3, 4), mode="area")),
]


@pytest.mark.parametrize("dims, function", GRADIENTS)
def test_gradient(dims, function):
    x = distinct(*X[dims])
    assert torch.autograd.gradcheck(function, (x,))
    assert torch.autograd.gradgradcheck(function, (x,))


@pytest.mark.parametrize("dims", [2, 3])
def test_unpool_is_the_inverse(dims):
    x = distinct(*X[dims])
    pool, unpool = (getattr(F, f"max_{kind}{dims}d") for kind in ("pool", "unpool"))
    values, indices = pool(x, 2, return_indices=True)
    made = unpool(values.detach().requires_grad_(), indices, 2, output_size=x.shape)
    planes = made.flatten(2)
    assert torch.equal(planes.gather(2, indices.flatten(2)).reshape(values.shape), values)
    assert (made != 0).sum() <= values.numel()
    assert torch.autograd.gradcheck(lambda v: unpool(v, indices, 2, output_size=x.shape), values)


def test_unpool_refuses_places_outside():
    with pytest.raises(RuntimeError, match="invalid max index: 9"):
        NN.max_unpool2d(torch.ones(1, 1, 1), torch.tensor([[[9]]]), [3, 3])
    with pytest.raises(RuntimeError, match="Expected shape of indices to be"):
        F.max_unpool2d(torch.ones(1, 1, 4, 4), torch.zeros(1, 1, 4, 1).long(), 2)


FRACTIONAL = [9, 11, 13, 15, 33, 35, 37, 39, 57, 59, 61, 63]
FRACTIONAL_3D = [21, 23, 29, 31, 53, 55, 61, 63]
FRACTIONAL_DRAWN = [22, 23, 25, 27, 29, 32, 33, 35, 37, 39, 52, 53, 55, 57, 59, 72, 73, 75, 77, 79]
FRACTIONAL_DRAWN += [92, 93, 95, 97, 99]


def test_fractional_windows():
    """Values of PyTorch 2.13."""
    x = torch.arange(64.0).reshape(1, 1, 8, 8)
    samples = torch.tensor([[[0.3, 0.7]]])
    values, indices = NN.fractional_max_pool2d(x, 2, [3, 4], samples)
    assert indices.flatten().tolist() == FRACTIONAL
    assert torch.equal(values.flatten().long(), indices.flatten())
    x = x.reshape(1, 4, 4, 4).clone().requires_grad_()
    samples = torch.tensor([[[0.2, 0.5, 0.9]]])
    values, indices = F.fractional_max_pool3d(x, 2, 2, return_indices=True, _random_samples=samples)
    assert indices.flatten().tolist() == FRACTIONAL_3D
    values.sum().backward()
    assert x.grad.flatten().nonzero().flatten().tolist() == sorted(set(FRACTIONAL_3D))


def test_fractional_draws_as_pytorch():
    torch.manual_seed(3)
    x = torch.arange(100.0).reshape(1, 10, 10)
    _, indices = F.fractional_max_pool2d(x, 3, output_ratio=(0.5, 0.5), return_indices=True)
    assert indices.flatten().tolist() == FRACTIONAL_DRAWN


def test_threads_do_not_show():
    x = tensor_of(random_input(4, 40, 33, 37))
    functions = [
        lambda x: torch.max_pool2d(x, 3, 2, 1),
        lambda x: NN.avg_pool2d(x, 3, 2, 1),
        lambda x: F.adaptive_avg_pool2d(x, 7),
        lambda x: F.unfold(x, 3),
    ]
    found = []
    threads = torch.get_num_threads()
    try:
        for number in (1, 2, 3):
            torch.set_num_threads(number)
            for given in (x, last(x)):
                leaf = given.detach().requires_grad_()
                made = [function(leaf) for function in functions]
                grads = [torch.autograd.grad(m.square().sum(), leaf)[0] for m in made]
                found.append([t.detach().contiguous().numpy().tobytes() for t in made + grads])
    finally:
        torch.set_num_threads(threads)
    assert found[0] == found[2] == found[4] and found[1] == found[3] == found[5]


OPERATORS = [
    lambda x: torch.max_pool2d(x * 2, 3, 2, 1) + 1,
    lambda x: NN.max_pool2d_with_indices(x, 2),
    lambda x: NN.avg_pool2d(x.exp(), 2).relu(),
    lambda x: F.adaptive_avg_pool2d(x, (2, 3)) * x.mean(),
    lambda x: F.adaptive_max_pool2d(x, 2, True),
    lambda x: F.unfold(x, 2).sum(1),
    lambda x: F.fold(F.unfold(x, 2), (5, 6), 2),
    lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2, output_size=(5, 6)),
    lambda x: F.local_response_norm(x, 2),
]


@pytest.mark.parametrize("function", OPERATORS)
def test_compiled(function):
    x = tensor_of(random_input(2, 2, 5, 6))

    def run(function):
        leaf = x.clone().requires_grad_()
        made = function(leaf)
        first = made[0] if isinstance(made, tuple) else made
        (grad,) = torch.autograd.grad(first.square().sum(), leaf)
        return [*(made if isinstance(made, tuple) else (made,)), grad]

    eager = run(function)
    compiled = run(torch.compile(function))
    assert all(torch.equal(a, b) and a.stride() == b.stride() for a, b in zip(eager, compiled))


def test_meta_and_out():
    x = torch.empty(2, 3, 8, 9, device="meta")
    values, indices = NN.max_pool2d_with_indices(x, 3, 2)
    assert values.is_meta and values.shape == (2, 3, 3, 4) and indices.dtype == torch.int64
    assert NN.avg_pool2d(last(x), 2).stride() == (48, 1, 12, 3)
    assert F.unfold(x, 3).shape == (2, 27, 42)
    x = tensor_of(random_input(1, 2, 4, 4))
    out = torch.empty(0), torch.empty(0, dtype=torch.int64)
    made = NN.max_pool2d_with_indices(x, 2, out=out)
    assert made[0] is out[0] and torch.equal(out[0], torch.max_pool2d(x, 2))
    assert torch.equal(NN.avg_pool2d(x, 2, out=torch.empty(0)), NN.avg_pool2d(x, 2))


ERRORS = [
    (lambda x: torch.max_pool2d(x, 0), "kernel_size must be greater than zero"),
    (lambda x: torch.max_pool2d(x, 2, 0), None),
    (lambda x: torch.max_pool2d(x, 2, 1, 2), "pad should be at most half of effective kernel"),
    (lambda x: torch.max_pool2d(x, 2, 1, -1), "pad must be non-negative"),
    (lambda x: torch.max_pool2d(x, 2, 1, 0, 0), "dilation must be greater than zero"),
    (lambda x: torch.max_pool2d(x, 9), "Output size is too small"),
    (lambda x: torch.max_pool2d(x[0, 0], 2), "Expected 3D or 4D"),
    (lambda x: torch.max_pool2d(x[:, :0], 2), "Expected 3D or 4D"),
    (lambda x: torch.max_pool2d(x, [2, 2, 2]), "must either be a single int"),
    (lambda x: NN.avg_pool2d(x, 2, divisor_override=0), "divisor must be not zero"),
    (lambda x: NN.adaptive_avg_pool2d(x, [2, -1]), "greater than or equal to 0"),
    (lambda x: NN.adaptive_avg_pool2d(x[0, 0], 2), "Expected 3D or 4D"),
    (lambda x: F.unfold(x, 9), "must be at least one"),
    (lambda x: F.unfold(x, 2, padding=-1), "padding should be non-negative"),
    (lambda x: F.fold(x[0], (4, 4), 3), "divisible by the product"),
    (lambda x: F.fold(x[0], (4, 4), 2), "sliding blocks"),
]


@pytest.mark.parametrize("function, text", ERRORS)
def test_errors(function, text):
    with pytest.raises(RuntimeError, match=text or "stride must be greater than zero"):
        function(tensor_of(random_input(1, 4, 4, 6)))


def test_dtypes_that_are_refused():
    for function in (NN.avg_pool2d, NN.adaptive_max_pool2d, NN.adaptive_avg_pool2d):
        with pytest.raises(NotImplementedError, match="not implemented for 'Int'"):
            function(torch.ones(1, 4, 4, dtype=torch.int32), 2)
    with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
        torch.max_pool2d(torch.ones(1, 4, 4, dtype=torch.bool), 2)


def test_unfold_and_fold():
    x = random_input(2, 3, 5, 6)
    made = F.unfold(tensor_of(x), (2, 3), dilation=(2, 1), padding=(1, 0), stride=(1, 2)).numpy()
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (0, 0)))
    columns = [
        [padded[:, c, y + 2 * ky, w + kx] for y in range(5) for w in (0, 2)]
        for c in range(3)
        for ky in range(2)
        for kx in range(3)
    ]
    assert np.array_equal(made, np.array(columns).transpose(2, 0, 1))
    for dtype in (torch.bool, torch.float16, torch.float64):
        assert F.unfold(tensor_of(x).to(dtype), 2).dtype == dtype
    ones = F.unfold(torch.ones(1, 2, 4, 4), 3, padding=1)
    times = F.fold(ones, (4, 4), 3, padding=1)[0, 0]
    assert times.tolist() == [[4, 6, 6, 4], [6, 9, 9, 6], [6, 9, 9, 6], [4, 6, 6, 4]]


def test_modules_show_themselves():
    shown = [
        repr(m) for m in (nn.MaxPool2d(3, 2, 1), nn.AvgPool1d(2), nn.AdaptiveAvgPool2d((1, 2)))
    ]
    assert shown == [
        "MaxPool2d(kernel_size=3, stride=2, padding=1, dilation=1, ceil_mode=False)",
        "AvgPool1d(kernel_size=(2,), stride=(2,), padding=(0,))",
        "AdaptiveAvgPool2d(output_size=(1, 2))",
    ]


@pytest.mark.parametrize("size", [(0, 2), (2, 0)])
def test_adaptive_without_results(size: tuple[int, int]) -> None:
    for pool in (F.adaptive_avg_pool2d, F.adaptive_max_pool2d):
        x = torch.ones(1, 2, 4, 4, requires_grad=True)
        result = pool(x, size)
        assert result.shape == (1, 2, *size)
        result.sum().backward()
        assert not x.grad.any()


@pytest.mark.parametrize(
    ("plane", "grad"),
    [((3,), (3,)), ((2, 3), (2, 3)), ((1, 2, 4, 4), (1, 3, 2, 2)), ((2, 4, 4), (1, 2, 2, 2))],
)
def test_gradients_of_another_plane_are_refused(plane: tuple, grad: tuple) -> None:
    backward = torch.ops.aten.max_pool2d_with_indices_backward
    places = torch.zeros(grad, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="batch and channels of the input"):
        backward(torch.ones(grad), torch.ones(plane), [2], [2], [0], [1], False, places)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("channels", [3, 70])
def test_gradients_do_not_depend_on_the_layout(channels, dtype):
    x = distinct(2, channels, 9, 8).to(dtype)
    for pool in (
        lambda t: F.max_pool2d(t, 3, 2, 1),
        lambda t: F.max_pool2d(t, 2),
        lambda t: F.avg_pool2d(t, 3, 2, 1),
        lambda t: F.adaptive_avg_pool2d(t, 4),
    ):
        made = []
        for lay in (torch.clone, last):
            leaf = lay(x).detach().requires_grad_()
            out = pool(leaf)
            grad = (torch.arange(out.numel()) % 13 - 6).view(out.shape).to(dtype)
            made.append((out.detach(), *torch.autograd.grad(out, leaf, lay(grad))))
        for a, b in zip(*made, strict=True):
            near = 1e-5 if dtype == torch.float32 else 1e-2
            assert torch.allclose(a.float(), b.float(), rtol=near, atol=near)
        assert made[1][1].is_contiguous(memory_format=torch.channels_last)
