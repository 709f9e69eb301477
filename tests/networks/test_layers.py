import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snnmap.errors import NetworkError
from snnmap.networks.layers import (
    concat_ids,
    conv,
    flatten_shape,
    global_pool,
    pool,
    window_geometry,
)
from tests.networks.slow import conv_links, matrix_of


@st.composite
def convolutions(draw):
    rank = draw(st.sampled_from([1, 2]))
    each = lambda low, high: tuple(draw(st.integers(low, high)) for _ in range(rank))  # noqa: E731
    groups = draw(st.integers(1, 3))
    spatial, kernel, stride = each(1, 7), each(1, 4), each(1, 3)
    dilation, padding = each(1, 2), tuple(zip(each(0, 2), each(0, 2), strict=True))
    channels, filters = groups * draw(st.integers(1, 2)), groups * draw(st.integers(1, 2))
    layout = draw(st.sampled_from(["hwc", "chw"]))
    return spatial, channels, filters, kernel, stride, padding, dilation, groups, layout


@given(convolutions())
def test_convolutions_link_what_their_definition_links(case):
    spatial, channels, filters, kernel, stride, padding, dilation, groups, layout = case
    shape = (*spatial, channels) if layout == "hwc" else (channels, *spatial)
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    sizes = [
        (n + sum(p) - r) // s + 1
        for n, p, r, s in zip(spatial, padding, reach, stride, strict=True)
    ]
    arguments = {"stride": stride, "padding": padding, "dilation": dilation}
    if any(n + sum(p) < r for n, p, r in zip(spatial, padding, reach, strict=True)):
        with pytest.raises(NetworkError, match="more than the"):
            conv(shape, filters, kernel, groups=groups, layout=layout, **arguments)
        return
    relation, out = conv(shape, filters, kernel, groups=groups, layout=layout, **arguments)
    assert out == ((*sizes, filters) if layout == "hwc" else (filters, *sizes))
    before = [p[0] for p in padding]
    slow = conv_links(shape, out, kernel, stride, before, dilation, groups, layout)
    assert np.array_equal(matrix_of(relation), slow)
    for row in range(relation.n_rows):  # ascending and distinct
        bounds = relation.offsets[row : row + 2]
        assert (np.diff(relation.targets[bounds[0] : bounds[1]]) > 0).all()


@given(convolutions())
def test_pooling_is_a_depthwise_window(case):
    spatial, channels, _, kernel, stride, _, _, _, layout = case
    shape = (*spatial, channels) if layout == "hwc" else (channels, *spatial)
    arguments = {"stride": stride, "padding": "same", "layout": layout}
    pooled = pool(shape, kernel, **arguments)
    depthwise = conv(shape, channels, kernel, groups=channels, **arguments)
    assert pooled[1] == depthwise[1]
    assert np.array_equal(matrix_of(pooled[0]), matrix_of(depthwise[0]))


def test_channels_of_a_pixel_share_a_row():
    relation, shape = conv((5, 4, 8), 16, 3, padding="same")
    assert (relation.n_rows, shape) == (20, (5, 4, 16))
    assert relation.rows.tolist() == np.repeat(np.arange(20), 8).tolist()
    assert pool((4, 4, 8), 2)[0].n_rows == 4 * 8  # and so do the pixels of a window


def test_depthwise_with_multiplier():
    relation, shape = conv((2, 2, 3), 6, 1, groups=3)
    assert shape == (2, 2, 6)
    assert relation.row(1).tolist() == [2, 3]


@pytest.mark.parametrize(
    ("n", "kernel", "stride", "dilation", "expected"),
    [
        (32, 3, 1, 1, (32, 1)),
        (32, 5, 1, 1, (32, 2)),
        (7, 4, 1, 1, (7, 1)),  # an odd total: the extra zero stands after
        (224, 3, 2, 1, (112, 0)),
        (9, 3, 1, 2, (9, 2)),
        (5, 1, 2, 1, (3, 0)),
    ],
)
def test_same_padding(n, kernel, stride, dilation, expected):
    assert window_geometry(n, kernel, stride, "same", dilation) == expected


@given(*[st.integers(1, high) for high in (20, 5, 6, 2)], st.integers(0, 2))
def test_ceil_mode_keeps_every_window_that_starts_inside(n, kernel, stride, dilation, padding):
    reach = dilation * (kernel - 1) + 1
    if reach > n + 2 * padding:
        return
    outputs, _ = window_geometry(n, kernel, stride, padding, dilation, ceil_mode=True)
    starts = [o * stride - padding for o in range(100)]
    whole = [s for s in starts if s + reach <= n + padding]
    cut = [s for s in starts if s < n and s - stride + reach < n + padding and s not in whole]
    assert outputs == len(whole) + len(cut)


@pytest.mark.parametrize("layout", ["hwc", "chw"])
def test_global_pool_joins_each_channel(layout):
    shape = (3, 2, 5) if layout == "hwc" else (5, 3, 2)
    relation, out = global_pool(shape, layout=layout)
    assert out == ((1, 1, 5) if layout == "hwc" else (5, 1, 1))
    channel = np.indices(shape)[-1 if layout == "hwc" else 0].ravel()
    assert np.array_equal(matrix_of(relation), channel[:, None] == np.arange(5))


def test_concat_ids_split_the_output():
    parts, shape = concat_ids([(2, 2, 1), (2, 2, 3)], -1)
    assert shape == (2, 2, 4)
    assert parts[0].tolist() == [0, 4, 8, 12]
    assert sorted(np.concatenate(parts)) == list(range(16))


def test_flatten_shape():
    assert flatten_shape((2, 3, 4)) == (24,)
    assert flatten_shape((2, 3, 4), 1) == (2, 12)
    assert flatten_shape((2, 3, 4), 0, 1) == (6, 4)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: conv((4, 4, 3), 0, 3), "filters is 0"),
        (lambda: conv((4, 4, 3), 4, 3, groups=2), "groups 2 does not divide the 3 input"),
        (lambda: conv((4, 4, 3), 4, 0), "kernel is 0"),
        (lambda: conv((4, 4, 3), 4, 3, stride=(1, 0)), "stride is 0"),
        (lambda: conv((4, 4, 3), 4, 3, padding=-1), "padding is -1"),
        (lambda: conv((4, 4, 3), 4, (3, 3, 3)), r"kernel \(3, 3, 3\) has 3 values; expected 2"),
        (lambda: conv((4,), 4, 3), "has 1 dimensions"),
        (lambda: conv((4, 4, 3), 4, 5), "spans 5 values, more than the 4"),
        (lambda: conv((60000, 60000, 1), 1, 1), "exceed the"),
        (lambda: concat_ids([(2, 2, 1), (2, 3, 1)], -1), "differ outside axis 2"),
        (lambda: concat_ids([(2, 2)], 4), "axis 4 is outside"),
        (lambda: flatten_shape((2, 2), 3), "cannot flatten"),
        (lambda: flatten_shape((2, 2), 1, 0), "cannot flatten"),
    ],
)
def test_impossible_layers_are_refused(call, text):
    with pytest.raises(NetworkError, match=text):
        call()
