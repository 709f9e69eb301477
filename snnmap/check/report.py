"""The answer to "does it fit?", as plain values."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Spread:
    """Smallest, middle and largest of some counts; zeros if there are none."""

    minimum: int
    median: float
    maximum: int


@dataclass(frozen=True, slots=True)
class Layer:
    """What one population asks for.

    Attributes:
        name: of the population; "(no layer)" for nodes outside every population.
        neurons: sum of node sizes.
        fan_in: axons that end in a neuron.
        fan_out: neurons that a neuron reaches (counted once for each of its axons).
        synapses: sum of the fan-ins.
        is_input: external input.
        on_chip: false for inputs that take no core.
    """

    name: str
    neurons: int
    fan_in: Spread
    fan_out: Spread
    synapses: int
    is_input: bool
    on_chip: bool


@dataclass(frozen=True, slots=True)
class LimitUse:
    """One limit of the chip against the network.

    Attributes:
        key: of the profile, e.g. ``"inbound_axons_per_core"``.
        limit: None if the chip has no such limit or it is not known (then `known` is false).
        largest: the most that a single neuron (or axon) asks for: no core can do with less.
        cores_at_least: cores that this limit alone demands; None if it does not count cores.
        n_offenders: neurons (or axons without a source) that ask for more than `limit`.
        sufficient: least value of the limit at which it speaks not against the network, other
            limits and the cores being as they are.
        known: false if the chip has such a limit but its value is not public.
        soft: the limit is a default of the software rather than a wall.
    """

    key: str
    limit: int | None
    largest: int
    cores_at_least: int | None
    n_offenders: int
    sufficient: int
    known: bool
    soft: bool


@dataclass(frozen=True, slots=True)
class Offence:
    """Neurons of one layer that ask for more than a limit allows.

    Attributes:
        key: of the limit.
        kind: ``"neuron"``, or ``"h-edge"`` for axons without a source.
        layer: name of the population, None outside every population.
        count: how many neurons (axons) do.
        index: of the worst neuron within the layer (of equals, the first).
        place: the same index along each axis of the layer's shape.
        node: its id in the network (of the h-edge, if of that kind).
        value: what it asks for.
        limit: what is allowed.
        examples: the first few offenders' indices within the layer, ascending.
    """

    key: str
    kind: str
    layer: str | None
    count: int
    index: int
    place: tuple[int, ...]
    node: int
    value: int
    limit: int
    examples: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DelayUse:
    """The longest delay of one projection against the chip's.

    Attributes:
        source, target: names of populations.
        delay_ms: longest delay.
        steps: the same in time steps; None if the chip has no fixed time step.
        limit: longest delay of the chip in time steps; None if unlimited or unknown.
        fits: false if too long, None if it cannot be told.
    """

    source: str
    target: str
    delay_ms: float
    steps: int | None
    limit: int | None
    fits: bool | None


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Whether a network fits a chip and why (see :func:`snnmap.check.check_network`).

    Attributes:
        network, profile: names.
        neurons, inputs, hedges, synapses: of the network; `neurons` counts those that take cores.
        inputs_off_chip: inputs take no cores.
        layers: one row a population.
        limits: one row a limit of the profile.
        offences: neurons that no core can hold, worst limit first as in `limits`.
        delays: projections that state a delay.
        cores: usable cores of the profile.
        cores_at_least: fewest cores of any partition.
        cores_by_filling: cores that a plain filling in order of ids needs (an upper bound); None if
            some neuron fits no core or an axon would reach too many.
        remedies: what would make it fit, one sentence each; empty if it fits.
        profiles_that_fit: shipped profiles against which nothing speaks.
        unknown: keys of the profile's limits that are not public and were not checked.
    """

    network: str
    profile: str
    neurons: int
    inputs: int
    hedges: int
    synapses: int
    inputs_off_chip: bool
    layers: tuple[Layer, ...]
    limits: tuple[LimitUse, ...]
    offences: tuple[Offence, ...]
    delays: tuple[DelayUse, ...]
    cores: int
    cores_at_least: int
    cores_by_filling: int | None
    remedies: tuple[str, ...]
    profiles_that_fit: tuple[str, ...]
    unknown: tuple[str, ...]

    @property
    def fits(self) -> bool:
        """Nothing speaks against it: no offender, enough cores by every bound, delays in range."""
        delays_fit = all(delay.fits is not False for delay in self.delays)
        return not self.offences and delays_fit and self.cores_at_least <= self.cores

    @property
    def certain(self) -> bool:
        """The answer is proven: it does not fit, or a plain filling shows that it does."""
        if not self.fits:
            return True
        return self.cores_by_filling is not None and self.cores_by_filling <= self.cores

    @property
    def verdict(self) -> str:
        """``"fits"``, ``"may fit"`` (the partitioner has to show it) or ``"does not fit"``."""
        if not self.fits:
            return "does not fit"
        return "fits" if self.certain else "may fit"

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain dicts, lists and numbers, for JSON."""
        return {"verdict": self.verdict, "fits": self.fits, "certain": self.certain, **asdict(self)}
