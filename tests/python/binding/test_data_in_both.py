"""Loaders give the same batches in C++ for the same seed."""

from __future__ import annotations

import pytest
import rushlight as torch
from rushlight.utils import data

from . import cpp_program
from .cpp_program import literal

if not cpp_program.AVAILABLE:
    pytest.skip("needs a C++ compiler and the build", allow_module_level=True)

SIZE = 23
# Options of a loader; with workers C++ only, as Python's are processes.
CASES = [
    {},
    {"batch_size": 5},
    {"batch_size": 5, "drop_last": True},
    {"batch_size": 4, "shuffle": True},
    {"batch_size": 4, "shuffle": True, "generator": 11},
    {"batch_size": 3, "sampler": ("RandomSampler", (SIZE, True, 70))},
    {"batch_size": 3, "sampler": ("RandomSampler", (SIZE, False, 40))},
    {"batch_size": 4, "sampler": ("SubsetRandomSampler", ([3, 1, 4, 15, 9, 2, 6],))},
]

PROGRAM = """\
#include <rushlight/rushlight.h>

#include <iostream>

using namespace rushlight;

void show(const char* name, const data::DataLoaderOptions& options) {
  for (int64_t workers : {0, 3}) {
    manual_seed(7);
    auto threaded = options;
    data::DataLoader<TensorList> loader(
        std::make_shared<data::TensorDataset>(TensorList{arange(SIZE)}),
        threaded.num_workers(workers));
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (const TensorList& batch : loader) {
        std::cout << name << workers;
        for (const Tensor& one : batch[0].unbind()) std::cout << " " << one.item<int64_t>();
        std::cout << "\\n";
      }
    }
    std::cout << name << workers << " " << randint(1000, {1}).item<int64_t>() << "\\n";
  }
}

int main() {
BODY
}
"""


def in_cpp(key: str, value: object) -> str:
    if key == "sampler":
        name, arguments = value
        kind = f"data::{name}"
        return f".sampler(std::shared_ptr<data::Sampler>(new {kind}({literal(arguments)[1:-1]})))"
    if key == "generator":
        return f".generator(Generator({value}))"
    return f".{key}({literal(value)})"


@pytest.fixture(scope="module")
def printed(tmp_path_factory) -> dict[str, list[list[int]]]:
    lines = []
    for number, case in enumerate(CASES):
        made = "data::DataLoaderOptions()" + "".join(in_cpp(*item) for item in case.items())
        # Each number of workers begins with the same generator.
        lines.append(f'  show("case{number}/", {made});')
    text = PROGRAM.replace("BODY", "\n".join(lines)).replace("SIZE", str(SIZE))
    found: dict[str, list[list[int]]] = {}
    for line in cpp_program.output(text, tmp_path_factory.mktemp("program")):
        name, *values = line.split()
        found.setdefault(name, []).append([int(value) for value in values])
    return found


def batches(case: dict, seeds: torch.Generator | None) -> list[list[int]]:
    options = dict(case)
    if "sampler" in options:
        name, (first, *rest) = options["sampler"]
        source = first if isinstance(first, list) else range(first)
        options["sampler"] = getattr(data, name)(source, *rest)
    if "generator" in options:
        options["generator"] = seeds
    torch.manual_seed(7)
    loader = data.DataLoader(data.TensorDataset(torch.arange(SIZE)), **options)
    found = [batch[0].tolist() for _ in range(2) for batch in loader]
    return [*found, torch.randint(1000, (1,)).tolist()]


@pytest.mark.parametrize("number", range(len(CASES)), ids=[str(case) for case in CASES])
def test_batches(printed, number) -> None:
    case = CASES[number]
    # In the program both numbers of workers share the generator, one after the other.
    seeds = torch.Generator().manual_seed(case.get("generator", 0))
    for workers in (0, 3):
        assert printed[f"case{number}/{workers}"] == batches(case, seeds)
