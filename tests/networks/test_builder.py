import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snnmap.errors import NetworkError
from snnmap.hypergraph import Hypergraph, Projection
from snnmap.networks.builder import NetworkBuilder, add, concat
from snnmap.networks.layers import conv, pool
from snnmap.networks.rates import ConstantRates, GivenRates, LognormalRates
from snnmap.networks.relations import dense, from_links, identity, one_to_one
from tests.networks.slow import matrix_of, relation_of, rows_of


def check_normal(h: Hypergraph) -> None:
    """The builder's arrays are what the checking constructor makes of them."""
    again = Hypergraph.from_groups(
        h.n_nodes, h.group_offsets, h.destinations, h.hedge_groups, h.sources, h.weights,
        populations=h.populations, projections=h.projections, name=h.name,
    )  # fmt: skip
    for name, value in vars(again).items():
        if isinstance(value, np.ndarray):
            assert np.array_equal(value, getattr(h, name)), name
            assert value.dtype == getattr(h, name).dtype, name
    assert (np.diff(h.group_offsets) > 0).all()
    assert (np.diff(h.hedge_offsets) > 0).all()


@st.composite
def random_networks(draw):
    """(population sizes, [(source, target, matrix)])."""
    sizes = draw(st.lists(st.integers(0, 5), min_size=1, max_size=4))
    population = st.integers(0, len(sizes) - 1)
    links = []
    for a, b in draw(st.lists(st.tuples(population, population), max_size=6)):
        bits = draw(
            st.lists(st.booleans(), min_size=sizes[a] * sizes[b], max_size=sizes[a] * sizes[b])
        )
        links.append((a, b, np.array(bits, bool).reshape(sizes[a], sizes[b])))
    return sizes, links


@given(random_networks())
def test_an_axon_reaches_the_union_of_all_links(case):
    sizes, links = case
    builder = NetworkBuilder()
    signals = [builder.population(f"p{i}", (n,)) for i, n in enumerate(sizes)]
    starts = np.cumsum([0, *sizes])
    union = np.zeros((starts[-1], starts[-1]), bool)
    for a, b, matrix in links:
        builder.connect(signals[a].through(relation_of(matrix), (sizes[b],)), f"p{b}")
        union[starts[a] : starts[a + 1], starts[b] : starts[b + 1]] |= matrix
    h = builder.build(GivenRates(np.arange(starts[-1], dtype=float)))
    check_normal(h)
    expected = {
        s: (np.flatnonzero(line).tolist(), float(s)) for s, line in enumerate(union) if line.any()
    }
    assert rows_of(h) == expected


def test_a_layered_network_stays_grouped():
    builder = NetworkBuilder("net")
    image = builder.population("input", (6, 6, 2), is_input=True)
    c1 = builder.population("c1", (6, 6, 8), image.through(*conv((6, 6, 2), 8, 3, padding="same")))
    p1 = builder.population("p1", (3, 3, 8), c1.through(*pool((6, 6, 8), 2)))
    builder.population("out", (10,), p1.through(dense(72, 10), (10,)))
    h = builder.build()
    check_normal(h)
    assert h.n_nodes == 72 + 288 + 72 + 10
    assert h.n_groups == 36 + 288 // 4 + 1 or h.n_groups == 36 + 288 + 1
    assert [p.name for p in h.populations if p.is_input] == ["input"]
    assert h.projections[0] == Projection("input", "c1")


def test_a_residual_sum_feeds_its_neurons_from_both_ways():
    builder = NetworkBuilder()
    a = builder.population("a", (4, 4, 2))
    b = builder.population("b", (4, 4, 2), a.through(*conv(a.shape, 2, 3, padding="same")))
    c = b.through(*conv(b.shape, 2, 3, padding="same"))
    builder.population("sum", (4, 4, 2), add([c, a]))
    h = builder.build()
    check_normal(h)
    window = matrix_of(conv((4, 4, 2), 2, 3, padding="same")[0])
    for s in range(32):
        assert rows_of(h)[s][0] == [*(32 + np.flatnonzero(window[s])), 64 + s]
        assert rows_of(h)[32 + s][0] == list(64 + np.flatnonzero(window[s]))


def test_a_term_added_twice_counts_once():
    builder = NetworkBuilder()
    a = builder.population("a", (3,))
    builder.population("b", (3,), add([a, a, a.through(one_to_one(3, 3), (3,))]))
    assert rows_of(builder.build()) == {s: ([3 + s], 1.0) for s in range(3)}


