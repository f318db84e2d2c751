"""`weir stability` and `weir rank`: what theory says of the hot queues of a scenario."""

from __future__ import annotations

from typing import Annotated

import typer

from weirlab.cli import shared
from weirlab.cli.tables import say, show


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("stability")(stability)
    app.command("rank")(rank)


def stability(
    file: shared.ScenarioArgument,
    over: Annotated[
        str | None,
        typer.Option(
            help="Two parameters with their ranges, such as p=0.01..0.1,gd=5e-4..0.05. Parameters: p, gd, "
            "gi, ru, w, q_eq, n (flows), delay. ':21' after a range: 21 levels."
        ),
    ] = None,
    sets: shared.SetOption = None,
    out: shared.OutOption = None,
    as_json: shared.JsonFlag = False,
) -> None:
    """Compute crossover, phase margin and delay margin of the loops at each hot queue with a congestion
    point, or at all of them if none is hot.

    --over draws the stability of the severest queue over two parameters, as a picture, a page and JSON. --out
    without --over writes page and JSON only.

    \b
    Examples:
      weir stability bcn
      weir stability bcn --over delay=0us..300us,gi=1..50
    """
    from weirlab.analysis.queues import controlled_queues, hot_ones
    from weirlab.analysis.stability import read_axes
    from weirlab.report.theory import (
        GAINS,
        LARGE_SIGNALS,
        gain_table,
        loop_table,
        queue_table,
        stability_json,
        stability_page,
        stability_plane,
        stability_sentence,
    )

    scenario = shared.read_scenario(file, sets)
    axes = None if over is None else read_axes(over)
    queues = hot_ones(controlled_queues(scenario))
    document: dict[str, object] = {"kind": "stability", "name": scenario.name, **stability_json(queues)}
    page = None
    if axes is not None or out is not None:
        from weirlab.results import claimed_directory, write_json

        with claimed_directory(f"{scenario.name}-stability", out) as directory:
            document["directory"] = str(directory)
            drawn = None if axes is None else stability_plane(queues[0], axes)
            if drawn is not None:
                document["plane"] = drawn[1]
                drawn[0].save(directory / "plots")
            write_json(directory / "result.json", document)
            page = stability_page(scenario, queues, None if drawn is None else drawn[0]).write(
                directory / "report.html"
            )
    if as_json:
        shared.print_json(document)
        return
    show(queue_table(queues))
    show(loop_table(queues))
    gains = gain_table(queues)
    if gains is not None:
        show(gains)
        say(GAINS)
    say(LARGE_SIGNALS)
    shared.conclude([stability_sentence(queues)])
    if page is not None:
        typer.echo(f"{'Report' if axes is None else 'Plane'}: {page}")


def rank(
    file: shared.ScenarioArgument,
    sets: shared.SetOption = None,
    out: shared.OutOption = None,
    as_json: shared.JsonFlag = False,
) -> None:
    """Rank traffic and parameters of a scenario with BCN by how much they stress it, with the reason.

    \b
    Examples:
      weir rank bcn
      weir rank bcn --json
    """
    from weirlab.analysis.queues import controlled_queues, hot_ones
    from weirlab.report.theory import rank_json, rank_page, rank_sentence, rank_tables

    scenario = shared.read_scenario(file, sets)
    queues = hot_ones(controlled_queues(scenario, ["bcn"], why="the ranking is made for BCN; it needs"))
    document = {"kind": "rank", "name": scenario.name, **rank_json(scenario, queues)}
    if out is not None:
        from weirlab.results import claimed_directory, write_json

        with claimed_directory(f"{scenario.name}-rank", out) as directory:
            write_json(directory / "result.json", document)
            rank_page(scenario, queues).write(directory / "report.html")
    if as_json:
        shared.print_json(document)
        return
    for block in rank_tables(scenario, queues):
        show(block)
    shared.conclude([rank_sentence(scenario, queues)])
