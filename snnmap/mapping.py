"""The whole path in one call: network + profile -> partition -> placement -> traffic -> checked.

    map_network(network, profile)  ->  Mapping  ->  .summary(), .write("out")

Nothing here decides anything; every step is its own room's. The result is verified by
`snnmap.verification`, which shares no code with the steps.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Table
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from snnmap.errors import LimitError
from snnmap.hardware import HardwareProfile, load_profile
from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits
from snnmap.networks import load_network
from snnmap.partitioning import partition as run_partition
from snnmap.partitioning.bounds import connectivity_lower_bound, parts_lower_bound
from snnmap.partitioning.feasibility import check_feasible
from snnmap.partitioning.metrics import PartitionMetrics, measure
from snnmap.partitioning.result import Partition
from snnmap.placement import Placement, part_hypergraph, place
from snnmap.placement.joint import check_n_parts, improve_jointly
from snnmap.progress import SILENT, Progress
from snnmap.readers.objects import from_object
from snnmap.stored import StoredMapping, network_digest
from snnmap.traffic import TrafficReport, measure_traffic
from snnmap.verification import verify_mapping

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Source:
    """Where a network came from, so that a mapping can be repeated and checked.

    Attributes:
        path: file or name as the user gave it; None for a live object.
        sha256: of the file's bytes (hex); None if there is no file.
        options: what was chosen when reading (rates, seeds, directions).
        seconds: time spent reading.
    """

    path: str | None = None
    sha256: str | None = None
    options: Table[str, Any] = field(default_factory=dict)
    seconds: float = 0.0


@dataclass(frozen=True, eq=False)
class Resource:
    """How much of one thing every core holds.

    Attributes:
        name: plural, e.g. ``"inbound axons"``.
        used: int64[n_parts].
        limit: most that a core may hold; None if unlimited or not known.
        is_soft: the limit is a default of the chip's software, not a wall.
    """

    name: str
    used: Array
    limit: int | None
    is_soft: bool = False


@dataclass(frozen=True, eq=False)
class Mapping:
    """A network on a chip, with everything that was decided, measured and checked.

    Attributes:
        network: as it was given, with shared destination sets stored once.
        hypergraph: what takes cores; `network` without its inputs if these are off the chip.
        nodes: int64[hypergraph.n_nodes], the node of `network` that each node is.
        profile: the chip.
        limits: what each part had to respect.
        partition: a part for every node of `hypergraph`.
        part_graph: the hypergraph of parts.
        placement: a core for every part; None if not placed.
        traffic: loads and costs; None if not placed.
        metrics: of the partition.
        bounds: lower bounds (parts, connectivity) that no partition can beat.
        violations: what the independent verifier found wrong; empty for a valid mapping.
        source: where the network came from.
        overrides: settings of the profile that the user replaced.
        preset: of the partitioner.
        seconds: wall clock by phase: read, prepare, partition, part graph, place, traffic, verify,
            total.
    """

    network: Hypergraph
    hypergraph: Hypergraph
    nodes: Array
    profile: HardwareProfile
    limits: Limits
    partition: Partition
    part_graph: Hypergraph
    placement: Placement | None
    traffic: TrafficReport | None
    metrics: PartitionMetrics
    bounds: tuple[int, float]
    violations: tuple[str, ...] = ()
    source: Source = field(default_factory=Source)
    overrides: tuple[str, ...] = ()
    preset: str = "default"
    seconds: Table[str, float] = field(default_factory=dict)

    @property
    def is_verified(self) -> bool:
        """Whether the independent check found nothing wrong."""
        return not self.violations

    @property
    def is_complete(self) -> bool:
        """False if a time limit or an interruption ended a search early."""
        return self.partition.complete and (self.placement is None or self.placement.complete)

    @property
    def inputs_off_chip(self) -> bool:
        """Whether input populations take no core."""
        return self.hypergraph.n_nodes < self.network.n_nodes

    @cached_property
    def node_parts(self) -> Array:
        """int32[network.n_nodes]: part of each node; -1 for inputs off the chip."""
        parts = np.full(self.network.n_nodes, -1, np.int32)
        parts[self.nodes] = self.partition.parts
        return parts

    @cached_property
    def resources(self) -> tuple[Resource, ...]:
        """What cores hold, in the order neurons, inbound, outbound, (all) axons, synapses."""
        m, limits, soft = self.metrics, self.limits, self.profile.soft
        rows = [
            ("neurons", m.sizes, limits.max_size, "neurons_per_core"),
            ("inbound axons", m.inbound, limits.max_inbound, "inbound_axons_per_core"),
            ("outbound axons", m.outbound, limits.max_outbound, "outbound_axons_per_core"),
            ("axons in and out", m.incident, limits.max_incident, "incident_axons_per_core"),
            ("synapses", m.synapses, limits.max_synapses, "synapses_per_core"),
        ]
        return tuple(
            Resource(name, used, limit, key in soft)
            for name, used, limit, key in rows
            if limit is not None or key != "incident_axons_per_core"
        )

    @cached_property
    def spike_loads(self) -> Array:
        """float64[n_parts]: spikes/s that leave each part's neurons or reach them."""
        g = self.part_graph
        weights = np.repeat(g.weights, np.diff(g.source_offsets))
        loads = np.bincount(g.sources, weights, minlength=g.n_nodes)
        per_group = np.add.reduceat(np.append(g.weights, 0.0), g.hedge_offsets[:-1])
        per_group[np.diff(g.hedge_offsets) == 0] = 0.0
        rows = np.repeat(per_group, np.diff(g.group_offsets))
        return np.asarray(loads + np.bincount(g.destinations, rows, minlength=g.n_nodes))

    def layer_shares(self) -> tuple[list[str], Array]:
        """(layer names, int64[n_parts, n_layers] neurons of each layer in each part)."""
        layers = self.hypergraph.populations
        shares = np.zeros((self.partition.n_parts, len(layers)), np.int64)
        for i, layer in enumerate(layers):
            parts = self.partition.parts[layer.start : layer.stop]
            shares[:, i] = np.bincount(parts, minlength=self.partition.n_parts)
        return [layer.name for layer in layers], shares

    @cached_property
    def content_sha256(self) -> str:
        """Digest of the network itself, whatever file it came from."""
        return network_digest(self.network)

    def summary(self) -> str:
        """Network, chip, result, bounds, utilisation and costs as aligned plain text."""
        from snnmap.report import summary_text

        return summary_text(self)

    def write(self, folder: str | Path, *, plots: bool = True, neurons: bool = False) -> list[Path]:
        """Write every result file into `folder`, all or none; see `snnmap.writers.mapping`.

        Args:
            folder: made if missing; files of an earlier mapping in it are replaced.
            plots: draw the figures.
            neurons: also write ``neurons.csv``, one line a neuron.

        Returns:
            The files, in alphabetical order.

        Raises:
            OutputError: the folder cannot be written.
        """
        from snnmap.writers.atomic import result_folder, writing
        from snnmap.writers.mapping import RESULT_FILES, write_files

        folder = Path(folder)
        with result_folder(folder, known=RESULT_FILES) as stage, writing(folder):
            names = write_files(self, stage, plots=plots, neurons=neurons)
        return sorted(folder / name for name in names)


