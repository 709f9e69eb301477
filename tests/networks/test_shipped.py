"""The networks that come along, against Table I and an independent construction."""

import math
import tracemalloc

import numpy as np
import pytest

from snnmap.errors import NetworkError
from snnmap.networks import load_model, load_network, network_names

TABLE = {  # nodes, h-edges, pins
    "16k-model": (20_570, 20_560, 765_864),
    "64k-model": (110_298, 109_456, 23_018_512),
    "256k-model": (216_794, 215_120, 89_745_536),
    "1M-model": (301_994, 301_984, 256_105_600),
    "lenet": (13_846, 13_836, 874_812),
    "alexnet": (208_650, 208_640, 145_251_328),
    "vgg11": (194_058, 194_048, 133_554_432),
}
RATES = {
    "lenet": 0.89, "alexnet": 1.84, "16k-model": 0.96,
    "vgg11": 1.58, "64k-model": 1.58, "256k-model": 1.58, "1M-model": 1.58,
}  # fmt: skip

C3 = lambda filters: ("conv", 3, filters)  # noqa: E731
P, D = ("pool",), lambda units: ("dense", units)
LAYERS = {
    "lenet": (32, 3, [("conv", 5, 6), P, ("valid", 5, 16), P, D(120), D(84), D(10)]),
    "alexnet": (
        32, 3,
        [C3(64), P, C3(192), P, C3(384), C3(256), C3(256), P, D(512), D(256), D(10)],
    ),
    "vgg11": (
        32, 3,
        [C3(64), P, C3(128), P, C3(256), C3(256), P, C3(512), C3(512), P, C3(512), C3(512), P,
         D(4096), D(4096), D(10)],
    ),
    "16k-model": (32, 3, [C3(6), C3(6), P, C3(4), ("conv", 5, 8), P, D(64), D(16), D(10)]),
    "64k-model": (28, 1, [C3(32), C3(64), P, C3(64), P, C3(64), P, C3(256), D(10)]),
    "256k-model": (28, 1, [C3(64), C3(128), P, C3(128), P, C3(128), P, D(1000), D(600), D(10)]),
    "1M-model": (
        28, 1,
        [C3(16), C3(32), ("conv", 5, 128), P, C3(192), C3(192), C3(256), P, D(128), D(16), D(10)],
    ),
}  # fmt: skip


