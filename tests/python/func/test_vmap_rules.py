"""Functions inside vmap give what a loop over the batch gives."""

import pytest
import rushlight as torch
import rushlight.nn.functional as F
from rushlight.func import vmap

B = 3


def rand(*shape):
    return torch.rand(B, *shape)


def ints(high, *shape):
    return torch.randint(0, high, (B, *shape))


ONE = {
    "sum": lambda x: x.sum(),
    "sum of one": lambda x: x.sum(-1),
    "sum of two": lambda x: x.sum((0, -1), keepdim=True),
    "mean": lambda x: torch.mean(x, dim=1),
    "amax": lambda x: x.amax((0, 1)),
    "max": lambda x: x.max(),
    "max of dim": lambda x: torch.max(x, 1),
    "argmax": lambda x: x.argmax(),
    "argmax of dim": lambda x: x.argmax(0, keepdim=True),
    "any": lambda x: (x > 0.5).any(),
    "all of dim": lambda x: (x > 0.1).all(1),
    "var": lambda x: x.var(0),
    "std unbiased": lambda x: x.std(unbiased=False),
    "prod": lambda x: x.prod(),
    "prod of dim": lambda x: x.prod(-2),
    "logsumexp": lambda x: x.logsumexp(1),
    "norm": lambda x: x.norm(),
    "norm of dim": lambda x: torch.norm(x, dim=1),
    "vector norm": lambda x: torch.linalg.vector_norm(x, 2, 1),
    "median": lambda x: x.median(1),
    "softmax": lambda x: F.softmax(x, -1),
    "log_softmax": lambda x: x.log_softmax(0),
    "cumsum": lambda x: x.cumsum(1),
    "cummax": lambda x: x.cummax(0),
    "sort": lambda x: x.sort(descending=True),
    "sort of dim": lambda x: torch.sort(x, 0),
    "argsort": lambda x: x.argsort(),
    "topk": lambda x: x.topk(2),
    "kthvalue": lambda x: x.kthvalue(2, 0),
    "flip": lambda x: x.flip(0, 1),
    "flip list": lambda x: torch.flip(x, [1]),
    "fliplr": lambda x: x.fliplr(),
    "roll": lambda x: x.roll(1, 0),
    "roll flat": lambda x: x.roll(2),
    "view": lambda x: x.view(-1, 2),
    "reshape": lambda x: x.reshape((5, 4)),
    "flatten": lambda x: x.flatten(),
    "ravel": lambda x: x.ravel(),
    "unflatten": lambda x: x.unflatten(0, (2, 2)),
    "unsqueeze": lambda x: x.unsqueeze(0).unsqueeze(-1),
    "squeeze": lambda x: x.unsqueeze(1).squeeze(),
    "squeeze of dim": lambda x: x.unsqueeze(1).squeeze(1).squeeze(0),
    "transpose": lambda x: x.transpose(0, 1),
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "t": lambda x: x.t(),
    "permute": lambda x: x.permute(1, 0),
    "movedim": lambda x: x.movedim(-1, 0),
    "expand": lambda x: x.unsqueeze(0).expand(2, -1, -1),
    "broadcast_to": lambda x: torch.broadcast_to(x, (2, 4, 5)),
    "repeat": lambda x: x.repeat(2, 1, 3),
    "tile": lambda x: x.tile(2, 1, 3),
    "tile fewer": lambda x: x.tile(2),
    "repeat_interleave": lambda x: x.repeat_interleave(2, 1),
    "repeat_interleave flat": lambda x: x.repeat_interleave(2),
    "diagonal": lambda x: x.diagonal(1),
    "diag": lambda x: x.diag(),
    "trace": lambda x: x.trace(),
    "tril": lambda x: x.tril(-1),
    "split": lambda x: x.split(2),
    "split uneven": lambda x: torch.split(x, [1, 4], 1)[1],
    "chunk": lambda x: x.chunk(2, 1)[0],
    "unbind": lambda x: x.unbind(1)[2],
    "iterate": lambda x: sum(row.sum() for row in x),
    "unpack": lambda x: (lambda a, b, c, d: a * b + c * d)(*x),
    "unfold": lambda x: x.unfold(1, 2, 2),
    "select": lambda x: x.select(1, -1),
    "narrow": lambda x: x.narrow(1, 1, 2),
    "index": lambda x: x[1, 2],
    "slice": lambda x: x[1:, ::2],
    "ellipsis": lambda x: x[..., -1, None],
    "index tensor": lambda x: x[torch.tensor([0, 2])],
    "index tensor later": lambda x: x[:, torch.tensor([[0, 2]])],
    "index tensors": lambda x: x[torch.tensor([0, 2]), torch.tensor([1, 1])],
    "index apart": lambda x: x[None, torch.tensor([0, 2]), None, torch.tensor([1, 1])],
    "index by shared mask": lambda x: x[torch.tensor([True, False, True, False])],
    "index_select": lambda x: x.index_select(1, torch.tensor([0, 3])),
    "cat": lambda x: torch.cat([x, torch.ones(1, 5), x]),
    "stack": lambda x: torch.stack([x, torch.ones(4, 5)], -1),
    "hstack": lambda x: torch.hstack([x, x]),
    "pad": lambda x: F.pad(x, (1, 2)),
    "relu": lambda x: F.relu(x - 0.5),
    "gelu": lambda x: F.gelu(x),
    "clamp": lambda x: x.clamp(0.2, 0.7),
    "where": lambda x: torch.where(x > 0.5, x, 0.0),
    "masked_fill": lambda x: x.masked_fill(x > 0.5, -1.0),
    "pow": lambda x: 2**x + x**2,
    "arithmetic": lambda x: (1 - x) / (x + 2) // 0.1 % 3,
    "comparison": lambda x: (x > 0.5) & ~(x < 0.2),
    "to": lambda x: x.double() + x.to(torch.float16),
    "item of a shape": lambda x: x * x.shape[0] + len(x) + x.dim() + x.numel(),
    "zeros_like": lambda x: torch.zeros_like(x) + x,
    "new_zeros": lambda x: x.new_zeros(2) + x.sum(),
    "layer_norm": lambda x: F.layer_norm(x, (5,)),
    "glu": lambda x: F.glu(x, 0),
    "normalize": lambda x: F.normalize(x, dim=0),
    "inverse": lambda x: torch.linalg.inv(x @ x.T + torch.eye(4)),
    "det": lambda x: torch.det(x[:, :4]),
    "matrix_power": lambda x: torch.linalg.matrix_power(x[:, :4], 2),
    "einsum": lambda x: torch.einsum("ij,kj->ik", x, torch.ones(2, 5)),
    "einsum implicit": lambda x: torch.einsum("ij", x),
    "tensordot": lambda x: torch.tensordot(x, torch.ones(5, 2), 1),
    "cdist": lambda x: torch.cdist(x, x),
    "outer": lambda x: torch.outer(x[0], x[1]),
    "diff": lambda x: x.diff(),
    "cov": lambda x: x.cov(),
    "meshgrid": lambda x: torch.meshgrid(x[0], x[1], indexing="ij"),
    "bucketize": lambda x: torch.bucketize(x, torch.tensor([0.25, 0.5])),
    "lerp": lambda x: x.lerp(x * 2, 0.3),
    "type_as": lambda x: x.type_as(torch.ones(1, dtype=torch.float64)),
    "contiguous": lambda x: x.t().contiguous(),
    "broadcast": lambda x: torch.broadcast_tensors(x[0], x)[0],
    "nan_to_num": lambda x: (x / 0).nan_to_num(posinf=1.0),
    "quantile": lambda x: x.quantile(0.5, 0),
    "put in": lambda x: x.clone().index_put_((torch.tensor([0]),), torch.tensor(7.0)),
}


