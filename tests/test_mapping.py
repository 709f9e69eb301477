"""One call from network to verified mapping, its files, and the way back."""

from __future__ import annotations

import json
import re
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snnmap.errors import InputError, LimitError
from snnmap.hardware import Costs, HardwareProfile
from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits
from snnmap.mapping import Mapping, map_network, restore_mapping
from snnmap.stored import profile_from_record, read_mapping
from snnmap.verification import verify_mapping, verify_tables
from snnmap.writers.mapping import mapping_record, profile_record
from tests.small import from_rows, small, to_rows
from tests.strategies import hypergraphs

COSTS = Costs(
    route_energy_pj=1.5,
    hop_energy_x_pj=3.0,
    hop_energy_y_pj=4.0,
    route_latency_ns=2.0,
    hop_latency_x_ns=5.0,
    hop_latency_y_ns=6.0,
)
TINY = HardwareProfile(
    name="tiny",
    width=8,
    height=8,
    limits=Limits(max_size=3),
    costs=COSTS,
    dead_cores=frozenset({(0, 0), (3, 1)}),
)


def tiny_map(network: Hypergraph, profile: HardwareProfile = TINY, **options: object) -> Mapping:
    return map_network(network, profile, algorithm="one-pass", **options)


def test_the_small_network_is_mapped_measured_and_verified() -> None:
    mapping = tiny_map(small())
    assert mapping.is_verified
    assert mapping.is_complete
    assert mapping.partition.n_parts == 3 == mapping.bounds[0]
    by_name = {r.name: r for r in mapping.resources}
    assert by_name["neurons"].used.sum() == 8
    assert by_name["neurons"].limit == 3
    assert by_name["synapses"].used.sum() == sum(len(into) for _, into, _ in to_rows(small()))
    names, shares = mapping.layer_shares()
    assert names == ["in", "hidden", "out"]
    assert shares.sum(axis=0).tolist() == [3, 4, 1]
    text = mapping.summary()
    for words in ("8 neurons, 8 axons, 24 pins", "3 parts of 62 cores", "hidden", "verified"):
        assert words in text


def test_spike_loads_count_what_leaves_and_what_arrives() -> None:
    mapping = tiny_map(small())
    parts = mapping.partition.parts
    loads = np.zeros(mapping.partition.n_parts)
    for sources, destinations, weight in to_rows(mapping.hypergraph):
        for part in {parts[n] for n in sources}:
            loads[part] += weight
        for part in {parts[n] for n in destinations}:
            loads[part] += weight
    np.testing.assert_allclose(mapping.spike_loads, loads)


def test_inputs_off_the_chip_have_no_part() -> None:
    mapping = tiny_map(small(), inputs_off_chip=True)
    assert mapping.node_parts[:3].tolist() == [-1, -1, -1]
    assert (mapping.node_parts[3:] >= 0).all()
    assert mapping.inputs_off_chip
    assert mapping.hypergraph.n_hedges == 8, "axons of inputs still enter the cores"
    assert "3 inputs off the chip" in mapping.summary()
    assert mapping_record(mapping)["network"]["inputs_off_chip"] == 3


def test_a_profile_by_name_with_overrides() -> None:
    mapping = map_network(
        small(), "loihi64", algorithm="one-pass", overrides=("neurons_per_core=2",)
    )
    assert mapping.partition.n_parts == 4
    assert mapping_record(mapping)["profile"]["overrides"] == ["neurons_per_core=2"]


def test_what_cannot_fit_names_the_neuron_and_the_profile() -> None:
    profile = replace(TINY, limits=Limits(max_size=3, max_inbound=3))
    with pytest.raises(LimitError, match=r"neuron 0 of 'hidden' .* 4 exceeds .* 3 of .*'tiny'"):
        tiny_map(small(), profile)


def test_one_core_and_as_many_cores_as_parts() -> None:
    one = replace(TINY, width=1, height=1, dead_cores=frozenset(), limits=Limits(max_size=8))
    assert tiny_map(small(), one).placement.cores.tolist() == [[0, 0]]
    eight = replace(TINY, width=4, height=2, dead_cores=frozenset(), limits=Limits(max_size=1))
    mapping = tiny_map(small(), eight)
    assert sorted(map(tuple, mapping.placement.cores.tolist())) == [
        (x, y) for x in range(4) for y in range(2)
    ]


