"""torch.compiler and torch._dynamo: stances, disabling, reports, caches, small helpers."""

import os
import subprocess
import sys
import threading

import pytest
import rushlight as torch
from rushlight import _C, nn


def segments_of(function):
    """The result of a call, and how many segments ran for it."""
    before = _C._compile_statistics()["segments"]
    result = function()
    return result, _C._compile_statistics()["segments"] - before


def test_public_names():
    names = set(torch.compiler.__all__)
    assert {"compile", "reset", "disable", "set_stance", "nested_compile_region"} <= names
    for module in (torch.compiler, torch._dynamo):
        for name in module.__all__:
            assert getattr(module, name) is not None


def test_is_compiling():
    def f(x):
        flags = torch.compiler.is_compiling(), torch.compiler.is_dynamo_compiling()
        return x + 1, (*flags, torch._dynamo.is_compiling(), torch.compiler.is_exporting())

    assert f(torch.ones(1))[1] == (False, False, False, False)
    assert torch.compile(f)(torch.ones(1))[1] == (True, True, True, False)
    assert torch.compile(f, backend="eager")(torch.ones(1))[1][0]


# ---- Default back end --------------------------------------------------------------------------


def test_default_backend():
    calls = []

    def mine(gm, inputs):
        calls.append(gm)
        return gm.forward

    assert torch.compiler.get_default_backend() == "inductor"
    torch.compiler.set_default_backend(mine)
    assert torch.compiler.get_default_backend() is mine
    torch.compile(lambda x: x + 1)(torch.ones(2))
    assert len(calls) == 1
    torch.compile(lambda x: x + 1, backend="inductor")(torch.ones(2))
    assert len(calls) == 1
    torch.compiler.set_default_backend(None)
    assert torch.compiler.get_default_backend() == "inductor"


# ---- Disabling ---------------------------------------------------------------------------------


@pytest.mark.parametrize("disable", [torch.compiler.disable, torch._dynamo.disable])
def test_disable(disable):
    seen = []

    @disable
    def plain(x):
        seen.append(torch.compiler.is_compiling())
        x.add_(1)
        return x * 2

    x = torch.ones(2)

    @torch.compile
    def f():
        y = x * 10  # of x before plain changes it
        z = plain(x)
        seen.append(torch.compiler.is_compiling())
        return y, z + 1

    y, z = f()
    assert y.tolist() == [10, 10] and z.tolist() == [5, 5] and seen == [False, True]


def test_disable_forms():
    assert torch.compiler.disable(reason="slow")(lambda x: x)(3) == 3
    module = nn.Linear(2, 2)
    disabled = torch.compiler.disable(module)
    assert disabled._orig_mod is module
    _, segments = segments_of(lambda: torch.compile(disabled)(torch.ones(1, 2)))
    assert segments == 0
    function = torch.compiler.disable(lambda x: x, recursive=False)
    assert function(2) == 2
    assert torch._dynamo.is_dynamo_disable_recursive(torch.compiler.disable(abs))


def test_disable_restores_after_an_error():
    @torch.compiler.disable
    def fails():
        raise ValueError

    @torch.compile
    def f(x):
        try:
            fails()
        except ValueError:
            return torch.compiler.is_compiling(), x + 1

    assert f(torch.ones(1))[0]


# ---- Stances -----------------------------------------------------------------------------------


def test_stance_as_function_manager_and_decorator():
    compiled = torch.compile(lambda x: x + 1)
    x = torch.ones(2)
    torch.compiler.set_stance("force_eager")
    assert segments_of(lambda: compiled(x))[1] == 0
    torch.compiler.set_stance("default")
    assert segments_of(lambda: compiled(x))[1] == 1
    with torch.compiler.set_stance("force_eager"):
        assert segments_of(lambda: compiled(x))[1] == 0
    assert segments_of(lambda: compiled(x))[1] == 1

    @torch.compiler.set_stance("force_eager")
    def eagerly():
        return compiled(x)

    assert segments_of(lambda: compiled(x))[1] == 1
    assert segments_of(eagerly)[1] == 0
    assert segments_of(lambda: compiled(x))[1] == 1