def same(a, b):
    if isinstance(a, (tuple, list)):
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            same(one, other)
        return
    assert a.shape == b.shape and a.dtype == b.dtype
    torch.testing.assert_close(a, b)


def loop(function, *args):
    results = [function(*(arg[i] for arg in args)) for i in range(B)]
    if isinstance(results[0], torch.Tensor):
        return torch.stack(results)
    return [torch.stack(column) for column in zip(*results, strict=True)]


@pytest.mark.parametrize("name", ONE)
def test_of_one_argument(name):
    x = rand(4, 5)
    function = ONE[name]
    same(vmap(function)(x), loop(function, x))
    turned = vmap(function, in_dims=2)(x.movedim(0, 2))
    same(turned, loop(function, x))


@pytest.mark.parametrize("name", ONE)
def test_inside_another_vmap(name):
    function = ONE[name]
    x = torch.rand(2, B, 4, 5)
    found = vmap(vmap(function))(x)
    rows = [loop(function, row) for row in x]
    if isinstance(rows[0], torch.Tensor):
        same(found, torch.stack(rows))
    else:
        same(found, [torch.stack(column) for column in zip(*rows, strict=True)])


TWO = {
    "add": (lambda x, y: x + y, (4, 5), (5,)),
    "add lower": (lambda x, y: x + y, (5,), (2, 3, 5)),
    "number": (lambda x, y: x * y, (4, 5), ()),
    "maximum": (lambda x, y: torch.max(x, y), (4, 5), (4, 5)),
    "where": (lambda x, y: torch.where(x > y, x, y), (4, 5), (5,)),
    "matmul": (lambda x, y: x @ y, (4, 5), (5, 2)),
    "matrix by vector": (lambda x, y: x @ y, (4, 5), (5,)),
    "vector by matrix": (lambda x, y: x @ y, (5,), (5, 2)),
    "vector by matrices": (lambda x, y: x @ y, (5,), (2, 5, 3)),
    "dot": (lambda x, y: torch.dot(x, y), (5,), (5,)),
    "matrices": (lambda x, y: torch.matmul(x, y), (2, 1, 4, 5), (3, 5, 2)),
    "matrices by vector": (lambda x, y: torch.matmul(x, y), (3, 4, 5), (5,)),
    "bmm": (lambda x, y: torch.bmm(x, y), (2, 4, 5), (2, 5, 3)),
    "mv": (lambda x, y: x.mv(y), (4, 5), (5,)),
    "einsum": (lambda x, y: torch.einsum("ij,jk->ik", x, y), (4, 5), (5, 2)),
    "linear": (lambda x, y: F.linear(x, y), (4, 5), (2, 5)),
    "conv1d": (lambda x, y: F.conv1d(x, y, padding=1), (2, 4, 6), (3, 4, 3)),
    "conv2d": (lambda x, y: F.conv2d(x, y, stride=2), (2, 4, 6, 6), (3, 4, 3, 3)),
    "conv2d of one": (lambda x, y: F.conv2d(x, y), (4, 6, 6), (3, 4, 3, 3)),
    "conv2d grouped": (lambda x, y: F.conv2d(x, y, groups=2), (2, 4, 6, 6), (6, 2, 3, 3)),
    "conv_transpose2d": (lambda x, y: F.conv_transpose2d(x, y), (2, 4, 5, 5), (4, 3, 2, 2)),
    "mse_loss": (lambda x, y: F.mse_loss(x, y), (4, 5), (4, 5)),
    "mse_loss summed": (lambda x, y: F.mse_loss(x, y, reduction="sum"), (4,), (4,)),
    "l1_loss": (lambda x, y: F.l1_loss(x, y, reduction="none"), (4,), (4,)),
    "smooth_l1_loss": (lambda x, y: F.smooth_l1_loss(x, y, beta=0.3), (4,), (4,)),
    "huber_loss": (lambda x, y: F.huber_loss(x, y, delta=0.3), (4,), (4,)),
    "bce": (lambda x, y: F.binary_cross_entropy(x, y), (4,), (4,)),
    "bce with logits": (lambda x, y: F.binary_cross_entropy_with_logits(x, y), (4,), (4,)),
    "kl_div": (lambda x, y: F.kl_div(x, y, reduction="batchmean"), (4, 2), (4, 2)),
    "cosine_similarity": (lambda x, y: F.cosine_similarity(x, y), (4, 5), (4, 5)),
    "atan2": (lambda x, y: torch.atan2(x, y), (4,), ()),
    "addmm": (lambda x, y: torch.addmm(torch.ones(4, 2), x, y), (4, 5), (5, 2)),
    "baddbmm": (lambda x, y: torch.baddbmm(x[:, :, :1], x, y), (2, 4, 5), (2, 5, 1)),
    "cat": (lambda x, y: torch.cat([x, y], -1), (4, 5), (4, 2)),
    "layer_norm": (lambda x, y: F.layer_norm(x, (5,), y, y), (4, 5), (5,)),
    "rms_norm": (lambda x, y: F.rms_norm(x, (5,), y), (4, 5), (5,)),
    "solve": (lambda x, y: torch.linalg.solve(x + torch.eye(4) * 4, y), (4, 4), (4,)),
    "prelu": (lambda x, y: F.prelu(x - 0.5, y), (4, 5), (1,)),
    "expand_as": (lambda x, y: x.expand_as(y), (5,), (4, 5)),
    "view_as": (lambda x, y: x.view_as(y), (4, 5), (2, 10)),
}


