import os
from pathlib import Path

import pytest

from snnmap.errors import OutputError
from snnmap.writers.atomic import result_folder, whole_file, writing


def test_a_file_appears_whole_with_ordinary_permissions(tmp_path: Path) -> None:
    target = tmp_path / "a.csv"
    with whole_file(target) as temporary:
        temporary.write_text("new")
        assert not target.exists()
        assert temporary.suffix == ".csv"
    assert target.read_text() == "new"
    mask = os.umask(0)
    os.umask(mask)
    assert target.stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "a.csv"
    target.write_text("old")
    with pytest.raises(ValueError, match="stop"), whole_file(target) as temporary:
        temporary.write_text("half")
        raise ValueError("stop")
    assert target.read_text() == "old"
    assert [f.name for f in tmp_path.iterdir()] == ["a.csv"]


@pytest.mark.parametrize("bad", ["missing/a.csv", ""])
def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path, bad: str) -> None:
    with pytest.raises(OutputError, match=str(tmp_path)), whole_file(tmp_path / bad):
        pytest.fail("the block must not run")


def test_a_full_disk_is_an_output_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="No space left"), whole_file(tmp_path / "a") as temporary:
        temporary.write_text("half")
        raise OSError(28, "No space left on device")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_receives_all_files_and_loses_stale_ones(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    with result_folder(out, known=("a", "b")) as stage:
        (stage / "a").write_text("1")
        (stage / "b").write_text("1")
        assert not (out / "a").exists()
    (out / "mine.txt").write_text("keep")
    with result_folder(out, known=("a", "b")) as stage:
        (stage / "a").write_text("2")
    assert sorted(f.name for f in out.iterdir()) == ["a", "mine.txt"]
    assert (out / "a").read_text() == "2"


def test_a_failed_run_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), result_folder(tmp_path / "x" / "y") as stage:
        (stage / "a").write_text("half")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_only_what_goes_wrong_while_writing_is_blamed_on_the_output(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="net"), result_folder(tmp_path / "out"):
        raise FileNotFoundError(2, "No such file", "net.snn")
    with (
        pytest.raises(OutputError, match="out: cannot be written: disk"),
        writing(tmp_path / "out"),
    ):
        raise OSError("disk is full")


def test_a_failed_run_leaves_an_earlier_result(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    with pytest.raises(ValueError, match="stop"), result_folder(tmp_path, known=("a",)) as stage:
        (stage / "a").write_text("half")
        raise ValueError("stop")
    assert (tmp_path / "a").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_below_a_file_is_refused_before_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for bad in ("file", "file/out"):
        with pytest.raises(OutputError, match="file"), result_folder(tmp_path / bad):
            pytest.fail("the block must not run")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_refused_before_work(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(OutputError, match="cannot be written"), result_folder(tmp_path / "out"):
        pytest.fail("the block must not run")
    tmp_path.chmod(0o700)
