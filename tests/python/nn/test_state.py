"""Saving and loading of modules."""

import pytest
import rushlight as torch
from rushlight import nn


def net():
    return nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))


def test_keys_and_metadata():
    state = net().state_dict()
    assert list(state) == [
        "0.weight",
        "0.bias",
        "1.weight",
        "1.bias",
        "1.running_mean",
        "1.running_var",
        "1.num_batches_tracked",
    ]
    assert dict(state._metadata) == {
        "": {"version": 1},
        "0": {"version": 1},
        "1": {"version": 2},
    }


def test_prefix_and_destination():
    target = {}
    nn.Linear(1, 1).state_dict(destination=target, prefix="layer.")
    assert list(target) == ["layer.weight", "layer.bias"]


def test_tensors_share_memory_and_are_detached():
    layer = nn.Linear(1, 1)
    state = layer.state_dict()
    assert not state["weight"].requires_grad
    with torch.no_grad():
        layer.weight.fill_(4.0)
    assert state["weight"].item() == 4.0
    assert layer.state_dict(keep_vars=True)["weight"] is layer.weight


def test_loading_copies_values():
    source, target = nn.Linear(2, 2), nn.Linear(2, 2)
    weight = target.weight
    result = target.load_state_dict(source.state_dict())
    assert target.weight is weight
    assert torch.equal(target.weight, source.weight)
    assert repr(result) == "<All keys matched successfully>"


def test_assign_takes_the_tensors_themselves():
    layer = nn.Linear(2, 2)
    state = {"weight": torch.zeros(2, 2, dtype=torch.float64), "bias": torch.ones(2)}
    layer.load_state_dict(state, assign=True)
    assert layer.weight.dtype == torch.float64
    assert isinstance(layer.weight, nn.Parameter)
    assert layer.weight.data_ptr() == state["weight"].data_ptr()


def test_keys_that_do_not_match_are_reported_together():
    layer = nn.Linear(2, 2)
    state = {"weight": torch.zeros(3, 2), "extra": torch.zeros(1)}
    with pytest.raises(RuntimeError) as caught:
        layer.load_state_dict(state)
    assert str(caught.value) == (
        "Error(s) in loading state_dict for Linear:\n"
        '\tMissing key(s) in state_dict: "bias". \n'
        '\tUnexpected key(s) in state_dict: "extra". \n'
        "\tsize mismatch for weight: copying a param with shape torch.Size([3, 2]) from "
        "checkpoint, the shape in current model is torch.Size([2, 2])."
    )


def test_not_strict_gives_the_keys():
    result = nn.Linear(2, 2).load_state_dict({"weight": torch.ones(2, 2), "x": 1}, strict=False)
    assert result.missing_keys == ["bias"]
    assert result.unexpected_keys == ["x"]


def test_values_that_are_no_tensors():
    with pytest.raises(RuntimeError, match='"bias", expected torch.Tensor or Tensor-like object'):
        nn.Linear(1, 1).load_state_dict({"weight": torch.ones(1, 1), "bias": 3})


def test_state_must_be_a_mapping():
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like, got <class 'int'>"):
        nn.Linear(1, 1).load_state_dict(5)


def test_extra_state():
    class WithExtra(nn.Module):
        note = "fresh"

        def get_extra_state(self):
            return {"note": "saved"}

        def set_extra_state(self, state):
            self.note = state["note"]

    module = WithExtra()
    state = module.state_dict()
    assert state == {"_extra_state": {"note": "saved"}}
    module.load_state_dict(state)
    assert module.note == "saved"
    with pytest.raises(RuntimeError, match='Missing key.* "_extra_state"'):
        module.load_state_dict({})


def test_save_hooks():
    calls = []
    layer = nn.Linear(1, 1)
    layer.register_state_dict_pre_hook(lambda m, prefix, keep: calls.append((prefix, keep)))
    layer.register_state_dict_post_hook(lambda m, state, prefix, meta: state.pop("bias") and None)
    assert list(layer.state_dict()) == ["weight"]
    assert calls == [("", False)]


def test_load_hooks_may_rename_and_forgive():
    layer = nn.Linear(1, 1)

    def rename(module, state, prefix, *rest):
        state[prefix + "weight"] = state.pop(prefix + "w")

    layer.register_load_state_dict_pre_hook(rename)
    layer.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear())
    layer.load_state_dict({"w": torch.tensor([[7.0]])})
    assert layer.weight.item() == 7.0


def test_old_batch_norm_files_lack_the_counter():
    norm = nn.BatchNorm1d(1)
    state = norm.state_dict()
    del state["num_batches_tracked"]
    del state._metadata
    norm.num_batches_tracked.fill_(3)
    norm.load_state_dict(state)
    assert norm.num_batches_tracked.item() == 3


def test_prefix_of_a_wrapper_is_taken_off():
    from rushlight.nn.modules.utils import consume_prefix_in_state_dict_if_present

    state = nn.ModuleDict({"module": nn.Linear(1, 1)}).state_dict()
    consume_prefix_in_state_dict_if_present(state, "module.")
    assert list(state) == ["weight", "bias"]
    assert list(state._metadata) == [""]
