import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from snnmap.bench import available, process, running
from snnmap.bench.available import why_unavailable
from snnmap.bench.records import read_records
from snnmap.bench.running import BenchConfig, run_bench
from snnmap.errors import ConfigError, OutputError, ProfileError
from snnmap.networks.suites import load_suite
from snnmap.progress import Progress

SUITE = """
name = "tiny"
[[networks]]
name = "pair"
profile = "PROFILE"
rates = { kind = "lognormal" }
layers = [{ type = "population", name = "a", shape = 80 }]
links = [{ from = "a", to = "a", type = "random", fan_out = 4 }]
[[networks]]
name = "wide"
profile = "PROFILE"
layers = [{ type = "input", shape = 90 }, { type = "dense", units = 2 }]
"""
PROFILE = """
name = "toy"
grid = { width = 8, height = 8 }
limits = { neurons_per_core = 30, inbound_axons_per_core = 70 }
"""
FAST = BenchConfig(algorithms=("one-pass", "overlap"), seeds=2)


@pytest.fixture
def suite(tmp_path: Path):
    (tmp_path / "toy.toml").write_text(PROFILE)
    (tmp_path / "tiny.toml").write_text(SUITE.replace("PROFILE", str(tmp_path / "toy.toml")))
    return load_suite(tmp_path / "tiny.toml")


def speak(monkeypatch, script: str) -> None:
    """Let another program stand in for the worker."""
    monkeypatch.setattr(process, "WORKER", [sys.executable, "-c", script])


def test_every_run_is_recorded_and_verified(suite, tmp_path):
    records = list(run_bench(suite, tmp_path / "out", FAST))
    assert [(r.task.network, r.task.method, r.task.seed) for r in records] == [
        (network, method, seed)
        for network in ("pair", "wide")
        for method in ("one-pass", "overlap")
        for seed in (0, 1)
    ]
    for r in records[:4]:
        assert (r.status, r.verified, r.nodes, r.hyperedges) == ("done", True, 80, 80)
        assert r.parts >= r.lower_bounds["parts"] >= 3
        assert r.connectivity >= r.lower_bounds["connectivity"]
        assert r.max_neurons <= 30
        assert r.max_inbound_axons <= 70
        assert r.seconds["total"] > 0
        assert r.machine["cores"] >= 1
        assert r.versions["snnmap"]
        assert r.started
    for r in records[4:]:  # 90 axons into one neuron, where a core takes 70
        assert (r.status, r.connectivity, r.has_result) == ("refused", None, False)
        assert "'dense1'" in r.message
    assert read_records(tmp_path / "out") == sorted(records, key=lambda r: r.task.file_name)


def test_nothing_is_run_twice(suite, tmp_path):
    out = tmp_path / "out"
    first = list(run_bench(suite, out, FAST))
    assert list(run_bench(suite, out, FAST)) == []
    (out / "runs" / first[1].task.file_name).unlink()
    (again,) = run_bench(suite, out, FAST)
    assert again.task == first[1].task
    assert again.connectivity == first[1].connectivity

    retried = [r.task for r in run_bench(suite, out, replace(FAST, retry=True))]
    assert retried == [r.task for r in first if not r.has_result]
    limited = replace(FAST, time_limit_s=50.0, algorithms=("one-pass",), seeds=1)
    assert len(list(run_bench(suite, out, limited))) == 2  # another question


def test_a_run_that_hangs_is_stopped_and_its_seeds_recorded(suite, tmp_path, monkeypatch):
    monkeypatch.setattr(process, "GRACE_S", 0.5)
    speak(
        monkeypatch,
        "import time; print('ready', flush=True); print('start 0', flush=True); time.sleep(60)",
    )
    config = BenchConfig(algorithms=("one-pass",), seeds=2, time_limit_s=0.2)
    first, second = run_bench(suite.only(["pair"]), tmp_path / "out", config)
    assert (first.status, second.status) == ("timeout", "timeout")
    assert "stopped by force while running" in first.message
    assert "not run, as seed 0 ended so" in second.message
    assert first.machine["cores"] >= 1
    assert len(read_records(tmp_path / "out")) == 2


