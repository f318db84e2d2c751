"""`weir view`, and `--view` of commands that work."""

import http.client
import os
import stat
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import psutil
import pytest

from weirlab.cli.app import execute
from weirlab.viewer import serving

from .conftest import RUN

BROWSER = """#!/bin/sh
echo "$1" >> {seen}
"""


@pytest.fixture
def said(monkeypatch, capsys):
    """What a command says, and its exit code, in this process."""

    def run(*words):
        code = execute(list(words))
        return SimpleNamespace(code=code, **dict(zip(("out", "err"), capsys.readouterr(), strict=True)))

    return run


@pytest.mark.parametrize(
    "words", [["view"], ["run", "incast", "--view"], ["search", "search-knee", "--view"]]
)
@pytest.mark.parametrize("package", ["starlette", "uvicorn"])
def test_a_missing_extra_is_told_with_the_remedy_before_anything_is_done(
    said, monkeypatch, tmp_path, words, package
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)
    found = said(*words)
    assert found.code == 1
    assert f"needs {package.capitalize()}" in found.err
    assert "pip install -e '.[view]'" in found.err
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_none_and_a_port_that_is_taken_are_told(said, tmp_path, viewer):
    assert "no such directory" in said("view", str(tmp_path / "nowhere")).err
    found = said("view", str(tmp_path), "--port", str(urlsplit(viewer.base).port))
    assert found.code == 2
    assert "cannot be used" in found.err


def test_ctrl_c_ends_the_viewer_well(tmp_path):
    command = [sys.executable, "-m", "weirlab", "view", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline().startswith("http://127.0.0.1:")
    process.send_signal(2)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0
    assert "Traceback" not in err


def test_a_run_with_view_opens_its_page_and_leaves_the_viewer_to_its_reader(tmp_path):
    file = tmp_path / "small.yaml"
    file.write_text(RUN)
    seen = tmp_path / "seen"
    browser = tmp_path / "browser"
    browser.write_text(BROWSER.format(seen=seen))
    browser.chmod(0o755)
    place = tmp_path / "results" / "first"
    command = [sys.executable, "-m", "weirlab", "run", str(file), "--out", str(place), "--view"]
    environment = {**os.environ, "BROWSER": str(browser), "XDG_RUNTIME_DIR": str(tmp_path)}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    out, err = process.communicate(timeout=300)
    viewers = [
        each
        for each in psutil.process_iter(["cmdline"])
        if f"--while {process.pid}" in " ".join(each.info["cmdline"] or [])
    ]
    try:
        assert process.returncode == 0, err
        assert "Result:" in out
        address = err.partition("View: ")[2].split()[0]
        page = Path(urlsplit(seen.read_text().strip()).path)
        assert stat.S_IMODE(page.stat().st_mode) == 0o600
        assert address in page.read_text()
        assert urlsplit(address).path == "/result/first"
        token = address.partition("token=")[2]
        connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=300)
        connection.request("GET", "/result/first.json", headers={"Authorization": f"Bearer {token}"})
        assert connection.getresponse().status == 200
        connection.close()
        assert token not in " ".join(word for each in viewers for word in each.info["cmdline"])
    finally:
        for each in viewers:
            each.terminate()
        psutil.wait_procs(viewers, timeout=300)
    assert len(viewers) == 1


def test_a_viewer_for_some_work_ends_when_that_has_and_its_last_page_was_closed():
    watcher = SimpleNamespace(ears=0, left_at=time.monotonic() - 100)
    viewer = SimpleNamespace(watcher=watcher)
    assert not serving._is_left(viewer, lambda: True)
    assert not serving._is_left(viewer, lambda: False), "there is time to open a page"
    watcher.left_at = time.monotonic() - 100
    assert serving._is_left(viewer, lambda: False)
    watcher.ears = 1
    assert not serving._is_left(viewer, lambda: False)
