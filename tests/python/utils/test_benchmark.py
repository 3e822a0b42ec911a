"""torch.utils.benchmark: what it says of given times, and that it runs what it is given."""

import pytest
import rushlight as torch
from rushlight.utils import benchmark
from rushlight.utils.benchmark import Compare, Measurement, TaskSpec, Timer

SPEC = TaskSpec("x+x", "pass", label="Add", sub_label="sz 1", description="one")
TABLE = """\
[---------- L -----------]
         |   f    |    g  
1 threads: ---------------
      a  |  10.0  |  250.0
      b  |  30.0  |    5.0
2 threads: ---------------
      a  |  70.0  |       
      b  |        |   90.0

Times are in microseconds (us).
"""  # noqa: W291


def test_measurement():
    m = Measurement(10, [1e-4, 1.1e-4, 1.2e-4, 1.05e-4, 1e-4], SPEC)
    assert m.median == pytest.approx(1.05e-5) and m.mean == pytest.approx(1.07e-5)
    assert m.iqr == pytest.approx(1e-6) and m.significant_figures == 1 and not m.has_warnings
    assert (m.title, m.as_row_name, m.label, m.num_threads) == ("Add: sz 1", "sz 1", "Add", 1)
    assert repr(m).splitlines()[1:] == [
        "Add: sz 1",
        "one",
        "  Median: 10.50 us",
        "  IQR:    1.00 us (10.00 to 11.00)",
        "  5 measurements, 10 runs per measurement, 1 thread",
    ]
    assert repr(Measurement(10, [2e-2], SPEC)).splitlines()[3:] == [
        "  2.00 ms",
        "  1 measurement, 10 runs , 1 thread",
    ]
    assert Measurement.merge([m, m])[0].raw_times == m.times * 2


def test_times_that_are_spread_are_warned_of():
    spec = TaskSpec("y*2", "y=1\nz=2", sub_label="sz 2", description="two", num_threads=4)
    lines = repr(Measurement(1, [1e-6, 5e-6, 3e-6, 9e-6], spec)).splitlines()[1:]
    assert lines[:6] == ["y*2: sz 2", "two", "setup:", "  y=1", "  z=2", ""]
    assert lines[8] == "  4 measurements, 1 runs per measurement, 4 threads"
    assert lines[9] == "  WARNING: Interquartile range is 87.5% of the median measurement."


def test_compare():
    def measured(row, threads, column, time):
        spec = TaskSpec("s", "pass", "", "L", row, column, None, threads)
        return Measurement(10, [time * 1e-4] * 3, spec)

    compare = Compare(
        [measured("a", 1, "f", 1.0), measured("a", 1, "g", 25.0), measured("b", 1, "f", 3.0)]
    )
    compare.extend_results(
        [measured("b", 1, "g", 0.5), measured("a", 2, "f", 7.0), measured("b", 2, "g", 9.0)]
    )
    assert str(compare) == TABLE
    compare.trim_significant_figures()
    assert str(compare) == TABLE
    compare.colorize()
    assert "\033[92m\033[1m10.0\033[0m\033[0m  |  \033[31m\033[1m250.0\033[0m" in str(compare)
    with pytest.raises(ValueError, match="Expected an instance of `Measurement`"):
        Compare([1.0])


def test_timer_runs_its_statement():
    calls = []
    timer = Timer("f(x)", setup="x = torch.ones(2)", globals={"f": calls.append}, num_threads=2)
    m = timer.timeit(5)
    assert m.number_per_run == 5 and len(m.raw_times) == 1 and m.num_threads == 2
    assert len(calls) == 7 and calls[0].tolist() == [1, 1]  # two were not counted
    assert sum(Timer("pass").blocked_autorange(min_run_time=0.002).raw_times) >= 0.002
    assert Timer("pass").adaptive_autorange(max_run_time=0.02).median > 0
    with pytest.raises(NotImplementedError, match="blocked_autorange"):
        timer.repeat()
    with pytest.raises(ValueError, match="only a `str` stmt"):
        Timer(calls.append)


def test_helpers():
    assert benchmark.select_unit(1e-5) == ("us", 1e-6)
    assert benchmark.unit_to_english("ms") == "millisecond"
    assert benchmark.trim_sigfig(1234.5, 2) == 1200
    before = torch.get_num_threads()
    with benchmark.set_torch_threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before
