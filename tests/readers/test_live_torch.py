"""PyTorch modules against slow loops; the frameworks' own neurons where they are installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from snnmap.errors import ConfigError, InputError
from snnmap.readers.live_torch import from_torch
from tests.readers import naive_layers
from tests.readers.naive_layers import links, one_axon_each

pytestmark = pytest.mark.filterwarnings("default")
torch = pytest.importorskip("torch")
nn = torch.nn


class Spikes(nn.Module):  # type: ignore[name-defined,misc]
    """Neurons of our own."""

    def forward(self, x: Any) -> Any:
        return (x > 0).float()


def read(module: Any, sample: Any, **options: Any) -> Any:
    return from_torch(module, sample, neurons=(Spikes,), **options)


def chain(*layers: Any) -> Any:
    return nn.Sequential(*layers, Spikes())


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("padding", [0, (1, 2), "same", "valid"])
@pytest.mark.parametrize("dilation", [1, (2, 1)])
def test_convolutions(groups: int, padding: Any, dilation: Any) -> None:
    conv = nn.Conv2d(4, 6, (3, 2), padding=padding, dilation=dilation, groups=groups)
    network = read(chain(conv), (4, 7, 6))
    dilations = (dilation, dilation) if isinstance(dilation, int) else dilation
    pads = (padding, padding) if isinstance(padding, int) else padding
    present = np.ones(tuple(conv.weight.shape), bool)
    expected, shape = naive_layers.convolution((7, 6), present, (1, 1), pads, dilations, groups)
    assert network.populations[1].shape == shape
    assert (links(network, "input", "1") == expected).all()


def test_strided_and_one_dimensional() -> None:
    network = read(chain(nn.Conv1d(2, 3, 3, stride=2, padding=1)), (2, 9))
    present = np.ones((3, 2, 3), bool)
    expected, _ = naive_layers.convolution((9,), present, (2,), (1,), (1,), 1)
    assert (links(network, "input", "1") == expected).all()


@pytest.mark.parametrize(("groups", "stride", "extra"), [(1, 1, 0), (2, 2, 1), (1, 3, 2)])
def test_transposed_convolutions(groups: int, stride: int, extra: int) -> None:
    conv = nn.ConvTranspose2d(4, 2 * groups, 3, stride, 1, output_padding=extra, groups=groups)
    assert (by_impulse(conv, (4, 3, 3)) == links(read(chain(conv), (4, 3, 3)), "input", "1")).all()


def by_impulse(module: Any, shape: tuple[int, ...]) -> Any:
    """bool[inputs, outputs]: where an impulse at each input arrives (positive weights)."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.rand_like(parameter) + 0.1)
        for name, parameter in module.named_parameters():
            if "bias" in name:
                parameter.zero_()
        n = int(np.prod(shape))
        impulses = torch.eye(n).reshape(n, *shape)
        return (module(impulses).reshape(n, -1) != 0).numpy()


STRUCTURES = {
    "max_pool": (lambda: nn.AvgPool2d((2, 3), stride=(1, 2), padding=(1, 0)), (2, 5, 7)),
    "ceil_mode": (lambda: nn.AvgPool2d(2, ceil_mode=True), (1, 5, 5)),
    "adaptive": (lambda: nn.AdaptiveAvgPool2d((3, 2)), (2, 7, 5)),
    "linear": (lambda: nn.Linear(6, 4), (6,)),
    "linear_last_axis": (lambda: nn.Linear(3, 2), (4, 3)),
    "pad": (lambda: nn.ZeroPad2d((1, 0, 2, 1)), (2, 3, 3)),
    "upsample": (lambda: nn.Upsample(scale_factor=2), (2, 3, 3)),
    "pixel_shuffle": (lambda: nn.PixelShuffle(2), (4, 3, 3)),
    "flatten": (lambda: nn.Sequential(nn.Flatten(), nn.Linear(18, 3)), (2, 3, 3)),
    "permute": (lambda: Applied(lambda x: x.permute(0, 3, 1, 2)), (2, 3, 4)),
    "slice": (lambda: Applied(lambda x: x[:, 1:, ::2]), (3, 5)),
    "split_and_cat": (lambda: Applied(lambda x: torch.cat(x.chunk(2, 1)[::-1], 1)), (4, 3)),
    "stack": (lambda: Applied(lambda x: torch.stack([x, x * 2], 2)), (4, 3)),
    "mean": (lambda: Applied(lambda x: x.mean((2, 3))), (3, 4, 5)),
    "sum_keepdim": (lambda: Applied(lambda x: x.sum(1, keepdim=True)), (3, 4)),
    "broadcast": (lambda: Applied(lambda x: x + x[:, :1]), (3, 4)),
    "roll": (lambda: Applied(lambda x: x.roll(1, 1) + x), (5,)),
    "matmul": (lambda: Applied(lambda x: x @ torch.ones(4, 3)), (4,)),
    "functional": (lambda: Applied(lambda x: nn.functional.avg_pool2d(x, 2)), (1, 4, 4)),
}


