"""Traffic: where spikes travel on a placed network, and what that costs.

report = measure_traffic(part_graph, placement, profile)
"""

from snnmap.traffic.measure import measure_traffic
from snnmap.traffic.report import DIRECTIONS, Routing, TrafficReport

__all__ = ["DIRECTIONS", "Routing", "TrafficReport", "measure_traffic"]