def destinations_by_definition(size, channels, layers):
    """Yield (first node, side, channels, function (y, x, c) -> destination list) of each layer."""
    base = 0
    for layer in layers:
        nodes = size * size * channels
        out, filters = base + nodes, channels
        if layer[0] == "dense":
            yield base, size, channels, lambda y, x, c, o=out, n=layer[1]: range(o, o + n)
            base, size, channels = out, 1, layer[1]
            continue
        if layer[0] == "pool":
            side = size // 2

            def reach(y, x, c, o=out, s=side, f=filters):
                inside = y // 2 < s and x // 2 < s
                return [o + ((y // 2) * s + x // 2) * f + c] if inside else []

        else:
            _, k, filters = layer
            low = k // 2 if layer[0] == "conv" else 0
            side = size if layer[0] == "conv" else size - k + 1

            def reach(y, x, c, o=out, s=side, f=filters, k=k, low=low):
                rows = [r for r in range(s) if 0 <= y + low - r < k]
                columns = [r for r in range(s) if 0 <= x + low - r < k]
                return [o + (r * s + q) * f + g for r in rows for q in columns for g in range(f)]

        yield base, size, channels, reach
        base, size, channels = out, side, filters


@pytest.mark.parametrize("name", TABLE)
def test_counts_of_table_1_are_exact(name):
    h = load_network(name)
    assert (h.n_nodes, h.n_hedges, h.n_pins) == TABLE[name]
    assert load_model(name).stand_in == name.endswith("-model")
    h.__class__.from_groups(  # every id in range, every rate finite
        h.n_nodes, h.group_offsets, h.destinations, h.hedge_groups, h.sources, h.weights
    )


@pytest.mark.parametrize("name", TABLE)
def test_links_and_rates_equal_an_independent_construction(name):
    h = load_network(name)
    order = np.argsort(h.sources)
    sources = h.sources[order]
    sigma = math.sqrt(math.log(1 + RATES[name] ** 2))
    rates = np.exp(np.random.default_rng(7).normal(0.0, sigma, len(sources)))
    assert np.array_equal(h.weights[order], rates.astype(np.float32))

    groups = h.hedge_groups[order]
    place = {int(s): i for i, s in enumerate(sources)}
    rng = np.random.default_rng(1)
    size, channels, layers = LAYERS[name]
    for base, side, depth, reach in destinations_by_definition(size, channels, layers):
        pixels = [(y, x) for y in range(side) for x in range(side)]
        if len(pixels) > 12:  # the corners and some others; all of them in small layers
            some = rng.choice(len(pixels), 8, replace=False)
            pixels = [pixels[i] for i in (0, side - 1, -side, -1, *some)]
        for y, x in pixels:
            for c in {0, depth // 2, depth - 1}:
                node = base + (y * side + x) * depth + c
                expected = list(reach(y, x, c))
                if not expected:
                    assert node not in place
                    continue
                g = groups[place[node]]
                row = h.destinations[h.group_offsets[g] : h.group_offsets[g + 1]]
                assert row.tolist() == expected


def test_alexnet_stays_small():
    tracemalloc.start()
    h = load_network("alexnet")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6
    assert len(h.destinations) < h.n_pins / 90


@pytest.mark.parametrize(
    ("name", "nodes", "pins"),
    [
        ("pilotnet", 118_909 + 39_600, None),
        ("mobilenet-v1", 5_195_240, None),
        ("resnet18", 3072 + 3 * 65536 + 2 * 65536 + 4 * (32768 + 16384 + 8192) + 512 + 10, None),
        ("16k-rand", 16_384, 2_102_916),
    ],
)
def test_counts_of_the_others(name, nodes, pins):
    h = load_network(name)
    assert h.n_nodes == nodes
    if pins is not None:
        assert (h.n_hedges, h.n_pins) == (16_384, pins)


def test_mobilenet_alternates_depthwise_and_pointwise_layers():
    shapes = [p.shape for p in load_network("mobilenet-v1").populations]
    assert shapes[:4] == [(224, 224, 3), (112, 112, 32), (112, 112, 32), (112, 112, 64)]
    assert shapes[-3:] == [(7, 7, 1024), (1, 1, 1024), (1000,)]
    assert len(shapes) == 1 + 1 + 2 * 13 + 2


def test_residual_axons_reach_the_convolution_and_the_sum():
    h = load_network("resnet18")
    populations = {p.name: p for p in h.populations}
    assert list(populations)[:4] == ["input", "stem", "block1a.conv1", "block1a"]
    stem, first, block = (populations[n] for n in list(populations)[1:4])
    e = int(np.flatnonzero(h.sources == stem.start + 64 * (32 * 5 + 7) + 3)[0])
    g = h.hedge_groups[e]
    row = h.destinations[h.group_offsets[g] : h.group_offsets[g + 1]]
    assert len(row) == 9 * 64 + 1
    assert (row < first.stop).sum() == 9 * 64
    assert row[-1] == block.start + 64 * (32 * 5 + 7) + 3


def test_every_description_says_what_it_is():
    for name in network_names():
        model = load_model(name)
        assert model.name == name
        assert model.description
        assert model.values["source"]
        assert model.profile
        assert ("tand-in" in model.description) == model.stand_in


@pytest.mark.parametrize("name", ["lenett", "no/such/file.snn"])
def test_unknown_names_list_the_known(name):
    with pytest.raises(
        NetworkError, match=r"neither a file nor a network that comes along; .*lenet"
    ):
        load_network(name)
    with pytest.raises(NetworkError, match="no network is called"):
        load_model(name)


@pytest.mark.parametrize(
    ("name", "fan_out", "published"),
    [("16k-rand", 128, 1.103), ("64k-rand", 192, 0.603)],  # 256k-rand: 0.260 against 0.262
)
def test_reservoirs_have_the_published_fan_out_and_overlap(name, fan_out, published):
    h = load_network(name)
    cardinalities = h.hedge_cardinalities
    assert cardinalities.mean() == pytest.approx(fan_out + 1, rel=0.01)
    # Poisson, but cut where too few neurons lie above
    usual = np.abs(cardinalities - 1 - fan_out) < 4 * np.sqrt(fan_out)
    assert usual.mean() > 0.985
    assert (cardinalities[usual] - 1).std() == pytest.approx(np.sqrt(fan_out), rel=0.05)
    # mean number of shared pins of two h-edges: pairs at each node over all pairs
    degrees = np.bincount(h.destinations, minlength=h.n_nodes)
    degrees += np.bincount(h.sources, minlength=h.n_nodes)
    overlap = (degrees * (degrees - 1)).sum() / h.n_hedges / (h.n_hedges - 1)
    assert overlap == pytest.approx(published, rel=0.02)
