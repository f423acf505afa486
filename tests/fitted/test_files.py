"""Atomic writes: modes, links, temporary files and those that killed processes leave."""

import errno
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from caltree._fitted.files import atomic_file, check_writable, write_atomically

WAITS = """
import sys
from pathlib import Path
from caltree._fitted.files import atomic_file
with atomic_file(Path(sys.argv[1])) as temporary:
    temporary.write_text("half")
    print(temporary, flush=True)
    sys.stdin.read()
"""


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask():
    before = os.umask(0o027)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_a_new_file_has_the_mode_of_the_umask(tmp_path):
    write_atomically(tmp_path / "new", b"1")
    assert mode(tmp_path / "new") == 0o640


@pytest.mark.parametrize("before", [0o600, 0o644, 0o666, 0o400, 0o755])
def test_overwriting_keeps_the_mode(tmp_path, before):
    target = tmp_path / "model.json"
    target.write_bytes(b"old")
    target.chmod(before)
    with atomic_file(target) as temporary:
        # Not even for a moment can others read what they could not read before.
        assert mode(temporary) == 0o600
        temporary.write_bytes(b"new")
    assert (target.read_bytes(), mode(target)) == (b"new", before)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_overwriting_keeps_the_owner(tmp_path):
    target = tmp_path / "model.json"
    target.write_bytes(b"old")
    os.chown(target, 4321, 1234)
    write_atomically(target, b"new")
    assert (target.stat().st_uid, target.stat().st_gid) == (4321, 1234)


def test_the_temporary_file_is_new_and_its_name_short(tmp_path):
    target = tmp_path / ("n" * 255)
    with atomic_file(target) as one, atomic_file(target) as other:
        assert one != other and one.parent == other.parent == tmp_path
        assert one.exists() and other.exists()
        assert max(len(one.name), len(other.name)) <= 30
    assert os.listdir(tmp_path) == [target.name]


def test_an_error_leaves_the_target_alone(tmp_path):
    target = tmp_path / "model.json"
    target.write_bytes(b"old")
    with pytest.raises(RuntimeError), atomic_file(target) as temporary:
        temporary.write_bytes(b"half")
        raise RuntimeError
    assert target.read_bytes() == b"old" and os.listdir(tmp_path) == ["model.json"]


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path):
    target, other = tmp_path / "model.json", tmp_path / "other.json"
    command = [sys.executable, "-c", WAITS, target]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        left = Path(process.stdout.readline().decode().strip())
        # A living process keeps its file, and the process of another target touches none.
        write_atomically(target, b"mine")
        assert left.read_text() == "half"
        process.send_signal(signal.SIGKILL)
        process.wait()
    write_atomically(other, b"2")
    assert left.exists()
    write_atomically(target, b"1")
    assert sorted(os.listdir(tmp_path)) == ["model.json", "other.json"]


@pytest.mark.parametrize("write", [check_writable, lambda path: write_atomically(path, b"1")])
def test_a_loop_of_links_is_refused_and_stays(tmp_path, write):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(OSError, match="symbolic links") as caught:
        write(tmp_path / "a")
    assert caught.value.errno == errno.ELOOP
    assert (tmp_path / "a").is_symlink() and sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_a_link_to_nothing_is_written_through(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    write_atomically(tmp_path / "a", b"1")
    assert (tmp_path / "a").is_symlink() and (tmp_path / "b").read_bytes() == b"1"


def test_a_folder_that_cannot_be_written_to_is_known_beforehand(tmp_path):
    with pytest.raises(FileNotFoundError):
        check_writable(tmp_path / "nowhere" / "model.json")
    check_writable(tmp_path / "model.json")
    assert os.listdir(tmp_path) == []
