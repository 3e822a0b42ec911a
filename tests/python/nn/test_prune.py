"""Pruning of parameters."""

import copy
import math

import pytest
import rushlight as torch
from rushlight import nn
from rushlight.nn.utils import prune


def layer():
    made = nn.Linear(4, 3)
    with torch.no_grad():
        made.weight.copy_(torch.arange(12.0).view(3, 4) - 5.25)
    return made


def test_least_elements_are_masked():
    made = prune.l1_unstructured(layer(), "weight", amount=3)
    assert made.weight_mask.tolist() == [[1, 1, 1, 1], [0, 0, 0, 1], [1, 1, 1, 1]]
    assert made.weight[1].tolist() == [0.0, 0.0, 0.0, 1.75]
    assert sorted(dict(made.named_parameters())) == ["bias", "weight_orig"]
    assert "weight_mask" in made.state_dict()
    half = prune.l1_unstructured(layer(), "weight", amount=0.5)
    assert half.weight_mask.sum().item() == 6
    scores = -layer().weight.abs()
    least = prune.l1_unstructured(layer(), "weight", amount=1, importance_scores=scores.exp())
    assert least.weight_mask[2].tolist() == [1, 1, 1, 0]


def test_slices_of_least_norm_are_masked():
    made = prune.ln_structured(layer(), "weight", amount=0.5, n=2, dim=1)
    assert made.weight_mask.tolist() == [[1, 0, 0, 1]] * 3
    made = prune.ln_structured(layer(), "weight", amount=1, n=-math.inf, dim=0)
    assert made.weight_mask.sum(1).tolist() == [4, 0, 4]


def test_random_choices_have_the_right_number():
    made = prune.random_unstructured(layer(), "weight", amount=5)
    assert made.weight_mask.sum().item() == 7
    made = prune.random_structured(layer(), "weight", amount=2, dim=1)
    assert sorted(made.weight_mask.sum(0).tolist()) == [0, 0, 3, 3]
    torch.manual_seed(3)
    mask = prune.random_unstructured(layer(), "weight", amount=1).weight_mask
    torch.manual_seed(3)
    layer()
    assert mask.view(-1)[torch.rand(12).argmax()] == 0


def test_masks_given():
    made = prune.custom_from_mask(layer(), "bias", torch.tensor([1, 0, 1]))
    assert made.bias[1].item() == 0.0 and made.bias_mask.tolist() == [1, 0, 1]
    assert prune.identity(layer(), "weight").weight_mask.sum().item() == 12


def test_pruning_again_prunes_what_is_left():
    made = prune.l1_unstructured(layer(), "weight", amount=2)
    prune.ln_structured(made, "weight", amount=1, n=2, dim=0)
    prune.l1_unstructured(made, "weight", amount=3)
    assert made.weight_mask.tolist() == [[1, 1, 0, 0], [0, 0, 0, 0], [0, 1, 1, 1]]
    (hook,) = made._forward_pre_hooks.values()
    kinds = [type(method).__name__ for method in hook]
    assert kinds == ["L1Unstructured", "LnStructured", "L1Unstructured"]
    assert len(hook) == 3 and hook[1].dim == 0


def test_forward_uses_the_mask_and_gradients_reach_what_is_kept():
    made = prune.l1_unstructured(layer(), "weight", amount=3)
    made(torch.ones(1, 4)).sum().backward()
    assert torch.equal(made.weight_orig.grad, made.weight_mask)
    with torch.no_grad():
        made.weight_orig.fill_(2.0)
    wanted = made.weight_mask.sum(1) * 2 + made.bias
    torch.testing.assert_close(made(torch.ones(1, 4))[0], wanted)
    assert torch.equal(copy.deepcopy(made.state_dict())["weight_orig"], torch.full((3, 4), 2.0))


def test_removal_makes_it_permanent():
    made = prune.l1_unstructured(layer(), "weight", amount=3)
    assert prune.is_pruned(nn.Sequential(made))
    kept = made.weight.detach().clone()
    assert prune.remove(made, "weight") is made
    assert not prune.is_pruned(made) and sorted(made.state_dict()) == ["bias", "weight"]
    assert isinstance(made.weight, nn.Parameter) and torch.equal(made.weight, kept)
    with pytest.raises(ValueError, match="has to be pruned before pruning can be removed"):
        prune.remove(made, "weight")


