"""Every operator of the table, compiled: forward, in-place, out= and backward have eager's bits.

Calls come from the random calls of tests/python/fuzz; those that eager takes are compared.
"""

import collections
import functools
import importlib.util
import pathlib
import warnings

import numpy as np
import pytest
import rushlight as torch
from rushlight import _C
from rushlight._dynamo.eval_frame import CompileContext

_path = pathlib.Path(__file__).parents[1] / "fuzz" / "calls.py"
_spec = importlib.util.spec_from_file_location("calls", _path)
calls = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(calls)

TRIES = 60  # random calls of an operator, of which this many that eager takes are compared:
COMPARED = 3
# Their shapes depend on data, or they give numbers: they end a segment and run at once.
UNCAPTURED = set(
    "nonzero nonzero_static masked_select unique_dim _unique2 unique_consecutive bincount argwhere "
    "repeat_interleave histc equal isin is_nonzero item _local_scalar_dense combinations "
    "nonzero_numpy masked_scatter count_nonzero".split()
)

# Families whose arguments need more than random calls know of; tests/python/nn and ops test them.
OWN_TESTS = {"flex_attention", "flex_mask", "interpolate", "convolution"} | {
    "recurrent",
    "recurrent_cell",
    "recurrent_layer",
    "recurrent_packing",
    "linear_cross_entropy",
    "linear_cross_entropy_loss",
    "matmul_grouped",
    "matmul_wide",
    "segment",
    "columns",
    "embedding_bag",
    "fft",
    "grid_sample",
    "loss_ctc",
    "pooling_average",
    "pooling_max",
    "pooling_unpool",
    "stft",
}


def families():
    found = collections.defaultdict(list)
    for row in calls.operators():
        found[row["row"]["family"]].append(row)
    return found


FAMILIES = families()


def frozen(value):
    """All that a program can see of a value, NaN being NaN."""
    if isinstance(value, torch.Tensor):
        plain = value.detach().contiguous()
        if plain.dtype in (torch.bfloat16, torch.float16):
            plain = plain.float()
        array = plain.numpy()
        if array.dtype.kind in "fc":
            array = np.where(np.isnan(array), np.array(np.nan, array.dtype), array)
        return str(value.dtype), tuple(value.shape), value.stride(), array.tobytes()
    if isinstance(value, (list, tuple)):
        return tuple(frozen(item) for item in value)
    return repr(value)


def tensors_of(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors_of(item)]
    return []


def arguments_of(row, seed):
    maker = calls.Maker(seed)
    maker.random.choice([row])
    return {match[6]: maker.argument(match) for match in row["arguments"]}


class Compiler:
    """Compiles calls, and keeps which operators could not be captured."""

    def __init__(self):
        self.uncaptured = set()
        self.captured = set()
        self._context = CompileContext("inductor", observer=self._observe)

    def _observe(self, reason, what, ops, called):
        self.captured.update(op.split(".")[0] for op in ops)
        if reason == "operator":
            self.uncaptured.add(what.split(".")[0])

    def outcome(self, function, arguments, compiled):
        """What comes out of a call, and what its arguments are afterwards; or the error."""
        if compiled:
            # Contexts name what they compile once.
            function = self._context(functools.partial(function))
        try:
            result = function(**arguments)
            return frozen(result), frozen(list(arguments.values()))
        except Exception as error:
            # A composition's error may name the operator that it consists of.
            text = str(error).split("\n")[0]
            return "raised", type(error).__name__, text.partition(": ")[2] or text


def with_gradients(function):
    """The call, and the gradients of what it gives by the arguments that require them."""

    def run(**arguments):
        leaves = [t for t in tensors_of(list(arguments.values())) if t.requires_grad]
        made = function(**arguments)
        roots = [t for t in tensors_of(made) if t.requires_grad and t.grad_fn is not None]
        if not roots or not leaves:
            return made
        real = [torch.view_as_real(t) if t.is_complex() else t for t in roots]
        total = sum(t.double().abs().sum() for t in real)
        return made, torch.autograd.grad(total, leaves, allow_unused=True)

    return run


def require(arguments):
    for tensor in tensors_of(list(arguments.values())):
        if tensor.is_floating_point() and tensor.is_leaf:
            tensor.requires_grad_()
    return arguments


def in_place(row):
    """The in-place form as a function; None where there is none."""
    name, overload = row["row"]["name"], row["row"]["overload"] or "default"
    if overload not in _C._overload_names(name + "_"):
        return None
    return getattr(getattr(torch.ops.aten, name + "_"), overload)


def with_out(row, result):
    """The out= form, writing to tensors of the result's shapes; None where there is none."""
    function = getattr(torch, row["row"]["name"], None)
    given = tensors_of(result)
    if function is None or not given or len(given) != len(tensors_of([result])):
        return None

    def run(**arguments):
        outs = [torch.full_like(t, 1) for t in given]
        function(**arguments, out=outs[0] if isinstance(result, torch.Tensor) else tuple(outs))
        return outs

    return run


def forms(row, seed):
    """The ways in which a call that eager takes can be made, each with how arguments are made."""
    make = functools.partial(arguments_of, row, seed)
    packet = getattr(torch.ops.aten, row["row"]["name"])
    function = getattr(packet, row["row"]["overload"] or "default")
    yield "forward", function, make
    yield "backward", with_gradients(function), lambda: require(make())
    written = in_place(row)
    if written is not None:
        yield "in-place", written, make
    try:
        out = with_out(row, function(**make()))
    except Exception:
        out = None
    if out is not None:
        yield "out=", out, make


@pytest.mark.parametrize("family", FAMILIES)
def test_compiled_operators(family):
    warnings.simplefilter("ignore")
    compiler = Compiler()
    faults, done, uncalled = [], collections.Counter(), []
    for row in FAMILIES[family]:
        name = row["row"]["name"]
        compared = 0
        for seed in range(TRIES):
            if compared == COMPARED:
                break
            for number, (form, function, make) in enumerate(forms(row, seed)):
                torch.manual_seed(seed)
                eager = compiler.outcome(function, make(), False)
                if eager[0] == "raised" and (number == 0 or form == "out="):
                    if number == 0:
                        break
                    continue
                torch.manual_seed(seed)
                if compiler.outcome(function, make(), True) != eager:
                    faults.append(f"{name}, {form}, call {seed}")
                done[form] += 1
                compared += number == 0
        if not compared:
            uncalled.append(name)
    assert not faults, f"{len(faults)} differ of {sum(done.values())}:\n" + "\n".join(faults)
    assert compiler.uncaptured <= UNCAPTURED
    assert done["forward"] >= len(FAMILIES[family]) - len(uncalled)
    assert len(uncalled) <= 0.6 * len(FAMILIES[family]) or family in OWN_TESTS, uncalled


def test_the_suite_is_of_the_whole_table():
    rows = sum(map(len, FAMILIES.values()))
    assert rows > 0.7 * len(_C._operator_table())
