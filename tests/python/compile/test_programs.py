"""A few hundred of the random programs; programs.py runs as many as it is asked for."""

import importlib.util
import pathlib

import pytest

pytestmark = pytest.mark.filterwarnings("ignore")

_path = pathlib.Path(__file__).with_name("programs.py")
_spec = importlib.util.spec_from_file_location("programs", _path)
programs = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(programs)


@pytest.mark.parametrize("backend, first, count", [("inductor", 0, 200), ("eager", 200, 50)])
def test_programs(backend, first, count):
    for seed in range(first, first + count):
        program = programs.generate(seed)
        if programs.differs(program, backend):
            pytest.fail(f"compiled differs from eager:\n{programs.cut_down(program, backend)}")


@pytest.mark.parametrize("budget", [0.0, 0.5])
def test_programs_with_a_memory_budget(budget):
    for seed in range(500, 600):
        program = programs.generate(seed, budget=budget)
        if programs.differs(program, "inductor"):
            pytest.fail(f"compiled differs from eager:\n{programs.cut_down(program, 'inductor')}")


@pytest.mark.parametrize("seed", [101899, 109942, 112294, 114981])
def test_strides_of_gradients_do_not_tell_who_held_them(seed):
    program = programs.generate(seed)
    assert not programs.differs(program, "inductor"), str(program)


def test_programs_through_fx():
    def backend(gm, inputs):
        gm.graph.lint()
        gm.graph.eliminate_dead_code()
        gm.recompile()
        return gm.forward

    for seed in range(400, 450):
        program = programs.generate(seed)
        assert not programs.differs(program, backend), str(program)


def test_differences_are_found():
    """The comparison sees a wrong result: a back end that gives twice what it should."""

    def backend(gm, inputs):
        return lambda *args: [2 * value for value in gm.forward(*args)]

    program = programs.Program(0, [((3,), "float32", False, "plain")], ["v0 = x0 + 1"])
    assert programs.differs(program, backend)
