import hashlib
import json
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from snnmap.bench import making
from snnmap.bench.making import make_suite
from snnmap.errors import ConfigError, EngineError, InputError, NetworkError, OutputError
from snnmap.networks.suites import load_suite
from snnmap.partitioning.multilevel.device import Device
from snnmap.progress import Progress
from snnmap.readers import read_network
from tests.emulator.starting import emulate, need_emulator

SUITE = """
name = "mine"
[[networks]]
name = "net-{n}"
sweep = { n = [40, 50] }
rates = { kind = "lognormal" }
layers = [{ type = "population", name = "a", shape = "{n}" }]
links = [{ from = "a", to = "a", type = "random", fan_out = 3 }]
[[networks]]
name = "cloud"
profile = "loihi64"
rates = { kind = "lognormal" }
layers = [{ type = "reservoir", neurons = 5000, fan_out = 4 }]
[expect]
net-40 = { nodes = 40, hyperedges = 40, pins = 158 }
"""


@pytest.fixture
def suite(tmp_path: Path):
    (tmp_path / "mine.toml").write_text(SUITE)
    return load_suite(tmp_path / "mine.toml")


def digests(folder: Path) -> dict[str, str]:
    return {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in sorted(folder.iterdir())}


def count_calls(function, calls):
    def call(*args, **named):
        calls.append(args)
        return function(*args, **named)

    return call


@pytest.mark.parametrize("format", ["h5", "snn", "axh", "hgr"])
def test_files_and_manifest_agree(format, suite, tmp_path):
    folder = tmp_path / "out" / "deep"
    made = list(make_suite(suite, folder, format=format))
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["suite"] == "mine"
    assert [r["name"] for r in manifest["networks"]] == ["net-40", "net-50", "cloud"]
    found = digests(folder)
    assert len(found) == 4
    for record, one in zip(manifest["networks"], made, strict=True):
        file = folder / record["file"]
        assert record["sha256"] == found[record["file"]] == one.record.sha256
        assert record["bytes"] == file.stat().st_size
        network = read_network(file)
        assert (network.n_nodes, network.n_hedges) == (record["nodes"], record["hyperedges"])
        if format != "hgr":  # no sources there
            assert network.n_pins == record["pins"]
    assert manifest["networks"][2]["profile"] == "loihi64"
    assert manifest["networks"][1]["parameters"] == {"n": 50}
    assert manifest["networks"][1]["recipe"]["links"][0]["fan_out"] == 3


def test_the_same_seed_gives_the_same_bytes(suite, tmp_path):
    for name in ("a", "b"):
        list(make_suite(suite, tmp_path / name))
    assert digests(tmp_path / "a") == digests(tmp_path / "b")
    other = load_suite(suite.path, seed=5)
    list(make_suite(other, tmp_path / "c"))
    assert not set(digests(tmp_path / "a").values()) & set(digests(tmp_path / "c").values())


def test_streamed_reservoirs_are_the_same_bytes(suite, tmp_path, monkeypatch):
    cloud = suite.only(["cloud"])
    list(make_suite(cloud, tmp_path / "a", format="snn"))
    monkeypatch.setattr(making, "reservoir_of", lambda model: None)
    list(make_suite(cloud, tmp_path / "b", format="snn"))
    assert digests(tmp_path / "a") == digests(tmp_path / "b")


def test_a_gpu_makes_the_same_bytes(suite, tmp_path, monkeypatch):
    need_emulator()
    suite.path.write_text(suite.path.read_text().replace("5000", "300"))
    cloud = load_suite(suite.path).only(["cloud"])
    for format in ("h5", "snn"):
        list(make_suite(cloud, tmp_path / "cpu", format=format))
    emulate(monkeypatch)
    launches = []
    monkeypatch.setattr(Device, "launch", count_calls(Device.launch, launches))
    for format in ("h5", "snn"):
        list(make_suite(cloud, tmp_path / "gpu", format=format, engine="gpu"))
    assert len(launches) == 2
    assert digests(tmp_path / "cpu") == digests(tmp_path / "gpu")