def test_a_network_that_takes_too_long_to_read_is_stopped(suite, tmp_path, monkeypatch):
    monkeypatch.setattr(process, "START_S", 0.3)
    speak(monkeypatch, "import time; time.sleep(60)")
    config = BenchConfig(algorithms=("one-pass",), seeds=1, time_limit_s=0.1)
    (record,) = run_bench(suite.only(["pair"]), tmp_path / "out", config)
    assert (record.status, "reading the network" in record.message) == ("timeout", True)


def test_a_run_that_crashes_is_recorded_and_the_next_seed_tried(suite, tmp_path, monkeypatch):
    speak(
        monkeypatch,
        "import sys; print('ready', flush=True); print('boom', file=sys.stderr); sys.exit(3)",
    )
    config = BenchConfig(algorithms=("one-pass",), seeds=3)
    records = list(run_bench(suite.only(["pair"]), tmp_path / "out", config))
    assert [r.status for r in records] == ["failed"] * 3
    assert [r.message for r in records] == ["the process ended with code 3: boom"] * 3


def test_a_process_that_cannot_start_speaks_for_all_seeds(suite, tmp_path, monkeypatch):
    speak(monkeypatch, "raise SystemExit('no such thing')")
    config = BenchConfig(algorithms=("one-pass",), seeds=2)
    records = list(run_bench(suite.only(["pair"]), tmp_path / "out", config))
    assert [r.status for r in records] == ["failed"] * 2
    assert "no such thing" in records[1].message


def test_too_little_memory_is_recorded(suite, tmp_path):
    config = BenchConfig(algorithms=("one-pass",), seeds=1, memory_limit_mb=150)
    (record,) = run_bench(suite.only(["pair"]), tmp_path / "out", config)
    assert record.status in ("out of memory", "failed")
    assert not record.has_result


def test_an_interruption_keeps_what_is_done(suite, tmp_path):
    class Impatient(Progress):
        def advance(self, amount=1, note=""):
            if "one-pass" in note:
                self.cancel()

    with pytest.raises(KeyboardInterrupt):
        list(run_bench(suite, tmp_path / "out", FAST, progress=Impatient()))
    done = len(list((tmp_path / "out" / "runs").glob("*.json")))
    assert done >= 1
    rest = list(run_bench(suite, tmp_path / "out", FAST))
    assert 1 <= len(rest) <= 8 - 1


def test_runs_side_by_side_have_cores_of_their_own(suite, tmp_path, monkeypatch):
    cores = running._cores()
    monkeypatch.setattr(running, "_cores", lambda: [cores[0], cores[-1]])
    records = list(run_bench(suite, tmp_path / "out", replace(FAST, at_once=2)))
    assert sorted((r.task.network, r.task.method, r.task.seed) for r in records) == sorted(
        (network, method, seed)
        for network in ("pair", "wide")
        for method in ("one-pass", "overlap")
        for seed in (0, 1)
    )
    assert {(r.machine["cores"], r.at_once) for r in records} == {(1, 2)}
    alone = {r.task: r.connectivity for r in run_bench(suite, tmp_path / "alone", FAST)}
    assert {r.task: r.connectivity for r in records} == alone


def test_an_interruption_ends_all_that_run_side_by_side(suite, tmp_path, monkeypatch):
    monkeypatch.setattr(running, "_cores", lambda: [0, 0])
    speak(monkeypatch, "import time; print('ready', flush=True); time.sleep(60)")
    progress = Progress()
    timer = threading.Timer(1.0, progress.cancel)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        list(run_bench(suite, tmp_path / "out", replace(FAST, at_once=2), progress=progress))
    timer.join()
    assert list((tmp_path / "out" / "runs").iterdir()) == []  # nothing that a later run would trust


