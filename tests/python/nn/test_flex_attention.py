"""Flex attention against the same composed of dense operators."""

import math

import pytest
import rushlight as torch
from rushlight.nn.attention.flex_attention import (
    AuxRequest,
    BlockMask,
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
    noop_mask,
    or_masks,
)


def positions(q, k):
    """b, h, q_idx, kv_idx of every score, to be broadcast."""
    sizes = (q.size(0), q.size(1), q.size(2), k.size(2))
    return [
        torch.arange(size, dtype=torch.int32).view([size if i == d else 1 for i in range(4)])
        for d, size in enumerate(sizes)
    ]


def dense(q, k, v, score_mod=None, mask_mod=None, scale=None):
    """The definition, in dense operators: output, logsumexp and largest scores."""
    group = q.size(1) // k.size(1)
    k = k.repeat_interleave(group, 1).expand(q.size(0), -1, -1, -1)
    v = v.repeat_interleave(group, 1).expand(q.size(0), -1, -1, -1)
    scores = q @ k.transpose(-1, -2) * (1 / math.sqrt(q.size(-1)) if scale is None else scale)
    at = positions(q, k)
    if score_mod is not None:
        scores = score_mod(scores, *at)
    if mask_mod is not None:
        scores = torch.where(mask_mod(*at), scores, -math.inf)
    most = scores.amax(-1)
    lse = scores.logsumexp(-1)
    none = most == -math.inf
    weights = (scores - torch.where(none, 0.0, lse).unsqueeze(-1)).exp()
    return weights @ v, torch.where(none, -math.inf, lse), most


def causal(b, h, q, k):
    return q >= k


def window(b, h, q, k):
    return (q - k).abs() <= 20


def prefix(b, h, q, k):
    return (k < 9 + 3 * b) | (q >= k)


def some_heads(b, h, q, k):
    return (h % 2 == 0) & (q >= k) | (h % 2 == 1) & (k % 3 != 0)


def nothing(b, h, q, k):
    return k > q + 100000


def every_other(b, h, q, k):
    return (q + k) % 2 == 0


def alibi(score, b, h, q, k):
    return score + (k - q) * torch.exp2(-(h + 1) * 0.5)


def softcap(score, b, h, q, k):
    return 5 * torch.tanh(score / 5)


def steps(score, b, h, q, k):
    return torch.where(q >= k, score * 2 - 1, score.abs().sqrt())


def inputs(batch=2, heads=4, kv_heads=None, q_len=150, kv_len=150, size=16, v_size=None, **options):
    torch.manual_seed(q_len * 3 + kv_len)
    kv_heads = kv_heads or heads
    shapes = (
        (batch, heads, q_len, size),
        (batch, kv_heads, kv_len, size),
        (batch, kv_heads, kv_len, v_size or size),
    )
    return [torch.randn(*shape, dtype=torch.float64).to(**options) for shape in shapes]


def close(actual, expected, tolerance):
    assert actual.shape == expected.shape
    assert torch.allclose(actual.double(), expected.double(), rtol=tolerance, atol=tolerance)


def check(operands, score_mod=None, mask_mod=None, captures=(), tolerance=1e-4, block_size=128):
    """Compares output, logsumexp and largest scores, and all gradients."""
    q, k, v = operands
    mask = None
    if mask_mod is not None:
        mask = create_block_mask(
            mask_mod, q.size(0), q.size(1), q.size(2), k.size(2), BLOCK_SIZE=block_size
        )
    leaves = [x.detach().clone().requires_grad_() for x in operands]
    out, aux = flex_attention(
        *leaves,
        score_mod=score_mod,
        block_mask=mask,
        enable_gqa=True,
        return_aux=AuxRequest(lse=True, max_scores=True),
    )
    wide = [x.detach().double().requires_grad_() for x in operands]
    expected, lse, most = dense(*wide, score_mod, mask_mod)
    assert out.dtype == q.dtype
    close(out, expected, tolerance)
    close(aux.lse, lse, tolerance)
    close(aux.max_scores, most, tolerance)
    assert not aux.max_scores.requires_grad
    up = torch.randn(out.shape, dtype=torch.float64)
    up_lse = torch.where(lse == -math.inf, 0.0, torch.randn(lse.shape, dtype=torch.float64))
    finite = torch.where(lse == -math.inf, 0.0, lse)
    mine = torch.where(aux.lse == -math.inf, 0.0, aux.lse)
    found = torch.autograd.grad(
        (out * up.to(out.dtype)).sum() + (mine * up_lse.to(mine.dtype)).sum(),
        [*leaves, *captures],
        retain_graph=True,
    )
    wanted = torch.autograd.grad(
        (expected * up).sum() + (finite * up_lse).sum(), [*wide, *captures]
    )
    for own, other in zip(found, wanted):
        gap = (own.double() - other.double()).abs().max().item()
        assert gap <= 10 * tolerance * (1 + other.double().abs().max().item())


