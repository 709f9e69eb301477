"""The one description of a chip: where its cores are, what they hold, what a spike costs.

    hardware_profiles/*.toml --load_profile("loihi", ("neurons_per_core=512",))--> HardwareProfile

`profile` holds the plain values, `schema` the keys of the TOML files, `load` finds and reads them.
"""

from snnmap.hardware.load import load_profile, profile_names, template_text
from snnmap.hardware.profile import (
    CONFIDENCES,
    TOPOLOGIES,
    Costs,
    HardwareProfile,
    Provenance,
)

__all__ = [
    "CONFIDENCES",
    "TOPOLOGIES",
    "Costs",
    "HardwareProfile",
    "Provenance",
    "load_profile",
    "profile_names",
    "template_text",
]