def test_several_parameters_as_one():
    one, other = layer(), layer()
    with torch.no_grad():
        other.weight.mul_(100)
    prune.global_unstructured(
        [(one, "weight"), (other, "weight")], pruning_method=prune.L1Unstructured, amount=12
    )
    assert one.weight_mask.sum().item() == 0 and other.weight_mask.sum().item() == 12
    one, other = layer(), layer()
    scores = {(one, "weight"): torch.full((3, 4), 100.0)}
    prune.global_unstructured(
        [(one, "weight"), (other, "weight")],
        pruning_method=prune.L1Unstructured,
        importance_scores=scores,
        amount=0.5,
    )
    assert one.weight_mask.sum().item() == 12 and other.weight_mask.sum().item() == 0


def test_tensors_alone():
    method = prune.L1Unstructured(0.5)
    assert method.prune(torch.arange(4.0)).tolist() == [0, 0, 2, 3]
    assert method.compute_mask(torch.arange(4.0), torch.ones(4)).tolist() == [0, 0, 1, 1]


class EveryOther(prune.BasePruningMethod):
    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        mask = default_mask.clone()
        mask.view(-1)[::2] = 0
        return mask


def test_own_methods():
    made = layer()
    EveryOther.apply(made, "weight")
    EveryOther.apply(made, "weight")
    assert made.weight_mask.view(-1).tolist() == [0, 0, 0, 1] * 3


class Strange(EveryOther):
    PRUNING_TYPE = "strange"


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: prune.L1Unstructured(1.5), ValueError, "amount=1.5 should either be a float in"),
        (lambda: prune.L1Unstructured(-1), ValueError, "or a non-negative integer"),
        (lambda: prune.L1Unstructured("a"), TypeError, "Invalid type for amount: a"),
        (
            lambda: prune.l1_unstructured(layer(), "weight", 100),
            ValueError,
            "amount=100 should be smaller than the number of parameters to prune=12",
        ),
        (lambda: prune.l1_unstructured(layer(), "no", 1), AttributeError, "no attribute 'no'"),
        (
            lambda: prune.l1_unstructured(layer(), "weight", 1, torch.ones(2)),
            AssertionError,
            "importance_scores should have the same shape as parameter weight",
        ),
        (
            lambda: prune.ln_structured(layer(), "bias", 1, 2, 0),
            ValueError,
            "Structured pruning can only be applied to multidimensional tensors",
        ),
        (
            lambda: prune.ln_structured(layer(), "weight", 1, 2, 5),
            IndexError,
            r"Invalid index 5 for tensor of size torch.Size\(\[3, 4\]\)",
        ),
        (
            lambda: prune.custom_from_mask(layer(), "bias", torch.ones(2)),
            AssertionError,
            r"default_mask shape torch.Size\(\[3\]\) must match self.mask shape",
        ),
        (
            lambda: prune.global_unstructured(3, prune.L1Unstructured, amount=1),
            TypeError,
            "parameters is not an Iterable",
        ),
        (
            lambda: prune.global_unstructured(
                [(layer(), "weight")], prune.LnStructured, amount=1, n=2
            ),
            TypeError,
            'Only "unstructured" PRUNING_TYPE supported',
        ),
        (
            lambda: Strange.apply(prune.identity(layer(), "weight"), "weight"),
            ValueError,
            "Unrecognized PRUNING_TYPE strange",
        ),
        (
            lambda: prune.PruningContainer().add_pruning_method(3),
            TypeError,
            "<class 'int'> is not a BasePruningMethod subclass",
        ),
        (prune.BasePruningMethod, TypeError, "abstract"),
    ],
)
def test_mistakes(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_a_failed_pruning_leaves_the_module_as_it_was():
    made = layer()
    with pytest.raises(ValueError, match="amount=100"):
        prune.l1_unstructured(made, "weight", 100)
    assert sorted(made.state_dict()) == ["bias", "weight"] and not prune.is_pruned(made)