SCORES = [None, alibi, softcap, steps]
MASKS = [None, causal, window, prefix, some_heads, nothing, every_other, noop_mask]


@pytest.mark.parametrize("mask_mod", MASKS, ids=lambda f: getattr(f, "__name__", "none"))
@pytest.mark.parametrize("score_mod", SCORES, ids=lambda f: getattr(f, "__name__", "none"))
def test_agrees_with_dense_operators(score_mod, mask_mod):
    check(inputs(dtype=torch.float32), score_mod, mask_mod)


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(torch.float64, 1e-9), (torch.bfloat16, 0.03), (torch.float16, 4e-3)],
    ids=str,
)
@pytest.mark.parametrize("mask_mod", [None, causal, window])
def test_dtypes(dtype, tolerance, mask_mod):
    check(inputs(dtype=dtype), softcap, mask_mod, tolerance=tolerance)


@pytest.mark.parametrize(
    "shape",
    [
        {"q_len": 1, "kv_len": 1, "batch": 1, "heads": 1},
        {"q_len": 1, "kv_len": 700},
        {"q_len": 16, "kv_len": 300, "heads": 8, "kv_heads": 2},
        {"q_len": 300, "kv_len": 70, "size": 5, "v_size": 3},
        {"q_len": 260, "kv_len": 260, "batch": 1, "heads": 6, "kv_heads": 3, "size": 64},
        {"q_len": 40, "kv_len": 513, "heads": 2, "kv_heads": 1, "v_size": 32},
    ],
    ids=str,
)
def test_shapes(shape):
    for mask_mod in (None, causal, every_other):
        check(inputs(dtype=torch.float32, **shape), alibi, mask_mod)


@pytest.mark.parametrize(
    "block_size", [1, 16, 48, (64, 32), (200, 130), (32, 512), 128, 1024], ids=str
)
def test_block_sizes(block_size):
    operands = inputs(dtype=torch.float32, batch=1, heads=2, q_len=130, kv_len=170)
    check(operands, softcap, window, block_size=block_size)


def test_scale_and_strides():
    q, k, v = (x.transpose(1, 2) for x in inputs(dtype=torch.float32, heads=150, q_len=4, kv_len=4))
    out = flex_attention(q, k, v, scale=0.3)
    close(out, dense(q.double(), k.double(), v.double(), scale=0.3)[0], 1e-4)


# ---- captured tensors ---------------------------------------------------------------------------


def test_captured_documents():
    ids = torch.repeat_interleave(torch.arange(4), torch.tensor([40, 60, 5, 45])).to(torch.int32)

    def mask(b, h, q, k):
        return (ids[q] == ids[k]) & (q >= k)

    check(inputs(dtype=torch.float32), None, mask)
    blocks = create_block_mask(mask, None, None, 150, 150, BLOCK_SIZE=10)
    assert blocks.full_kv_num_blocks.sum() > 0 and blocks.sparsity() > 50


