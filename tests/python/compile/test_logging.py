"""torch._logging: artifacts and levels become topics of the core, told on stderr."""

import json
import logging
import os
import subprocess
import sys
import warnings

import pytest
import rushlight as torch
from rushlight import _C
from rushlight._logging import (
    LazyString,
    getArtifactLogger,
    hide_warnings,
    set_logs,
    trace_structured,
    warning_once,
)


@pytest.fixture(autouse=True)
def quiet():
    yield
    set_logs()


def told(capfd, function, *args):
    """What the core writes while a newly compiled function runs."""
    torch._dynamo.reset()
    capfd.readouterr()
    torch.compile(function)(*args)
    return capfd.readouterr().err


def branches(x):
    y = x * 2
    if y.sum() > 0:  # the line
        return y + 1
    return y


def test_graph_breaks(capfd):
    set_logs(graph_breaks=True)
    text = told(capfd, branches, torch.ones(3))
    assert text.count("[breaks]") == 1 and "bool(tensor) needs a value" in text
    line = branches.__code__.co_firstlineno + 2
    assert f'File "{__file__}", line {line}, in branches' in text
    set_logs()
    assert told(capfd, branches, torch.ones(3)) == ""


def test_graphs_and_plans(capfd):
    set_logs(graph_code=True, recompiles=True)
    text = told(capfd, lambda x: x.sin() + 1, torch.ones(3))
    assert "[graphs]" in text and "sin(self=%0)" in text and "[plans] 2 nodes" in text
    assert "[passes]" not in text


def test_levels(capfd):
    set_logs(inductor=logging.INFO)
    assert told(capfd, lambda x: x.cos() + 1, torch.ones(3)) == ""
    set_logs(inductor=logging.DEBUG)
    assert "[passes]" in told(capfd, lambda x: x.cos() + 2, torch.ones(3))
    assert logging.getLogger("torch._inductor").level == logging.DEBUG
    set_logs()
    assert logging.getLogger("torch._inductor").level == logging.NOTSET


def test_output_code(capfd):
    set_logs(modules={"output_code": True, "rushlight.nn": logging.WARNING})
    assert "[loops] kernel" in told(capfd, lambda x: (x * 3.25).exp() - x, torch.ones(3))
    assert logging.getLogger("rushlight.nn").level == logging.WARNING


def test_artifact_loggers(capsys):
    logger = getArtifactLogger("torch.mine", "graph_breaks")
    assert not logger.isEnabledFor(logging.DEBUG)
    set_logs(graph_breaks=True)
    assert logger.isEnabledFor(logging.DEBUG)
    late = getArtifactLogger("torch.late", "graph_breaks")
    assert late.isEnabledFor(logging.DEBUG)
    set_logs()
    assert not logger.isEnabledFor(logging.DEBUG)


def test_helpers():
    made = []
    text = LazyString(lambda x: made.append(x) or f"<{x}>", 3)
    assert made == [] and str(text) == "<3>" and made == [3]
    logger = logging.getLogger("once")
    seen = []
    logger.addFilter(lambda record: seen.append(record.getMessage()))
    for _ in range(3):
        warning_once(logger, "only once")
    assert seen == ["only once"]
    shown = []
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *rest, **named: shown.append(str(message))
        with hide_warnings(lambda message, *rest: "not this" in str(message)):
            warnings.warn("not this", stacklevel=1)
            warnings.warn("but this", stacklevel=1)
        warnings.warn("not this", stacklevel=1)
    assert shown == ["but this", "not this"]


def test_structured_traces(monkeypatch):
    log = logging.getLogger("torch.__trace")
    monkeypatch.setattr(log, "handlers", [])
    trace_structured("nobody listens", lambda: 1 / 0)
    seen = []
    handler = logging.Handler()
    handler.emit = lambda record: seen.append(json.loads(record.getMessage()))
    monkeypatch.setattr(log, "handlers", [handler])
    monkeypatch.setattr(log, "level", logging.DEBUG)
    log.manager._clear_cache()
    trace_structured("event", lambda: {"n": 3}, payload_fn=lambda: "text", compile_id="0/1")
    assert seen == [{"event": {"n": 3}, "payload": "text", "compile_id": "0/1"}]


@pytest.mark.parametrize(
    "arguments, text",
    [
        ({"graph": 3}, "Expected bool to enable artifact graph, received 3"),
        ({"dynamo": True}, "Unrecognized log level for log dynamo: True, valid .* 50,40,30"),
        ({"modules": {"nonesuch": 3}}, "Unrecognized log or artifact name .* nonesuch"),
    ],
)
def test_mistakes(arguments, text):
    with pytest.raises(ValueError, match=text):
        set_logs(**arguments)
    with pytest.raises(ValueError, match="'nonesuch' not registered"):
        getArtifactLogger("x", "nonesuch")
    with pytest.raises(ValueError, match="there is no topic 'nonesuch'"):
        _C._set_log_topics("plans,nonesuch")


def run(code, **environment):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )


def test_environment():
    code = "import rushlight as torch; torch.compile(lambda x: x.sin() + 1)(torch.ones(2))"
    assert "[graphs]" in run(code, TORCH_LOGS="graph,+dynamo").stderr
    both = run(code, TORCH_LOGS="graph", RUSHLIGHT_LOG="plans").stderr
    assert "[graphs]" in both and "[plans]" in both
    assert run(code, TORCH_LOGS="dynamo").stderr == ""
    assert "there is no 'nonesuch'" in run(code, TORCH_LOGS="nonesuch").stderr
    again = "import rushlight._logging as l; l.set_logs(graph=True)"
    assert "ignoring call to set_logs" in run(again, TORCH_LOGS="dynamo").stderr