@pytest.mark.parametrize("name", TWO)
@pytest.mark.parametrize("shared", ["none", "first", "second"])
def test_of_two_arguments(name, shared):
    function, one, other = TWO[name]
    x, y = rand(*one), rand(*other)
    in_dims = (None if shared == "first" else 0, None if shared == "second" else 0)
    x = x[0] if shared == "first" else x
    y = y[0] if shared == "second" else y
    wanted = [
        function(x if shared == "first" else x[i], y if shared == "second" else y[i])
        for i in range(B)
    ]
    same(vmap(function, in_dims)(x, y), torch.stack(wanted))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (torch.float32, torch.float64),
        (torch.int64, torch.float32),
        (torch.float16, torch.float32),
        (torch.bool, torch.int64),
        (torch.float64, torch.float32),
    ],
)
@pytest.mark.parametrize("shape", [(), (2,)])
def test_dtypes_follow_the_element(one, other, shape):
    x = torch.ones(B, *shape).to(one)
    y = torch.ones(B).to(other)
    same(vmap(torch.add)(x, y), loop(torch.add, x, y))
    same(vmap(torch.add)(y, x), loop(torch.add, y, x))
    shared = torch.tensor(1).to(other)
    same(vmap(lambda a: a + shared)(x), loop(lambda a: a + shared, x))


