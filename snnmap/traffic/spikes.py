"""When spikes are sent: Poisson processes at the network's rates, or a recording."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from snnmap.errors import ConfigError
from snnmap.hypergraph import Hypergraph

Array = np.ndarray[Any, Any]

PS_PER_MS = 10**9
ARRIVALS = ("spread", "burst")
MOST_SPIKES = 100_000_000


@dataclass(frozen=True, eq=False)
class Spikes:
    """Spikes in order of time.

    Attributes:
        times_ps: int64[n_spikes], ascending, from the start of the simulation.
        streams: int64[n_spikes], index into ``sources`` of the part-level hypergraph: which source
            of which h-edge fires.
        duration_ps: length of the simulated time; no spike starts later.
        n_steps: time steps in it.
    """

    times_ps: Array
    streams: Array
    duration_ps: int
    n_steps: int

    def first(self, n_steps: int) -> Spikes:
        """The spikes of the first `n_steps` time steps.

        Raises:
            ConfigError: there are not so many.
        """
        if not 1 <= n_steps <= self.n_steps:
            raise ConfigError(f"timesteps is {n_steps}; the spikes cover 1 to {self.n_steps}")
        duration = self.duration_ps // self.n_steps * n_steps
        end = int(np.searchsorted(self.times_ps, duration))
        return Spikes(self.times_ps[:end], self.streams[:end], duration, n_steps)


def poisson_spikes(
    part_graph: Hypergraph,
    n_steps: int,
    *,
    timestep_ms: float = 1.0,
    rate_scale: float = 1.0,
    arrivals: str = "spread",
    seed: int = 0,
) -> Spikes:
    """Independent Poisson spikes of every source at the rate of its h-edge.

    Args:
        part_graph: weights are spikes/s.
        n_steps: time steps to simulate.
        timestep_ms: length of one.
        rate_scale: multiplies all rates.
        arrivals: ``"spread"`` over the time step, or ``"burst"``: all spikes of a step are sent at
            its start (a core sends one after the other; links sort that out).
        seed: same seed, same spikes.

    Raises:
        ConfigError: a setting out of range, or more spikes than memory should hold.
    """
    if n_steps < 1:
        raise ConfigError(f"timesteps is {n_steps}; expected at least 1")
    step_ps = _step_ps(timestep_ms)
    if not (np.isfinite(rate_scale) and rate_scale >= 0):
        raise ConfigError(f"rate scale is {rate_scale}; expected a finite number >= 0")
    if arrivals not in ARRIVALS:
        raise ConfigError(f"unknown arrivals {arrivals!r}; known: {', '.join(ARRIVALS)}")
    rates = np.repeat(part_graph.weights, np.diff(part_graph.source_offsets))
    mean = rates * (rate_scale * n_steps * step_ps / (1000 * PS_PER_MS))
    if mean.sum() > MOST_SPIKES:
        raise ConfigError(
            f"{mean.sum():.3g} spikes in {n_steps} time steps are more than {MOST_SPIKES:,}; "
            "simulate fewer time steps or scale the rates down"
        )
    rng = np.random.default_rng(seed)
    counts = rng.poisson(mean)
    streams = np.repeat(np.arange(len(counts)), counts)
    duration = n_steps * step_ps
    times = rng.integers(0, duration, len(streams))
    if arrivals == "burst":
        times -= times % step_ps
    order = np.argsort(times, kind="stable")
    return Spikes(times[order], streams[order], duration, n_steps)


def recorded_spikes(
    times_ms: Array,
    neurons: Array,
    neuron_streams: tuple[Array, Array],
    *,
    timestep_ms: float = 1.0,
) -> Spikes:
    """Spikes of a recording: a neuron fires on all of its axons at once.

    Args:
        times_ms: float64[n], in any order (see :func:`snnmap.traffic.recordings.read_recording`).
        neurons: int64[n], who fired.
        neuron_streams: (offsets int64[n_neurons + 1], streams int64): the streams of each neuron,
            one for each of its axons.
        timestep_ms: for counting time steps.

    Raises:
        ConfigError: more spikes than memory should hold.
    """
    offsets, streams = neuron_streams
    counts = np.diff(offsets)[neurons]
    if counts.sum() > MOST_SPIKES:
        raise ConfigError(
            f"{counts.sum():,} spikes on the axons of the recording are more than {MOST_SPIKES:,}; "
            "simulate a shorter one"
        )
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    fired = streams[np.repeat(offsets[neurons], counts) + within]
    every_time = np.rint(times_ms * PS_PER_MS).astype(np.int64)
    step_ps = _step_ps(timestep_ms)
    n_steps = int(every_time.max(initial=0)) // step_ps + 1
    times_ps = np.repeat(every_time, counts)
    order = np.argsort(times_ps, kind="stable")
    return Spikes(times_ps[order], fired[order], n_steps * step_ps, n_steps)


def _step_ps(timestep_ms: float) -> int:
    step_ps = round(timestep_ms * PS_PER_MS) if 0 < timestep_ms < 1e9 else 0
    if step_ps < 1:
        raise ConfigError(f"time step of {timestep_ms} ms; expected 1e-9 to 1e9 ms")
    return step_ps