def map_network(
    network: Any,
    profile: HardwareProfile | str,
    *,
    algorithm: str = "multilevel",
    preset: str = "default",
    config: Any = None,
    engine: str = "auto",
    seed: int = 0,
    placer: str = "auto",
    refine: str | None = None,
    joint: bool = False,
    inputs_off_chip: bool = False,
    limits: Limits | None = None,
    only_partition: bool = False,
    overrides: Sequence[str] = (),
    source: Source | None = None,
    progress: Progress = SILENT,
) -> Mapping:
    """Partition a network, place its parts on a chip, measure and verify the result.

    Args:
        network: a `Hypergraph`, the name or path of one, or what
            :func:`snnmap.readers.objects.from_object` takes (SciPy, NumPy, networkx).
        profile: the chip, or its name.
        algorithm: of partitioning, see :func:`snnmap.partitioning.partition`.
        preset: its time against quality.
        config: its settings instead of a preset.
        engine: ``"auto"``, ``"cpu"`` or ``"gpu"``, for partitioning and placement.
        seed: same seed, same mapping.
        placer: ``"auto"`` or a name of ``snnmap.placement.PLACERS``.
        refine: a name of ``snnmap.placement.REFINEMENTS``; None goes with the placer.
        joint: afterwards move neurons between parts, and parts between cores, where that shortens
            what spikes travel (see :mod:`snnmap.placement.joint`).
        inputs_off_chip: input populations take no core.
        limits: instead of the profile's own.
        only_partition: stop before placement.
        overrides: settings of the profile that the user replaced; applied if `profile` is a name,
            and recorded.
        source: where the network came from, for the records.
        progress: who listens, and may stop the search early (the best valid state is returned).

    Raises:
        LimitError: something cannot fit: what, how much, the limit, a remedy.
        ConfigError, EngineError, ProfileError: settings that do not exist or cannot run.
    """
    began = time.perf_counter()
    if isinstance(profile, str):
        profile = load_profile(profile, overrides)
    limits = profile.limits if limits is None else limits
    network, source = _as_hypergraph(network, source, progress)
    seconds = {"read": source.seconds}

    with _timed(seconds, "prepare", progress):
        network = network.grouped()
        hypergraph, nodes = _on_chip(network, inputs_off_chip)
        check_feasible(hypergraph, limits, profile=profile.name)
        if joint:
            check_n_parts(parts_lower_bound(hypergraph, limits))  # before, not after, the work
    with _timed(seconds, "partition"), _naming(profile):
        partition = run_partition(
            hypergraph,
            limits,
            algorithm=algorithm,
            preset=preset,
            config=config,
            engine=engine,
            seed=seed,
            progress=progress,
        )
    with _timed(seconds, "part graph", progress):
        part_graph = part_hypergraph(hypergraph, partition)
    placement = traffic = None
    if not only_partition:
        with _timed(seconds, "place"), _naming(profile):
            placement = place(
                part_graph,
                profile,
                placer=placer,
                refine=refine,
                engine=engine,
                seed=seed,
                progress=progress,
            )
        if joint:
            with _timed(seconds, "joint"):
                improved = improve_jointly(
                    hypergraph, partition, placement, profile, limits, progress=progress
                )
                partition, placement = improved.partition, improved.placement
                part_graph = part_hypergraph(hypergraph, partition)
        with _timed(seconds, "traffic"):
            traffic = measure_traffic(part_graph, placement, profile, progress=progress)
    with _timed(seconds, "verify", progress):
        mapping = _checked(
            Mapping(
                network=network,
                hypergraph=hypergraph,
                nodes=nodes,
                profile=profile,
                limits=limits,
                partition=partition,
                part_graph=part_graph,
                placement=placement,
                traffic=traffic,
                metrics=measure(hypergraph, partition.parts),
                bounds=_bounds(hypergraph, limits),
                source=source,
                overrides=tuple(overrides),
                preset=preset,
            )
        )
    seconds["total"] = source.seconds + time.perf_counter() - began
    return replace(mapping, seconds=seconds)


