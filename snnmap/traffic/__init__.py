"""Traffic: where spikes travel on a placed network, and what that costs.

    report = measure_traffic(part_graph, placement, profile)
    report = simulate(part_graph, placement, profile, poisson_spikes(part_graph, 1000))

The first sums routes, the second lets spikes queue for links.
"""

from snnmap.traffic.measure import measure_traffic
from snnmap.traffic.recordings import read_recording
from snnmap.traffic.report import DIRECTIONS, Routing, TrafficReport
from snnmap.traffic.simulate import SimulationReport, simulate
from snnmap.traffic.spikes import Spikes, poisson_spikes, recorded_spikes

__all__ = [
    "DIRECTIONS",
    "Routing",
    "SimulationReport",
    "Spikes",
    "TrafficReport",
    "measure_traffic",
    "poisson_spikes",
    "read_recording",
    "recorded_spikes",
    "simulate",
]
