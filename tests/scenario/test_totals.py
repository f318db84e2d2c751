"""What needs the totals of flows is refused where a run does not keep them, at its place."""

import json

import polars as pl
import pytest

from weirlab import _core
from weirlab.errors import ScenarioError
from weirlab.evaluation import evaluate
from weirlab.measures.rows import frame_sums
from weirlab.runs import run, simulate
from weirlab.scenario import loads
from weirlab.scenario.resolve import resolve
from weirlab.studies import RunsPlan

SLOTTED = """\
weirlab: 1
name: star
network:
  kind: star
  hosts: 4
  link: {rate: 10 Gbit/s, framing: none}
  switch: {memory: {kind: shared, size: 1024 frames, frame_size: 64 B, pause: {scope: switch}}}
adapters: {all: {at: "@hosts", queues: voq-round-robin}}
traffic:
  all:
    {from: "@hosts", to: "@hosts", pattern: {kind: uniform},
     source: {kind: bursts, load: 50 %, frame_size: 64 B}}
run: {duration: 512 us, engine: slotted, flows: false}
"""
REFUSED = "a study counts frames by the totals of flows; leave 'flows: false' out"


def complaints(text: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        loads(text, file="f.yaml")
    return str(caught.value).splitlines()


def test_a_run_alone_may_leave_them_out():
    assert not loads(SLOTTED).run.flows


def test_a_study_needs_them():
    study = "study: {factors: {traffic.all.source.load: [40 %, 50 %]}}\n"
    assert complaints(SLOTTED + study) == [f"f.yaml:13:42: run.flows: {REFUSED}"]


def test_every_level_of_a_study_needs_them():
    study = "study: {factors: {run.flows: [true, false]}}\n"
    (complaint,) = complaints(SLOTTED.replace(", flows: false", "") + study)
    assert complaint.startswith("f.yaml:14:")
    assert complaint.endswith(REFUSED)


PORTS = """\
measure:
  load: {kind: utilisation, of: "*->host-0"}
  lost: {kind: drops, of: "*->*"}
  full: {kind: drops, of: "*->*", cause: queue-full}
study: {factors: {traffic.all.source.load: [40 %, 90 %]}}
"""


def test_a_study_that_asks_for_no_flow_finds_what_whole_runs_find():
    lossy = (
        SLOTTED.replace(", flows: false", "").replace(", pause: {scope: switch}", "").replace("1024 f", "4 f")
    )
    study = loads(lossy + PORTS)
    point = RunsPlan(study, 1, 2).point(1)
    whole = run(point.scenario, seed=1, replicates=2, threads=1)
    values = evaluate(whole)
    for replicate, row in enumerate(point.run([0, 1], lambda *_: None)):
        assert row.counts == {name: frame_sums(whole.records)[replicate][name] for name in row.counts}
        of_it = values.filter(pl.col("replicate") == replicate)
        assert row.measures == of_it.select("measure", "value", "unit").to_dicts()
        assert row.counts["dropped_frames"] > 0
    assert len(whole.records["flows"]) == 2 * 12
    assert len(simulate(point.scenario, [1], sums=True)["flows"]) == 4


def test_a_measure_of_flows_needs_them():
    measure = "measure: {loss: {kind: loss-ratio, of: all}}\n"
    (complaint,) = complaints(SLOTTED + measure)
    assert complaint == "f.yaml:14:11: measure.loss: is of flows, which 'run.flows: false' leaves out"


def test_both_engines_can_leave_them_out():
    text = SLOTTED.replace("engine: slotted", "engine: event")
    engine = json.loads(resolve(loads(text)).spec_json)["run"]["engine"]
    assert engine == {"kind": "event-totals"}


def test_a_run_of_the_event_engine_without_them_has_the_other_tables():
    text = """
weirlab: 1
name: star
network: {kind: star, hosts: 4, link: {rate: 10 Gbit/s}}
traffic:
  all:
    {from: "@hosts", to: "@hosts", pattern: {kind: uniform},
     source: {kind: poisson, load: 50 %, frame_size: 1500 B}}
run: {duration: 1 ms, flows: false}
"""
    tables = _core.simulate(loads(text).resolve().spec_json, [1], 1, None)
    assert pl.DataFrame(tables["flows"]).is_empty()
    assert pl.DataFrame(tables["ports"])["frames"].sum() > 1000


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("{kind: pbprobe}, transport: {kind: udp}", "probes need flows that are counted"),
        (
            "{kind: messages, sizes: {kind: published, name: websearch}, load: 20 %}",
            "messages need flows that are counted",
        ),
    ],
)
def test_traffic_whose_flows_must_be_counted_is_refused_without_them(source, said):
    text = f"""
weirlab: 1
name: star
network: {{kind: star, hosts: 4, link: {{rate: 10 Gbit/s}}}}
traffic:
  probe: {{from: host-0, to: host-1, source: {source}}}
run: {{duration: 1 ms, flows: false}}
"""
    with pytest.raises(ScenarioError, match=f"traffic.probe: {said}"):
        loads(text)