def test_fail_on_recompile():
    def f(x):
        return (x.cos() * 3).tanh()

    compiled = torch.compile(f)
    compiled(torch.ones(3, 4))
    with torch.compiler.set_stance("fail_on_recompile"):
        assert torch.equal(compiled(torch.ones(5, 6)), f(torch.ones(5, 6)))  # only the sizes differ
        with pytest.raises(RuntimeError, match="Detected recompile"):
            compiled(torch.ones(3, dtype=torch.float64))


def test_eager_on_recompile():
    def f(x):
        return (x.cos() * 5).sigmoid()

    compiled = torch.compile(f)
    with torch.compiler.set_stance("eager_on_recompile"):
        before = _C._compile_statistics()["plans"]
        assert torch.equal(compiled(torch.ones(3, 4, 5)), f(torch.ones(3, 4, 5)))
        assert _C._compile_statistics()["plans"] == before


def test_eager_then_compile():
    compiled = torch.compile(lambda x: x * 2 + 1)
    with torch.compiler.set_stance("eager_then_compile"):
        assert segments_of(lambda: compiled(torch.ones(2)))[1] == 0
        assert segments_of(lambda: compiled(torch.ones(2)))[1] == 1


def test_force_backend():
    calls = []

    def mine(gm, inputs):
        calls.append(gm)
        return gm.forward

    compiled = torch.compile(lambda x: x + 1)
    with torch.compiler.set_stance("default", force_backend=mine):
        assert compiled(torch.ones(1)).tolist() == [2]
        compiled(torch.ones(1))
    assert len(calls) == 1
    compiled(torch.ones(1))
    assert len(calls) == 1


def test_settings_of_pytorch():
    config = torch._dynamo.config
    with config.patch(cache_size_limit=64):
        assert config.recompile_limit == torch.compiler.config.recompile_limit == 64
    assert config.cache_size_limit == 8
    with torch._inductor.config.patch({"triton.store_cubin": True, "b2b_gemm_pass": True}):
        assert torch._inductor.config.triton.store_cubin
    assert torch._inductor.config.b2b_gemm_pass is False
    options = {"loop_ordering_after_fusion": False, "cpp.dynamic_threads": True}
    assert torch.compile(lambda x: x + 1, options=options)(torch.ones(1)).item() == 2
    saved = config.save_config()
    with config.patch("verbose", True):
        assert config.get_config_copy()["verbose"]
        config.load_config(saved)
        assert not config.verbose
    assert "check_budget" not in torch._functorch.config.to_dict()


def test_config_disable():
    compiled = torch.compile(lambda x: x + 1)
    with torch._dynamo.config.patch(disable=True):
        assert segments_of(lambda: compiled(torch.ones(1)))[1] == 0
    assert not torch._dynamo.config.disable


# ---- fullgraph ---------------------------------------------------------------------------------


def test_fullgraph_names_the_line():
    @torch.compile(fullgraph=True)
    def f(x):
        y = x.sin()
        if y.sum() > 0:  # the line
            return y
        return y + 1

    with pytest.raises(torch._dynamo.exc.Unsupported) as error:
        f(torch.ones(3))
    text = str(error.value)
    assert "if y.sum() > 0:  # the line" in text and "test_compiler.py" in text
    assert "bool(tensor)" in text
    assert isinstance(error.value, RuntimeError)
    assert not torch.compiler.is_compiling()


@pytest.mark.parametrize(
    "breaks", [print, lambda y: y.numpy(), lambda y: y.data_ptr(), torch.compiler.disable(id)]
)
def test_fullgraph_breaks(breaks):
    @torch.compile(fullgraph=True)
    def f(x):
        y = x + 1
        breaks(y)
        return y

    with pytest.raises(torch._dynamo.exc.Unsupported):
        f(torch.ones(3))


