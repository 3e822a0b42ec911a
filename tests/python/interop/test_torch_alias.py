"""Programs that say `import torch`."""

import os
import subprocess
import sys
from pathlib import Path

import rushlight

PROGRAM = """
import sys
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.utils.data import DataLoader, TensorDataset

assert torch.__name__ == "torch"
assert torch.fft.__name__ == "rushlight.fft"
assert torch.__version__ >= "2.13" and torch.__version__.split("+")[0].split(".")[:2] == ["2", "13"]
assert sys.modules["torch.nn"] is nn is torch.nn
torch.manual_seed(0)
model = nn.Linear(4, 2)
optimizer = optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(TensorDataset(torch.randn(8, 4), torch.zeros(8).long()), batch_size=4):
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
assert not hasattr(torch, "no_such_name")
assert torch.special is sys.modules["rushlight.special"]
try:
    import torch.no_such_module
except ModuleNotFoundError as error:
    assert error.name == "torch.no_such_module", error.name
print("trained", sys.argv[1:], __name__)
"""


def _run(*arguments):
    source = str(Path(rushlight.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source}
    command = [sys.executable, "-m", "rushlight", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def test_a_script_runs_unmodified(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(PROGRAM)
    done = _run(str(script), "--steps", "3")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "trained ['--steps', '3'] __main__"


def test_a_script_finds_its_neighbours(tmp_path):
    (tmp_path / "neighbour.py").write_text("import torch\nvalue = torch.ones(2).sum().item()\n")
    script = tmp_path / "main.py"
    script.write_text("import neighbour\nprint(neighbour.value)\n")
    assert _run(str(script)).stdout.strip() == "2.0"


def test_modules_and_commands_run(tmp_path):
    assert _run("-c", "import torch; print(torch.arange(3))").stdout == "tensor([0, 1, 2])\n"
    assert _run("-m", "this").stdout.startswith("The Zen of Python")


def test_errors_and_exit_codes_pass_through(tmp_path):
    script = tmp_path / "bad.py"
    script.write_text("import sys\nsys.exit(5)\n")
    assert _run(str(script)).returncode == 5
    assert _run().returncode == 2
    assert "No such file" in _run(str(tmp_path / "none.py")).stderr
