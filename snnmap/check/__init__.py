"""Does a network fit a chip, what does not, and what would? Without partitioning, in an instant.

    Hypergraph --Demand--> fan-ins, axons, spans      measured once, on groups
    Demand + HardwareProfile --judge--> Verdict       for this chip and for all shipped ones
    Verdict --check_network--> CheckReport            with names, offenders and remedies

`check_network` is the whole of it. Two bounds frame the number of cores: fewer than
`cores_at_least` is impossible whatever the partitioner; `cores_by_filling` is what the plainest
filling, neuron after neuron, needs, and thus proof that the network fits.
"""

from snnmap.check.network import check_network
from snnmap.check.report import CheckReport, DelayUse, Layer, LimitUse, Offence, Spread

__all__ = [
    "CheckReport",
    "DelayUse",
    "Layer",
    "LimitUse",
    "Offence",
    "Spread",
    "check_network",
]
