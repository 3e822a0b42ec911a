"""Trees of containers."""

import collections
import dataclasses

import pytest
import rushlight as torch
from rushlight.utils import _pytree as pytree

Pair = collections.namedtuple("Pair", "a b")


def trees():
    return [
        1,
        None,
        (),
        [1, (2, [3])],
        {"b": 1, "a": [2, None]},
        Pair(1, {"x": 2}),
        collections.OrderedDict(x=1, y=(2,)),
        collections.defaultdict(list, a=1),
        collections.deque([1, 2], maxlen=3),
        torch.Size([2, 3]),
        torch.max(torch.ones(2, 2), 0),
    ]


def same(a, b):
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, tuple):
        return type(a) is type(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("tree", trees(), ids=lambda tree: type(tree).__name__)
def test_a_tree_is_put_together_again(tree):
    leaves, spec = pytree.tree_flatten(tree)
    assert spec.num_leaves == len(leaves)
    assert same(spec.unflatten(leaves), tree)
    assert same(pytree.tree_unflatten(leaves, spec), tree)
    assert spec == pytree.tree_structure(tree)


def test_keys_keep_their_order():
    leaves, spec = pytree.tree_flatten({"b": 1, "a": 2})
    assert leaves == [1, 2]
    assert repr(spec) == "TreeSpec(dict, ['b', 'a'], [*,\n  *])"


def test_maxlen_and_factory_survive():
    grown = pytree.tree_map(lambda x: x + 1, collections.deque([1, 2], maxlen=3))
    assert grown == collections.deque([2, 3]) and grown.maxlen == 3
    table = pytree.tree_map(lambda x: x + 1, collections.defaultdict(list, a=1))
    assert table["new"] == []


def test_map_over_several_trees_matches_dicts_by_key():
    mapped = pytree.tree_map(lambda a, b: (a, b), {"a": 1, "b": 2}, {"b": 3, "a": 4})
    assert mapped == {"a": (1, 4), "b": (2, 3)}
    mapped = pytree.tree_map(lambda a, b: b, [1, 2], [(3, 4), 5])
    assert mapped == [(3, 4), 5]


@pytest.mark.parametrize(
    ("one", "other", "text"),
    [
        ([1, 2], [1], "Node arity mismatch; expected 2, but got 1."),
        ([1, 2], (1, 2), "Node type mismatch; expected <class 'list'>, but got <class 'tuple'>."),
        ({"a": 1}, {"b": 1}, r"Node keys mismatch; missing key\(s\): \['a'\]"),
        (Pair(1, 2), (1, 2), "Node type mismatch"),
    ],
)
def test_map_over_trees_that_do_not_fit(one, other, text):
    with pytest.raises(ValueError, match=text):
        pytree.tree_map(lambda a, b: a, one, other)


def test_unflatten_checks_the_number_of_leaves():
    spec = pytree.tree_structure([1, 2])
    with pytest.raises(ValueError, match="`leaves` has length 1 but the spec refers to a pytree"):
        spec.unflatten([1])
    with pytest.raises(TypeError, match="Expected `treespec` to be an instance of PyTreeSpec"):
        pytree.tree_unflatten([1], 3)


def test_only_and_predicates():
    assert pytree.tree_map_only(int, lambda x: x + 1, [1, "a", 2.0]) == [2, "a", 2.0]
    assert pytree.tree_map_only((int, float), lambda x: x + 1, [1, "a", 2.0]) == [2, "a", 3.0]
    assert pytree.tree_map_only(int | float, lambda x: x + 1, [1, "a"]) == [2, "a"]
    assert pytree.tree_map_only(lambda x: x == 1, lambda x: 7, [1, 2]) == [7, 2]
    with pytest.raises(TypeError, match="must be a type, a tuple of types, or a callable"):
        pytree.tree_map_only(3, lambda x: x, [1])
    assert pytree.tree_all_only(int, lambda x: x > 0, [1, -2.0])
    assert pytree.tree_any(lambda x: x < 0, [1, (-2.0,)])
    assert not pytree.tree_all(lambda x: x > 0, [1, -2.0])


def test_is_leaf_stops_early():
    leaves = pytree.tree_leaves([1, (2, 3)], is_leaf=lambda x: isinstance(x, tuple))
    assert leaves == [1, (2, 3)]
    assert pytree.tree_is_leaf(None) and not pytree.tree_is_leaf([])


def test_paths():
    tree = [{"a": Pair(1, 2)}, (3,)]
    pairs, spec = pytree.tree_flatten_with_path(tree)
    assert [pytree.keystr(path) for path, _ in pairs] == ["[0]['a'].a", "[0]['a'].b", "[1][0]"]
    assert [pytree.key_get(tree, path) for path, _ in pairs] == [1, 2, 3]
    mapped = pytree.tree_map_with_path(lambda path, x, y: (len(path), x + y), tree, tree)
    assert mapped == [{"a": Pair((3, 2), (3, 4))}, ((2, 6),)]
    assert spec.num_leaves == 3


class Box:
    def __init__(self, item):
        self.item = item


@pytest.fixture
def box():
    pytree.register_pytree_node(
        Box,
        lambda box: ([box.item], "note"),
        lambda children, context: Box(*children),
        serialized_type_name="test.Box",
    )
    yield Box
    pytree._deregister_pytree_node(Box)


def test_registered_classes_are_nodes(box):
    doubled = pytree.tree_map(lambda x: x * 2, [Box((1, 2))])
    assert doubled[0].item == (2, 4)
    with pytest.raises(ValueError, match="is already registered as pytree node"):
        pytree.register_pytree_node(Box, None, None)
    with pytest.raises(ValueError, match="Did not find a flatten_with_keys_fn for type"):
        pytree.tree_flatten_with_path(Box(1))


def test_structures_are_saved_as_text(box):
    tree = [1, {"a": (2,), "b": collections.deque([3], 4)}, Box(5)]
    spec = pytree.tree_structure(tree)
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    with pytest.raises(ValueError, match=r"Unknown protocol 4. Available protocols: \[1\]"):
        pytree.treespec_dumps(spec, 4)
    with pytest.raises(NotImplementedError, match="Can't serialize TreeSpec of namedtuple class"):
        pytree.treespec_dumps(pytree.tree_structure(Pair(1, 2)))
    counted = pytree.tree_structure(collections.defaultdict(list, a=1))
    assert pytree.treespec_loads(pytree.treespec_dumps(counted)) == counted


def test_dataclasses():
    @dataclasses.dataclass
    class Point:
        x: int
        y: object = None

    pytree.register_dataclass(Point)
    try:
        assert pytree.tree_map(lambda v: v + 1, Point(1, 2)) == Point(2, 3)
        assert pytree.tree_leaves(Point(1)) == [1]
        pairs, _ = pytree.tree_flatten_with_path(Point(1, 2))
        assert [pytree.keystr(path) for path, _ in pairs] == [".x", ".y"]
    finally:
        pytree._deregister_pytree_node(Point)


def test_constants_belong_to_the_structure():
    @dataclasses.dataclass(frozen=True)
    class Name:
        text: str

    pytree.register_constant(Name)
    try:
        leaves, spec = pytree.tree_flatten([Name("a"), 1])
        assert leaves == [1]
        assert spec != pytree.tree_structure([Name("b"), 1])
        assert spec.unflatten([2]) == [Name("a"), 2]
    finally:
        pytree._deregister_pytree_node(Name)


def test_prefix_is_spread_over_a_structure():
    spec = pytree.tree_structure(((1, 2), 3))
    assert pytree._broadcast_to_and_flatten((0, None), spec) == [0, 0, None]
    assert pytree._broadcast_to_and_flatten((0, None, 1), spec) is None


def test_modules_state_maps_as_a_dict():
    state = torch.nn.Linear(2, 3).state_dict()
    shapes = pytree.tree_map(lambda tensor: tuple(tensor.shape), state)
    assert shapes == {"weight": (3, 2), "bias": (3,)}