def test_indices_of_their_own():
    table, at, wide = rand(4, 5), ints(4, 2), ints(5, 4, 2)
    same(vmap(lambda t, i: t[i])(table, at), loop(lambda t, i: t[i], table, at))
    same(vmap(lambda t, i: t[i, 1])(table, at), loop(lambda t, i: t[i, 1], table, at))
    same(vmap(lambda t, i: t[:, i])(table, at), loop(lambda t, i: t[:, i], table, at))
    same(
        vmap(torch.gather, (0, None, 0))(table, 1, wide),
        loop(lambda t, i: t.gather(1, i), table, wide),
    )
    shared = table[0]
    same(vmap(lambda i: shared[i])(at), loop(lambda i: shared[i], at))
    same(vmap(lambda i: F.embedding(i, shared))(at), loop(lambda i: F.embedding(i, shared), at))
    same(vmap(F.embedding)(at, table), loop(F.embedding, at, table))
    same(vmap(lambda i: F.one_hot(i, 4))(at), loop(lambda i: F.one_hot(i, 4), at))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy(smoothing, reduction):
    def loss(scores, target):
        return F.cross_entropy(scores, target, reduction=reduction, label_smoothing=smoothing)

    scores, target = rand(6, 4), ints(4, 6)
    target[0, 2] = -100
    same(vmap(loss)(scores, target), loop(loss, scores, target))
    same(vmap(loss)(scores[:, 0], target[:, 0]), loop(loss, scores[:, 0], target[:, 0]))


