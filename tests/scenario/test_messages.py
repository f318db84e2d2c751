"""Messages of a scenario: what is offered, and what is wrong with files, shares and matrices."""

from __future__ import annotations

import json

import polars as pl
import pytest

from weirlab.errors import ScenarioError
from weirlab.runs import run
from weirlab.scenario import load, loads
from weirlab.scenario.resolve import resolve
from weirlab.scenario.traffic.tables import mean_size, published_sizes

HEAD = """\
weirlab: 1
name: fabric
network: {kind: xgft, children: [4, 2], parents: [1, 2], link: {rate: 100 Gbit/s, delay: 1 us}}
traffic:
  m:
"""
TAIL = """\
    transport: {kind: tcp, congestion_control: {kind: dctcp}}
run: {duration: 2 ms}
"""
ENDS = "    from: host-*\n    to: host-*\n"


def scenario(lines, ends=ENDS):
    return loads(HEAD + ends + "".join(f"    {line}\n" for line in lines) + TAIL)


def messages(lines, ends=ENDS):
    return resolve(scenario(lines, ends)).spec.traffic[0].messages


def problems(call):
    with pytest.raises(ScenarioError) as error:
        call()
    return [str(problem) for problem in error.value.problems]


SOURCE = "source: {kind: messages, sizes: {kind: fixed, size: 100 kB}, load: 50 %}"


def test_the_mean_gap_follows_from_the_load_and_the_mean_size():
    drawn = messages(["pattern: {kind: uniform}", SOURCE]).arrivals
    assert len(drawn.sources) == 8
    # 100 kB at half of 100 Gbit/s: one message each 16 us.
    assert {source.gaps.mean_gap_ps for source in drawn.sources} == {16e6}


def test_an_incast_offers_its_load_of_all_hosts_together():
    lines = ["pattern: {kind: groups, senders: 6}", SOURCE.replace("50 %", "2 %")]
    (source,) = messages(lines).arrivals.sources
    assert (source.senders, source.receivers) == (6, 1)
    assert source.gaps.mean_gap_ps == pytest.approx(6 * 100e3 * 8e12 / (0.02 * 8 * 100e9))


def test_the_one_receiver_of_an_incast_may_be_among_the_senders():
    line = "pattern: {kind: groups, senders: %d}"
    ends = "    from: host-*\n    to: host-1\n"
    (source,) = messages([line % 7, SOURCE], ends).arrivals.sources
    assert source.senders == 7
    with pytest.raises(ScenarioError, match=r"at most 7 of the hosts in 'from' can send .* \(got 8\)"):
        messages([line % 8, SOURCE], ends)


def test_a_share_of_the_messages_stays_at_the_switch():
    drawn = messages(["pattern: {kind: local, share: 75 %}", SOURCE]).arrivals
    (near, far) = drawn.sources[0].to
    assert (near[0], drawn.hosts[near[1]]) == (0.75, (1, 2, 3))
    assert (far[0], drawn.hosts[far[1]]) == (0.25, (4, 5, 6, 7))


@pytest.mark.parametrize(
    ("name", "mean", "median"),
    [
        ("websearch", 1_711_250, 73.1e3),
        ("fb-hadoop", 120_420.8, 700),
        ("fb-hadoop2015", 121_848.9, 655),
        ("alistorage2019", 40_869.8, 6.3e3),
        ("google-rpc2008", 2_891.6, 257),
        ("solar2022", 39_423.5, 16.4e3),
        ("websearch-packets", 1_665_831, None),
    ],
)
def test_published_sizes_have_the_published_means(name, mean, median):
    points = published_sizes(name)
    assert mean_size(points) == pytest.approx(mean, rel=1e-4)
    if median is not None:
        sizes, shares = zip(*points, strict=True)
        place = next(i for i, share in enumerate(shares) if share >= 0.5)
        low, high = shares[place - 1], shares[place]
        found = sizes[place - 1] + (sizes[place] - sizes[place - 1]) * (0.5 - low) / (high - low)
        assert found == pytest.approx(median, rel=0.01)


