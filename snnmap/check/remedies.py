"""What would make a network fit, in sentences a user can act on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from snnmap.check.judge import Verdict
from snnmap.check.report import Offence
from snnmap.hardware import HardwareProfile
from snnmap.hardware.profile import MAX_SIDE

_THINNER = "use a smaller kernel or fewer channels, or prune inputs"
_SHOWN = 5
_SLIMMER = {
    "neurons_per_core": "split the nodes",
    "inbound_axons_per_core": _THINNER,
    "outbound_axons_per_core": "use fewer axons a neuron",
    "incident_axons_per_core": _THINNER,
    "synapses_per_core": _THINNER,
    "fan_in_per_neuron": _THINNER,
    "destinations_per_neuron": "target fewer neurons, or use cores that hold more of them",
}


def find_remedies(
    verdict: Verdict,
    offences: Sequence[Offence],
    profile: HardwareProfile,
    fits_without_inputs: bool,
) -> Iterator[str]:
    """Yield what would help: inputs off the chip, another network, more chips, other limits."""
    if fits_without_inputs:
        yield "keep the inputs off the chip: --inputs-off-chip"
    for use in verdict.limits:
        if use.n_offenders:
            layers = [repr(o.layer) for o in offences if o.key == use.key and o.layer]
            shown = ", ".join(layers[:_SHOWN]) + ", ..." * (len(layers) > _SHOWN)
            where = f" in {shown}" if layers else ""
            yield f"at most {use.limit:,} {_words(use.key)}{where}: {_SLIMMER[use.key]}"
    if verdict.cores_at_least > profile.n_cores:
        yield from _more_chips(verdict.cores_at_least, profile)
    for use in verdict.limits:
        if use.n_offenders or (use.cores_at_least or 0) > profile.n_cores:
            wall = "a default that may be raised" if use.soft else "on a chip that has it"
            yield f"{_words(use.key)} of {use.sufficient:,} or more, {wall}: " + (
                f"--set {use.key}={use.sufficient}"
            )
    yield from _delays(verdict, profile)


def _more_chips(cores: int, profile: HardwareProfile) -> Iterator[str]:
    n_chips = math.ceil(cores * profile.n_chips / profile.n_cores)
    nx = math.ceil(math.sqrt(n_chips))
    ny = math.ceil(n_chips / nx)
    if max(nx * profile.width, ny * profile.height) <= MAX_SIDE:
        yield f"{n_chips:,} chips of this kind or more, for {cores:,} cores: --set chips={nx}x{ny}"


def _delays(verdict: Verdict, profile: HardwareProfile) -> Iterator[str]:
    late = [delay for delay in verdict.delays if delay.fits is False]
    if not late or profile.max_delay_steps is None:
        return
    steps = max(delay.steps or 0 for delay in late)
    step_ms = max(delay.delay_ms for delay in late) / profile.max_delay_steps
    yield f"max delay of {steps:,} time steps or more: --set max_delay_steps={steps}"
    yield f"time steps of {step_ms:.6g} ms or more: --set timestep_ms={step_ms:.6g}"


def _words(key: str) -> str:
    return key.replace("_", " ")