class Applied(nn.Module):  # type: ignore[name-defined,misc]
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


@pytest.mark.parametrize("name", STRUCTURES)
def test_structure_equals_where_impulses_arrive(name: str) -> None:
    make, shape = STRUCTURES[name]
    module = make()
    expected = by_impulse(module, shape)
    network = read(chain(module), shape)
    assert (links(network, "input", network.populations[1].name) == expected).all()
    assert one_axon_each(network)


def test_max_pooling_links_its_window() -> None:
    network = read(chain(nn.MaxPool2d(3, stride=2, padding=1, dilation=1)), (2, 6, 5))
    expected, _ = naive_layers.pooling((2, 6, 5), (3, 3), (2, 2), (1, 1))
    assert (links(network, "input", "1") == expected).all()


class Residual(nn.Module):  # type: ignore[name-defined,misc]
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
        self.first, self.second = Spikes(), Spikes()

    def forward(self, x: Any) -> Any:
        y = self.first(self.a(x))
        return self.second(self.b(y) + x)


def test_residual_connection() -> None:
    network = read(Residual(), (4,))
    assert links(network, "first", "second").all()
    assert (links(network, "input", "second") == np.eye(4)).all()


class Recurrent(nn.Module):  # type: ignore[name-defined,misc]
    def __init__(self) -> None:
        super().__init__()
        self.w, self.r, self.lif = nn.Linear(3, 4), nn.Linear(4, 4, bias=False), Spikes()
        self.r.weight.data = torch.eye(4)
        self.state: Any = None

    def forward(self, x: Any) -> Any:
        back = 0 if self.state is None else self.r(self.state)
        self.state = self.lif(self.w(x) + back)
        return self.state


def test_recurrence_in_the_module_code() -> None:
    module = Recurrent()
    network = read(module, (3,), drop_zeros=True)
    assert (links(network, "lif", "lif") == np.eye(4)).all()
    assert module.state is None  # the user's module was not run
    assert not links(read(Recurrent(), (3,), steps=1), "lif", "lif").any()