SIZES = {
    "shares that are no sums": (
        "bytes,share\n0,0\n100,0.5\n200,0.4\n",
        "4:2: shares ascend to 1, they are sums (got 0.4 after 0.5)",
    ),
    "shares that end below 1": (
        "bytes,share\n0,0\n100,0.9\n",
        "3:2: the shares end at 1, that of all messages (got 0.9)",
    ),
    "shares in per cent": (
        "bytes,share\n0,0\n100,50\n",
        "3:2: shares ascend to 1, they are sums (got 50 after 0)",
    ),
    "sizes that fall": ("bytes,share\n10,0\n5,1\n", "3:1: sizes ascend (got 5 after 10)"),
    "a word": ("# remark\nbytes,share\n10,much\n", "3:2: share is a number (got 'much')"),
    "another header": ("size,cdf\n10,1\n", "1:1: the header is 'bytes,share' (got 'size,cdf')"),
}


@pytest.mark.parametrize("case", SIZES)
def test_faults_of_a_distribution_name_file_line_and_column(case, tmp_path):
    text, expected = SIZES[case]
    file = tmp_path / "sizes.csv"
    file.write_text(text)
    source = f"source: {{kind: messages, sizes: {{kind: table, file: {file}}}, load: 50 %}}"
    (problem,) = problems(lambda: scenario(["pattern: {kind: uniform}", source]))
    assert f"traffic.m.source.sizes.file: {file}:{expected}" in problem


FLOWS = {
    "an unknown host": (
        "start,from,to,bytes\n0 us,host-0,host-9,10\n",
        "2:3: there is no host 'host-9'",
    ),
    "a switch": ("start,from,to,bytes\n0,level1-0,host-1,10\n", "2:2: there is no host 'level1-0'"),
    "times that go back": (
        "start_us,from,to,bytes\n5,host-0,host-1,10\n\n4,host-0,host-1,10\n",
        "4:1: times ascend (got 4 us after 5 us): sort the rows by their start",
    ),
    "half a byte": (
        "start,from,to,bytes\n0,host-0,host-1,1.5\n",
        "2:4: a flow has a whole number of bytes, at least 1 (got 1.5)",
    ),
    "one host": ("start,from,to,bytes\n0,host-1,host-1,1\n", "2:3: 'host-1' would send to itself"),
    "a unit that is none": ("start,from,to,bytes\n5 parsec,host-0,host-1,1\n", "2:1: "),
    "a column too few": ("start,from,bytes\n0,host-1,1\n", "1:1: has no column 'to'"),
    "a cell too few": ("start,from,to,bytes\n0,host-1,1\n", "2:1: has 3 cells; the header has 4"),
    "nothing": ("start,from,to,bytes\n", "1:1: lists no flow"),
}


def table(file):
    return scenario([f"source: {{kind: flow-table, file: {file}}}"], ends="")


@pytest.mark.parametrize("case", FLOWS)
def test_faults_of_a_flow_table_name_file_line_and_column(case, tmp_path):
    text, expected = FLOWS[case]
    file = tmp_path / "flows.csv"
    file.write_text(text)
    (problem,) = problems(lambda: table(file))
    assert f"traffic.m.source.file: {file}:{expected}" in problem


def test_flow_tables_in_csv_and_parquet_are_the_same(tmp_path):
    (tmp_path / "flows.csv").write_text(
        "start,from,to,bytes\n0 us,host-0,host-5,100000\n12.5 us,host-3,host-5,2000\n"
    )
    rows = {
        "start_ns": [0, 12_500],
        "from": ["host-0", "host-3"],
        "to": ["host-5"] * 2,
        "bytes": [100_000, 2000],
    }
    pl.DataFrame(rows).write_parquet(tmp_path / "flows.parquet")
    specs = []
    for kind in ("csv", "parquet"):
        file = tmp_path / f"{kind}.yaml"
        file.write_text(HEAD + f"    source: {{kind: flow-table, file: flows.{kind}}}\n" + TAIL)
        specs.append(resolve(load(file)).spec.traffic[0].messages.arrivals.list)
    assert specs[0] == specs[1] == [(0, 0, 5, 100_000), (12_500_000, 3, 5, 2000)]