def test_what_is_not_there_is_skipped_and_tried_again(suite, tmp_path, monkeypatch):
    monkeypatch.setattr(running, "why_unavailable", lambda a, e: "no GPU" if e == "gpu" else "")
    config = BenchConfig(algorithms=("multilevel:fast",), engines=("gpu",), seeds=1)
    chosen = suite.only(["pair"])
    for _ in range(2):
        (record,) = run_bench(chosen, tmp_path / "out", config)
        assert (record.status, record.message) == ("skipped", "no GPU")
        assert record.machine["cores"] >= 1
    assert read_records(tmp_path / "out") == [record]


def test_what_a_method_needs(monkeypatch):
    assert why_unavailable("one-pass", "cpu") == ""
    monkeypatch.setitem(sys.modules, "mtkahypar", None)
    assert "pip install mtkahypar" in why_unavailable("mtkahypar", "cpu")
    monkeypatch.setattr(available, "PROBE", "print('x'); print('engine gpu needs a GPU')")
    assert why_unavailable("multilevel", "gpu") == "engine gpu needs a GPU"
    monkeypatch.setattr(available, "PROBE", "raise SystemExit('driver gone')")
    assert why_unavailable("multilevel", "gpu") == "looking for a GPU failed: driver gone"
    monkeypatch.setattr(available, "PROBE", "import time; time.sleep(60)")
    monkeypatch.setattr(available, "PROBE_S", 0.2)
    assert "did not answer" in why_unavailable("multilevel", "gpu")


def test_workers_end_with_their_parent(tmp_path):
    script = (
        "import subprocess, sys, time\n"
        "p = subprocess.Popen([sys.executable, '-c', 'import sys, threading, time\\n"
        "from snnmap.bench.worker import _end_with_parent\\n"
        "threading.Thread(target=_end_with_parent, daemon=True).start()\\n"
        "print(1, flush=True); time.sleep(60)'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,"
        " start_new_session=True)\n"
        "p.stdout.readline(); print(p.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    for _ in range(100):
        try:
            if "State:\tZ" in Path(f"/proc/{worker}/status").read_text():
                return
        except OSError:
            return
        time.sleep(0.1)
    pytest.fail("the worker goes on without its parent")


def test_methods():
    config = BenchConfig(
        algorithms=("one-pass", "multilevel", "multilevel:quality", "multilevel:default"),
        engines=("cpu", "gpu"),
    )
    assert config.methods() == [
        ("one-pass", "", "cpu"),
        ("multilevel", "default", "cpu"),
        ("multilevel", "default", "gpu"),
        ("multilevel", "quality", "cpu"),
        ("multilevel", "quality", "gpu"),
    ]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"algorithms": ("magic",)}, "unknown algorithm 'magic'; known: one-pass"),
        ({"algorithms": ("overlap:fast",)}, "algorithm 'overlap' has no presets"),
        ({"algorithms": ("multilevel:fasst",)}, "unknown preset 'fasst'; known: fast, default"),
        ({"engines": ("tpu",)}, "unknown engine 'tpu'"),
        ({"seeds": 0}, "seeds is 0"),
        ({"time_limit_s": 0.0}, "time limit is 0.0"),
        ({"at_once": 0}, "runs at once are 0; expected 1 to"),
        ({"at_once": 10**6}, "runs at once are 1000000; expected 1 to"),
    ],
)
def test_wrong_configurations_are_refused(arguments, text):
    with pytest.raises(ConfigError, match=text):
        BenchConfig(**arguments)


def test_refusals(suite, tmp_path):
    text = suite.path.read_text().replace(f'profile = "{tmp_path / "toy.toml"}"', "")
    suite.path.write_text(text)
    with pytest.raises(ConfigError, match="'pair' recommends no profile"):
        list(run_bench(load_suite(suite.path), tmp_path / "out", FAST))
    with pytest.raises(ProfileError, match="unknown hardware profile 'loihi65'"):
        list(run_bench(suite, tmp_path / "out", replace(FAST, profile="loihi65")))
    assert not (tmp_path / "out").exists()  # no network is made in vain
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be made"):
        list(run_bench(suite, tmp_path / "file", FAST))