def test_fullgraph_reads_numbers():
    @torch.compile(fullgraph=True)
    def f(x):
        return x * x.sum().item()

    assert f(torch.ones(3)).tolist() == [3, 3, 3]


def test_fullgraph_is_about_forward_alone():
    compiled = torch.compile(lambda x: (x * x).sum(), fullgraph=True)
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda grad: str(grad) and None)
    compiled(x).backward()
    assert x.grad.tolist() == [2, 2]


def test_error_on_graph_break():
    def f(x):
        y = x + 1
        with torch._dynamo.error_on_graph_break(True):
            return y * bool(y.sum() > 0)

    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(f)(torch.ones(2))
    assert f(torch.ones(2)).tolist() == [2, 2]

    @torch.compile(fullgraph=True)
    def g(x):
        y = x + 1
        with torch._dynamo.error_on_graph_break(False):
            return y * bool(y.sum() > 0)

    assert g(torch.ones(2)).tolist() == [2, 2]


def test_graph_break():
    def f(x):
        y = x + 1
        torch._dynamo.graph_break()
        return y * 2

    result, segments = segments_of(lambda: torch.compile(f)(torch.ones(2)))
    assert result.tolist() == [4, 4] and segments == 2
    with pytest.raises(torch._dynamo.exc.Unsupported, match="graph_break"):
        torch.compile(f, fullgraph=True)(torch.ones(2))


@pytest.mark.parametrize(
    "breaks", [torch._dynamo.graph_break, torch.compiler.disable(lambda: None)]
)
def test_asked_breaks_are_breaks_where_nothing_is_captured(breaks):
    def f(x):
        breaks()
        return x + 1

    with pytest.raises(torch._dynamo.exc.Unsupported, match="test_compiler.py"):
        torch.compile(f, fullgraph=True)(torch.ones(2))
    assert torch.compile(f)(torch.ones(2)).tolist() == [2, 2]
    f(torch.ones(2))


def test_fullgraph_lets_assertions_be_checked():
    # As text: pytest rewrites the assertions of this file.
    source = """
def f(x):
    y = x + 1
    assert y.sum() > 0, "sum"
    assert not (y > 5).any()
    return y

def g(x):
    y = x + 1
    if y.sum() > 0:
        assert y is not x
    return y
"""
    program: dict = {}
    exec(source, program)
    f = torch.compile(program["f"], fullgraph=True)
    assert f(torch.ones(2)).tolist() == [2, 2]
    with pytest.raises(AssertionError, match="sum"):
        f(-torch.ones(2) * 3)
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(program["g"], fullgraph=True)(torch.ones(2))


def test_what_operators_go_by_is_what_it_was_when_they_were_called():
    @torch.compile
    def f():
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            return torch.ones(2), torch.ones(2, dtype=torch.int64) / 2
        finally:
            torch.set_default_dtype(before)

    for _ in range(2):
        assert [x.dtype for x in f()] == [torch.float64, torch.float64]


# ---- Limits ------------------------------------------------------------------------------------


def test_recompile_limit():
    def f(x, n):
        for _ in range(n):
            x = x.sin()
        return x

    compiled = torch.compile(f, recompile_limit=2)
    _C._compile_reset()
    compiled(torch.ones(2), 1)
    compiled(torch.ones(2), 2)
    with pytest.warns(UserWarning, match="recompile_limit"):
        assert torch.equal(compiled(torch.ones(2), 3), f(torch.ones(2), 3))
    strict = torch.compile(f, recompile_limit=0, fullgraph=True)
    with pytest.raises(torch._dynamo.exc.FailOnRecompileLimitHit):
        strict(torch.ones(2), 4)


def counted():
    """A back end that runs graphs as they are, and the list of those it got."""
    graphs = []

    def backend(gm, inputs):
        graphs.append(gm)
        return gm.forward

    return backend, graphs


