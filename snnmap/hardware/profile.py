"""What is known of a chip, as frozen values: geometry, limits, costs, and who says so."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

from snnmap.errors import ProfileError
from snnmap.limits import Limits

TOPOLOGIES = ("mesh", "torus", "hex-torus")
CONFIDENCES = ("published", "derived", "second-hand", "assumed")

MAX_SIDE = 2**20
"""Most cores along one side of the grid, over all chips; keeps coordinates within int32."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a number comes from.

    Attributes:
        source: publication, manual or reasoning.
        confidence: ``"published"`` (read in the source), ``"derived"`` (follows from published
            numbers), ``"second-hand"`` (somebody else's transcription), ``"assumed"``.
    """

    source: str
    confidence: str


@dataclass(frozen=True, slots=True)
class Costs:
    """What spikes cost; None is unknown and prints as ``n/a``.

    Attributes:
        route_energy_pj, route_latency_ns: passing one router.
        hop_energy_x_pj, hop_energy_y_pj: one link along an axis.
        hop_latency_x_ns, hop_latency_y_ns: likewise.
        chip_hop_energy_pj, chip_hop_latency_ns: one link between chips, instead of a hop.
        synapse_energy_pj: one synaptic operation.
        link_bandwidth_spikes_s: spikes/s that one directed link carries.
    """

    route_energy_pj: float | None = None
    hop_energy_x_pj: float | None = None
    hop_energy_y_pj: float | None = None
    route_latency_ns: float | None = None
    hop_latency_x_ns: float | None = None
    hop_latency_y_ns: float | None = None
    chip_hop_energy_pj: float | None = None
    chip_hop_latency_ns: float | None = None
    synapse_energy_pj: float | None = None
    link_bandwidth_spikes_s: float | None = None

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise ProfileError(f"cost {item.name} is {value}; expected a finite number >= 0")


@dataclass(frozen=True)
class HardwareProfile:
    """One chip (or several of a kind on a grid). Cores have global coordinates (x, y).

    Chip (cx, cy) holds the cores x in [cx * width, (cx + 1) * width), y likewise. Nothing here
    takes memory per core, whatever the size of the grid.

    Attributes:
        name, description: of the chip.
        topology: ``"mesh"``, ``"torus"`` (wraps around the whole grid) or ``"hex-torus"`` (a torus
            whose routers also have the two links along the diagonal x + 1, y + 1).
        width, height: cores of one chip along x and y.
        chips: (nx, ny) chips on the grid.
        tile: (tx, ty) cores that share a router; (1, 1) if every core has its own.
        dead_cores: global coordinates of cores that must not be used.
        limits: per core and per neuron; its `max_parts` is always set to `n_cores`.
        costs: of spikes.
        max_delay_steps: longest synaptic delay in time steps; None if unlimited or unknown.
        timestep_ms: length of a time step; None if not fixed.
        soft: keys of limits that are software defaults rather than walls.
        unknown: keys of numbers that exist but are not public (other absent limits do not apply).
        provenance: for each key of the profile, source and confidence.

    Raises:
        ProfileError: the geometry is impossible.
    """

    name: str
    width: int
    height: int
    chips: tuple[int, int] = (1, 1)
    tile: tuple[int, int] = (1, 1)
    topology: str = "mesh"
    dead_cores: frozenset[tuple[int, int]] = frozenset()
    limits: Limits = field(default_factory=Limits)
    costs: Costs = field(default_factory=Costs)
    max_delay_steps: int | None = None
    timestep_ms: float | None = None
    soft: frozenset[str] = frozenset()
    unknown: frozenset[str] = frozenset()
    provenance: Mapping[str, Provenance] = field(default_factory=dict, compare=False, repr=False)
    description: str = ""

    def __post_init__(self) -> None:
        self._check_geometry()
        object.__setattr__(self, "limits", replace(self.limits, max_parts=self.n_cores))

    def _check_geometry(self) -> None:
        where = f"profile {self.name!r}"
        if self.topology not in TOPOLOGIES:
            raise ProfileError(
                f"{where}: topology is {self.topology!r}; expected one of {', '.join(TOPOLOGIES)}"
            )
        sides = (self.width, self.height), self.chips, self.tile
        if min(min(pair) for pair in sides) < 1:
            raise ProfileError(f"{where}: width, height, chips and tile must all be at least 1")
        if self.width % self.tile[0] or self.height % self.tile[1]:
            raise ProfileError(
                f"{where}: tiles of {self.tile[0]}x{self.tile[1]} cores do not divide a chip of "
                f"{self.width}x{self.height} cores"
            )
        if max(self.grid_width, self.grid_height) > MAX_SIDE:
            raise ProfileError(
                f"{where}: a grid of {self.grid_width}x{self.grid_height} cores is too large; "
                f"at most {MAX_SIDE} cores along each side"
            )
        for x, y in sorted(self.dead_cores):
            if not (0 <= x < self.grid_width and 0 <= y < self.grid_height):
                raise ProfileError(
                    f"{where}: dead core ({x}, {y}) is outside the grid of {self.grid_width}x"
                    f"{self.grid_height} cores"
                )
        if self.n_cores < 1:
            raise ProfileError(f"{where}: every core is dead; leave at least one usable")

    @property
    def grid_width(self) -> int:
        """Cores along x over all chips."""
        return self.width * self.chips[0]

    @property
    def grid_height(self) -> int:
        """Cores along y over all chips."""
        return self.height * self.chips[1]

    @property
    def n_chips(self) -> int:
        """Number of chips."""
        return self.chips[0] * self.chips[1]

    @property
    def cores_per_chip(self) -> int:
        """Cores of one chip, dead ones included."""
        return self.width * self.height

    @property
    def n_cores(self) -> int:
        """Usable cores over all chips."""
        return self.grid_width * self.grid_height - len(self.dead_cores)

    def is_usable(self, x: int, y: int) -> bool:
        """Whether (x, y) lies on the grid and is not dead."""
        inside = 0 <= x < self.grid_width and 0 <= y < self.grid_height
        return inside and (x, y) not in self.dead_cores

    def chip_of(self, x: int, y: int) -> tuple[int, int]:
        """The chip (cx, cy) that holds core (x, y)."""
        return x // self.width, y // self.height

    def router_of(self, x: int, y: int) -> tuple[int, int]:
        """The router (rx, ry), i.e. the tile, that serves core (x, y)."""
        return x // self.tile[0], y // self.tile[1]
