"""Programs of the kinds that torch.fx's documentation shows print what they print on PyTorch.

expected/ has what PyTorch 2.13 prints, written there by record.py.
"""

import importlib.util
import pathlib

import pytest

HERE = pathlib.Path(__file__).parent


def _record():
    spec = importlib.util.spec_from_file_location("fx_record", HERE / "record.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


record = _record()
MODULES = {
    path.stem: record.load(path.stem, "rushlight") for path in (HERE / "programs").glob("*.py")
}
CASES = [(name, program) for name in sorted(MODULES) for program in record.programs(MODULES[name])]


def _sections(name):
    parts = (HERE / "expected" / f"{name}.txt").read_text().split("=====  ")[1:]
    return dict(part.split("\n", 1) for part in parts)


EXPECTED = {name: _sections(name) for name in MODULES}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "program"), CASES)
def test_it_prints_what_it_prints_on_pytorch(name, program):
    assert record.output(record.programs(MODULES[name])[program]) == EXPECTED[name][program]


def test_every_program_is_recorded():
    assert {(name, program) for name in MODULES for program in EXPECTED[name]} == set(CASES)