def powers(x, n):
    for _ in range(n):
        x = x * 2
    return x + 1


def test_the_limit_of_other_back_ends():
    config = torch._dynamo.config
    x = torch.ones(2)
    backend, graphs = counted()
    static = torch.compile(powers, backend=backend, dynamic=False)
    with pytest.warns(UserWarning, match=r"recompile_limit \(8\)"):
        assert [static(x, n)[0].item() for n in range(12)] == [2**n + 1 for n in range(12)]
    assert len(graphs) == 8
    backend, graphs = counted()
    with config.patch(recompile_limit=2, fail_on_recompile_limit_hit=True):
        static = torch.compile(powers, backend=backend, dynamic=False)
        static(x, 0), static(x, 1)
        with pytest.raises(torch._dynamo.exc.FailOnRecompileLimitHit, match=r"\(2\)"):
            static(x, 2)
    backend, graphs = counted()
    free = torch.compile(powers, backend=backend)
    for n in range(12):
        free(torch.ones(n + 1), 1)
    assert len(graphs) == 12


@pytest.mark.parametrize("own", [False, True])
def test_error_on_recompile(own):
    def broken(x, n):
        y = powers(x, n)
        if y.sum() > 0:  # a second graph, which is no recompilation
            y = y.tanh().exp()
        return y

    compiled = torch.compile(broken) if own else torch.compile(broken, backend=counted()[0])
    _C._compile_reset()
    with torch._dynamo.config.patch(error_on_recompile=True):
        compiled(torch.ones(2), 1)
        compiled(torch.ones(2), 1)
        with pytest.raises(torch._dynamo.exc.RecompileError, match="Recompiling .*broken"):
            compiled(torch.ones(2), 2)
    assert torch.equal(compiled(torch.ones(2), 2), broken(torch.ones(2), 2))


# ---- Reports -----------------------------------------------------------------------------------


def test_explain():
    def f(x):
        y = x.sin()
        if y.sum() > 0:  # breaks here
            y = y + 1
        return y[y > 1]

    report = torch._dynamo.explain(f)(torch.ones(3))
    assert report.graph_break_count == 2 and report.graph_count == len(report.graphs) == 2
    first, second = report.break_reasons
    assert "bool(tensor)" in first.reason
    assert first.user_stack[-1].line == "if y.sum() > 0:  # breaks here"
    assert "shapes depend on data" in second.reason
    assert report.op_count == sum(len(ops) for ops in report.ops_per_graph)
    text = str(report)
    assert "Graph Break Count: 2" in text and "breaks here" not in text.split("Ops per")[1]


def test_explain_without_breaks():
    report = torch._dynamo.explain(lambda x: x.sin() + 1, torch.ones(2))
    assert report.graph_count == 1 and report.graph_break_count == 0 and report.op_count == 2


# ---- Kernels as bytes --------------------------------------------------------------------------

SAVE = """
import sys
import rushlight as torch
f = torch.compile(lambda x: (x.sin() * 1.5 + x.cos()).tanh() - x)
f(torch.ones(100))
data, info = torch.compiler.save_cache_artifacts()
assert info.kernel_artifacts and not info.empty()
open(sys.argv[1], "wb").write(data)
"""
LOAD = """
import sys
import rushlight as torch
from rushlight import _C
info = torch.compiler.load_cache_artifacts(open(sys.argv[1], "rb").read())
assert info.kernel_artifacts
f = torch.compile(lambda x: (x.sin() * 1.5 + x.cos()).tanh() - x)
f(torch.ones(100))
saved, again = torch.compiler.save_cache_artifacts()
assert set(again.kernel_artifacts) == set(info.kernel_artifacts), (again, info)
"""


def run_python(source, *arguments, **environment):
    subprocess.run(
        [sys.executable, "-c", source, *map(str, arguments)],
        check=True,
        env={**os.environ, **environment},
        timeout=120,
    )


