import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from snnmap.networks import relations
from snnmap.networks.layers import conv, pool
from tests.networks.slow import matrix_of, relation_of


def matrices(n, m):
    return arrays(bool, (n, m))


@given(st.data(), *[st.integers(1, 6)] * 3)
def test_then_is_the_boolean_product(data, n, m, k):
    first, second = data.draw(matrices(n, m)), data.draw(matrices(m, k))
    joined = relation_of(first).then(relation_of(second))
    assert np.array_equal(matrix_of(joined), (first.astype(int) @ second) > 0)


@given(st.data(), st.integers(1, 6), st.integers(1, 6))
def test_rows_links_and_weights_give_the_matrix(data, n, m):
    matrix = data.draw(matrices(n, m))
    plain = relation_of(matrix)
    sources, targets = np.nonzero(matrix)
    shuffle = np.random.default_rng(0).permutation(len(sources))
    pairs = relations.from_links(sources[shuffle], targets[shuffle], n, m)
    weighted = relations.from_weights(matrix.T.astype(float), drop_zeros=True)
    twice = relations.from_links(np.tile(sources, 2), np.tile(targets, 2), n, m)
    for relation in (plain, pairs, weighted, twice):
        assert np.array_equal(matrix_of(relation), matrix)
        assert relation.fan_outs().tolist() == matrix.sum(1).tolist()
    assert pairs.n_rows == len(np.unique(matrix, axis=0))


def test_zero_weights_are_links_unless_dropped():
    weights = np.array([[0.0, 1.0], [0.0, 0.0]])
    assert matrix_of(relations.from_weights(weights)).all()
    assert matrix_of(relations.from_weights(weights, drop_zeros=True)).tolist() == [
        [False, False],
        [True, False],
    ]


@given(st.data(), st.integers(1, 6), st.integers(1, 6))
def test_relabel_moves_and_drops_columns(data, n, m):
    matrix = data.draw(matrices(n, m))
    places = np.array(data.draw(st.permutations(range(m + 2))))[:m]
    places[data.draw(arrays(bool, m))] = -1
    moved = np.zeros((n, m + 2), bool)
    for column, place in enumerate(places):
        if place >= 0:
            moved[:, place] = matrix[:, column]
    assert np.array_equal(matrix_of(relation_of(matrix).relabel(places, m + 2)), moved)


def test_simple_relations():
    assert matrix_of(relations.identity(3)).tolist() == np.eye(3, dtype=bool).tolist()
    assert matrix_of(relations.one_to_one(2, 3)).tolist() == np.eye(2, 3, dtype=bool).tolist()
    assert matrix_of(relations.one_to_one(3, 2)).tolist() == np.eye(3, 2, dtype=bool).tolist()
    assert relations.dense(4, 3).n_rows == 1
    assert matrix_of(relations.dense(4, 3)).all()
    assert matrix_of(relations.dense(0, 3)).shape == (0, 3)


def test_unequal_sizes_do_not_compose():
    with pytest.raises(ValueError, match="3 targets meet 2 sources"):
        relations.dense(2, 3).then(relations.dense(2, 2))


def test_channels_share_again_after_a_pooling_without_neurons():
    pooled, shape = pool((8, 8, 16), 2)
    joined = pooled.then(conv(shape, 32, 3, padding="same")[0])
    assert pooled.n_rows == 4 * 4 * 16
    assert joined.n_rows == 4 * 4  # the four pixels of a window reach the same