def test_the_record_has_what_the_manual_promises() -> None:
    record = json.loads(json.dumps(mapping_record(tiny_map(small())), allow_nan=False))
    assert {"name", "nodes", "hyperedges", "pins", "sha256"} <= record["network"].keys()
    assert {"name", "neurons_per_core", "inbound_axons_per_core"} <= record["profile"].keys()
    partition = record["partition"]
    assert {"algorithm", "engine", "preset", "seed", "parts", "connectivity", "cut_net"} <= (
        partition.keys()
    )
    assert {"max_neurons", "max_inbound_axons"} <= partition.keys()
    assert partition["lower_bounds"].keys() == {"parts", "connectivity"}
    assert {"read", "partition", "place", "total"} <= partition["seconds"].keys()
    assert {"placer", "cores"} <= record["placement"].keys()
    for model in ("unicast", "multicast"):
        costs = record["traffic"][model]
        assert {"energy_pj", "mean_latency_ns", "max_latency_ns"} <= costs.keys()
    assert record["verified"] is True


def test_unknown_costs_are_null_and_na() -> None:
    mapping = tiny_map(small(), replace(TINY, costs=Costs()))
    assert mapping.is_verified
    assert mapping_record(mapping)["traffic"]["unicast"]["energy_pj"] is None
    assert re.search(r"^energy +n/a +n/a$", mapping.summary(), re.MULTILINE)


def test_a_network_may_be_a_name_a_matrix_or_a_graph() -> None:
    import networkx
    from scipy import sparse

    named = tiny_map("lenet", replace(TINY, limits=Limits(max_size=512)))
    assert named.network.n_nodes == 13846
    assert named.source.path == "lenet"
    links = sparse.coo_array(([1.0, 2.0, 3.0], ([0, 0, 2], [1, 2, 0])), shape=(3, 3))
    graph = networkx.DiGraph([(0, 1), (0, 2), (2, 0)])
    for network in (links, links.toarray(), graph):
        mapping = tiny_map(network)
        assert mapping.is_verified
        assert [into for _, into, _ in to_rows(mapping.network)] == [[1, 2], [0]]


# ---------------------------------------------------------------------- files


@given(network=hypergraphs(), off=st.booleans(), size=st.integers(1, 4))
def test_any_mapping_survives_its_files(network: Hypergraph, off: bool, size: int) -> None:
    profile = replace(TINY, limits=Limits(max_size=size))
    mapping = tiny_map(network, profile, inputs_off_chip=off)
    assert mapping.violations == ()
    with tempfile.TemporaryDirectory() as folder:
        mapping.write(folder, plots=False, neurons=True)
        stored = read_mapping(folder)
        assert not list(Path(folder).glob(".*")), "temporary files stay behind"
    assert verify_tables(stored, mapping.hypergraph, mapping.network) == ()
    assert to_rows(stored.part_graph) == to_rows(mapping.part_graph)
    again = restore_mapping(stored, network)
    first, second = mapping_record(mapping), mapping_record(again)
    for section in ("profile", "utilization", "layers", "traffic", "verified"):
        assert first[section] == second[section]
    assert np.array_equal(again.node_parts, mapping.node_parts)


@given(network=hypergraphs(min_nodes=1))
def test_every_spike_can_be_followed_through_the_tables(network: Hypergraph) -> None:
    mapping = tiny_map(network)
    with tempfile.TemporaryDirectory() as folder:
        mapping.write(folder, plots=False)
        t = read_mapping(folder).tables
    parts = mapping.node_parts
    offsets, group_offsets = t["groups/axon_offsets"], t["groups/part_offsets"]
    reached = []
    for axon, (sources, destinations, _) in enumerate(to_rows(mapping.network)):
        group = int(np.searchsorted(offsets, axon, side="right")) - 1
        went = t["groups/parts"][group_offsets[group] : group_offsets[group + 1]].tolist()
        assert went == sorted({int(parts[n]) for n in destinations})
        first, last = t["axons/source_offsets"][axon : axon + 2]
        assert t["axons/sources"][first:last].tolist() == sources
        reached.append((sources, went))
    for part in range(mapping.partition.n_parts):
        rows = t["inbound/groups"][slice(*t["inbound/offsets"][part : part + 2])]
        inbound = [a for g in rows for a in range(offsets[g], offsets[g + 1])]
        assert inbound == [a for a, (_, went) in enumerate(reached) if part in went]
        outbound = t["outbound/axons"][slice(*t["outbound/offsets"][part : part + 2])].tolist()
        expected = [a for a, (out, _) in enumerate(reached) if part in {int(parts[n]) for n in out}]
        assert outbound == expected