def test_a_table_that_is_not_there_is_reported(tmp_path):
    (problem,) = problems(lambda: table(tmp_path / "none.csv"))
    assert "there is no such file" in problem


def test_a_matrix_gives_weights_and_shares_of_the_load(tmp_path):
    file = tmp_path / "m.csv"
    file.write_text(",host-1,host-2\nhost-0,3,1\nhost-1,0,2\n")
    lines = [f"pattern: {{kind: matrix, file: {file}}}", SOURCE]
    drawn = messages(lines, ends="").arrivals
    first, second = drawn.sources
    assert [(weight, drawn.hosts[place]) for weight, place in first.to] == [(3, (1,)), (1, (2,))]
    assert (first.gaps.mean_gap_ps, second.gaps.mean_gap_ps) == (16e6, 32e6)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (",host-1,host-9\nhost-0,3,1\n", "1:3: there is no host 'host-9'"),
        (",host-1\nhost-8,3\n", "2:1: there is no host 'host-8'"),
        (",host-1\nhost-0,-3\n", "2:2: a weight is not negative (got -3)"),
        (",host-1\nhost-1,3\n", "2:2: 'host-1' would send to itself: write 0"),
        (",host-1,host-2\nhost-0,3\n", "2:1: has 2 cells; the header has 3"),
        (",host-1\nhost-0,0\n", "2:1: no weight is above 0"),
    ],
)
def test_a_matrix_beyond_the_network_is_reported(text, expected, tmp_path):
    file = tmp_path / "m.csv"
    file.write_text(text)
    lines = [f"pattern: {{kind: matrix, file: {file}}}", SOURCE]
    (problem,) = problems(lambda: scenario(lines, ends=""))
    assert f"traffic.m.pattern.file: {file}:{expected}" in problem


