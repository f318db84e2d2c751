"""A report in a real browser: it draws, in light and dark, and asks nobody for anything."""

import functools
import http.server
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import threading
import zlib
from collections import Counter
from pathlib import Path

import pytest

import weirlab
from weirlab.report import write_report
from weirlab.results import Manifest, Provenance
from weirlab.runs import save_scenario
from weirlab.scenario import loads
from weirlab.searches import run_search
from weirlab.searches.build import build
from weirlab.testbed import open_testbed

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium to look at a page"),
]

SCENARIO = """
weirlab: 1
name: seen
network: {kind: star, hosts: 3, link: {rate: 1 Gbit/s, delay: 1 us}}
traffic:
  a: {from: "host-[0-1]", to: host-2, source: {kind: poisson, load: 60 %, frame_size: 1000 B}}
run: {duration: 5 ms}
record: {out: {queue: switch-0->host-2, every: 100 us}, in: {flow: a, every: 100 us}}
"""


CAPTURE = Path(__file__).parents[2] / "examples" / "slow-transfer.pcap"
SEARCHED = """
weirlab: 1
name: searched
testbed: {kind: sim, device: {kind: knee, capacity: 10.6 Mframe/s}}
traffic: {offered: {from: sender, to: receiver, source: {kind: constant, frame_size: 64 B}}}
search:
  vary: traffic.offered.source.rate
  between: [20 kframe/s, 29.76 Mframe/s]
  goals: {NDR: {preset: csit-ndr}, PDR: {preset: csit-pdr}}
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    directory = tmp_path_factory.mktemp("seen")
    weirlab.run(loads(SCENARIO)).save(directory)
    return write_report(directory, pictures=False).page


def browse(address: str, tmp_path, *options: str) -> None:
    """Open a page without a window, without a net, for at most five minutes."""
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
        "--disable-component-update", "--no-first-run", f"--user-data-dir={tmp_path / 'profile'}",
        "--window-size=1000,1600", "--hide-scrollbars", *options, address,
    ]  # fmt: skip
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as browser:
        try:
            assert browser.wait(timeout=300) == 0
        finally:
            if browser.poll() is None:
                os.killpg(browser.pid, signal.SIGKILL)


def pixels(path) -> tuple[list[bytes], int]:
    """Rows of an RGB or RGBA picture of 8 bits, and the bytes of a pixel."""
    content = path.read_bytes()
    width, _, depth, kind = struct.unpack(">IIBB", content[16:26])
    assert depth == 8
    size = {2: 3, 6: 4}[kind]
    data, place = b"", 8
    while place < len(content):
        (length,) = struct.unpack(">I", content[place : place + 4])
        if content[place + 4 : place + 8] == b"IDAT":
            data += content[place + 8 : place + 8 + length]
        place += 12 + length
    raw, stride = zlib.decompress(data), width * size
    rows, above = [], bytes(stride)
    for start in range(0, len(raw), stride + 1):
        above = unfiltered(raw[start], bytearray(raw[start + 1 : start + 1 + stride]), above, size)
        rows.append(above)
    return rows, size


def unfiltered(kind: int, row: bytearray, above: bytes, size: int) -> bytes:
    """Undo the filter of a row (PNG specification, section 9)."""
    for i in range(len(row)):
        left = row[i - size] if i >= size else 0
        corner = above[i - size] if i >= size else 0
        if kind == 4:
            estimate = left + above[i] - corner
            near = min((left, above[i], corner), key=lambda value: abs(estimate - value))
            row[i] = (row[i] + near) & 255
        else:
            row[i] = (row[i] + (0, left, above[i], (left + above[i]) // 2)[kind]) & 255
    return bytes(row)


def colors(page, tmp_path, *options: str) -> Counter[bytes]:
    picture = tmp_path / "page.png"
    browse(page.as_uri(), tmp_path, f"--screenshot={picture}", *options)
    rows, size = pixels(picture)
    return Counter(row[i : i + 3] for row in rows for i in range(0, len(row), size))


def rgb(color: str) -> bytes:
    return bytes.fromhex(color.removeprefix("#"))


def test_a_report_shows_its_plots_on_white(page, tmp_path):
    seen = colors(page, tmp_path, "--blink-settings=preferredColorScheme=1")
    assert seen.most_common(1)[0][0] == b"\xff\xff\xff"
    assert seen[rgb(weirlab.plots.style.LIGHT["blue"])] > 500, "the line of the first series"


def test_a_report_follows_a_dark_reader(page, tmp_path):
    seen = colors(page, tmp_path, "--blink-settings=preferredColorScheme=0")
    assert seen.most_common(1)[0][0] == rgb("#12171e")
    assert seen[rgb(weirlab.plots.style.DARK["blue"])] > 500
    assert seen[b"\xff\xff\xff"] < 100, "no white box is left behind the plots"


def asked_by(page, tmp_path) -> set[str]:
    """Addresses that a page asks for when it comes from a server."""
    log = tmp_path / "net.json"
    handler = functools.partial(Quiet, directory=page.parent)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        origin = f"http://127.0.0.1:{server.server_port}"
        options = (f"--log-net-log={log}", f"--screenshot={tmp_path / 'page.png'}")
        browse(f"{origin}/{page.name}", tmp_path, *options)
        server.shutdown()
    requests = [event["params"] for event in json.loads(log.read_text())["events"] if "params" in event]
    # What the browser asks for itself, such as updates, has no initiator of ours.
    return {request["url"] for request in requests if "url" in request and request.get("initiator") == origin}


def test_no_table_of_a_search_is_cut_off_on_a_narrow_screen(tmp_path):
    scenario = loads(SEARCHED)
    directory = tmp_path / "searched"
    save_scenario(scenario, directory)
    run_search(build(scenario), open_testbed(scenario), log=directory / "trials.jsonl")
    manifest = Manifest(kind="search", name=scenario.name, provenance=Provenance.now())
    manifest.ended("complete").write(directory)
    content = write_report(directory, pictures=False).page.read_text()
    assert fits(content, tmp_path, "--window-size=1100,400")


@pytest.mark.parametrize("width_px", [1280, 800])
def test_no_table_of_a_trace_is_cut_off_and_names_of_flows_take_two_lines_at_most(tmp_path, width_px):
    directory = tmp_path / "traced"
    weirlab.trace(CAPTURE).save(directory)
    content = write_report(directory, pictures=False).page.read_text()
    assert "RTT min" in content
    assert fits(content, tmp_path, f"--window-size={width_px},400")


def fits(content: str, tmp_path, *options: str) -> bool:
    """Whether no table of a page is wider than its place, and no name of a row longer than two lines: a
    script of the test paints the page accordingly."""
    page = tmp_path / "painted.html"
    page.write_text(
        re.sub("<meta http-equiv=[^>]*>", "", content)
        + "<script>const lines = each => { const all = document.createRange(); all.selectNodeContents(each);"
        "return new Set([...all.getClientRects()].map(line => Math.round(line.top))).size; };"
        "const amiss = [...document.querySelectorAll('.scroll')].some("
        "each => each.scrollWidth > each.clientWidth) || "
        "[...document.querySelectorAll('tbody th')].some(each => lines(each) > 2);"
        "document.documentElement.style.background = amiss ? '#ff0000' : '#00ff00';"
        "document.body.innerHTML = '';</script>"
    )
    seen = colors(page, tmp_path, *options)
    return seen.most_common(1)[0][0] == b"\x00\xff\x00"


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, *_: object) -> None:
        pass


def test_a_report_asks_nobody_for_anything(page, tmp_path):
    assert {url for url in asked_by(page, tmp_path) if not url.endswith("/favicon.ico")} == set()


def test_a_page_that_asks_would_be_noticed(tmp_path):
    page = tmp_path / "asking.html"
    page.write_text('<!doctype html><img src="http://elsewhere.invalid/spy.png">')
    assert "http://elsewhere.invalid/spy.png" in asked_by(page, tmp_path)
