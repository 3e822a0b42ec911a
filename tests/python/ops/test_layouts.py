"""How results lie in memory where their operands are not row-major: PyTorch's strides."""

import pytest
import rushlight as torch

CASES = [
    ("a+b", (1, 4)),
    ("b+a", (3, 1)),
    ("a+b.double()", (1, 4)),
    ("a.masked_fill(m,0)", (3, 1)),
    ("b.masked_fill(a>0,0.)", (3, 1)),
    ("a.masked_fill(a>0,0)", (3, 1)),
    ("a.tril()", (3, 1)),
    ("a.scatter(0,idx,1.)", (3, 1)),
    ("a.scatter(0,idx,b)", (3, 1)),
    ("a.scatter_add(0,idx,b)", (3, 1)),
    ("a.index_add(0,idx[:,0],b)", (3, 1)),
    ("a.index_fill(0,idx[:,0],1.)", (1, 4)),
    ("a.index_copy(0,torch.arange(4),b)", (3, 1)),
    ("a.index_put((idx[:,0],),torch.tensor(1.))", (1, 4)),
    ("a.sort(0).values", (1, 4)),
    ("a.sort(0).indices", (1, 4)),
    ("a.sort(1).values", (1, 4)),
    ("a.argsort(0)", (1, 4)),
    ("c.sort(1).values", (1, 12, 4)),
    ("a.topk(2,0).values", (3, 1)),
    ("a.cumsum(0)", (3, 1)),
    ("a.cummax(0).values", (3, 1)),
    ("a.flip(0)", (1, 4)),
    ("a.roll(1,0)", (3, 1)),
    ("a.softmax(0)", (3, 1)),
    ("a.log_softmax(0)", (3, 1)),
    ("a.sum(0,keepdim=True)", (3, 1)),
    ("c.sum(1)", (3, 1)),
    ("c.mean(0)", (3, 1)),
    ("c.max(1).values", (3, 1)),
    ("a.clamp(0,1)", (1, 4)),
    ("torch.where(a>0,a,b)", (1, 4)),
    ("torch.where(b>0,a,b)", (3, 1)),
    ("torch.lerp(a,b,0.5)", (1, 4)),
    ("a.masked_scatter(m,b)", (3, 1)),
    ("a.put(idx[0,:1],torch.ones(1))", (1, 4)),
    ("a.fill_diagonal_(1)", (1, 4)),
    ("torch.cat([a,a])", (3, 1)),
    ("torch.stack([a,a])", (12, 3, 1)),
    ("a.repeat(2,1)", (3, 1)),
    ("a.index_select(0,idx[:,0])", (3, 1)),
    ("a.gather(0,idx)", (3, 1)),
    ("a.take_along_dim(idx,0)", (3, 1)),
    ("a[idx[:,0]]", (3, 1)),
    ("a[a>0]", (1,)),
    ("a.nonzero()", (1, 12)),
    ("torch.einsum('ij,kj->ik',a,b)", (4, 1)),
    ("torch.einsum('bij,bjk->bik',c,c.mT)", (4, 2, 1)),
    ("torch.einsum('ij->ji',a)", (4, 1)),
    ("torch.einsum('...i,...i->...',c,c)", (2, 1)),
    ("torch.einsum('i,j->ij',a[0],b[0])", (3, 1)),
    ("a@b.t()", (4, 1)),
    ("torch.bmm(c,c.mT)", (4, 2, 1)),
    ("c@c.mT", (4, 2, 1)),
    ("torch.nn.functional.gelu(a)", (1, 4)),
    ("torch.nn.functional.dropout(a)", (1, 4)),
    ("torch.nn.functional.layer_norm(a,(3,))", (3, 1)),
    ("torch.nn.functional.embedding(idx,b)", (9, 3, 1)),
    ("torch.nn.functional.one_hot(idx)", (3, 1, 1)),
    ("a.std(0)", (1,)),
    ("a.norm(dim=0)", (1,)),
    ("torch.nn.functional.normalize(a)", (1, 4)),
    ("torch.nn.functional.pad(a,(1,1))", (5, 1)),
    ("torch.nn.functional.linear(c,b)", (8, 4, 1)),
    ("torch.nn.functional.mse_loss(a,b,reduction='none')", (1, 4)),
    ("torch.addcmul(a,b,b)", (1, 4)),
    ("torch.addcmul(b,a,a)", (3, 1)),
    ("a.to(torch.float64)", (1, 4)),
    ("a.clone()", (1, 4)),
    ("torch.empty_like(a)", (1, 4)),
    ("torch.zeros_like(a)", (1, 4)),
    ("a.float().half()", (1, 4)),
    ("a.nan_to_num()", (1, 4)),
    ("a.unfold(0,2,1)", (1, 4, 1)),
    ("torch.diff(a)", (1, 4)),
    ("torch.outer(a[0],b[0])", (3, 1)),
    ("torch.cdist(a,b)", (4, 1)),
    ("a.unique(dim=0)", (3, 1)),
    ("a.logcumsumexp(0)", (3, 1)),
    ("a.cumprod(0)", (3, 1)),
    ("torch.tensordot(a,b,([1],[1]))", (4, 1)),
    ("a.expand(2,4,3)+1", (12, 1, 4)),
    ("c+c.mT.mT", (1, 12, 4)),
    ("c*a.t()[:1,:1]", (1, 12, 4)),
    ("torch.fmax(a,b)", (1, 4)),
    ("a.pow(b)", (1, 4)),
    ("a<b", (1, 4)),
    ("~m.t().t()", (3, 1)),
    ("a.logical_and(b)", (1, 4)),
    ("torch.hypot(a.double(),b)", (1, 4)),
    ("a.median(0).values", (1,)),
    ("a.kthvalue(1,0).values", (1,)),
    ("a.mode(0).values", (1,)),
    ("torch.var_mean(c,1)[0]", (3, 1)),
    ("a.triu()", (3, 1)),
    ("torch.block_diag(a,b)", (6, 1)),
    ("a.index_reduce(0,idx[:,0],b,'mean')", (3, 1)),
    ("a.scatter_reduce(0,idx,b,'sum')", (3, 1)),
    ("a.unflatten(0,(2,2)).sum(0)", (3, 1)),
    ("a.prod(0)", (1,)),
    ("c.argmax(0)", (3, 1)),
    ("c.any(0)", (3, 1)),
    ("c.logsumexp(1)", (3, 1)),
    ("c.amax(1)", (3, 1)),
    ("c.aminmax(dim=1)[0]", (3, 1)),
    ("torch.nn.functional.softplus(a)", (1, 4)),
    ("torch.nn.functional.interpolate(c[None],scale_factor=2)", (96, 24, 6, 1)),
    ("torch.nn.functional.group_norm(c,2)", (6, 3, 1)),
]