def test_attention():
    q, k, v = rand(2, 4, 8), rand(2, 5, 8), rand(2, 5, 8)
    same(
        vmap(F.scaled_dot_product_attention)(q, k, v), loop(F.scaled_dot_product_attention, q, k, v)
    )
    mask = torch.rand(B, 4, 5) > 0.3
    mask[..., 0] = True

    def masked(q, k, v, mask):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    same(vmap(masked)(q, k, v, mask), loop(masked, q, k, v, mask))


PLANES = {
    "max_pool2d": lambda x: F.max_pool2d(x, 2),
    "max_pool2d with indices": lambda x: F.max_pool2d(x, 2, return_indices=True),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 3, 1, 1),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, 2),
    "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, 2),
    "pad reflect": lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"),
    "group_norm": lambda x: F.group_norm(x.view(-1, 2, 6, 6), 2),
    "batch_norm": lambda x: F.batch_norm(x.view(-1, 2, 6, 6), None, None, training=True),
    "eval batch_norm": lambda x: F.batch_norm(x.view(-1, 2, 6, 6), torch.ones(2), torch.ones(2)),
}


@pytest.mark.parametrize("name", PLANES)
@pytest.mark.parametrize("shape", [(4, 2, 6, 6), (2, 6, 6)])
def test_planes(name, shape):
    x = rand(*shape)
    same(vmap(PLANES[name])(x), loop(PLANES[name], x))


def test_interpolate():
    x = rand(4, 2, 6, 6)
    for mode in ("nearest", "bilinear"):

        def grow(image, mode=mode):
            return F.interpolate(image, scale_factor=2, mode=mode)

        same(vmap(grow)(x), loop(grow, x))


IN_PLACE = {
    "add_": lambda x, y: x.add_(y),
    "mul_ number": lambda x, y: x.mul_(2),
    "zero_": lambda x, y: x.zero_(),
    "fill_": lambda x, y: x.fill_(3),
    "copy_": lambda x, y: x.copy_(y),
    "set": lambda x, y: x.__setitem__(0, y[1]),
    "set slice": lambda x, y: x.__setitem__((slice(None), 1), 7.0),
    "set by indices": lambda x, y: x.__setitem__(torch.tensor([0, 1]), y[0]),
    "clamp_": lambda x, y: x.clamp_(0.2, 0.6),
    "relu_": lambda x, y: F.relu(x.sub_(0.5), inplace=True),
    "masked_fill_": lambda x, y: x.masked_fill_(y > 0.5, 2.0),
    "scatter_": lambda x, y: x.scatter_(1, (y[:, :1] * 4).long(), 1.0),
    "index_add_": lambda x, y: x.index_add_(0, torch.tensor([1]), y[:1]),
    "through a view": lambda x, y: x[1].add_(y[1]),
    "iadd": lambda x, y: x.__iadd__(y),
    "lerp_": lambda x, y: x.lerp_(y, 0.2),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_writes_reach_the_batch(name):
    x, y = rand(4, 5), rand(4, 5)
    wanted = x.clone()
    for i in range(B):
        IN_PLACE[name](wanted[i], y[i])

    def written(a, b):
        IN_PLACE[name](a, b)
        return a

    found = vmap(written)(x, y)
    same(found, wanted)
    same(x, wanted)
