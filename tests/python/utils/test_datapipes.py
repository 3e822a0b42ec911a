"""Pipes of data."""

import io
import pickle
from collections.abc import Iterator

import pytest
import rushlight as torch
from rushlight.utils.data import (
    DataChunk,
    DataLoader,
    IterDataPipe,
    MapDataPipe,
    functional_datapipe,
    graph,
    graph_settings,
    guaranteed_datapipes_determinism,
    non_deterministic,
    runtime_validation,
    runtime_validation_disabled,
)
from rushlight.utils.data.datapipes.iter import (
    FileLister,
    FileOpener,
    IterableWrapper,
    Shuffler,
    StreamReader,
)
from rushlight.utils.data.datapipes.map import SequenceWrapper


def numbers(count):
    return IterableWrapper(range(count))


def is_odd(x):
    return x % 2 == 1


@functional_datapipe("plus")
class Plus(IterDataPipe):
    def __init__(self, source, amount):
        self.source = source
        self.amount = amount

    def __iter__(self):
        for item in self.source:
            yield item + self.amount

    def __len__(self):
        return len(self.source)


def test_steps_follow_each_other():
    assert list(numbers(5).map(lambda x: x * 2)) == [0, 2, 4, 6, 8]
    assert list(numbers(6).filter(is_odd).plus(10)) == [11, 13, 15]
    assert list(numbers(5).batch(2)) == [[0, 1], [2, 3], [4]]
    assert list(numbers(5).batch(2, drop_last=True)) == [[0, 1], [2, 3]]
    assert all(type(batch) is DataChunk for batch in numbers(4).batch(2))
    assert list(IterableWrapper([[1, [2]], [3]]).unbatch()) == [1, [2], 3]
    assert list(IterableWrapper([[1, [2]], [3]]).unbatch(-1)) == [1, 2, 3]
    assert list(numbers(2).concat(numbers(1))) == [0, 1, 0]
    assert list(numbers(3).zip(numbers(2))) == [(0, 0), (1, 1)]
    assert list(numbers(3).mux(IterableWrapper(range(10, 15)))) == [0, 10, 1, 11, 2, 12]
    assert list(numbers(6).groupby(is_odd)) == [[0, 2, 4], [1, 3, 5]]
    assert list(numbers(4).groupby(is_odd, group_size=1, keep_key=True))[1] == (True, [1])
    (batch,) = numbers(3).batch(3).collate()
    assert torch.equal(batch, torch.arange(3))
    assert len(numbers(5).plus(1).batch(2)) == 3


def test_columns():
    rows = IterableWrapper([(1, 2), (3, 4)])
    assert list(rows.map(lambda x: x + 1, input_col=0)) == [(2, 2), (4, 4)]
    added = rows.map(lambda x, y: x + y, input_col=[0, 1], output_col=-1)
    assert list(added) == [(1, 2, 3), (3, 4, 7)]
    assert list(rows.map(lambda x, y: x + y, input_col=[0, 1])) == [(3,), (7,)]
    assert list(rows.filter(lambda x: x > 2, input_col=0)) == [(3, 4)]


def test_shuffling():
    assert list(numbers(5).shuffle().set_seed(3)) == [1, 2, 3, 4, 0]
    torch.manual_seed(0)
    assert list(numbers(8).shuffle(buffer_size=3)) == [0, 1, 3, 5, 2, 4, 6, 7]
    assert list(numbers(5).shuffle().set_shuffle(False)) == [0, 1, 2, 3, 4]
    assert list(SequenceWrapper(range(5)).shuffle().set_seed(0)) == [2, 1, 0, 4, 3]


def test_one_stream_for_several():
    even, odd = numbers(6).demux(2, lambda x: x % 2)
    assert list(even) == [0, 2, 4] and list(odd) == [1, 3, 5]
    assert list(zip(even, odd, strict=True)) == [(0, 1), (2, 3), (4, 5)]
    one, other = numbers(3).fork(2)
    assert list(one) == [0, 1, 2] and list(other) == [0, 1, 2] and len(one) == 3
    with pytest.raises(ValueError, match="should be between 0 and 0"):
        list(numbers(3).demux(1, lambda x: x)[0])
    with pytest.raises(BufferError, match="the buffer of 3 items overflows"):
        even, odd = numbers(10).demux(2, lambda x: 0, buffer_size=3)
        next(iter(odd))