def test_artifacts_go_to_another_cache(tmp_path):
    run_python(SAVE, tmp_path / "kernels", RUSHLIGHT_CACHE_DIR=str(tmp_path / "one"))
    run_python(LOAD, tmp_path / "kernels", RUSHLIGHT_CACHE_DIR=str(tmp_path / "two"))
    assert os.listdir(tmp_path / "two")


def test_artifacts_without_a_disk_cache(tmp_path):
    run_python(SAVE, tmp_path / "kernels", RUSHLIGHT_CACHE_DIR="")
    run_python(LOAD, tmp_path / "kernels", RUSHLIGHT_CACHE_DIR="")


# ---- Helpers without much to do ----------------------------------------------------------------


def test_helpers():
    def f(x):
        return x + 1

    assert torch.compiler.allow_in_graph(f) is f
    assert torch.compiler.assume_constant_result(f) is f
    assert torch.compiler.nested_compile_region(f)(torch.ones(1)).item() == 2
    assert torch.compiler.nested_compile_region()(f)(torch.ones(1)).item() == 2
    assert torch.compiler.substitute_in_graph(f)(lambda x: x)(3) == 3
    assert torch.compiler.cudagraph_mark_step_begin() is None
    assert torch.compiler.set_enable_guard_collectives(True) is False
    assert torch.compiler.set_enable_guard_collectives(False) is True
    assert torch.compiler.skip_all_guards_unsafe([1, 2]) == [False, False]
    x = torch.ones(2, 3)
    torch._dynamo.mark_dynamic(x, 0)
    torch._dynamo.maybe_mark_dynamic(x, [0, 1])
    torch._dynamo.mark_static(x, 1)
    torch._dynamo.mark_static_address(x)
    assert x._dynamo_dynamic_indices == {0}
    torch.compiler.reset()
    torch._dynamo.reset()


def test_wrap_numpy():
    import numpy as np

    @torch.compiler.wrap_numpy
    def f(x, y):
        return np.add(x, y), {"s": x.sum()}

    total, more = f(torch.ones(2), torch.ones(2))
    assert total.tolist() == [2, 2] and more["s"].item() == 2


def test_optimize_is_an_older_name():
    compiled = torch._dynamo.optimize("inductor")(lambda x: x + 1)
    assert segments_of(lambda: compiled(torch.ones(1)))[1] == 1
    assert torch._dynamo.optimize("eager", disable=True)(abs) is abs


def test_stances_are_of_the_process():
    compiled = torch.compile(lambda x: x + 1)
    torch.compiler.set_stance("force_eager")
    counts = []
    thread = threading.Thread(
        target=lambda: counts.append(segments_of(lambda: compiled(torch.ones(1)))[1])
    )
    thread.start()
    thread.join()
    assert counts == [0]


def test_modes_and_options():
    x = torch.ones(2)
    for arguments in (
        {"mode": "max-autotune"},
        {"mode": "reduce-overhead"},
        {"options": {"triton.cudagraphs": True, "epilogue_fusion": True}},
        {"options": {}},
        {"dynamic": False, "name": "mine", "isolate_recompiles": True, "shapes_spec": None},
    ):
        assert torch.compile(lambda x: x + 1, **arguments)(x).tolist() == [2, 2]
    assert "max_autotune" in torch._inductor.list_options()
    assert torch._inductor.list_mode_options()["default"] == {}


@pytest.mark.parametrize("shapes", [((3,), (3,)), ((5, 16), (16, 1)), ((1, 4), (4, 1))])
def test_small_products_have_the_same_bits_whatever_follows(shapes):
    torch.manual_seed(0)
    for _ in range(20):
        a, b = (torch.randn(shape) for shape in shapes)
        compiled = torch.compile(lambda a, b: torch.relu(a @ b) * 2 + 1)
        assert compiled(a, b).equal(torch.relu(a @ b) * 2 + 1)
