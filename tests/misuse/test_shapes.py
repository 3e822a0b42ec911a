"""Shapes, dtypes, devices and indices that do not fit: one mistake a test, with its text."""

import pytest
import rushlight as torch
from rushlight.nn import functional as F


def test_add_shapes_that_do_not_broadcast():
    with pytest.raises(RuntimeError, match=r"size of tensor a \(3\) must match.*tensor b \(4\).*1"):
        torch.ones(2, 3) + torch.ones(2, 4)


def test_mm_inner_sizes():
    with pytest.raises(RuntimeError, match=r"cannot be multiplied \(2x3 and 4x5\)"):
        torch.ones(2, 3) @ torch.ones(4, 5)


def test_mm_of_vector():
    with pytest.raises(RuntimeError, match="must be a matrix"):
        torch.mm(torch.ones(3), torch.ones(3, 3))


def test_mm_dtypes():
    with pytest.raises(RuntimeError, match="same dtype.*float32 != float64"):
        torch.mm(torch.ones(2, 2), torch.ones(2, 2, dtype=torch.float64))


def test_bmm_batches():
    with pytest.raises(RuntimeError, match="first two dimensions of batch2"):
        torch.bmm(torch.ones(2, 3, 4), torch.ones(3, 4, 5))


def test_linear_features():
    with pytest.raises(RuntimeError, match=r"\(2x3 and 4x5\)"):
        F.linear(torch.ones(2, 3), torch.ones(5, 4))


def test_view_of_other_size():
    with pytest.raises(RuntimeError, match=r"shape '\[4\]' is invalid for input of size 6"):
        torch.ones(2, 3).view(4)


def test_view_of_gaps():
    with pytest.raises(RuntimeError, match="not compatible with input tensor's size and stride"):
        torch.ones(2, 3).t().view(6)


def test_dim_out_of_range():
    with pytest.raises(IndexError, match=r"expected to be in range of \[-2, 1\], but got 2"):
        torch.ones(2, 3).sum(2)


def test_dim_twice():
    with pytest.raises(RuntimeError, match="appears multiple times"):
        torch.ones(2, 3).sum((0, 0))


def test_negative_size():
    with pytest.raises(RuntimeError, match="negative dimension -1"):
        torch.empty(2, -1)


def test_size_that_overflows():
    with pytest.raises(RuntimeError, match="overflow"):
        torch.empty(1 << 40, 1 << 40)


def test_index_out_of_range():
    with pytest.raises(IndexError, match="index 5 is out of bounds for dimension 0 with size 3"):
        torch.ones(3)[5]


def test_too_many_indices():
    with pytest.raises(IndexError, match="too many indices for tensor of dimension 1"):
        torch.ones(3)[0, 0]


def test_embedding_index_out_of_range():
    with pytest.raises(IndexError, match="out of range"):
        F.embedding(torch.tensor([5]), torch.ones(3, 2))


def test_gather_index_out_of_range():
    with pytest.raises((IndexError, RuntimeError), match="out of bounds"):
        torch.gather(torch.ones(3), 0, torch.tensor([3]))


def test_cross_entropy_target_out_of_range():
    with pytest.raises(IndexError, match="Target 7 is out of bounds"):
        F.cross_entropy(torch.ones(1, 3), torch.tensor([7]))


def test_cross_entropy_batches():
    with pytest.raises(ValueError, match=r"batch_size \(2\) to match target batch_size \(3\)"):
        F.cross_entropy(torch.ones(2, 3), torch.tensor([0, 1, 2]))


def test_in_place_result_that_does_not_fit():
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type Long"):
        torch.ones(3, dtype=torch.int64).add_(0.5)


def test_in_place_broadcast_of_self():
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        torch.ones(3).add_(torch.ones(2, 3))


def test_write_to_expanded():
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        torch.ones(1).expand(3).add_(1)


def test_negate_bool():
    with pytest.raises(RuntimeError, match="on a bool tensor is not supported"):
        -torch.tensor([True])


def test_mean_of_integers():
    with pytest.raises(RuntimeError, match="could not infer output dtype"):
        torch.arange(3).mean()


def test_max_of_nothing():
    with pytest.raises(RuntimeError, match="Expected reduction dim"):
        torch.empty(0).max()


def test_integer_division_by_zero():
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.arange(3) // torch.zeros(3, dtype=torch.int64)


def test_item_of_many():
    with pytest.raises(RuntimeError, match="a Tensor with 3 elements cannot be converted"):
        torch.ones(3).item()


def test_bool_of_many():
    with pytest.raises(RuntimeError, match="more than one value is ambiguous"):
        bool(torch.ones(2))


def test_value_of_meta():
    with pytest.raises(RuntimeError, match="meta"):
        torch.ones(1, device="meta").item()


def test_add_of_string():
    with pytest.raises(TypeError):
        torch.ones(1).add("x")


def test_unknown_keyword():
    with pytest.raises(TypeError):
        torch.ones(1).add(1, beta=2)


def test_unknown_device():
    with pytest.raises(RuntimeError, match="device type"):
        torch.ones(1, device="abacus")


def test_cat_of_shapes():
    with pytest.raises(RuntimeError, match="[Ss]izes of tensors must match"):
        torch.cat([torch.ones(2, 3), torch.ones(2, 4)])


def test_layer_norm_shape():
    with pytest.raises(RuntimeError, match=r"normalized_shape=\[4\]"):
        F.layer_norm(torch.ones(2, 3), (4,))


def test_attention_mask_with_causal():
    q = torch.ones(1, 2, 4)
    with pytest.raises(RuntimeError, match="attn_mask should not be set when is_causal"):
        F.scaled_dot_product_attention(q, q, q, torch.ones(2, 2), is_causal=True)
    q = torch.ones(1, 1, 2, 4)
    with pytest.raises(RuntimeError, match="attn_mask should not be set when is_causal"):
        F.scaled_dot_product_attention(q, q, q, torch.ones(2, 2), 0.5, is_causal=True)
    with pytest.raises(RuntimeError, match="attn_mask should not be set when is_causal"):
        mask = torch.ones(2, 2, requires_grad=True)
        F.scaled_dot_product_attention(q, q, q, mask, is_causal=True)


def test_dropout_probability():
    with pytest.raises(ValueError, match="between 0 and 1"):
        F.dropout(torch.ones(2), 1.5)


def test_einsum_operand_count():
    with pytest.raises(RuntimeError, match="operands were provided"):
        torch.einsum("ij,jk->ik", torch.ones(2, 2))


def test_einsum_size():
    with pytest.raises(RuntimeError):
        torch.einsum("ij,jk->ik", torch.ones(2, 3), torch.ones(4, 5))


def test_broadcasting_names_the_last_dimension_that_does_not_fit():
    text = r"size of tensor a \(3\) must match the size of tensor b \(5\) .* dimension 1"
    with pytest.raises(RuntimeError, match=text):
        torch.ones(2, 3) + torch.ones(4, 5)
    with pytest.raises(RuntimeError, match=r"tensor a \(3\) .* tensor b \(2\) .* dimension 2"):
        torch.ones(3) + torch.ones(4, 1, 2)
