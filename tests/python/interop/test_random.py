"""Random streams: equal to PyTorch's for the same seed."""

import pytest
import rushlight

DTYPES = ["float16", "bfloat16", "float32", "float64"]
SIZES = [0, 1, 5, 15, 16, 17, 40, 1000]

FILLS = {
    "uniform_": (lambda t, g: t.uniform_(-3, 7, generator=g), DTYPES),
    "normal_": (lambda t, g: t.normal_(0.5, 2, generator=g), DTYPES),
    "bernoulli_": (lambda t, g: t.bernoulli_(0.3, generator=g), [*DTYPES, "int64", "bool"]),
    "exponential_": (lambda t, g: t.exponential_(2.5, generator=g), DTYPES),
    "geometric_": (lambda t, g: t.geometric_(0.3, generator=g), ["float32", "int64"]),
    "cauchy_": (lambda t, g: t.cauchy_(1, 2, generator=g), DTYPES),
    "log_normal_": (lambda t, g: t.log_normal_(0.5, 0.7, generator=g), DTYPES),
    "random_": (lambda t, g: t.random_(generator=g), [*DTYPES, "int64", "int32", "uint8", "bool"]),
    "random_to": (lambda t, g: t.random_(-5, 100, generator=g), ["float32", "int64", "int8"]),
    "random_wide": (lambda t, g: t.random_(-5, 2**40, generator=g), ["int64"]),
}


def _same(mine, theirs):
    assert str(mine.dtype) == str(theirs.dtype)
    assert tuple(mine.shape) == tuple(theirs.shape)
    assert mine.tolist() == theirs.tolist()


@pytest.mark.parametrize("name", FILLS)
def test_fills_equal_pytorchs(name, theirs):
    fill, dtypes = FILLS[name]
    for dtype in dtypes:
        for size in SIZES:
            results = []
            for library in (rushlight, theirs):
                generator = library.Generator().manual_seed(7)
                tensor = library.zeros(size, dtype=getattr(library, dtype))
                fill(tensor, generator)
                fill(tensor, generator)  # the state that the first left
                results.append(tensor)
            _same(*results)


CALLS = {
    "rand": lambda t: t.rand(3, 5),
    "randn": lambda t: t.randn(7, 11),
    "randn of 3": lambda t: t.randn(3),
    "randn complex": lambda t: t.randn(20, dtype=t.complex64),
    "randint": lambda t: t.randint(3, 90, (20,)),
    "randperm": lambda t: t.randperm(100),
    "rand_like": lambda t: t.rand_like(t.ones(3, 4).t()),
    "randint_like": lambda t: t.randint_like(t.ones(3, 4), 5),
    "normal": lambda t: t.normal(t.arange(20.0), t.arange(1.0, 21.0)),
    "normal mean": lambda t: t.normal(t.arange(20.0), 0.5),
    "normal std": lambda t: t.normal(0.5, t.arange(1.0, 21.0)),
    "normal sizes": lambda t: t.normal(1.0, 2.0, (4, 5)),
    "bernoulli": lambda t: t.bernoulli(t.linspace(0, 1, 30)),
    "poisson": lambda t: t.poisson(t.linspace(0, 40, 30)),
    "multinomial": lambda t: t.multinomial(t.arange(1.0, 9.0), 5),
    "multinomial rows": lambda t: t.multinomial(t.ones(3, 8), 20, replacement=True),
    "multinomial one": lambda t: t.multinomial(t.ones(3, 8), 1),
    "dropout": lambda t: t.nn.functional.dropout(t.arange(50.0), 0.4),
    "feature_dropout": lambda t: t.feature_dropout(t.ones(4, 5, 3), 0.4, True),
    "alpha_dropout": lambda t: t.alpha_dropout(t.arange(50.0), 0.4, True),
    "native_dropout": lambda t: t.native_dropout(t.arange(50.0), 0.4, True)[1],
    "transposed fill": lambda t: t.zeros(4, 6).t().uniform_(),
    "strided fill": lambda t: t.zeros(8, 6)[::2, ::3].normal_(),
}


@pytest.mark.parametrize("name", CALLS)
def test_functions_equal_pytorchs(name, theirs):
    for seed in (0, 1234):
        results = []
        for library in (rushlight, theirs):
            library.manual_seed(seed)
            results.append((CALLS[name](library), library.rand(1)))
        (mine, mine_after), (expected, expected_after) = results
        _same(mine, expected)
        _same(mine_after, expected_after)


def test_states_go_both_ways(theirs):
    theirs.manual_seed(5)
    theirs.randn(3)
    rushlight.set_rng_state(
        rushlight.tensor(theirs.get_rng_state().tolist(), dtype=rushlight.uint8)
    )
    _same(rushlight.randn(20), theirs.randn(20))
    state = rushlight.get_rng_state()
    expected = rushlight.rand(4).tolist()
    theirs.set_rng_state(theirs.tensor(state.tolist(), dtype=theirs.uint8))
    assert theirs.rand(4).tolist() == expected


def test_fork_rng_puts_the_state_back():
    rushlight.manual_seed(3)
    with rushlight.random.fork_rng():
        rushlight.rand(10)
    inside = rushlight.rand(2).tolist()
    rushlight.manual_seed(3)
    assert rushlight.rand(2).tolist() == inside


def test_a_negative_deviation_is_refused():
    with pytest.raises(RuntimeError, match="normal expects std >= 0.0, but found std -1"):
        rushlight.zeros(3).normal_(0, -1)


def test_an_empty_range_is_refused():
    with pytest.raises(RuntimeError, match="expects 'from' to be less than 'to'"):
        rushlight.randint(5, 5, (2,))


def test_integers_past_the_dtype_are_refused():
    with pytest.raises(RuntimeError, match="to - 1 is out of bounds for unsigned char"):
        rushlight.randint(0, 300, (2,), dtype=rushlight.uint8)


def test_dropout_gradient_is_the_mask():
    x = rushlight.ones(100, requires_grad=True)
    y = rushlight.dropout(x, 0.25, True)
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()


def _permuted(tensor):
    return tensor.t().contiguous().t()


LAID_OUT = {
    "dropout": lambda t: t.dropout(_permuted(t.ones(5, 7)), 0.5, True),
    "alpha_dropout": lambda t: t.alpha_dropout(_permuted(t.ones(5, 7)), 0.5, True),
    "feature_dropout": lambda t: t.feature_dropout(_permuted(t.ones(5, 7)), 0.5, True),
    "native_dropout": lambda t: t.native_dropout(_permuted(t.ones(5, 7)), 0.5, True)[1],
    "multinomial": lambda t: t.multinomial(_permuted(t.ones(5, 7)), 3),
}


@pytest.mark.parametrize("name", LAID_OUT)
def test_numbers_are_drawn_in_the_order_of_memory(name, theirs):
    results = []
    for library in (rushlight, theirs):
        library.manual_seed(3)
        results.append(LAID_OUT[name](library))
    _same(*results)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
def test_random_slopes_equal_pytorchs(dtype, theirs):
    results = []
    for library in (rushlight, theirs):
        library.manual_seed(3)
        x = library.full((64,), -3.3, dtype=getattr(library, dtype))
        results.append(library.rrelu(x, training=True))
    _same(*results)


def test_dropout_of_a_transposed_input_without_an_oracle():
    rushlight.manual_seed(3)
    x = _permuted(rushlight.ones(2, 3))
    assert rushlight.dropout(x, 0.5, True).tolist() == [[2.0, 0.0, 0.0], [2.0, 2.0, 0.0]]
