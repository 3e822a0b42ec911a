"""Event files for TensorBoard, which the package tensorboardX writes."""

import pytest
import rushlight as torch

pytest.importorskip("tensorboardX", reason="tensorboardX is not installed")

from rushlight.utils.tensorboard import SummaryWriter


def events(folder):
    from tensorboardX.proto.event_pb2 import Event

    found = []
    for path in folder.glob("events*"):
        data = path.read_bytes()
        while data:
            size = int.from_bytes(data[:8], "little")
            found.append(Event.FromString(data[12 : 12 + size]))
            data = data[16 + size :]
    return [(event.step, value) for event in found for value in event.summary.value]


def test_tensors_are_written(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        assert writer.log_dir == writer.get_logdir() == str(tmp_path)
        writer.add_scalar("loss", torch.tensor(1.5, requires_grad=True), 3)
        writer.add_scalar("half", torch.tensor(0.5, dtype=torch.bfloat16), 4, new_style=True)
        writer.add_histogram("weights", torch.arange(10.0), 5)
        writer.add_image("image", torch.rand(3, 4, 4), 6)
    found = {value.tag: (step, value) for step, value in events(tmp_path)}
    assert (found["loss"][0], found["loss"][1].simple_value) == (3, 1.5)
    assert (found["half"][0], found["half"][1].simple_value) == (4, 0.5)
    assert found["weights"][1].histo.num == 10 and found["weights"][1].histo.max == 9
    assert (found["image"][1].image.height, found["image"][1].image.width) == (4, 4)


def test_groups_of_scalars_and_settings(tmp_path):
    with SummaryWriter(log_dir=str(tmp_path)) as writer:
        writer.add_scalars("both", {"a": torch.tensor(1.0), "b": 2.0}, 1)
        writer.add_hparams({"rate": 0.1}, {"accuracy": torch.tensor(0.5)}, run_name="run")
    assert events(tmp_path / "both" / "a")[0][1].simple_value == 1
    tags = [value.tag for _, value in events(tmp_path / "run")]
    assert "accuracy" in tags and any(tag.startswith("_hparams_") for tag in tags)


def test_graphs_are_not_supported(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        with pytest.raises(NotImplementedError, match="graphs of TorchScript"):
            writer.add_graph(torch.nn.ReLU(), torch.ones(1))
        with pytest.raises(NotImplementedError, match="ONNX is not supported"):
            writer.add_onnx_graph("model.onnx")