def test_without_a_gpu_auto_takes_the_cpu(suite, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert len(list(make_suite(suite, tmp_path / "auto", engine="auto"))) == 3
    with pytest.raises(EngineError, match="engine 'gpu' needs CuPy"):
        list(make_suite(suite, tmp_path / "gpu", engine="gpu"))
    with pytest.raises(ConfigError, match="unknown engine 'tpu'; known are cpu, gpu, auto"):
        list(make_suite(suite, tmp_path / "gpu", engine="tpu"))
    assert not (tmp_path / "gpu").exists()


def test_two_runs_take_turns_in_one_folder(suite, tmp_path):
    first = make_suite(suite, tmp_path)
    next(first)
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(lambda: list(make_suite(suite, tmp_path)))
        with pytest.raises(TimeoutError):
            second.result(0.5)
        assert len(list(first)) == 2
        assert [made.reused for made in second.result(60)] == [True] * 3


def test_a_run_that_waits_can_be_cancelled(suite, tmp_path):
    first, progress = make_suite(suite, tmp_path), Progress()
    next(first)
    progress.cancel()
    with pytest.raises(KeyboardInterrupt):
        list(make_suite(suite, tmp_path, progress=progress))
    first.close()


def test_leftovers_of_a_killed_run_are_removed(suite, tmp_path):
    left = [".net-40.h5.abc_d3f8.h5", ".manifest.json.abc_d3f8.json"]
    others = [".net-40.h5", ".hidden", ".other.h5.abc_d3f8.h5"]
    for name in (*left, *others):
        (tmp_path / name).write_text("")
    list(make_suite(suite.only(["net-40"]), tmp_path))
    assert sorted(f.name for f in tmp_path.glob(".*")) == sorted(others)


def test_a_second_run_keeps_what_is_right_and_makes_the_rest(suite, tmp_path):
    list(make_suite(suite.only(["net-40", "cloud"]), tmp_path / "out"))
    assert [m.reused for m in make_suite(suite, tmp_path / "out")] == [True, False, True]
    whole = digests(tmp_path / "out")

    damaged = tmp_path / "out" / "net-40.h5"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    assert [m.reused for m in make_suite(suite, tmp_path / "out")] == [False, True, True]
    (tmp_path / "out" / "cloud.h5").unlink()
    assert [m.reused for m in make_suite(suite, tmp_path / "out")] == [True, True, False]
    again = digests(tmp_path / "out")
    assert {k: v for k, v in again.items() if k.endswith("h5")} == {
        k: v for k, v in whole.items() if k.endswith("h5")
    }

    changed = load_suite(suite.path, seed=1)
    assert [m.reused for m in make_suite(changed, tmp_path / "out")] == [False] * 3


def test_an_interrupted_run_leaves_only_whole_files(suite, tmp_path):
    class Impatient(Progress):
        def advance(self, amount=1, note=""):
            self.cancel()

    with pytest.raises(KeyboardInterrupt):
        list(make_suite(suite.only(["cloud"]), tmp_path / "a", format="snn", progress=Impatient()))
    assert list((tmp_path / "a").iterdir()) == []

    run = make_suite(suite, tmp_path / "b")
    next(run)
    run.close()
    assert sorted(f.name for f in (tmp_path / "b").iterdir()) == ["manifest.json", "net-40.h5"]


def test_other_counts_than_expected_are_refused(suite, tmp_path):
    text = suite.path.read_text()
    suite.path.write_text(text.replace("pins = 158", "pins = 159"))
    with pytest.raises(NetworkError, match=r"network 'net-40': pins 158 but its suite expects 159"):
        list(make_suite(load_suite(suite.path), tmp_path / "out"))
    assert list((tmp_path / "out").iterdir()) == []


def test_refusals(suite, tmp_path):
    with pytest.raises(ConfigError, match=r"unknown format 'nir'; known are axh, h5, hgr, snn"):
        next(make_suite(suite, tmp_path / "out", format="nir"))
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be made"):
        next(make_suite(suite, tmp_path / "file" / "out"))
    list(make_suite(suite.only(["net-40"]), tmp_path / "out"))
    with pytest.raises(InputError, match="holds suite 'mine'; choose another folder for 'smoke'"):
        next(make_suite(load_suite("smoke"), tmp_path / "out"))
    (tmp_path / "out" / "manifest.json").write_text("{}")
    with pytest.raises(InputError, match="is no manifest of a suite"):
        next(make_suite(suite, tmp_path / "out"))


def test_files_that_cannot_fit_the_disk_are_refused_before_writing(suite, tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    with pytest.raises(OutputError, match=r"net-50.snn: needs .* MB but only .* MB are free"):
        list(make_suite(suite.only(["net-50"]), tmp_path / "out", format="snn"))
    assert list((tmp_path / "out").iterdir()) == []
