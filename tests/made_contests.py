"""Contests of plans, for tests."""

import polars as pl

from test_study_designs import BASE

FEW = BASE.replace("replicates: 10", "replicates: 2")
HALVED = FEW.replace("[20 %, 40 %, 48 %]", "[20 %, 30 %, 40 %, 44 %, 48 %]") + (
    "  halving: {measure: queue, finalists: 2, verdict: 20}\n"
)


DESIGN = """  design:
    kind: optimise
    measure: queue
    best: highest
    parameters: {queues.out.limit: {between: 4 kB .. 100 kB}}
    choices:
      traffic.a.source.load: [10 %, 20 %, 30 %, 40 %, 45 %]
      kind: {short: {traffic.a.source.frame_size: 300 B}, long: {}}
    generations: 5
    most: 8
    finalists: 2
"""


CHOSEN = FEW.split("  factors:", maxsplit=1)[0] + DESIGN


def results(asking, plan, value, done):
    """Give a decider what it asks for, until nothing is left; the values by point and replicate."""
    while True:
        counts = asking.asked()
        rows = []
        for number, count in zip(map(int, plan.order), map(int, counts), strict=True):
            for replicate in range(count):
                if (number, replicate) not in done:
                    done[number, replicate] = value(number, replicate)
                    rows.append((number, replicate))
        if not rows:
            return done
        asking.read(
            pl.DataFrame(
                {
                    "point": [point for point, _ in rows],
                    "replicate": [replicate for _, replicate in rows],
                    "status": ["ok"] * len(rows),
                    "document": [None] * len(rows),
                    "measures": [
                        [{"measure": name, "value": each, "unit": "B"} for name, each in found.items()]
                        for found in (
                            value if isinstance(value, dict) else {"queue": value}
                            for value in (done[row] for row in rows)
                        )
                    ],
                },
                schema_overrides={"document": pl.String},
            )
        )


STEPS = [("steps", [str(i) for i in range(9)]), ("kind", "xyz")]
