"""Memory past the limit that was set: what the error names, what is kept, what works after."""

import gc
import os
import re
import resource
import subprocess
import sys

import pytest
import rushlight as torch
from rushlight import nn

MIB = 1 << 20


@pytest.fixture
def room():
    """Limits memory to a number of bytes above what lives; checks that nothing is left behind."""
    gc.collect()
    before = torch.cpu.memory_allocated()

    def limit(extra: int) -> int:
        torch.cpu.set_memory_limit(before + extra)
        return before + extra

    yield limit
    torch.cpu.set_memory_limit(0)
    gc.collect()
    assert torch.cpu.memory_allocated() == before


def test_the_error_names_bytes_limit_and_what_lives(room):
    limit = room(MIB)
    with pytest.raises(torch.OutOfMemoryError) as caught:
        torch.empty(4 * MIB, dtype=torch.uint8)
    text = str(caught.value)
    assert "not enough memory" in text
    assert f"allocate {4 * MIB} bytes" in text
    assert f"limit {limit}" in text
    assert int(re.search(r"live (\d+) bytes", text)[1]) <= limit
    del caught


def test_it_is_a_runtime_error(room):
    room(MIB)
    with pytest.raises(RuntimeError, match="above the limit that was set"):
        torch.zeros(MIB)


def test_what_lives_goes_on_working(room):
    x = torch.arange(1000.0)
    room(16 * 1024)
    with pytest.raises(torch.OutOfMemoryError):
        x.repeat(1000)
    assert x.sum().item() == 499500
    del x


def test_memory_given_back_can_be_had_again(room):
    room(4 * MIB)
    for _ in range(8):
        held = torch.empty(3 * MIB, dtype=torch.uint8)
        with pytest.raises(torch.OutOfMemoryError):
            torch.empty(3 * MIB, dtype=torch.uint8)
        del held


def test_cached_blocks_count_only_once_they_are_wanted(room):
    room(8 * MIB)
    for size in (5 * MIB, 6 * MIB, 5 * MIB + 4096):
        torch.empty(size, dtype=torch.uint8)  # the freed blocks of other sizes make room


@pytest.mark.parametrize(
    "work",
    [
        lambda x: x + x,
        lambda x: x.exp_().sum() + (x @ x.T).sum(),
        lambda x: torch.softmax(x, 1),
        lambda x: torch.sort(x, 1),
        lambda x: torch.cat([x, x]),
        lambda x: x[x > 0],
        lambda x: x.T.contiguous(),
        lambda x: torch.einsum("ij,kj->ik", x, x),
        lambda x: nn.functional.scaled_dot_product_attention(x[None], x[None], x[None]),
        lambda x: x.double(),
        lambda x: torch.randn(2048, 2048),
        lambda x: x.cumsum(1),
        lambda x: nn.functional.layer_norm(x, (1024,)),
    ],
)
def test_operators_fail_whole(work, room):
    x = torch.ones(1024, 1024)
    room(4 * MIB + 4 * MIB - 4096)
    for _ in range(2):
        with pytest.raises(torch.OutOfMemoryError):
            work(x)
    torch.cpu.set_memory_limit(0)
    work(x)
    del x


def test_resize_keeps_the_old_values(room):
    x = torch.ones(8)
    room(MIB)
    with pytest.raises(torch.OutOfMemoryError):
        x.resize_(MIB)
    assert x.tolist() == [1.0] * 8
    del x


def test_a_training_step_that_fails_can_be_taken_again():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 256))
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(512, 256)

    def step() -> float:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    first = step()
    gc.collect()
    optimizer.zero_grad()
    before = torch.cpu.memory_allocated()
    failed = 0
    for extra in range(64 * 1024, 4 * MIB, 192 * 1024):
        torch.cpu.set_memory_limit(before + extra)
        try:
            loss = model(x).square().mean()
            loss.backward()
        except torch.OutOfMemoryError:
            failed += 1
        finally:
            torch.cpu.set_memory_limit(0)
        loss = None
        optimizer.zero_grad()
        gc.collect()
        assert torch.cpu.memory_allocated() == before
    assert failed > 3
    assert step() < first