def test_equal_mappings_give_equal_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        tiny_map(small()).write(tmp_path / name, plots=False, neurons=True)
        time.sleep(1.1)  # HDF5 would note the second of writing
    files = [f.name for f in (tmp_path / "a").iterdir() if f.name != "mapping.json"]
    assert "mapping.h5" in files
    for name in files:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_text_files_say_the_same(tmp_path: Path) -> None:
    mapping = tiny_map(small(), inputs_off_chip=True)
    mapping.write(tmp_path, plots=False, neurons=True)
    lines = (tmp_path / "partition.txt").read_text().splitlines()
    assert lines == [str(p) for p in mapping.node_parts.tolist()]
    neurons = (tmp_path / "neurons.csv").read_text().splitlines()
    assert neurons[0] == "neuron,layer,index,part,x,y"
    assert neurons[1] == "0,in,0,-1,,"
    part = mapping.node_parts[5]
    x, y = mapping.placement.cores[part]
    assert neurons[6] == f"5,hidden,2,{part},{x},{y}"
    cores = (tmp_path / "placement.csv").read_text().splitlines()
    assert len(cores) == 1 + mapping.partition.n_parts
    assert f",{x},{y},0,0," in cores[1 + part]


def test_a_profile_survives_its_record() -> None:
    assert profile_from_record(json.loads(json.dumps(profile_record(TINY)))) == TINY


def test_another_network_is_refused(tmp_path: Path) -> None:
    tiny_map(small()).write(tmp_path, plots=False)
    stored = read_mapping(tmp_path)
    rows = to_rows(small())
    changed = [*rows[:-1], (rows[-1][0], rows[-1][1], 99.0)]
    with pytest.raises(InputError, match="not the one that was mapped"):
        restore_mapping(stored, from_rows(8, changed))
    with pytest.raises(InputError, match="9 nodes, but 8 were mapped"):
        restore_mapping(stored, from_rows(9, rows))


def test_a_folder_without_a_mapping_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no mapping"):
        read_mapping(tmp_path)
    (tmp_path / "mapping.h5").write_bytes(b"nothing of the kind")
    with pytest.raises(InputError, match="not an HDF5 file"):
        read_mapping(tmp_path)


# ---------------------------------------------------------------------- the judge


def faults(mapping: Mapping, **changes: object) -> str:
    """What the verifier says of a mapping after some of it was changed behind its back."""
    arguments = {
        "parts": mapping.partition.parts,
        "cores": mapping.placement.cores,
        "connectivity": mapping.metrics.connectivity,
        "traffic": mapping.traffic,
        "profile": mapping.profile,
        "limits": mapping.limits,
    } | changes
    return "\n".join(verify_mapping(mapping.hypergraph, **arguments))


def test_the_judge_finds_nothing_in_a_good_mapping() -> None:
    assert faults(tiny_map(small())) == ""


@pytest.mark.parametrize(
    ("core", "words"),
    [((0, 0), "core (0, 0) is dead"), ((8, 1), "outside the grid"), ((-1, 0), "outside the grid")],
)
def test_the_judge_finds_wrong_cores(core: tuple[int, int], words: str) -> None:
    mapping = tiny_map(small())
    cores = mapping.placement.cores.copy()
    cores[1] = core
    assert f"part 1: core ({core[0]}, {core[1]})" in faults(mapping, cores=cores)
    assert words in faults(mapping, cores=cores)


def test_the_judge_finds_a_core_used_twice() -> None:
    mapping = tiny_map(small())
    cores = mapping.placement.cores.copy()
    cores[2] = cores[0]
    assert "already holds part 0" in faults(mapping, cores=cores)


def test_the_judge_finds_an_overfull_part_and_a_false_claim() -> None:
    mapping = tiny_map(small())
    assert "size 3 exceeds the limit 2" in faults(mapping, limits=Limits(max_size=2))
    assert "connectivity" in faults(mapping, connectivity=mapping.metrics.connectivity + 1)


def test_the_judge_finds_false_traffic() -> None:
    mapping = tiny_map(small())
    t = mapping.traffic
    delivered = t.unicast.delivered.copy()
    delivered[1] += 1
    for model, change, words in (
        ("unicast", {"hops": t.unicast.hops + 1}, "hops"),
        ("unicast", {"energy_pj": t.unicast.energy_pj * 1.001}, "energy"),
        ("unicast", {"delivered": delivered}, "delivered"),
        ("multicast", {"injected": t.multicast.injected * 1.1}, "injected"),
        ("multicast", {"conserved": False}, "loses or invents"),
        ("multicast", {"hops": t.unicast.hops + 1}, "longer than separate"),
    ):
        changed = replace(t, **{model: replace(t.routing(model), **change)})
        assert words in faults(mapping, traffic=changed), words


@given(network=hypergraphs(min_nodes=1), topology=st.sampled_from(["mesh", "torus", "hex-torus"]))
def test_the_judge_agrees_with_traffic_on_every_topology(
    network: Hypergraph, topology: str
) -> None:
    profile = replace(TINY, topology=topology, tile=(2, 1), chips=(2, 2), dead_cores=frozenset())
    assert tiny_map(network, profile).violations == ()