def test_several_inputs() -> None:
    class Two(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.s = Spikes()

        def forward(self, x: Any, y: Any) -> Any:
            return self.s(torch.cat([x, y], 1))

    network = read(Two(), (torch.zeros(1, 2), torch.zeros(1, 3)))
    assert (links(network, "input_0", "s") == np.eye(5)[:2]).all()
    assert (links(network, "input_1", "s") == np.eye(5)[2:]).all()


# ---------------------------------------------------------------------- frameworks


def test_snntorch() -> None:
    snn = pytest.importorskip("snntorch")

    class Net(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.lif1 = nn.Conv2d(1, 4, 3, padding=1), snn.Leaky(0.9)
            self.pool, self.fc = nn.MaxPool2d(2), nn.Linear(64, 10)
            self.lif2 = snn.RLeaky(0.9, linear_features=10)

        def forward(self, x: Any) -> Any:
            mem1 = self.lif1.init_leaky()
            spk2, mem2 = self.lif2.init_rleaky()
            for _ in range(3):
                spk1, mem1 = self.lif1(self.conv(x), mem1)
                current = self.fc(self.pool(spk1).flatten(1))
                spk2, mem2 = self.lif2(current, spk2, mem2)
            return spk2

    network = from_torch(Net(), (1, 8, 8))
    assert [p.shape for p in network.populations] == [(1, 8, 8), (4, 8, 8), (10,)]
    assert links(network, "lif1", "lif2").all()
    assert links(network, "lif2", "lif2").all()
    plain = nn.Sequential(nn.Linear(3, 2), snn.Leaky(0.5, init_hidden=True))
    assert from_torch(plain, (3,)).n_pins == 3 * 3


def test_snntorch_by_way_of_nir() -> None:
    snn = pytest.importorskip("snntorch")
    export = pytest.importorskip("snntorch.export_nir")
    from snnmap.readers.live import from_nir

    neurons = snn.Leaky(torch.full((4,), 0.9), threshold=torch.ones(4))
    module = nn.Sequential(nn.Linear(5, 4), neurons)
    graph = export.export_to_nir(module, torch.zeros(1, 5), ignore_dims=[0])
    network = from_nir(graph)
    assert (network.n_nodes, network.n_pins) == (9, 25)


def test_norse() -> None:
    norse = pytest.importorskip("norse.torch")
    module = norse.SequentialState(
        nn.Linear(4, 3),
        norse.LIFCell(),
        norse.LIFRecurrentCell(3, 5),
        nn.Linear(5, 2),
        norse.LICell(),
    )
    network = from_torch(module, (4,))
    assert [p.size for p in network.populations] == [4, 3, 5, 2]
    assert links(network, "1", "2").all()
    assert links(network, "2", "2").all()
    assert links(network, "2", "4").all()


def test_sinabs() -> None:
    layers = pytest.importorskip("sinabs.layers")
    module = nn.Sequential(
        nn.Conv2d(2, 3, 3), layers.IAFSqueeze(batch_size=1), nn.AvgPool2d(2), nn.Flatten(),
        nn.Linear(12, 3), layers.LIFSqueeze(tau_mem=20.0, batch_size=1),
    )  # fmt: skip
    network = from_torch(module, (2, 6, 6))
    assert [p.shape for p in network.populations] == [(2, 6, 6), (3, 4, 4), (3,)]
    assert links(network, "1", "5").all()
    back = layers.LIFRecurrent(tau_mem=20.0, rec_connect=nn.Linear(3, 3))
    recurrent = from_torch(nn.Sequential(nn.Linear(4, 3), back), torch.zeros(1, 1, 4))
    assert links(recurrent, "1", "1").all()


@pytest.mark.parametrize("mode", ["s", "m"])
def test_spikingjelly(mode: str) -> None:
    neuron = pytest.importorskip("spikingjelly.activation_based.neuron")
    layer = pytest.importorskip("spikingjelly.activation_based.layer")
    functional = pytest.importorskip("spikingjelly.activation_based.functional")
    module = nn.Sequential(
        layer.Conv2d(2, 3, 3), layer.BatchNorm2d(3), neuron.LIFNode(), layer.MaxPool2d(2),
        layer.Flatten(), layer.Linear(12, 3), neuron.IFNode(),
    )  # fmt: skip
    functional.set_step_mode(module, mode)
    sample = torch.zeros(1, 2, 6, 6) if mode == "s" else torch.zeros(1, 1, 2, 6, 6)
    network = from_torch(module, sample)
    assert [p.size for p in network.populations] == [72, 48, 3]
    assert links(network, "2", "6").all()
    expected, _ = naive_layers.convolution(
        (6, 6), np.ones((3, 2, 3, 3), bool), (1, 1), (0, 0), (1, 1), 1
    )
    assert (links(network, "input", "2") == expected).all()


# ---------------------------------------------------------------------- mistakes


def test_mistakes() -> None:
    with pytest.raises(InputError, match="has no module of neurons"):
        from_torch(nn.Linear(2, 2), (2,))
    with pytest.raises(InputError, match=r"expected a torch\.nn\.Module"):
        from_torch(3, (2,))
    with pytest.raises(InputError, match="cannot be run on the sample: RuntimeError"):
        read(chain(nn.Linear(3, 2)), (2,))
    with pytest.raises(InputError, match="more than one sample"):
        read(chain(nn.Conv2d(1, 1, 3)), torch.zeros(5, 1, 4, 4))
    with pytest.raises(InputError, match="sample must be"):
        read(chain(nn.Linear(2, 2)), "x")
    with pytest.raises(ConfigError, match="unknown is 'x'"):
        read(chain(nn.Linear(2, 2)), (2,), unknown="x")


def test_functions_that_cannot_be_followed_are_listed() -> None:
    module = chain(Applied(lambda x: torch.cdist(x[None], x[None])[0]))
    with pytest.raises(InputError, match="links cannot be told: cdist"):
        read(module, (3,))
