"""Small chips of every topology for the tests of placement and traffic."""

from __future__ import annotations

from hypothesis import strategies as st

from snnmap.hardware import Costs, HardwareProfile

UNIFORM = Costs(
    route_energy_pj=1.7,
    hop_energy_x_pj=3.5,
    hop_energy_y_pj=3.5,
    route_latency_ns=2.1,
    hop_latency_x_ns=5.3,
    hop_latency_y_ns=5.3,
    chip_hop_energy_pj=35.0,
    chip_hop_latency_ns=80.0,
    link_bandwidth_spikes_s=1000.0,
)
SKEWED = Costs(
    route_energy_pj=1.0,
    hop_energy_x_pj=3.0,
    hop_energy_y_pj=4.0,
    route_latency_ns=2.0,
    hop_latency_x_ns=4.0,
    hop_latency_y_ns=6.5,
    chip_hop_energy_pj=20.0,
    chip_hop_latency_ns=50.0,
)


def mesh(width: int = 4, height: int = 4, **others: object) -> HardwareProfile:
    """A mesh with the costs of loihi64 unless told otherwise."""
    settings: dict[str, object] = {"costs": UNIFORM, **others}
    return HardwareProfile(name="test", width=width, height=height, **settings)


@st.composite
def profiles(draw: st.DrawFn, *, max_side: int = 6, dead: bool = True) -> HardwareProfile:
    """Meshes, tori and hex-tori with tiles, several chips, dead cores and unequal costs."""
    tile = draw(st.sampled_from([(1, 1), (1, 1), (2, 1), (2, 2)]))
    chips = draw(st.sampled_from([(1, 1), (1, 1), (2, 1), (3, 2)]))
    width = draw(st.integers(1, max_side // tile[0])) * tile[0]
    height = draw(st.integers(1, max_side // tile[1])) * tile[1]
    size = width * chips[0], height * chips[1]
    core = st.tuples(st.integers(0, size[0] - 1), st.integers(0, size[1] - 1))
    dead_cores = draw(st.frozensets(core, max_size=min(3, size[0] * size[1] - 1))) if dead else ()
    return HardwareProfile(
        name="drawn",
        width=width,
        height=height,
        chips=chips,
        tile=tile,
        topology=draw(st.sampled_from(["mesh", "torus", "hex-torus"])),
        dead_cores=frozenset(dead_cores),
        costs=draw(st.sampled_from([UNIFORM, SKEWED])),
    )