def test_a_pipe_has_one_iterator():
    pipe = numbers(3)
    first = iter(pipe)
    next(first)
    second = iter(pipe)
    assert next(second) == 0
    with pytest.raises(RuntimeError, match="This iterator has been invalidated because another"):
        next(first)


def test_shares():
    pipe = numbers(5).sharding_filter()
    assert list(pipe) == [0, 1, 2, 3, 4]
    pipe.apply_sharding(2, 1)
    assert list(pipe) == [1, 3] and len(pipe) == 2
    with pytest.raises(ValueError, match=r"instance_id\(2\) should be smaller than"):
        pipe.apply_sharding(2, 2)


def test_data_loaders_share_pipes_among_workers():
    pipe = numbers(8).shuffle().sharding_filter().plus(1)
    batches = [batch.tolist() for batch in DataLoader(pipe, batch_size=2, num_workers=2)]
    assert sorted(sum(batches, [])) == [1, 2, 3, 4, 5, 6, 7, 8]
    alone = DataLoader(numbers(6).shuffle(), shuffle=False, batch_size=None)
    assert list(alone) == [0, 1, 2, 3, 4, 5]
    with pytest.warns(UserWarning, match="does not contain a `Shuffler`"):
        mixed = DataLoader(numbers(50), shuffle=True, batch_size=None)
    assert sorted(mixed) == list(range(50)) and list(mixed) != list(range(50))


def test_maps():
    pipe = SequenceWrapper(range(5))
    assert pipe.map(lambda x: x + 1)[2] == 3 and isinstance(pipe, MapDataPipe)
    assert list(pipe.batch(2)[2]) == [4] and len(pipe.batch(2)) == 3
    assert pipe.concat(pipe)[7] == 2 and pipe.zip(pipe)[1] == (1, 1)
    assert SequenceWrapper({"a": 1})["a"] == 1
    with pytest.raises(IndexError, match="out of range"):
        pipe.concat(pipe)[10]


def test_graphs():
    source = numbers(3)
    shuffler = source.shuffle()
    pipe = shuffler.zip(source.map(str)).batch(2)
    found = graph.traverse_dps(pipe)
    assert next(iter(found.values()))[0] is pipe
    names = sorted(type(each).__name__ for each in graph_settings.get_all_graph_pipes(found))
    assert names == [
        "BatcherIterDataPipe",
        "IterableWrapperIterDataPipe",
        "MapperIterDataPipe",
        "ShufflerIterDataPipe",
        "ZipperIterDataPipe",
    ]
    graph_settings.apply_shuffle_settings(pipe, shuffle=False)
    assert list(shuffler) == [0, 1, 2]
    graph_settings.apply_random_seed(pipe, torch.Generator().manual_seed(0))
    assert shuffler._seed is not None


def test_names_are_taken_once():
    with pytest.raises(Exception, match="function name plus as it is already taken"):
        functional_datapipe("plus")(Plus)
    with pytest.raises(TypeError, match="can only decorate IterDataPipe or MapDataPipe"):
        functional_datapipe("other")(int)
    with pytest.raises(AttributeError, match="'IterableWrapperIterDataPipe' object has no attrib"):
        numbers(2).nope()
    assert "plus" in dir(numbers(2)) and repr(numbers(2)) == "IterableWrapperIterDataPipe"


def test_pickles():
    pipe = pickle.loads(pickle.dumps(numbers(4).filter(is_odd).shuffle().set_seed(1)))
    assert sorted(pipe) == [1, 3]


def test_determinism():
    strict = non_deterministic(Shuffler)
    assert isinstance(strict(numbers(2)), Shuffler)
    with guaranteed_datapipes_determinism(), pytest.raises(TypeError, match="non-deterministic"):
        strict(numbers(2))