def test_concatenated_signals_keep_their_places():
    builder = NetworkBuilder()
    a = builder.population("a", (2, 2, 1))
    b = builder.population("b", (2, 2, 2))
    joined = concat([a, b], -1)
    assert joined.shape == (2, 2, 3)
    builder.population("c", joined.shape, joined)
    rows = rows_of(builder.build())
    assert [rows[s][0][0] - 12 for s in range(4)] == [0, 3, 6, 9]
    assert [rows[4 + s][0][0] - 12 for s in range(8)] == [1, 2, 4, 5, 7, 8, 10, 11]


def test_recurrence_and_self_loops():
    builder = NetworkBuilder()
    a = builder.population("a", (3,))
    builder.connect(a.through(dense(3, 3), (3,)), "a")
    h = builder.build()
    assert h.n_groups == 1
    assert h.fan_ins.tolist() == [3, 3, 3]
    assert h.n_pins == 9


def test_delays_add_up_along_a_way_and_span_parallel_ways():
    builder = NetworkBuilder()
    a = builder.population("a", (2,))
    builder.population("b", (2,), a.delayed((1.0, 2.0)).delayed((0.5, 0.5)))
    builder.connect(a.delayed((7.0, 9.0)).through(identity(2), (2,)), "b")
    builder.connect(a, "a")
    assert builder.build().projections == (
        Projection("a", "b", (1.5, 9.0)),
        Projection("a", "a", None),
    )


def test_empty_networks_and_layers():
    assert NetworkBuilder().build().n_nodes == 0
    builder = NetworkBuilder()
    a = builder.population("a", (0,))
    b = builder.population("b", (3,), a.through(dense(0, 3), (3,)))
    builder.population("c", (0, 4), b.through(dense(3, 0), (0, 4)))
    h = builder.build()
    check_normal(h)
    assert (h.n_nodes, h.n_hedges, h.n_groups) == (3, 0, 0)


def test_rates_of_a_layer_override_the_network_and_leave_the_rest_alone():
    def build(own):
        builder = NetworkBuilder()
        a = builder.population("a", (50,), rates=own)
        b = builder.population("b", (50,), a)
        builder.population("c", (1,), b.through(dense(50, 1), (1,)))
        return {
            s: weight for s, (_, weight) in rows_of(builder.build(LognormalRates(cv=2.0))).items()
        }

    plain, changed = build(None), build(ConstantRates(5.0))
    assert set(plain) == set(range(100))
    assert [changed[s] for s in range(50)] == [5.0] * 50
    assert [changed[s] for s in range(50, 100)] == [plain[s] for s in range(50, 100)]


def test_sources_come_in_order_where_rows_do():
    builder = NetworkBuilder()
    a = builder.population("a", (3, 3, 4))
    builder.population("b", (3, 3, 4), a.through(*conv((3, 3, 4), 4, 3, padding="same")))
    assert builder.build().sources.tolist() == list(range(36))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda b, a: b.population("a", (3,)), "two layers are named 'a'"),
        (lambda b, a: b.population("b", (-1,)), "negative dimension"),
        (lambda b, a: b.population("b", (2**16, 2**16)), "layer 'b': 4,294,967,299 neurons exceed"),
        (lambda b, a: b.population("b", (4,), a), r"layer 'b': 3 values \(3,\) feed 4 neurons"),
        (lambda b, a: a.reshape((2, 2)), "3 values of shape"),
        (lambda b, a: add([a, a.reshape((3, 1))]), "cannot be added"),
        (lambda b, a: b.build(GivenRates(np.ones(2))), "2 rates for 3 neurons"),
    ],
)
def test_misfits_are_refused(call, text):
    builder = NetworkBuilder()
    a = builder.population("a", (3,))
    builder.connect(a.through(from_links([0], [1], 3, 3), (3,)), "a")
    with pytest.raises(NetworkError, match=text):
        call(builder, a)


def test_wrong_rates_of_a_layer_name_it():
    builder = NetworkBuilder()
    a = builder.population("a", (3,), rates=GivenRates(np.ones(4)))
    builder.population("b", (3,), a)
    with pytest.raises(NetworkError, match="layer 'a': 4 rates for 3 neurons"):
        builder.build()