def test_captured_biases_get_gradients():
    torch.manual_seed(5)
    table = torch.randn(4, 2 * 150 - 1, requires_grad=True)
    slopes = torch.randn(4, dtype=torch.float64, requires_grad=True)
    shift = torch.randn((), requires_grad=True)
    full = torch.randn(2, 1, 150, 150, requires_grad=True)

    def score_mod(score, b, h, q, k):
        relative = table[h, q - k + 149]
        return score * (1 + shift) + relative + slopes[h] * (q - k) * 0.01 + full[b, 0, q, k]

    check(inputs(dtype=torch.float32), score_mod, causal, [table, slopes, shift, full])
    check(inputs(dtype=torch.float32, kv_heads=2), score_mod, None, [table, slopes, shift, full])


def test_captured_half_tensors():
    bias = (torch.randn(150, 150) * 0.5).bfloat16().requires_grad_()

    def score_mod(score, b, h, q, k):
        return score + bias[q, k]

    operands = inputs(dtype=torch.bfloat16, batch=1, heads=2)
    leaves = [x.clone().requires_grad_() for x in operands]
    flex_attention(*leaves, score_mod=score_mod).sum().backward()
    assert bias.grad.dtype == torch.bfloat16 and bias.grad.shape == bias.shape
    wide = bias.detach().double().requires_grad_()

    def wide_mod(score, b, h, q, k):
        return score + wide[q, k]

    dense(*(x.double() for x in operands), wide_mod)[0].sum().backward()
    close(bias.grad, wide.grad, 0.05)


def test_indexing_step_by_step_and_from_the_end():
    bias = torch.randn(4, 150, 150, dtype=torch.float64, requires_grad=True)

    def score_mod(score, b, h, q, k):
        return score + bias[h][q][k] - bias[0][k - 150, -1]

    def dense_mod(score, b, h, q, k):
        return score + bias[h, q, k] - bias[0][k - 150, -1]

    operands = inputs(dtype=torch.float64)
    out = flex_attention(*operands, score_mod=score_mod)
    close(out, dense(*operands, dense_mod)[0], 1e-9)


def test_captured_values_are_read_at_each_call():
    offset = torch.tensor([3])

    def mask(b, h, q, k):
        return k < offset[0]

    q, k, v = inputs(dtype=torch.float32, batch=1, heads=1)
    blocks = BlockMask.from_kv_blocks(
        torch.ones(1, 1, 2, dtype=torch.int32),
        torch.zeros(1, 1, 2, 1, dtype=torch.int32),
        mask_mod=mask,
        seq_lengths=(150, 150),
    )
    for count in (3, 70):
        offset[0] = count
        out = flex_attention(q, k, v, block_mask=blocks)
        close(out, dense(q, k[:, :, :count], v[:, :, :count])[0], 1e-5)


def test_operators_inside_functions():
    def score_mod(score, b, h, q, k):
        near = torch.maximum(q, k).clamp(min=3).to(torch.float32)
        score += near.log1p() * 0.1
        score = torch.lerp(score, torch.ones_like(score), 0.25)
        far = torch.logical_and(q // 7 == k // 7, ~(k % 2 == 1))
        score = score.masked_fill(far, -2.0)
        return torch.nn.functional.silu(score).float() + (q << 1 > k).type_as(score)

    def dense_mod(score, b, h, q, k):
        near = torch.maximum(q, k).clamp(min=3).to(torch.float64)
        score = score + near.log1p() * 0.1
        score = torch.lerp(score, torch.ones_like(score), 0.25)
        far = torch.logical_and(q // 7 == k // 7, ~(k % 2 == 1))
        score = score.masked_fill(far, -2.0)
        return torch.nn.functional.silu(score) + (q << 1 > k).type_as(score)

    q, k, v = inputs(dtype=torch.float32)
    out = flex_attention(q, k, v, score_mod=score_mod)
    close(out, dense(q.double(), k.double(), v.double(), dense_mod)[0], 1e-4)


# ---- the same bits ------------------------------------------------------------------------------


def test_threads_and_repetition_do_not_show():
    table = torch.randn(4, 300, requires_grad=True)

    def score_mod(score, b, h, q, k):
        return score + table[h, (q - k).abs()]

    operands = inputs(dtype=torch.float32, q_len=300, kv_len=300, kv_heads=2)
    mask = create_block_mask(causal, None, None, 300, 300)
    threads = torch.get_num_threads()
    results = []
    for count in (1, 2, 5, 2):
        torch.set_num_threads(count)
        leaves = [x.clone().requires_grad_() for x in operands]
        out = flex_attention(*leaves, score_mod, mask, enable_gqa=True)
        results.append([out, *torch.autograd.grad(out.square().sum(), [*leaves, table])])
    torch.set_num_threads(threads)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other))