class Whole(IterDataPipe):
    def __init__(self, items):
        self.items = items

    @runtime_validation
    def __iter__(self) -> Iterator[int]:
        yield from self.items


def test_checked_items():
    assert list(Whole([1, 2])) == [1, 2]
    with pytest.raises(RuntimeError, match="Expected an instance as subtype of <class 'int'>"):
        list(Whole([1, "a"]))
    with runtime_validation_disabled():
        assert list(Whole([1, "a"])) == [1, "a"]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: numbers(2).batch(0), "Batch size is required to be larger than 0"),
        (lambda: numbers(2).shuffle(buffer_size=0), "buffer_size should be larger than 0"),
        (lambda: numbers(2).fork(0), "Expected `num_instances` larger than 0"),
        (lambda: list(numbers(2).filter(lambda x: x)), "Boolean output is required"),
        (lambda: numbers(2).map(str, output_col=1), "`output_col` must be None when"),
        (lambda: list(IterableWrapper([1]).unbatch()), "exceeds the depth"),
    ],
)
def test_mistakes(call, text):
    with pytest.raises((AssertionError, ValueError, IndexError), match=text):
        call()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("z.txt", "a.txt", "b/q.md", "b/a.txt", "b/c/k.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_files_of_folders(folder):
    assert list(FileLister(".")) == ["./a.txt", "./z.txt"]
    all_files = ["./a.txt", "./z.txt", "./b/a.txt", "./b/q.md", "./b/c/k.txt"]
    assert list(FileLister(".", recursive=True)) == all_files
    assert list(FileLister(["b", "."], "a*")) == ["b/a.txt", "./a.txt"]
    found = list(FileLister(".", ["*.md", "z*"], recursive=True, abspath=True))
    assert found == [str(folder / "z.txt"), str(folder / "b" / "q.md")]
    assert len(FileLister(length=3)) == 3
    with pytest.raises(TypeError, match="doesn't have valid length"):
        len(FileLister())


def test_contents_of_files(folder):
    paths = FileLister("b")
    assert list(paths.open_files(mode="b").read_from_stream(chunk=4)) == [
        ("b/a.txt", b"b/a."),
        ("b/a.txt", b"txt"),
        ("b/q.md", b"b/q."),
        ("b/q.md", b"md"),
    ]
    assert list(StreamReader(paths.open_files())) == [
        ("b/a.txt", "b/a.txt"),
        ("b/q.md", "b/q.md"),
    ]
    stream = io.StringIO("abc")
    assert list(StreamReader([("label", stream), ("empty", io.StringIO(""))])) == [("label", "abc")]
    assert stream.closed
    with pytest.raises(ValueError, match="Invalid mode w"):
        FileOpener(paths, mode="w")
    with pytest.raises(ValueError, match="binary mode doesn't take an encoding argument"):
        FileOpener(paths, mode="b", encoding="utf8")
    with pytest.raises(TypeError, match="Expected string type for pathname"):
        list(FileOpener([3]))


def test_names_of_pipes_by_keys():
    pipe = SequenceWrapper(range(3))
    assert repr(pipe) == "SequenceWrapperMapDataPipe"
    assert repr(pipe.map(str)) == "MapperMapDataPipe"
    assert repr(pipe.shuffle()) == "ShufflerIterDataPipe"


def test_generators_end_other_iterators_when_they_begin():
    pipe = numbers(3)
    first, second = iter(pipe), iter(pipe)
    assert next(first) == 0
    assert next(second) == 0
    with pytest.raises(RuntimeError, match="This iterator has been invalidated"):
        next(first)
    assert list(second) == [1, 2]

    class Plain(IterDataPipe):
        def __iter__(self):
            return iter([1, 2])

    pipe = Plain()
    first, second = iter(pipe), iter(pipe)
    with pytest.raises(RuntimeError, match="This iterator has been invalidated"):
        next(first)
    assert next(second) == 1