def test_a_failed_load_leaves_the_model_as_it_was(tmp_path, room):
    model = nn.Linear(1024, 1024)
    weight = model.weight.detach().clone()
    torch.save(model.state_dict(), tmp_path / "x.pt")
    room(MIB)
    with pytest.raises(torch.OutOfMemoryError):
        model.load_state_dict(torch.load(tmp_path / "x.pt"))
    torch.cpu.set_memory_limit(0)
    assert torch.equal(model.weight, weight)
    del model, weight


def test_a_negative_limit():
    with pytest.raises(ValueError, match="expected a limit of 0 .none. or more bytes, got -1"):
        torch.cpu.set_memory_limit(-1)


def test_a_limit_that_is_no_number():
    with pytest.raises(TypeError):
        torch.cpu.set_memory_limit("1 GB")


WITHOUT_ADDRESS_SPACE = """
import resource
import rushlight as torch
x = torch.ones(1000)
torch.cpu.empty_cache()
with open("/proc/self/statm") as file:
    size = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (64 << 20), -1))
try:
    torch.empty(1 << 30, dtype=torch.uint8)
except torch.OutOfMemoryError as error:
    assert "the system refused" in str(error), error
else:
    raise SystemExit("the system did not refuse")
print((x + x).sum().item())
"""


@pytest.mark.skipif(
    "libasan" in os.environ.get("LD_PRELOAD", ""),
    reason="the address sanitizer needs address space of its own",
)
def test_a_system_without_memory():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_ADDRESS_SPACE], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "2000.0\n"), done.stderr


def limited_files(size: int):
    """For a child process: no file may grow past `size`; the signal that says so is ignored."""

    def limit() -> None:
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


SAVE_TOO_MUCH = """
import sys
import rushlight as torch
from rushlight.safetensors.torch import save_file
state = {"w": torch.zeros(1 << 20)}
try:
    SAVE
except (OSError, RuntimeError) as error:
    print(type(error).__name__, error)
else:
    raise SystemExit("the disk was not full")
"""


@pytest.mark.parametrize(
    "save", ['torch.save(state, "x")', 'save_file(state, "x")'], ids=["torch.save", "safetensors"]
)
def test_a_full_disk_keeps_the_old_checkpoint(save, tmp_path):
    from rushlight.safetensors.torch import load_file, save_file

    old = {"w": torch.arange(3)}
    torch.save(old, tmp_path / "x") if "torch.save" in save else save_file(old, tmp_path / "x")
    done = subprocess.run(
        [sys.executable, "-c", SAVE_TOO_MUCH.replace("SAVE", save)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        preexec_fn=limited_files(1 << 16),
    )
    assert done.returncode == 0, done.stderr
    assert "File too large" in done.stdout
    assert os.listdir(tmp_path) == ["x"]
    kept = torch.load(tmp_path / "x") if "torch.save" in save else load_file(tmp_path / "x")
    assert kept["w"].tolist() == [0, 1, 2]


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes into read-only folders too")
def test_a_read_only_folder_keeps_the_old_checkpoint(tmp_path):
    torch.save({"a": torch.arange(3)}, tmp_path / "x.pt")
    tmp_path.chmod(0o500)
    try:
        with pytest.raises((OSError, RuntimeError)):
            torch.save({"a": torch.zeros(3)}, tmp_path / "x.pt")
        assert torch.load(tmp_path / "x.pt")["a"].tolist() == [0, 1, 2]
    finally:
        tmp_path.chmod(0o700)


def test_a_folder_where_the_checkpoint_should_be(tmp_path):
    (tmp_path / "x.pt").mkdir()
    with pytest.raises((OSError, RuntimeError)):
        torch.save({"a": torch.zeros(3)}, tmp_path / "x.pt")
    assert os.listdir(tmp_path) == ["x.pt"]