def test_rows_without_keys():
    q, k, v = inputs(dtype=torch.float32, batch=1)
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    mask = create_block_mask(lambda b, h, i, j: (i > 9) & (j < 5), None, None, 150, 150)
    out, lse = flex_attention(*leaves, block_mask=mask, return_lse=True)
    assert (out[:, :, :10] == 0).all() and (lse[:, :, :10] == -math.inf).all()
    out.sum().backward()
    assert all(x.grad.isfinite().all() for x in leaves)
    assert (leaves[0].grad[:, :, :10] == 0).all() and (leaves[1].grad[:, :, 5:] == 0).all()


def test_keys_shared_by_all_batches():
    q, k, v = inputs(dtype=torch.float32, batch=3)
    mask = create_block_mask(lambda b, h, i, j: j <= i + b, 3, None, 150, 150)
    one = [x[:1].clone().requires_grad_() for x in (k, v)]
    out = flex_attention(q, *one, block_mask=mask)
    expected = dense(q, *one, None, lambda b, h, i, j: j <= i + b)[0]
    close(out, expected, 1e-4)
    found = torch.autograd.grad(out.sum(), one)
    for own, other in zip(found, torch.autograd.grad(expected.sum(), one)):
        close(own, other, 1e-3)


def test_paged_keys():
    """Pages of keys in any order, found through a captured table."""
    torch.manual_seed(1)
    q, k, v = inputs(dtype=torch.float32, batch=1, heads=2, q_len=8, kv_len=256)
    order = torch.randperm(16)
    page_of = torch.empty(16, dtype=torch.long)
    page_of[order] = torch.arange(16)
    paged = [x.unflatten(2, (16, 16))[:, :, page_of].flatten(2, 3) for x in (k, v)]
    logical = page_of.to(torch.int32)

    def mask(b, h, i, j):
        return logical[j // 16] * 16 + j % 16 <= i + 200

    blocks = create_block_mask(mask, None, None, 8, 256, BLOCK_SIZE=(8, 16))
    assert 0 < int(blocks.full_kv_num_blocks.sum()) < 16
    out = flex_attention(q, *paged, block_mask=blocks)
    close(out, dense(q, k, v, None, lambda b, h, i, j: j <= i + 200)[0], 1e-4)


# ---- masks --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mask_mod", [*MASKS[1:], and_masks(causal, window), or_masks(causal, prefix)]
)
@pytest.mark.parametrize("block_size", [16, (24, 40)], ids=str)
def test_block_masks_agree_with_dense_ones(mask_mod, block_size):
    sizes = (2, 3, 100, 90)
    full = create_mask(mask_mod, *sizes)
    assert full.shape == sizes and full.dtype == torch.bool
    at = [
        torch.arange(size).view([size if i == d else 1 for i in range(4)])
        for d, size in enumerate(sizes)
    ]
    assert torch.equal(full, mask_mod(*at).expand(sizes))
    mask = create_block_mask(mask_mod, *sizes, BLOCK_SIZE=block_size)
    rows, columns = mask.BLOCK_SIZE
    height, width = -(-100 // rows), -(-90 // columns)
    padded = torch.zeros(2, 3, height * rows, width * columns, dtype=torch.bool)
    padded[:, :, :100, :90] = full
    count = padded.view(2, 3, height, rows, width, columns).sum((3, 5))
    assert torch.equal(mask.to_dense(), (count > 0).to(torch.int32))
    whole = (count == rows * columns).sum(-1, dtype=torch.int32)
    assert torch.equal(mask.full_kv_num_blocks, whole)
    assert torch.equal(mask.q_num_blocks.sum(), mask.kv_num_blocks.sum())


def test_the_fields_of_a_block_mask():
    mask = create_block_mask(causal, None, None, 256, 384)
    assert mask.shape == (1, 1, 256, 384) and mask.numel() == 98304 and mask.sparsity() == 50.0
    assert mask.kv_num_blocks.tolist() == [[[1, 1]]]
    assert mask.kv_indices.tolist() == [[[[0, 1, 2], [1, 0, 2]]]]
    assert mask.full_kv_num_blocks.tolist() == [[[0, 1]]]
    assert mask.full_kv_indices.tolist() == [[[[0, 1, 2], [0, 1, 2]]]]
    assert mask.q_num_blocks.tolist() == [[[1, 1, 0]]]
    assert mask.q_indices.tolist() == [[[[0, 1], [1, 0], [0, 1]]]]
    assert mask.full_q_indices.tolist() == [[[[1, 0], [0, 1], [0, 1]]]]
    assert mask.kv_indices.dtype == torch.int32
    assert len(mask.as_tuple()) == 17 and len(mask.as_tuple(flatten=False)) == 15
    assert mask.to_dense().tolist() == [[[[1, 0, 0], [1, 1, 0]]]]
    assert str(mask) == (
        "BlockMask(shape=(1, 1, 256, 384), sparsity=50.00%, \n(0, 0)\n██    \n████\n)"
    )
    assert "mask_mod=causal" in repr(mask)
    together = create_block_mask(causal, None, None, 256, 256, separate_full_blocks=False)
    assert together.kv_num_blocks.tolist() == [[[1, 2]]] and together.full_kv_num_blocks is None


def test_parts_of_a_block_mask():
    mask = create_block_mask(causal, 2, 3, 100, 300)
    assert mask[0].shape == (1, 3, 100, 300) and mask[1, -1].shape == (1, 1, 100, 300)
    assert mask[:, :, 0:1].seq_lengths == (100, 300)
    shorter = mask._adjust(50, 200)
    assert shorter.seq_lengths == (50, 200) and shorter.kv_indices.shape == (2, 3, 1, 2)
    moved = mask.to("cpu")
    assert moved is not mask and torch.equal(moved.kv_indices, mask.kv_indices)
    assert mask.to_string(limit=1).endswith("specific batch or head")


def test_the_order_of_a_deterministic_backward():
    mask = create_block_mask(causal, None, None, 384, 384, compute_dq_write_order=True)
    assert mask.dq_write_order.tolist() == [[[[0, 1, 2], [0, -1, 1], [0, -1, -1]]]]
    assert mask.dq_write_order_full.tolist() == [[[[1, 2, 0], [1, -1, 0], [-1, -1, 0]]]]
    assert mask.dq_kv_order is None and mask.dq_kv_order_spt is True


def test_score_functions_as_masks():
    def score_mod(score, b, h, q, k):
        return torch.where(q >= k, score, -math.inf)

    assert torch.equal(create_mask(score_mod, 1, 1, 9, 7), create_mask(causal, 1, 1, 9, 7))


def test_a_large_block_mask_is_made_from_bounds():
    """17 GB were needed for the dense mask."""
    ids = (torch.arange(1 << 16) // 5000).to(torch.int32)
    mask = create_block_mask(
        lambda b, h, q, k: (ids[q] == ids[k]) & (q >= k), None, None, 1 << 16, 1 << 16
    )
    assert mask.kv_num_blocks.shape == (1, 1, 512)
    assert 95 < mask.sparsity() < 97


def test_captured_tensors_of_any_layout():
    torch.manual_seed(8)
    hidden = torch.rand(150, 150).t() > 0.3
    small = torch.randint(-3, 3, (150,), dtype=torch.int8)
    base = torch.randn(4, 1, requires_grad=True)
    wide = base.expand(4, 150)
    turned = torch.randn(150, 8, requires_grad=True)

    def mask(b, h, q, k):
        return hidden[q, k] | (small[k] == 2)

    def score_mod(score, b, h, q, k):
        return score + wide[h, q] * small[k] + turned.t()[h, k]

    check(inputs(dtype=torch.float32), score_mod, mask, [base, turned], block_size=(16, 32))


def test_rows_of_captured_biases_by_batch():
    lengths = torch.tensor([3, 150])

    def mask(b, h, q, k):
        return k < lengths[b]

    check(inputs(dtype=torch.float32), None, mask)
    blocks = create_block_mask(mask, 2, None, 150, 150, BLOCK_SIZE=50)
    assert blocks.to_dense()[:, 0, 0].tolist() == [[1, 0, 0], [1, 1, 1]]
    assert blocks.full_kv_num_blocks[:, 0, 0].tolist() == [0, 3]


# ---- gradients of gradients ----------------------------------------------------------------------


def small(batch=1, kv_batch=1, heads=2, kv_heads=1):
    def leaf(*shape):
        return torch.randn(shape, dtype=torch.float64, requires_grad=True)

    q = leaf(batch, heads, 5, 4)
    return q, leaf(kv_batch, kv_heads, 6, 4), leaf(kv_batch, kv_heads, 6, 3)


def test_gradients_differentiate_again():
    q, k, v = small()
    bias = torch.randn(2, 6, dtype=torch.float64, requires_grad=True)
    factor = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    mask = create_block_mask(lambda b, h, q, k: q >= k - 1, None, None, 5, 6, BLOCK_SIZE=2)

    def mod(score, b, h, q_idx, kv_idx):
        shifted = torch.tanh(score * factor) + bias[h, -1 - kv_idx] * score
        return torch.where(q_idx == kv_idx, shifted, shifted + (q_idx % 3 - kv_idx // 2) * 0.1)

    def attend(q, k, v, bias, factor):
        return flex_attention(q, k, v, mod, mask, enable_gqa=True, return_lse=True)

    assert torch.autograd.gradgradcheck(attend, (q, k, v, bias, factor))


@pytest.mark.parametrize("score_mod", [None, lambda s, b, h, q, k: s * s, lambda s, b, h, q, k: k])
def test_gradients_of_gradients_without_masks(score_mod):
    q, k, v = small(batch=2, kv_batch=2, kv_heads=2)
    assert torch.autograd.gradgradcheck(lambda *a: flex_attention(*a, score_mod), (q, k, v))


def test_gradients_of_gradients_of_shared_batches_and_blind_queries():
    q, k, v = small(batch=2)
    # The first queries see nothing, the second batch sees other keys than the first.
    mask = create_block_mask(lambda b, h, q, k: (q > 1) & (k % 2 == b), 2, None, 5, 6, BLOCK_SIZE=2)

    def attend(q, k, v):
        return flex_attention(q, k, v, block_mask=mask, enable_gqa=True)

    assert torch.autograd.gradgradcheck(attend, (q, k, v))
    (first,) = torch.autograd.grad(attend(q, k, v).square().sum(), q, create_graph=True)
    assert torch.isfinite(first).all() and (first[:, :, :2] == 0).all()
    (second,) = torch.autograd.grad(first.square().sum(), q)
    assert torch.isfinite(second).all()


def test_first_gradients_agree_with_the_kernels():
    for dtype, bound in ((torch.float32, 1e-5), (torch.bfloat16, 3e-2)):
        q, k, v = (x.detach().to(dtype).requires_grad_() for x in small())
        mask = create_block_mask(lambda b, h, q, k: q >= k - 1, None, None, 5, 6)

        def grads(create_graph, q=q, k=k, v=v, mask=mask):
            out = flex_attention(q, k, v, block_mask=mask, enable_gqa=True)
            return torch.autograd.grad(out.square().sum(), (q, k, v), create_graph=create_graph)

        for plain, again in zip(grads(False), grads(True)):
            assert again.dtype == dtype
            assert torch.allclose(plain.float(), again.float(), atol=bound, rtol=bound)
