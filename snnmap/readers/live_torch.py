"""PyTorch modules with spiking neurons: one run on a sample tells what feeds what.

The module runs on one sample while every PyTorch function that touches its values is watched.
Weights, convolutions and poolings become links; functions that only move values (reshapes, slices,
concatenations, paddings, ...) are asked where each value went, by running them on places instead
of values; whatever works value by value passes them on. Modules of neurons are opaque: what they
are given feeds the neurons, what they return comes from them. The module runs a few time steps, so
that values that come back a step later are seen as recurrence.
"""

from __future__ import annotations

import copy
from contextlib import suppress
from typing import Any

import numpy as np

from snnmap.errors import ConfigError, InputError
from snnmap.hypergraph import Hypergraph
from snnmap.readers._live import require
from snnmap.readers._torch_trace import Trace

__all__ = ["NEURON_CLASSES", "from_torch"]

NEURON_CLASSES = {
    "snntorch": ("SpikingNeuron",),
    "norse": ("SNN", "SNNCell", "SNNRecurrent", "SNNRecurrentCell"),
    "spikingjelly": ("BaseNode", "SimpleBaseNode"),
    "sinabs": ("StatefulLayer",),
}
"""Package -> base classes of its neurons; every class derived from them counts."""


def from_torch(
    module: Any,
    sample: Any,
    *,
    neurons: tuple[type, ...] = (),
    steps: int = 2,
    unknown: str = "error",
    drop_zeros: bool = False,
    name: str | None = None,
) -> Hypergraph:
    """The network of a PyTorch module.

    Args:
        module: a ``torch.nn.Module`` with neurons of snnTorch, Norse, SpikingJelly or sinabs.
        sample: what to call it with: the shape of one input without batch (a tuple of numbers; it
            is called with zeros of that shape and a batch of 1), a tensor of one sample (every
            batch and time dimension of length 1), or a tuple of such tensors.
        neurons: further classes whose modules are neurons.
        steps: how often the module is called; 2 are needed to see recurrence in its code.
        unknown: ``"error"`` refuses functions whose links cannot be told; ``"skip"`` takes them to
            work value by value where the sizes allow, and to pass nothing on otherwise.
        drop_zeros: weights of exactly zero are no links; by default they are.
        name: of the network; default: the module's class.

    Returns:
        The network: an input population for each tensor of the sample and a population for each
        module of neurons, under its qualified name; values that leave without neurons are dropped.

    Raises:
        EngineError: PyTorch is not installed.
        InputError: the module cannot be run, has no neurons, or does what cannot be followed.
    """
    torch = require("torch", "torch", "from_torch")
    if unknown not in ("error", "skip"):
        raise ConfigError(f"unknown is {unknown!r}; expected 'error' or 'skip'")
    if not isinstance(module, torch.nn.Module):
        raise InputError("from_torch", f"got a {type(module).__name__}; expected a torch.nn.Module")
    title = name or type(module).__name__
    with suppress(Exception):  # states of neurons are left as they were where that is possible
        module = copy.deepcopy(module)
    trace = Trace(torch, title, unknown, drop_zeros)
    found = {m: n for n, m in module.named_modules() if _is_neuron(m, neurons)}
    found = {m: n for m, n in found.items() if not _inside_another(n, found.values())}
    if not found:
        known = ", ".join(sorted(NEURON_CLASSES))
        raise InputError(
            title, f"has no module of neurons of {known}; name their classes: neurons=(MyLIF,)"
        )
    inputs = _inputs(torch, title, sample)
    training = module.training
    module.eval()
    hooks = []
    for m, n in found.items():
        before, after = trace.hooks(n or title)
        hooks += [
            m.register_forward_pre_hook(before, with_kwargs=True),
            m.register_forward_hook(after, with_kwargs=True),
        ]
    try:
        with torch.no_grad(), trace.watching():
            for i, tensor in enumerate(inputs):
                trace.add_input("input" if len(inputs) == 1 else f"input_{i}", tensor)
            for _ in range(max(steps, 1)):
                module(*inputs)
    except InputError:
        raise
    except Exception as error:
        text = " ".join(str(error).split())
        raise InputError(
            title, f"cannot be run on the sample: {type(error).__name__}: {text}"
        ) from error
    finally:
        for hook in hooks:
            hook.remove()
        module.train(training)
    return trace.build()


def _is_neuron(module: Any, more: tuple[type, ...]) -> bool:
    if isinstance(module, more):
        return True
    return any(
        base.__name__ in NEURON_CLASSES.get(base.__module__.split(".")[0], ())
        for base in type(module).__mro__
    )


def _inside_another(name: str, names: Any) -> bool:
    return any(name != other and name.startswith(f"{other}.") for other in names if other)


def _inputs(torch: Any, title: str, sample: Any) -> list[Any]:
    if isinstance(sample, torch.Tensor):
        return [sample]
    if isinstance(sample, (tuple, list)) and sample:
        if all(isinstance(n, (int, np.integer)) and n >= 0 for n in sample):
            return [torch.zeros(1, *map(int, sample))]
        if all(isinstance(t, torch.Tensor) for t in sample):
            return list(sample)
    raise InputError(title, "sample must be a shape, a tensor or a tuple of tensors")
