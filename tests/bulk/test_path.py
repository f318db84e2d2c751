"""Characterizing a path, with paths that are known."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from made_paths import MadeHop, MadePath
from weirlab.campaigns.path import Effort, characterize, find_route, load_path, save_path
from weirlab.campaigns.path.reverse import read_traceroute
from weirlab.errors import InputError, TestbedError, WeirlabError

CHAIN = [
    MadeHop(rate_bps=10e6, address="192.0.2.11"),
    MadeHop(rate_bps=50e6, address="192.0.2.12"),
    MadeHop(rate_bps=20e6, address="192.0.2.13"),
]
HOST = "192.0.2.13"


def route_of(path):
    return find_route(path, HOST)


def known(path, **effort):
    route = route_of(path)
    return characterize(path, route, Effort(**effort), clock=path.clock)


def test_a_route_ends_at_the_host_and_tells_what_its_answers_quote():
    route = route_of(MadePath(list(CHAIN)))
    assert [hop.routers for hop in route.hops] == [(hop.address,) for hop in CHAIN]
    assert route.reached
    assert route.ending == ""
    # 520 B of payload and 28 B of headers are quoted: from there on answers are of one length.
    assert (route.least_bytes, route.mtu_bytes, route.rotating, route.notes) == (548, 1500, False, ())


def test_a_link_for_shorter_packets_shortens_the_probes():
    route = route_of(MadePath([CHAIN[0], replace(CHAIN[1], mtu_bytes=1400), CHAIN[2]]))
    assert route.mtu_bytes == 1400
    assert route.notes == ("packets of 1500 B are too long for a link behind 192.0.2.11",)


def test_a_link_that_swallows_long_packets_without_a_word_is_found_out():
    route = route_of(MadePath([CHAIN[0], replace(CHAIN[1], mtu_bytes=1410, tells_mtu=False), CHAIN[2]]))
    assert route.mtu_bytes == 1400
    assert "nobody answers from hop 3 to packets of 1500 B" in route.notes


def test_routers_that_quote_headers_only_make_ports_change():
    path = MadePath([replace(CHAIN[0], quoted_bytes=0), CHAIN[1], CHAIN[2]])
    found = known(path, most_rounds=8)
    assert found.route.rotating
    assert path.batches[-1].rotating
    assert found.route.hops[0].routers == ("192.0.2.11",)
    assert "quote headers only" in found.route.notes[0]


def test_answers_that_grow_with_the_probe_are_told():
    route = route_of(MadePath([replace(hop, quoted_bytes=1440) for hop in CHAIN]))
    assert "they grow with the probe" in route.notes[0]
    assert route.least_bytes == 500


def test_a_router_that_refuses_ends_the_route_with_its_reason():
    route = route_of(MadePath([CHAIN[0], replace(CHAIN[1], refuses=1), CHAIN[2]]))
    assert not route.reached
    assert route.ending == "192.0.2.12 says: host unreachable"
    assert len(route.hops) == 2


def test_silence_behind_a_router_ends_the_route_there():
    route = find_route(MadePath([*CHAIN, MadeHop(address=None)], is_host=False), "192.0.2.99")
    assert not route.reached
    assert route.ending == "nobody answers beyond hop 3"
    assert [hop.hops for hop in route.hops] == [1, 2, 3]


def test_a_host_that_listens_at_the_port_is_not_taken_for_a_silent_one():
    route = route_of(MadePath(list(CHAIN), listens=True))
    assert "somebody listens at this port; name another with --port" in route.ending


def test_where_nobody_answers_there_is_nothing_to_measure():
    with pytest.raises(TestbedError, match="nobody answers, not even the first hop"):
        route_of(MadePath([MadeHop(address=None)], is_host=False))


def test_probing_ends_when_each_link_is_known():
    found = known(MadePath(list(CHAIN)))
    assert found.ending == "settled"
    assert found.settled() == (True, True, True)
    for each, hop in zip(found.estimates(), CHAIN, strict=True):
        assert each.link.capacity_bps == pytest.approx(hop.rate_bps, rel=0.05)
        assert each.link.capacity_low_bps < hop.rate_bps < each.link.capacity_high_bps
        assert each.loss.loss_ratio == 0.0


def test_a_note_names_the_links_that_are_fast_beside_the_time_per_byte_of_hosts():
    assert known(MadePath(list(CHAIN))).doubts() == ()
    (told,) = known(MadePath([replace(CHAIN[0], rate_bps=1e9)], noise_s=1e-7)).doubts()
    assert told.startswith("the intervals of the links to hop 1 leave out the time per byte")


def test_more_noise_takes_more_probes():
    quiet, noisy = (known(MadePath(list(CHAIN), noise_s=noise_s)) for noise_s in (2e-6, 5e-5))
    assert quiet.probes.height < noisy.probes.height


def test_a_fast_link_behind_a_slow_one_is_settled_as_a_bound():
    found = known(MadePath([CHAIN[0], replace(CHAIN[1], rate_bps=100e9)], noise_s=1e-6))
    fast = found.estimates()[1].link
    assert found.ending == "settled"
    assert fast.capacity_bps is None
    assert 300e6 < fast.capacity_low_bps < 100e9


def test_a_silent_router_leaves_the_links_around_it_together():
    found = known(MadePath([replace(CHAIN[0], address=None), CHAIN[1], CHAIN[2]]))
    first = found.estimates()[0]
    assert (first.hop.hops, first.after) == (2, 0)
    together = 1 / (1 / 10e6 + 1 / 50e6)
    assert first.link.capacity_bps == pytest.approx(together, rel=0.03)


def test_loss_is_told_at_the_link_where_it_happens():
    path = MadePath([CHAIN[0], replace(CHAIN[1], loss=0.1), CHAIN[2]])
    losses = [each.loss for each in known(path, precision=0.01, most_rounds=60).estimates()]
    assert losses[1].low < 0.1 < losses[1].high
    assert losses[0].high < 0.02
    assert losses[2].low == 0.0


def test_a_router_that_limits_its_answers_is_asked_more_slowly_and_blamed_for_no_loss():
    path = MadePath([replace(CHAIN[0], answers_per_s=5), CHAIN[1], CHAIN[2]])
    found = known(path, most_s=120)
    assert found.notes[0].startswith("hop 1 answers")
    assert found.probes["gap_s"].max() > 4 * found.probes["gap_s"].min()
    first, second, third = found.estimates()
    assert first.withholds
    assert first.loss is None
    assert second.loss.loss_ratio == third.loss.loss_ratio == 0.0


def test_probes_of_narrow_links_keep_out_of_each_others_way():
    path = MadePath([replace(CHAIN[0], rate_bps=0.5e6)])
    found = known(path, most_rounds=8)
    # 1500 B take 24 ms there.
    assert found.probes["gap_s"].min() > 0.04
    assert found.notes[0].startswith("a probe takes")


@pytest.mark.parametrize(
    ("effort", "ending"),
    [({"most_rounds": 9}, "rounds"), ({"most_probes": 800}, "probes"), ({"most_s": 10}, "time")],
)
def test_every_limit_ends_the_work_with_what_is_known(effort, ending):
    found = known(MadePath(list(CHAIN), noise_s=1e-3), **effort)
    assert found.ending == ending
    assert found.probes.height <= effort.get("most_probes", 10**6)
    assert all(each.link is not None for each in found.estimates())


def test_an_interruption_keeps_what_was_measured():
    found = known(MadePath(list(CHAIN), interrupt_after=6))
    assert found.ending == "interrupted"
    assert found.probes.height > 0


def test_rounds_during_which_the_clock_was_stepped_are_left_out():
    path = MadePath(list(CHAIN), steps_s=[0.0, 0.0, 0.5])
    found = known(path, most_rounds=8)
    assert 0 not in found.probes["round"]
    assert found.notes == ("the clock was stepped by 500000 us: 72 probes are left out",)


def test_what_is_kept_tells_the_same(tmp_path):
    found = known(MadePath(list(CHAIN)), precision=0.05)
    save_path(found, None, tmp_path)
    again, back = load_path(tmp_path)
    assert back is None
    assert again.probes.equals(found.probes)
    assert (again.route, again.effort, again.ending) == (found.route, found.effort, found.ending)
    document = json.loads((tmp_path / "result.json").read_text())
    assert document["bottleneck_bps"] == pytest.approx(10e6, rel=0.05)
    assert [hop["capacity_bps"] for hop in document["hops"]] == [
        each.link.capacity_bps for each in found.estimates()
    ]


def test_what_was_found_is_kept_where_there_is_no_room_for_the_probes(tmp_path, small_files):
    found = known(MadePath(list(CHAIN)), most_rounds=20)
    save_path(found, None, tmp_path / "all")
    size = (tmp_path / "all" / "result.json").stat().st_size
    assert (tmp_path / "all" / "tables" / "probes.parquet").stat().st_size > size
    said = r"probes\.parquet: cannot be written"
    with small_files(size), pytest.raises(WeirlabError, match=said):
        save_path(found, None, tmp_path / "full")
    kept = (tmp_path / "full" / "result.json").read_bytes()
    assert kept == (tmp_path / "all" / "result.json").read_bytes()


def test_a_damaged_result_is_told_with_its_place(tmp_path):
    save_path(known(MadePath(list(CHAIN)), most_rounds=8), None, tmp_path)
    document = json.loads((tmp_path / "result.json").read_text())
    (tmp_path / "result.json").write_text(json.dumps({**document, "rounds": "many"}))
    with pytest.raises(InputError, match=r"result.json: rounds: "):
        load_path(tmp_path)


def test_an_effort_that_cannot_be_is_refused():
    with pytest.raises(InputError, match=r"--precision: from 0\.0001 to 1"):
        Effort(precision=0.0).check()


def test_the_hops_of_a_traceroute_are_read():
    text = (
        "traceroute to 192.0.2.1 (192.0.2.1), 30 hops max, 60 byte packets\n"
        " 1  198.51.100.1  0.523 ms  0.401 ms  0.466 ms\n"
        " 2  * * *\n"
        " 3  198.51.100.9  4.1 ms 198.51.100.10  4.0 ms *\n"
        " 4  192.0.2.1  9.25 ms  9.10 ms  9.80 ms\n"
    )
    back = read_traceroute(text, "far", "192.0.2.1")
    assert back.reached
    assert [hop.routers for hop in back.hops] == [
        ("198.51.100.1",),
        (),
        ("198.51.100.9", "198.51.100.10"),
        ("192.0.2.1",),
    ]
    assert [hop.rtt_s and round(1e6 * hop.rtt_s) for hop in back.hops] == [401, None, 4000, 9100]


def test_the_hops_of_a_traceroute_over_ipv6_are_read():
    back = read_traceroute(" 1  2001:db8::1  0.5 ms  0.4 ms  0.4 ms\n 2  * * *\n", "far", "2001:db8:1::1")
    assert back.hops[0].routers == ("2001:db8::1",)
    assert not back.reached


def test_a_traceroute_without_hops_is_an_error():
    with pytest.raises(TestbedError, match="traceroute on far: Network is unreachable"):
        read_traceroute("Network is unreachable\n", "far", "192.0.2.1")


def test_a_host_that_refuses_by_itself_is_reached():
    path = MadePath([*CHAIN[:2], replace(CHAIN[2], refuses=13), MadeHop()], is_host=False)
    route = route_of(path)
    assert route.reached
    assert [hop.hops for hop in route.hops] == [1, 2, 3]
