"""Mistakes with compile: each is refused with the error PyTorch gives, and leaves all well."""

import pytest
import rushlight as torch
from rushlight import nn
from rushlight._dynamo.exc import BackendCompilerFailed, InvalidBackend


@pytest.fixture(autouse=True)
def still_works():
    yield
    assert not torch.compiler.is_compiling()
    assert torch.compile(lambda x: x + 1)(torch.ones(1)).item() == 2


def test_not_callable():
    with pytest.raises(AssertionError, match="callable function is expected"):
        torch.compile(3)


def test_unknown_back_end():
    with pytest.raises(InvalidBackend, match="'nonesuch'.*list_backends"):
        torch.compile(nn.Linear(1, 1), backend="nonesuch")


def test_unknown_mode():
    with pytest.raises(RuntimeError, match="Unrecognized mode=fast, should be one of: default"):
        torch.compile(abs, mode="fast")


def test_unknown_option():
    with pytest.raises(RuntimeError, match="Unexpected optimization option fuse"):
        torch.compile(abs, options={"fuse": True})


def test_option_of_a_wrong_type():
    with pytest.raises(RuntimeError, match="Unexpected type of attr max_autotune, got str"):
        torch.compile(abs, options={"max_autotune": "yes"})


def test_mode_and_options():
    with pytest.raises(RuntimeError, match="both can't be specified"):
        torch.compile(abs, mode="default", options={"max_autotune": True})


def test_fullgraph_of_a_wrong_type():
    with pytest.raises(TypeError, match="fullgraph must be bool"):
        torch.compile(abs, fullgraph="yes")


def test_dynamic_of_a_wrong_type():
    with pytest.raises(TypeError, match="dynamic must be bool"):
        torch.compile(abs, dynamic=3)


def test_recompile_limit_of_a_wrong_type():
    with pytest.raises(TypeError, match="recompile_limit must be int"):
        torch.compile(abs, recompile_limit="many")


def test_unknown_keyword():
    with pytest.raises(TypeError, match="unexpected keyword"):
        torch.compile(abs, nopython=True)


def test_none_under_a_decorator():
    with pytest.raises(RuntimeError, match="Model can't be None"):
        torch.compile()(None)


def test_default_back_end_of_a_wrong_type():
    with pytest.raises(TypeError, match="must be a string or callable"):
        torch.compiler.set_default_backend(3)


def test_unknown_stance():
    with pytest.raises(RuntimeError, match="invalid torch.compile stance 'eager'"):
        torch.compiler.set_stance("eager")


def test_stance_with_a_back_end():
    with pytest.raises(RuntimeError, match="non-default stance cannot have force_backend"):
        torch.compiler.set_stance("force_eager", force_backend="eager")


def test_unknown_forced_back_end():
    with pytest.raises(InvalidBackend):
        torch.compiler.set_stance("default", force_backend="nonesuch")


def test_back_end_name_twice():
    with pytest.raises(AssertionError, match="duplicate name: eager"):
        torch._dynamo.register_backend(abs, name="eager")


def test_back_end_that_raises():
    def backend(gm, inputs):
        raise ValueError("no such operator")

    with pytest.raises(BackendCompilerFailed, match="backend='backend' raised") as error:
        torch.compile(abs, backend=backend)(torch.ones(1))
    assert isinstance(error.value.__cause__, ValueError)
    assert isinstance(error.value.inner_exception, ValueError)


def test_back_end_that_gives_no_callable():
    with pytest.raises(BackendCompilerFailed, match="did not return callable"):
        torch.compile(abs, backend=lambda gm, inputs: None)(torch.ones(1))


@pytest.mark.parametrize(
    "result, words",
    [
        (3, "gave a int, not a tuple or list"),
        ([], "gave 0 results, the graph has 1"),
        ([torch.ones(1), torch.ones(1)], "gave 2 results"),
        ([3], "is a int, not a tensor"),
        ([torch.ones(2)], r"shape \[2\], the graph's has .* \[1\]"),
        ([torch.ones(1, dtype=torch.float64)], "has dtype float64"),
    ],
)
def test_back_end_with_wrong_results(result, words):
    with pytest.raises(BackendCompilerFailed, match=words):
        torch.compile(abs, backend=lambda gm, inputs: lambda *args: result)(torch.ones(1))


def test_callable_that_raises():
    def backend(gm, inputs):
        def run(*args):
            raise ZeroDivisionError("in the back end")

        return run

    with pytest.raises(ZeroDivisionError, match="in the back end"):
        torch.compile(abs, backend=backend)(torch.ones(1))


def test_result_that_was_never_made():
    kept = []

    def f(x):
        kept.append(x + 1)
        return x @ x[:0]

    def backend(gm, inputs):
        raise ValueError("no")

    with pytest.raises(RuntimeError):
        torch.compile(lambda x: kept.append(x + 1), backend=backend)(torch.ones(1))
    with pytest.raises(RuntimeError, match="never computed"):
        kept[0].tolist()


def test_damaged_artifacts():
    torch.compile(lambda x: (x.sin() + 2).cos())(torch.ones(3))
    saved = torch.compiler.save_cache_artifacts()
    data = saved[0] if saved is not None else b"RLARTF01"
    for damaged in (b"", b"abc", data[:-1] if saved else b"x", b"X" + data[1:]):
        with pytest.warns(UserWarning, match="damaged"):
            assert torch.compiler.load_cache_artifacts(damaged) is None
    with pytest.raises(TypeError, match="expects bytes"):
        torch.compiler.load_cache_artifacts("text")


def test_substitute_of_another_signature():
    with pytest.raises(TypeError, match="Signature mismatch"):
        torch.compiler.substitute_in_graph(lambda x: x)(lambda y: y)


def test_allow_in_graph_of_no_callable():
    with pytest.raises(AssertionError, match="expects a callable"):
        torch.compiler.allow_in_graph(3)


def test_forbidden_function():
    forbidden = torch._dynamo.forbid_in_graph(lambda x: x)
    assert forbidden(3) == 3
    with pytest.raises(torch._dynamo.exc.Unsupported, match="forbidden"):
        torch.compile(forbidden)(3)


def test_dimension_out_of_range():
    with pytest.raises(AssertionError, match="out of range"):
        torch._dynamo.mark_dynamic(torch.ones(2), 1)


def test_compiled_functions_of_another_library():
    with pytest.raises(NotImplementedError, match="save_cache_artifacts"):
        torch.compiler.load_compiled_function(None)


def test_unknown_config():
    with pytest.raises(AttributeError, match="nonesuch"):
        with torch._dynamo.config.patch(nonesuch=1):
            pass


@pytest.mark.parametrize(
    "module",
    [
        torch._dynamo.config,
        torch._inductor.config,
        torch._inductor.config.triton,
        torch._functorch.config,
        torch.compiler.config,
    ],
)
def test_assigning_to_an_unknown_setting(module):
    with pytest.raises(AttributeError, match="nonesuch"):
        module.nonesuch = 1
    assert not hasattr(module, "nonesuch")


def test_patching_by_name_and_by_keyword():
    with pytest.raises(AssertionError, match="both positional and keyword"):
        torch._dynamo.config.patch("verbose", True, suppress_errors=True)


def test_numbers_of_compile_workers():
    with pytest.raises(ValueError, match="compile_threads must be a positive int, got 0"):
        torch._inductor.config.compile_threads = 0
    with pytest.raises(ValueError, match="from 0 to 256, got 1000"):
        torch._inductor.config.compile_threads = 1000
    with pytest.raises(RuntimeError, match="Unexpected type of attr compile_threads"):
        torch.compile(abs, options={"compile_threads": "all"})
