"""What `cmake --install` leaves, used as a C++ program and a Python process would use it; the
examples of the README run on it.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
import rushlight

BUILD = pathlib.Path(rushlight.__file__).parents[2]
README = pathlib.Path(__file__).resolve().parents[3] / "README.md"

if not (BUILD / "cmake_install.cmake").exists():
    pytest.skip(f"{BUILD} is no build folder", allow_module_level=True)
if shutil.which("cmake") is None:
    pytest.skip("needs cmake", allow_module_level=True)

CONSUMER = """\
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES CXX)
find_package(Rushlight 0.1 REQUIRED)
add_executable(consumer consumer.cpp)
target_link_libraries(consumer PRIVATE Rushlight::rushlight)
"""


def run(*command: object, **options) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=240, **options)
    assert done.returncode == 0, f"{words}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout


def example(language: str) -> str:
    return re.search(rf"```{language}\n(.*?)```", README.read_text(), re.S)[1]


@pytest.fixture(scope="module")
def prefix(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", BUILD, "--prefix", folder)
    return folder


@pytest.fixture(scope="module")
def python_output(prefix, tmp_path_factory) -> list[str]:
    """What README's Python example prints, run on the installed package."""
    folder = tmp_path_factory.mktemp("python")
    environment = os.environ | {"PYTHONPATH": str(prefix)}
    check = f"import rushlight; assert rushlight.__file__.startswith({str(prefix)!r})\n"
    text = run(sys.executable, "-c", check + example("python"), cwd=folder, env=environment)
    assert (folder / "sine.pt").exists()
    return text.splitlines()


def test_the_python_example_learns(python_output):
    steps = [line.split() for line in python_output[:6]]
    assert [step for step, _ in steps] == ["0", "100", "200", "300", "400", "500"]
    assert float(steps[-1][1]) < 0.01 < float(steps[0][1])
    assert re.fullmatch(r"tensor\(\[\[0\.\d+\]\], grad_fn=<\w+Backward0>\)", python_output[6])


def test_a_cpp_program_finds_the_package_and_agrees(prefix, python_output, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(CONSUMER)
    (tmp_path / "consumer.cpp").write_text(example("cpp"))
    run(
        "cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}",
        "-DCMAKE_BUILD_TYPE=Debug",
    )  # fmt: skip
    run("cmake", "--build", tmp_path / "build")
    printed = run(tmp_path / "build" / "consumer").splitlines()
    # C++ prints six digits of a number.
    rounded = [f"{step} {float(loss):.6g}" for step, loss in map(str.split, python_output[:6])]
    assert printed[:6] == rounded
    assert printed[6:] == python_output[6:]


def test_the_examples_are_the_programs_of_the_examples_folder():
    folder = README.parent / "examples" / "sine"
    assert example("cpp") == (folder / "sine.cpp").read_text()
    python = (folder / "sine.py").read_text()
    body = re.sub(r'\A""".*?"""\n\s*', "", python, count=1, flags=re.S)
    assert example("python") == body


@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="a sanitizer's code")
def test_sizes(prefix):
    """Small beside the 700 MB of other frameworks: 15 MB, or 60 MB with the code generator."""
    generator = prefix / "lib" / "librushlight_codegen.so"
    files = [path for path in prefix.rglob("*") if path.is_file() and not path.is_symlink()]
    total = sum(path.stat().st_size for path in files)
    plugin = generator.stat().st_size if generator.exists() else 0
    assert total - plugin < 15e6
    assert total < 60e6


def test_what_is_installed_holds_no_build_paths(prefix):
    for path in (prefix / "lib" / "cmake" / "Rushlight").glob("*.cmake"):
        assert str(BUILD) not in path.read_text(), path