@pytest.mark.parametrize("expression, strides", CASES)
def test_strides(expression, strides):
    torch.manual_seed(0)
    a = torch.randn(3, 4).t()
    b = torch.randn(4, 3)
    space = {
        "torch": torch,
        "a": a,
        "b": b,
        "c": torch.randn(2, 3, 4).permute(2, 0, 1),
        "m": b > 0,
        "idx": torch.zeros(4, 3).long(),
    }
    assert eval(expression, space).stride() == strides


@pytest.mark.parametrize(("dropout", "causal"), [(0.0, False), (0.0, True), (0.5, False)])
def test_attention_lies_like_its_queries(dropout: float, causal: bool) -> None:
    attend = torch.nn.functional.scaled_dot_product_attention
    rows = torch.rand(2, 4, 5, 8, requires_grad=True)
    out = attend(rows, rows, rows, dropout_p=dropout, is_causal=causal)
    assert out.is_contiguous()
    out.view(8, 40).sum().backward()
    split = torch.rand(2, 5, 32).view(2, 5, 4, 8).transpose(1, 2)
    out = attend(split, split, split, dropout_p=dropout, is_causal=causal)
    if dropout == 0:
        assert out.stride() == split.stride()
        out.transpose(1, 2).view(2, 5, 32)
    else:
        assert out.is_contiguous()
    flat = torch.rand(2, 5, 4)
    assert attend(flat, flat, flat).is_contiguous()


def test_gradients_of_attention_lie_like_its_arguments():
    attend = torch.nn.functional.scaled_dot_product_attention
    for x in (torch.rand(2, 4, 5, 8), torch.rand(2, 5, 4, 8).transpose(1, 2)):
        q, k, v = (x.clone().requires_grad_() for _ in range(3))
        given = torch.autograd.grad(attend(q, k, v).sum(), (q, k, v))
        assert [g.stride() for g in given] == [q.stride()] * 3


@pytest.mark.parametrize("train", [True, False])
def test_normalised_channels_are_rows_or_last(train: bool) -> None:
    turned = torch.rand(4, 5, 3).transpose(1, 2)
    for norm in (torch.nn.BatchNorm1d(3), torch.nn.InstanceNorm1d(3)):
        assert norm.train(train)(turned).is_contiguous()
    assert torch.nn.BatchNorm1d(3).train(train)(torch.rand(3, 4).t()).is_contiguous()
    plane = torch.rand(4, 3, 5, 6)
    norm = torch.nn.BatchNorm2d(3).train(train)
    assert norm(plane.transpose(2, 3)).is_contiguous()
    last = plane.contiguous(memory_format=torch.channels_last)
    assert norm(last).is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(norm(last), norm(plane))


def test_factors_can_be_viewed():
    x = torch.rand(2, 4, 3)
    factors = [*torch.linalg.lu(x), *torch.lu_unpack(*torch.linalg.lu_factor(x)), torch.svd(x).V]
    for factor in factors:
        factor.view(-1)
    p, lower, upper = torch.linalg.lu(x)
    torch.testing.assert_close(p @ lower @ upper, x)
    assert torch.linalg.lu(x.to("meta"))[2].is_contiguous()
