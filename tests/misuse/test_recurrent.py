"""Mistakes with recurrent networks: one a test, with the text it gets."""

import pytest
import rushlight as torch

X, H = torch.ones(5, 2, 3), torch.ones(1, 2, 4)
WEIGHTS = [torch.ones(16, 3), torch.ones(16, 4), torch.ones(16), torch.ones(16)]


def refused(match, call):
    with pytest.raises(RuntimeError, match=match):
        call()


def lstm(x=X, hx=(H, H), weights=WEIGHTS):
    return torch.lstm(x, list(hx), weights, True, 1, 0.0, False, False, False)


def test_one_state():
    refused("two hidden states", lambda: lstm(hx=(H,)))


def test_a_weight_too_few():
    refused("not divisible by the 4", lambda: lstm(weights=WEIGHTS[:3]))


def test_states_of_more_layers():
    refused("Expected more hidden states", lambda: lstm(hx=(torch.ones(2, 2, 4), H)))


def test_batch_of_the_state():
    refused("batch size 2, got 3", lambda: lstm(hx=(torch.ones(1, 3, 4), torch.ones(1, 3, 4))))


def test_no_steps():
    refused("sequence length to be larger than 0", lambda: lstm(x=X[:0]))


def test_width_of_a_cell():
    weights = [torch.ones(4, 3), torch.ones(4, 4)]
    refused(
        "inconsistent input_size: got 2 expected 3",
        lambda: torch.rnn_tanh_cell(torch.ones(2, 2), torch.ones(2, 4), *weights),
    )


def test_rows_of_a_cell():
    refused(
        "weight_ih first dim must be 3 \\* hidden_size = 12, but got 4",
        lambda: torch.gru_cell(X[0], H[0], torch.ones(4, 3), torch.ones(12, 4)),
    )


def test_lengths_that_rise():
    lengths = torch.tensor([3, 5])
    refused("sorted in decreasing order", lambda: torch._pack_padded_sequence(X, lengths, False))


def test_lengths_of_zero():
    lengths = torch.tensor([3, 0])
    refused("greater than 0", lambda: torch._pack_padded_sequence(X, lengths, False))


def test_number_of_lengths():
    lengths = torch.tensor([3])
    refused("equal to batch_size", lambda: torch._pack_padded_sequence(X, lengths, False))


def test_batch_sizes_that_rise():
    sizes = torch.tensor([1, 2])
    call = (torch.ones(3, 3), sizes, H, WEIGHTS, True, 1, 0.0, False, False)
    refused("not rise", lambda: torch.gru(*call))


def layer_arguments():
    return [torch.zeros(3, 2, 8), torch.zeros(2, 2), torch.zeros(2, 2), torch.zeros(8, 2)]


@pytest.mark.parametrize(
    ("place", "wrong", "message"),
    [
        (0, torch.zeros(3, 8), r"expected gates of shape"),
        (0, torch.zeros(0, 2, 8), r"steps >= 1"),
        (0, torch.zeros(3, 2, 8, dtype=torch.int64), r"expected float32 or float64, got"),
        (1, torch.zeros(3, 2), r"hx should be"),
        (2, torch.zeros(2, 2, dtype=torch.float64), r"cx should be"),
        (3, torch.zeros(9, 2), r"weight of \(4 \* hidden, hidden\)"),
        (3, torch.zeros(8, 2, dtype=torch.float64), r"w_hh should be"),
    ],
)
def test_a_layer_s_argument_of_another_shape_or_dtype(place, wrong, message):
    given = layer_arguments()
    given[place] = wrong
    with pytest.raises(RuntimeError, match=f"_lstm_layer.*{message}"):
        torch.ops.aten._lstm_layer(*given, False)
