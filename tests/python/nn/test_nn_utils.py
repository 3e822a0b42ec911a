"""Clipping, flattening, packing, and calls with other parameters."""

import pytest
import rushlight as torch
from rushlight import nn
from rushlight.nn.utils import rnn


def with_gradients():
    parameters = [nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(1))]
    parameters[0].grad = torch.tensor([3.0, 0.0])
    parameters[1].grad = torch.tensor([4.0])
    return parameters


def test_norm_is_clipped_over_all_gradients():
    parameters = with_gradients()
    norm = nn.utils.clip_grad_norm_(parameters, 1.0)
    assert norm.item() == 5.0
    assert parameters[0].grad.tolist() == pytest.approx([0.6, 0.0], abs=1e-6)
    assert parameters[1].grad.tolist() == pytest.approx([0.8], abs=1e-6)


def test_small_gradients_stay():
    parameters = with_gradients()
    assert nn.utils.clip_grad_norm_(parameters, 10.0, norm_type=1).item() == 7.0
    assert parameters[0].grad.tolist() == [3.0, 0.0]


def test_largest_element_norm():
    assert nn.utils.clip_grad_norm_(with_gradients(), 10.0, float("inf")).item() == 4.0


def test_norm_that_is_not_finite():
    parameters = with_gradients()
    parameters[1].grad.fill_(float("nan"))
    with pytest.raises(RuntimeError, match="total norm of order 2.0 .* is non-finite"):
        nn.utils.clip_grad_norm_(parameters, 1.0, error_if_nonfinite=True)


def test_no_gradients_have_norm_zero():
    assert nn.utils.clip_grad_norm_([nn.Parameter(torch.ones(1))], 1.0).item() == 0.0


def test_values_are_clipped():
    parameters = with_gradients()
    parameters[0].grad = torch.tensor([-3.0, 0.25])
    nn.utils.clip_grad_value_(parameters, 0.5)
    assert parameters[0].grad.tolist() == [-0.5, 0.25]
    assert parameters[1].grad.tolist() == [0.5]


def test_parameters_as_one_vector():
    parameters = [nn.Parameter(torch.ones(2, 2)), nn.Parameter(torch.zeros(1))]
    vector = nn.utils.parameters_to_vector(parameters)
    assert vector.tolist() == [1.0, 1.0, 1.0, 1.0, 0.0]
    nn.utils.vector_to_parameters(torch.arange(5.0), parameters)
    assert parameters[0].tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert parameters[1].tolist() == [4.0]


def test_skip_init_leaves_no_meta_tensors():
    layer = nn.utils.skip_init(nn.Linear, 2, 3)
    assert layer.weight.shape == (3, 2)
    assert not layer.weight.is_meta


def test_packing_and_back():
    padded = torch.arange(12.0).view(4, 3)
    packed = rnn.pack_padded_sequence(padded, [2, 4, 1], enforce_sorted=False)
    assert packed.data.tolist() == [1.0, 0.0, 2.0, 4.0, 3.0, 7.0, 10.0]
    assert packed.batch_sizes.tolist() == [3, 2, 1, 1]
    assert packed.sorted_indices.tolist() == [1, 0, 2]
    back, lengths = rnn.pad_packed_sequence(packed, padding_value=-1.0)
    assert lengths.tolist() == [2, 4, 1]
    assert back.tolist() == [[0, 1, 2], [3, 4, -1], [-1, 7, -1], [-1, 10, -1]]


def test_padding_a_list():
    sequences = [torch.ones(2), torch.ones(3)]
    assert rnn.pad_sequence(sequences, batch_first=True).tolist() == [[1, 1, 0], [1, 1, 1]]
    left = rnn.pad_sequence(sequences, True, 5.0, padding_side="left")
    assert left.tolist() == [[5, 1, 1], [1, 1, 1]]
    unpacked = rnn.unpack_sequence(rnn.pack_sequence(sequences, enforce_sorted=False))
    assert [part.tolist() for part in unpacked] == [[1.0, 1.0], [1.0, 1.0, 1.0]]


@pytest.mark.parametrize(
    ("lengths", "text"),
    [
        ([2, 4, 1], "must be sorted in decreasing order"),
        ([4, 2, 0], "has to be greater than 0"),
        ([4, 2], "Expected `len.lengths.` to be equal to batch_size"),
        ([5, 2, 1], "at most 4, but got 5"),
    ],
)
def test_wrong_lengths(lengths, text):
    with pytest.raises(RuntimeError, match=text):
        rnn.pack_padded_sequence(torch.zeros(4, 3), lengths)


def test_call_with_other_parameters():
    from rushlight.nn.utils.stateless import _functional_call

    layer = nn.Linear(1, 1)
    weight = layer.weight
    replaced = {"weight": torch.tensor([[2.0]]), "bias": torch.tensor([1.0])}
    assert _functional_call(layer, replaced, torch.tensor([[3.0]])).item() == 7.0
    assert layer.weight is weight
    with pytest.raises(RuntimeError, match="Missing key.s.: 'bias'"):
        _functional_call(layer, {"weight": weight}, torch.ones(1, 1), strict=True)


def test_the_filler_of_an_orthogonal_weight_draws_what_pytorch_draws():
    torch.manual_seed(0)
    layer = nn.utils.parametrizations.orthogonal(nn.Linear(2, 5), orthogonal_map="cayley")
    assert abs(torch.rand(1).item() - 0.7932) < 1e-4
    assert torch.allclose(layer.weight.T @ layer.weight, torch.eye(2), atol=1e-6)


def test_sequences_without_padding_are_copies():
    padded = rnn.pad_sequence([torch.arange(3.0), torch.arange(2.0)])
    first, second = rnn.unpad_sequence(padded, torch.tensor([3, 2]))
    assert first.is_contiguous() and second.is_contiguous()
    first.zero_()
    assert padded[:, 0].tolist() == [0.0, 1.0, 2.0]