BAD = {
    "no amount": (
        ["pattern: {kind: uniform}", "source: {kind: messages, sizes: {kind: fixed, size: 1 kB}}"],
        "traffic.m.source: how much? write 'load: 50 %' or 'every: 20 us'",
    ),
    "more senders than there are": (
        ["pattern: {kind: groups, senders: 8}", SOURCE],
        "pattern.senders: at most 7 of the hosts in 'from' can send to one of the receivers (got 8)",
    ),
    "more receivers than there are": (
        ["pattern: {kind: groups, senders: 7, receivers: 9}", SOURCE],
        "traffic.m.pattern.receivers: at most 8 hosts in 'to' can receive (got 9)",
    ),
    "streams": (
        ["pattern: {kind: uniform}", SOURCE, "streams: 4"],
        "traffic.m.streams: each message has its own connection; leave this out",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_does_not_fit_is_reported_at_its_place(case):
    lines, expected = BAD[case]
    (problem,) = problems(lambda: scenario(lines))
    assert expected in problem


def test_fairness_of_messages_needs_several_entries_for_they_are_one_flow_each():
    text = HEAD + ENDS + f"    pattern: {{kind: uniform}}\n    {SOURCE}\n" + TAIL
    text += "measure: {fair: {kind: jain-fairness, of: '*'}}\n"
    (problem,) = problems(lambda: loads(text))
    assert "measure.fair.of: the messages of 'm' count as one flow" in problem
    entry = text[text.index("  m:\n") : text.index("run:")]
    loads(text.replace(entry, entry + entry.replace("  m:\n", "  n:\n")))
    loads(text.replace("    transport: {kind: tcp, congestion_control: {kind: dctcp}}\n", ""))


def test_messages_go_as_frames_without_tcp():
    text = HEAD + ENDS + f"    pattern: {{kind: uniform}}\n    {SOURCE}\n" + TAIL
    text = text.replace("    transport: {kind: tcp, congestion_control: {kind: dctcp}}\n", "")
    found = resolve(loads(text)).spec.traffic[0].messages
    assert found.config is None
    assert (found.packets.payload_bytes, found.packets.header_bytes) == (1000, 48)
    wrong = text.replace("load: 50 %", "load: 50 %, balancing: {kind: random}")
    assert "raw frames take the way of their pair" in problems(lambda: loads(wrong))[0]


def test_messages_do_not_go_over_udp():
    text = HEAD + ENDS + f"    pattern: {{kind: uniform}}\n    {SOURCE}\n" + TAIL
    text = text.replace("{kind: tcp, congestion_control: {kind: dctcp}}", "{kind: udp}")
    assert "traffic.m.transport: messages go over tcp" in problems(lambda: loads(text))[0]


def test_patterns_of_messages_are_for_messages_alone():
    text = (
        HEAD
        + ENDS
        + (
            "    pattern: {kind: groups, senders: 2}\n"
            "    source: {kind: poisson, load: 10 %, frame_size: 1500 B}\n"
            "run: {duration: 2 ms}\n"
        )
    )
    assert any("is for messages" in problem for problem in problems(lambda: loads(text)))


def test_messages_over_tcp_do_not_stand_beside_rate_limiters_of_hosts():
    text = (
        HEAD
        + ENDS
        + f"    pattern: {{kind: uniform}}\n    {SOURCE}\n"
        + TAIL
        + (
            "control:\n  dcqcn:\n    reaction_point: {at: host-*}\n"
            "    marking: {at: level*->*, k_min: 40 kB, k_max: 160 kB, p_max: 20 %}\n"
        )
    )
    found = problems(lambda: resolve(loads(text)))
    assert any("messages do not stand beside rate limiters of hosts" in problem for problem in found), found


SLEEK = "{kind: selective, detection: sleek}"
RDMA = "transport: {kind: rdma, congestion_control: {kind: KIND}MORE}"


@pytest.mark.parametrize(
    ("kind", "more", "place", "says"),
    [
        ("bbr", "", "congestion_control", "does not know numbered packets"),
        ("hpcc", ", credit: {}", "credit", "write 'recovery: selective'"),
        ("hpcc", ", paths: {}", "paths", "write 'recovery: selective'"),
        ("hpcc", ", recovery: selective, paths: {values: 63}", "paths.values", "a power of two"),
        ("hpcc", ", recovery: selective, credit: {share: 150 %}", "credit.share", "150 %"),
        ("hpcc", ", answers: {class: 9}", "answers.class", "a class from 0 to 7"),
        ("hpcc", ", timeout: 2 min", "timeout", "at most"),
        ("hpcc", ", initial_window: 40 kB", "initial_window", "leave this out (got '40 kB')"),
        ("dcqcn-sender", ", round_trip: 9 us", "round_trip", "'dcqcn-sender' assumes none"),
        ("nscc", ", telemetry: 60 B", "telemetry", "'nscc' reads none"),
        ("line-rate", f", recovery: {SLEEK}", "recovery.detection", "follows the window"),
        ("nscc", f", timeout: 36 us, round_trip: 12 us, recovery: {SLEEK}", "timeout", "before a probe"),
        (
            "nscc",
            f", recovery: {SLEEK.replace('sleek', '{kind: sleek, most: 0}')}",
            "recovery.detection",
            "0",
        ),
        ("nscc", ", recovery: {kind: go-back-n, detection: sleek}", "recovery", "detection: unknown field"),
    ],
)
def test_faults_of_numbered_packets_are_reported_at_their_place(kind, more, place, says):
    text = HEAD + ENDS + "    pattern: {kind: uniform}\n    " + SOURCE + "\n    "
    text += RDMA.replace("KIND", kind).replace("MORE", more) + "\nrun: {duration: 2 ms}\n"
    found = problems(lambda: resolve(loads(text)))
    assert any(f"traffic.m.transport.{place}" in problem and says in problem for problem in found), found


SHORT_RUN = """\
weirlab: 1
name: incast
network: {kind: star, hosts: 3, link: {rate: 100 Gbit/s, delay: 1 us}}
queues: {all: {at: "@switches->*", kind: drop-tail, limit: 100 kB, marking: {k_min: 20 kB}}}
traffic:
  m:
    from: host-[0-1]
    to: host-2
    source: {kind: messages, sizes: {kind: fixed, size: 300 kB}, every: 1 s, gaps: {kind: constant}}
    transport: {kind: CARRIER, congestion_control: {kind: KIND}}
run: {duration: 2 ms, seed: 1}
"""
OVER_RDMA = ["dcqcn-sender", "hpcc", "nscc", "line-rate", "dctcp", "swift", "timely", "reno", "cubic"]
STARTING = {"reno", "cubic", "bbr", "dctcp", "prague", "swift", "nscc"}
OVER_TCP = ["reno", "cubic", "bbr", "dctcp", "prague", "swift", "timely"]


@pytest.mark.parametrize(
    ("carrier", "kind", "field", "value"),
    [
        *(
            ("rdma", kind, field, value)
            for kind in OVER_RDMA
            for field, value in (("initial_window", "8 kB"), ("round_trip", "2 us"), ("telemetry", "200 B"))
        ),
        *(("tcp", kind, "initial_window", 3) for kind in OVER_TCP),
    ],
)
def test_a_field_that_a_congestion_control_takes_changes_its_run_and_others_are_refused(
    carrier, kind, field, value
):
    plain = loads(SHORT_RUN.replace("CARRIER", carrier).replace("KIND", kind))
    change = {f"traffic.m.transport.{field}": value}
    reads = {"initial_window": STARTING, "round_trip": {*STARTING, "hpcc"}, "telemetry": {"hpcc"}}[field]
    if kind not in reads:
        (problem,) = problems(lambda: plain.assign(change))
        assert f"traffic.m.transport.{field}: '{kind}'" in problem
        return
    changed = plain.assign(change)
    ended = [
        run(each).records["messages"].get_column("acknowledged_ps").to_list() for each in (plain, changed)
    ]
    assert ended[0] != ended[1]


def test_sleek_reckons_with_the_round_trip_that_is_given():
    text = HEAD + ENDS + "    pattern: {kind: uniform}\n    " + SOURCE + "\n    "
    more = f", window: 90 kB, round_trip: 12 us, recovery: {SLEEK}"
    text += RDMA.replace("KIND", "line-rate").replace("MORE", more) + "\nrun: {duration: 2 ms}\n"
    (traffic,) = json.loads(resolve(loads(text)).spec_json)["traffic"]
    assert traffic["messages"]["rdma"]["round_trip_ps"] == 12_000_000


def test_controllers_of_packets_do_not_go_over_tcp():
    text = HEAD + ENDS + "    pattern: {kind: uniform}\n    " + SOURCE + "\n" + TAIL
    found = problems(lambda: loads(text.replace("{kind: dctcp}", "{kind: hpcc}")))
    assert any("congestion_control: needs a report of each packet" in problem for problem in found), found


def test_numbered_packets_carry_messages_alone():
    text = HEAD + "    {from: host-0, to: host-1, source: {kind: constant, load: 10 %, payload: 1 kB}, "
    text += RDMA.replace("KIND", "hpcc").replace("MORE", "") + "}\nrun: {duration: 2 ms}\n"
    (found, *_) = problems(lambda: loads(text))
    assert "numbered packets carry messages" in found


@pytest.mark.parametrize(
    ("trim", "place", "says"),
    [
        ("{to: 5}", "trim.to", "another class with a queue here"),
        ("{to: 6, size: 600 B}", "trim.size", "512 B"),
    ],
)
def test_faults_of_queues_that_trim_are_reported_at_their_place(trim, place, says):
    classes = f"{{data: {{class: 0, weight: 1, kind: drop-tail, limit: 50 kB, trim: {trim}}}, "
    classes += "control: {class: 6, kind: drop-tail, limit: 50 kB}}"
    text = HEAD + ENDS + "    pattern: {kind: uniform}\n    " + SOURCE + "\n" + TAIL
    text += f"queues: {{all: {{at: '@switches->*', kind: classes, classes: {classes}}}}}\n"
    found = problems(lambda: resolve(loads(text)))
    assert any(place in problem and says in problem for problem in found), found
