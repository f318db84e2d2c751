"""Links of emulated chains, as probes see them, and the command that tells them."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from weirlab.campaigns.path import Effort, LiveProber, characterize, find_route
from weirlab.campaigns.path.estimate import estimate
from weirlab.errors import MissingCapability
from weirlab.scenario import loads
from weirlab.scenario.network.path import path_plan
from weirlab.testbed import path as path_module
from weirlab.testbed.namespaces import set_sysctl
from weirlab.testbed.path import EmulatedPath

pytestmark = pytest.mark.live

MOST_LATE_S = 1e-4
"""An emulator whose packets leave later than this in the median does not emulate the links that are asked
for: at 50 Mbit/s the longest probe takes 240 us. Beside twenty other busy programs it was 24 us."""
UNSETTLED_LATE_S = 2e-5
"""90 s have room for 350 rounds. Round trips drawn from the lateness that an emulator told, 28 us late in the
median at the worst link, leave 1.9 % of 50 Mbit/s after as many: what is later than this may not settle at
2 %, what is earlier must."""
QUICK = {"gap_s": 0.003, "most_rounds": 200}


@pytest.fixture(autouse=True)
def stacks_work_alike(monkeypatch):
    """What a byte costs this machine is compared on chains with rates and without: on none of them do stacks
    work on other CPUs than the emulator."""
    monkeypatch.setattr(path_module, "FAST_BPS", math.inf)


def chain(*lines, **options):
    """A path of these lines, whose ways back have no rate."""
    hops = "".join(
        f"    h{place}: {{forward: {line}, backward: {{delay: 1 ms}}}}\n" for place, line in enumerate(lines)
    )
    text = f"weirlab: 1\nname: chain\ntestbed:\n  kind: netns\n  hops:\n{hops}"
    try:
        return EmulatedPath(path_plan(loads(text)), **options)
    except MissingCapability as lack:
        pytest.skip(str(lack))


def measured(path, *, address=None, **effort):
    address = address or path.far_address
    prober = LiveProber(address)

    def probe(batch):
        return path.near.inside(lambda: prober(batch))

    route = find_route(probe, address, gap_s=0.003, timeout_s=0.5)
    return characterize(probe, route, Effort(**{**QUICK, **effort}))


def surely(found):
    """What was found, with intervals that hardly ever fail."""
    return estimate(found.probes, found.route.hops, confidence=0.999, share=found.effort.share)


def test_three_links_are_found_within_three_per_cent():
    rates_bps = (10e6, 50e6, 20e6)
    with chain(*(f"{{rate: {rate / 1e6:g} Mbit/s, delay: 2 ms}}" for rate in rates_bps)) as path:
        # Two per cent at 95 % leave half as much again for the truth.
        found = measured(path, most_s=90, most_rounds=1000, precision=0.02)
        report = path.close()
    late_s = max(way.lateness_s["p50"] for way in report.lines)
    if late_s > MOST_LATE_S or (found.ending != "settled" and late_s > UNSETTLED_LATE_S):
        pytest.skip(f"too busy to emulate links: packets left {1e6 * late_s:.0f} us late in the median")
    assert found.ending == "settled"
    # The same chain without rates, at the same pace: what a byte costs this machine itself.
    with chain(*["{delay: 2 ms}"] * 3) as path:
        bare = measured(path, most_s=30, precision=1e-4, gap_s=found.probes["gap_s"].max())
    pairs = zip(surely(found), surely(bare), rates_bps, strict=True)
    for each, own, rate_bps in pairs:
        line, machine = each.link.line, own.link.line
        byte_s = line.slope - machine.slope
        assert abs(byte_s - 8 / rate_bps) < math.hypot(line.half_width, machine.half_width)
        # 2 ms there, 1 ms back, and what hosts take.
        assert each.link.round_trip_high_s > 3.0e-3
        assert each.link.round_trip_s < 3.3e-3
        assert each.loss.high < 12 / each.sent
    for each, rate_bps in zip(found.estimates(), rates_bps, strict=True):
        assert each.link.capacity_bps == pytest.approx(rate_bps, rel=0.03)


def test_a_fast_link_behind_a_slow_one_is_stated_as_a_bound():
    with chain("{rate: 10 Mbit/s, delay: 2 ms}", "{rate: 4 Gbit/s, delay: 1 ms}") as path:
        slow, fast = (each.link for each in measured(path, most_s=20).estimates())
    assert slow.capacity_bps == pytest.approx(10e6, rel=0.03)
    assert 150e6 < fast.capacity_low_bps < 4e9
    assert fast.capacity_bps is None or fast.capacity_low_bps < 4e9 < fast.capacity_high_bps


def test_a_slow_link_behind_a_fast_one_is_found():
    with chain("{rate: 1 Gbit/s, delay: 1 ms}", "{rate: 10 Mbit/s, delay: 2 ms}") as path:
        fast, slow = (each.link for each in measured(path, most_s=15).estimates())
    assert slow.capacity_bps == pytest.approx(10e6, rel=0.03)
    assert fast.capacity_low_bps > 150e6


def test_loss_is_told_at_its_link_and_nowhere_else():
    line = "{rate: 50 Mbit/s, delay: 1 ms}"
    with chain(line, "{rate: 50 Mbit/s, delay: 1 ms, loss: 8 %}", line) as path:
        first, second, third = (each.loss for each in measured(path, most_s=12, precision=0.001).estimates())
    assert second.low < 0.08 < second.high
    assert first.high < 0.02
    assert third.low < 0.01


def test_traffic_of_others_shows_as_waiting_and_not_as_capacity():
    cross = "{kind: poisson, rate: 5 Mbit/s, frame_size: 500 B}"
    line = "{rate: 10 Mbit/s, delay: 2 ms, buffer: 100 kB, cross: {others: CROSS}}"
    with chain(line.replace("CROSS", f"{{source: {cross}}}"), "{rate: 50 Mbit/s, delay: 1 ms}") as path:
        first, second = measured(path, most_s=30).estimates()
    assert first.link.capacity_bps == pytest.approx(10e6, rel=0.05)
    assert first.waiting.mean_s > 1e-4
    assert second.waiting.added_s < first.waiting.added_s / 2


def test_ipv6_answers_alike():
    lines = ["{rate: 10 Mbit/s, delay: 2 ms}", "{rate: 5 Mbit/s, delay: 2 ms}"]
    with chain(*lines, ipv6=True) as path:
        found = measured(path, address=path.far_address6, most_s=25)
    assert [hop.routers for hop in found.route.hops] == [("2001:2::2",), ("2001:2:0:1::2",)]
    # Answers quote 1280 B less their own headers, so only longer probes tell a slope.
    assert found.route.least_bytes == 1232
    for each, rate_bps in zip(found.estimates(), (10e6, 5e6), strict=True):
        assert each.link.capacity_bps == pytest.approx(rate_bps, rel=0.06)


def test_a_silent_router_and_one_that_refuses_are_told_as_such():
    line = "{rate: 20 Mbit/s, delay: 1 ms}"
    with chain(line, line, line, line) as path:
        silent, _, refusing = path.routers
        # So long must it wait between two answers.
        silent.inside(lambda: set_sysctl("ipv4.icmp_ratelimit", 2_000_000_000))

        def block():
            from pyroute2 import IPRoute

            with IPRoute() as route:
                route.route("add", dst=f"{path.far_address}/32", type="unreachable")

        refusing.inside(block)
        # Linux refuses about once in a second: probes are sent more slowly.
        found = measured(path, most_s=12, confidence=0.999)
    assert [hop.routers for hop in found.route.hops] == [(), ("198.18.1.2",), ("198.18.2.2",)]
    assert found.route.ending == "198.18.2.2 says: host unreachable"
    together, single = found.estimates()
    assert (together.after, single.after) == (0, 2)
    assert together.link.capacity_low_bps < 10e6 < together.link.capacity_high_bps
    assert any(note.startswith("hop 3 answers") for note in found.notes)


def test_a_link_for_shorter_packets_is_named():
    line = "{rate: 20 Mbit/s, delay: 1 ms}"
    with chain(line, line) as path:

        def narrow():
            from pyroute2 import IPRoute

            with IPRoute() as route:
                (index,) = route.link_lookup(ifname="far")
                route.link("set", index=index, mtu=1300)

        path.routers[0].inside(narrow)
        found = measured(path, most_rounds=8)
    assert found.route.mtu_bytes == 1300
    assert found.route.notes == ("packets of 1500 B are too long for a link behind 198.18.0.2",)
    assert found.probes["size_bytes"].max() == 1300


def command(path, *options, prefix=()):
    """`weir path` at the near end."""
    words = [*prefix, sys.executable, "-m", "weirlab", "path", path.far_address, *options]
    return path.near.inside(
        lambda: subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
        )
    )


def test_the_command_needs_no_privilege(tmp_path):
    if shutil.which("setpriv") is None:
        pytest.skip("needs the program setpriv")
    without = ("setpriv", "--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all")
    line = "{rate: 20 Mbit/s, delay: 1 ms}"
    with chain(line, line) as path:
        options = ["--rounds", "8", "--gap", "3 ms", "--out", str(tmp_path / "out"), "--json"]
        process = command(path, *options, prefix=without)
        said, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    document = json.loads(said)
    assert [hop["routers"] for hop in document["hops"]] == [["198.18.0.2"], ["198.18.1.2"]]
    assert document["route"]["reached"]
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["status"] == "complete"


def test_an_interruption_keeps_what_was_measured(tmp_path):
    out = tmp_path / "out"
    line = "{rate: 20 Mbit/s, delay: 1 ms}"
    with chain(line, line) as path:
        process = command(path, "--precision", "0.0001", "--out", str(out))
        # The manifest appears when the route is known; a batch takes two seconds and a half.
        for _ in range(300):
            if (out / "manifest.json").exists():
                break
            time.sleep(0.1)
        time.sleep(6)
        process.send_signal(signal.SIGINT)
        said, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "198.18.1.2" in said
    assert "what was measured is kept" in errors
    assert json.loads((out / "manifest.json").read_text())["status"] == "interrupted"
    assert json.loads((out / "result.json").read_text())["probes"] > 0


def test_a_host_behind_no_route_is_told_without_a_traceback(tmp_path):
    with chain("{rate: 20 Mbit/s, delay: 1 ms}") as path:
        words = [sys.executable, "-m", "weirlab", "path", "192.0.2.1", "--out", str(tmp_path / "out")]
        done = path.near.inside(
            lambda: subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        )
    assert done.returncode == 1
    assert "find a way to 192.0.2.1" in done.stderr
    assert "Traceback" not in done.stderr
    assert not Path(tmp_path / "out").exists()