def restore_mapping(
    stored: StoredMapping,
    network: Hypergraph,
    *,
    source: Source | None = None,
    progress: Progress = SILENT,
) -> Mapping:
    """A mapping as it was written, with everything measured and verified anew.

    Args:
        stored: see :func:`snnmap.stored.read_mapping`.
        network: the network that was mapped.
        source: where that came from.
        progress: who listens.

    Raises:
        InputError: the network is not the one that was mapped.
    """
    network = network.grouped()
    stored.check_network(network)
    network = replace(network, name=stored.about_network["name"])  # files get renamed
    hypergraph, nodes = _on_chip(network, bool(stored.about_network["inputs_off_chip"]))
    stored.check_nodes(nodes)
    partition = stored.partition
    part_graph = part_hypergraph(hypergraph, partition)
    placement = traffic = None
    if stored.cores is not None:
        placement = stored.placement
        traffic = measure_traffic(part_graph, placement, stored.profile, progress=progress)
    return _checked(
        Mapping(
            network=network,
            hypergraph=hypergraph,
            nodes=nodes,
            profile=stored.profile,
            limits=stored.limits,
            partition=partition,
            part_graph=part_graph,
            placement=placement,
            traffic=traffic,
            metrics=measure(hypergraph, partition.parts),
            bounds=_bounds(hypergraph, stored.limits),
            source=Source() if source is None else source,
            overrides=tuple(stored.settings["overrides"]),
            preset=stored.settings["preset"],
        )
    )


def _as_hypergraph(
    network: Any, source: Source | None, progress: Progress
) -> tuple[Hypergraph, Source]:
    if isinstance(network, Hypergraph):
        return network, source or Source()
    began = time.perf_counter()
    if isinstance(network, str | Path):
        made, path = load_network(network, progress), str(network)
        return made, source or Source(path=path, seconds=time.perf_counter() - began)
    return from_object(network), source or Source(seconds=time.perf_counter() - began)


def _on_chip(network: Hypergraph, inputs_off_chip: bool) -> tuple[Hypergraph, Array]:
    """What takes cores, and which node of the network each of its nodes is."""
    if inputs_off_chip:
        return network.without_inputs()
    return network, np.arange(network.n_nodes)


def _checked(mapping: Mapping) -> Mapping:
    violations = verify_mapping(
        mapping.hypergraph,
        mapping.partition.parts,
        None if mapping.placement is None else mapping.placement.cores,
        mapping.profile,
        mapping.limits,
        connectivity=mapping.metrics.connectivity,
        traffic=mapping.traffic,
    )
    return replace(mapping, violations=violations)


def _bounds(hypergraph: Hypergraph, limits: Limits) -> tuple[int, float]:
    return parts_lower_bound(hypergraph, limits), connectivity_lower_bound(hypergraph, limits)


@contextmanager
def _naming(profile: HardwareProfile) -> Iterator[None]:
    """Let errors of rooms that know limits, but no chip, say whose limits they are."""
    try:
        yield
    except LimitError as error:
        if error.profile is not None:
            raise
        raise LimitError(
            error.what,
            error.quantity,
            error.value,
            error.limit,
            remedy=error.remedy,
            profile=profile.name,
        ) from None


@contextmanager
def _timed(
    seconds: dict[str, float], phase: str, progress: Progress | None = None
) -> Iterator[None]:
    """Note how long a phase took; tell `progress` of one that does not do so itself."""
    began = time.perf_counter()
    if progress is not None:
        progress.start(phase)
    yield
    if progress is not None:
        progress.finish()
    seconds[phase] = time.perf_counter() - began
