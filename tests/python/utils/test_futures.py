"""Results that come later."""

import threading

import pytest
from rushlight.futures import Future, collect_all, wait_all


def test_results_are_waited_for():
    future = Future()
    assert not future.done()
    with pytest.raises(RuntimeError, match="not completed"):
        future.value()
    threading.Timer(0.05, future.set_result, (3,)).start()
    assert future.wait() == 3 and future.value() == 3 and future.done()
    with pytest.raises(RuntimeError, match="can only be marked completed once"):
        future.set_result(4)


def test_functions_that_follow():
    future, seen = Future(), []
    following = future.then(lambda done: done.wait() + 1)
    following.add_done_callback(lambda done: seen.append(done.value()))
    future.set_result(1)
    assert following.wait() == 2 and seen == [2]
    assert future.then(lambda done: done.value() * 10).wait() == 10
    with pytest.raises(TypeError, match="expected a callable"):
        future.then(3)


def test_errors_pass_on(capsys):
    future = Future()
    with pytest.raises(AssertionError, match="3 is of type <class 'int'>, not an Exception"):
        future.set_exception(3)
    future.set_exception(ValueError("no"))
    for ask in (future.wait, future.value):
        with pytest.raises(ValueError, match="no"):
            ask()
    with pytest.raises(RuntimeError, match="running the callback: ValueError: no"):
        future.then(lambda done: done.wait()).wait()
    assert future.then(lambda done: 5).wait() == 5
    future.add_done_callback(lambda done: 1 / 0)
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_several_at_once():
    one, other = Future(), Future()
    both = collect_all([one, other])
    one.set_result(1)
    assert not both.done()
    other.set_result(2)
    assert [future.value() for future in both.wait()] == [1, 2]
    assert wait_all([one, other]) == [1, 2] and wait_all([]) == []
    failed = Future()
    failed.set_exception(KeyError("k"))
    with pytest.raises(KeyError, match="k"):
        wait_all([one, failed])
    with pytest.raises(TypeError, match="expected a list of Futures"):
        collect_all([3])
    with pytest.raises(ValueError, match="Expected devices to have indices, got cpu"):
        Future(devices=["cpu"])
