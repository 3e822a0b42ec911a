"""Multi-head attention and transformer layers."""

import pytest
import rushlight as torch
from rushlight import nn


def query():
    return torch.arange(8.0).view(1, 2, 4) / 8


def close(tensor, expected):
    assert tensor.detach().flatten().tolist() == pytest.approx(expected, abs=3e-6)


def test_attention_with_weights():
    torch.manual_seed(0)
    attention = nn.MultiheadAttention(4, 2, batch_first=True)
    q = query()
    output, weights = attention(q, q, q)
    close(
        output,
        [-0.246254, -0.031947, -0.107348, 0.136462, -0.243885, -0.040185, -0.107847, 0.141446],
    )
    close(weights, [0.502366, 0.497634, 0.510219, 0.489781])


def test_attention_forms_agree():
    torch.manual_seed(0)
    attention = nn.MultiheadAttention(4, 2, batch_first=True)
    q = query()
    mask = nn.Transformer.generate_square_subsequent_mask(2)
    assert mask.tolist() == [[0.0, float("-inf")], [0.0, 0.0]]
    with_weights, weights = attention(q, q, q, attn_mask=mask)
    without, nothing = attention(q, q, q, attn_mask=mask, need_weights=False, is_causal=True)
    assert nothing is None
    assert weights[0, 0].tolist() == [1.0, 0.0]
    close(without, with_weights.flatten().tolist())
    by_bool, _ = attention(q, q, q, attn_mask=mask < 0)
    close(by_bool, with_weights.flatten().tolist())
    sequence_first = nn.MultiheadAttention(4, 2)
    sequence_first.load_state_dict(attention.state_dict())
    turned = q.transpose(0, 1)
    result, _ = sequence_first(turned, turned, turned, attn_mask=mask)
    close(result.transpose(0, 1), with_weights.flatten().tolist())


def test_padding_is_hidden():
    torch.manual_seed(0)
    attention = nn.MultiheadAttention(4, 2, batch_first=True)
    q = query()
    _, weights = attention(q, q, q, key_padding_mask=torch.tensor([[False, True]]))
    assert weights.tolist() == [[[1.0, 0.0], [1.0, 0.0]]]


def test_causal_hint_needs_a_mask():
    attention = nn.MultiheadAttention(4, 2, batch_first=True)
    q = query()
    with pytest.raises(RuntimeError, match="Need attn_mask if specifying the is_causal hint"):
        attention(q, q, q, is_causal=True)


@pytest.mark.parametrize("keys", [4, 6, 40])
@pytest.mark.parametrize("floating", [False, True])
def test_a_mask_and_the_causal_one_hold_together(keys, floating):
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 2, n, 8, requires_grad=True) for n in (5, keys, keys))
    mask = torch.randn(5, keys) if floating else torch.rand(5, keys) > 0.3
    seen = torch.ones(5, keys, dtype=torch.bool).tril()
    both = mask.masked_fill(~seen, -float("inf")) if floating else mask & seen
    made = nn.functional.scaled_dot_product_attention(q, k, v, mask, is_causal=True)
    wanted = nn.functional.scaled_dot_product_attention(q, k, v, both)
    torch.testing.assert_close(made, wanted)
    gradients = torch.autograd.grad(made.square().sum(), (q, k, v))
    torch.testing.assert_close(gradients, torch.autograd.grad(wanted.square().sum(), (q, k, v)))


def test_widths_must_fit():
    attention = nn.MultiheadAttention(4, 2)
    wrong = torch.zeros(2, 1, 3)
    with pytest.raises(AssertionError, match="expecting embedding dimension of 4, but got 3"):
        attention(wrong, wrong, wrong)
    with pytest.raises(AssertionError, match="divisible by num_heads"):
        nn.MultiheadAttention(5, 2)


def test_encoder_layer():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
    close(
        layer(query()),
        [-1.385533, -0.086959, 0.033195, 1.439297, -1.363782, -0.121454, 0.02766, 1.457575],
    )


def test_decoder_layer_norm_first():
    torch.manual_seed(0)
    layer = nn.TransformerDecoderLayer(
        4, 2, 8, dropout=0.0, batch_first=True, norm_first=True, activation="gelu"
    )
    close(
        layer(query(), query()),
        [0.488847, -0.168398, 0.229469, 0.298056, 0.988847, 0.331602, 0.729469, 0.798056],
    )


def test_encoder_layers_are_copies():
    layer = nn.TransformerEncoderLayer(4, 2, 8)
    encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(4))
    first, second = encoder.layers
    assert first.linear1.weight is not second.linear1.weight
    assert torch.equal(first.linear1.weight, second.linear1.weight)
    assert encoder(torch.zeros(3, 1, 4)).shape == (3, 1, 4)


def test_transformer_checks_sizes():
    model = nn.Transformer(4, 2, 1, 1, 8)
    with pytest.raises(RuntimeError, match="batch number of src and tgt must be equal"):
        model(torch.zeros(2, 1, 4), torch.zeros(2, 2, 4))
    with pytest.raises(RuntimeError, match="must be equal to d_model"):
        model(torch.zeros(2, 1, 3), torch.zeros(2, 1, 3))


def test_activation_name_must_be_known():
    with pytest.raises(RuntimeError, match="activation should be relu/gelu, not swish"):
        nn.TransformerEncoderLayer(4, 2, activation="swish")


def test_gradients_of_gradients_where_a_query_sees_nothing():
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 1, 3, 4, dtype=torch.float64, requires_grad=True) for _ in range(3))
    mask = torch.tensor([[True, False, True], [False, False, False], [True, True, True]])

    def attend(q, k, v):
        return nn.functional.scaled_dot_product_attention(q, k, v, mask)

    assert torch.autograd.gradgradcheck(attend, (q, k, v))


def test_dropout_draws_one_number_for_each_weight():
    q, k = torch.rand(3, 2, 4), torch.rand(5, 3, 6, 4)
    v = torch.eye(6).expand(5, 3, 6, 6)
    torch.manual_seed(3)
    found = nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=0.5)
    torch.manual_seed(3)
    kept = nn.functional.dropout(torch.ones(5, 3, 2, 6), 0.5)
    weights = torch.softmax(q @ k.transpose(-2, -1) / 2, -1)
    assert torch.allclose(found, weights * kept)


def test_halves_are_computed_in_float_outside_the_common_form():
    q, k, v = torch.rand(3, 2, 5, 8).bfloat16() * 9
    found = nn.functional.scaled_dot_product_attention(q, k, v)
    expected = nn.functional.scaled_dot_product_attention(q.float(), k.float(), v.float())
    assert found.equal(expected.bfloat16())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_are_computed_in_float_where_the_mask_learns(dtype):
    operands = [x.to(dtype) for x in (*torch.randn(3, 2, 4, 5, 8) * 5, torch.randn(5, 5) * 5)]
    seed = torch.randn(2, 4, 5, 8).to(dtype)

    def gradients(inputs, seed):
        q, k, v, mask = (x.detach().clone().requires_grad_() for x in inputs)
        found = nn.functional.scaled_dot_product_attention(q, k, v, mask)
        return found, torch.autograd.grad(found, (q, k, v, mask), seed)

    found, slopes = gradients(operands, seed)
    expected, wide = gradients([x.float() for x in operands], seed.float())
    assert found.equal(expected.to(dtype))
    for mine, theirs in zip(slopes, wide, strict=True):
        assert mine.equal(theirs.to(dtype))
