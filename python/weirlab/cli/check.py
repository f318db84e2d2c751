"""`weir check`: say everything that is wrong with a scenario file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from weirlab.cli.shared import JsonFlag, ScenarioArgument, SetOption, conclude, print_json, read_scenario
from weirlab.cli.tables import say, show

if TYPE_CHECKING:
    from weirlab.scenario import Scenario


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("check")(check)


def check(file: ScenarioArgument, sets: SetOption = None, as_json: JsonFlag = False) -> None:
    """Check a scenario file without running it: report all problems at once, each with line and column.

    Problems include what its testbed cannot do, and missing programs.

    Exit code 0 if the file is legal, 2 otherwise.

    \b
    Examples:
      weir check incast.yaml
      weir check incast.yaml --json
    """
    from weirlab.analysis.hotspots import hotspot_facts
    from weirlab.analysis.notes import notes_of
    from weirlab.errors import UnsupportedError
    from weirlab.testbed import unhonoured

    scenario = read_scenario(file, sets)
    if not _on_a_path(scenario) and (problems := unhonoured(scenario)):
        raise UnsupportedError(problems)
    what, counts = _kind(scenario), _counts(scenario)
    facts = hotspot_facts(scenario)
    notes = notes_of(scenario)
    if facts:
        from weirlab.report.theory import hotspot_json, hotspot_table
    if as_json:
        document = {"file": file, "name": scenario.name, "kind": what, "problems": [], **counts}
        document |= {"notes": notes} if notes else {}
        print_json({**document, "hotspots": hotspot_json(facts)} if facts else document)
        return
    parts = ", ".join(
        f"{count} {name.removesuffix('s') if count == 1 else name}" for name, count in counts.items() if count
    )
    if facts:
        show(hotspot_table(facts))
    for fact in facts:
        for text in (*fact.contradictions, *fact.remarks):
            say(text, lead=f"{fact.name}: ")
    for note in notes:
        say(note, lead="note: ")
    legal = f"{file}: legal; '{scenario.name}' is a {what}" + (f" with {parts}." if parts else ".")
    command = "study" if scenario.study and scenario.command == "run" else scenario.command
    conclude([legal, f"Start it with:  weir {command} {file}"], apart=bool(facts or notes))


def _kind(scenario: Scenario) -> str:
    if scenario.search is not None:
        return "search"
    if scenario.campaign is not None:
        return "campaign"
    if scenario.study is not None:
        return "study"
    return "path" if _on_a_path(scenario) else "run"


def _on_a_path(scenario: Scenario) -> bool:
    """Whether real programs use it over an emulated path, or a real one."""
    from weirlab.scenario.network.path import path_plan
    from weirlab.scenario.testbeds import Hosts

    return isinstance(scenario.testbed, Hosts) or path_plan(scenario) is not None


def _campaign_counts(scenario: Scenario) -> dict[str, int]:
    if scenario.campaign is None:
        return {}
    from weirlab.campaigns.plan import plan_of

    plan = plan_of(scenario)
    return {"points": len(plan.levels), "measurements": len(plan.places())}


def _points(scenario: Scenario) -> int:
    if scenario.search is not None:
        from weirlab.scenario.plan.combinations import combinations
        from weirlab.searches.build import build

        return len(combinations(scenario, build))
    from weirlab.scenario.plan.design import Optimise
    from weirlab.studies import RunsPlan, points_of

    points = len(points_of(scenario))
    section = scenario.study
    if section is None or not isinstance(section.contest, Optimise):
        return points
    return len(RunsPlan(scenario, scenario.run.seed, section.replicates).order)


def _counts(scenario: Scenario) -> dict[str, int]:
    if _on_a_path(scenario):
        return _campaign_counts(scenario)
    counts = {"traffic": len(scenario.traffic), "measures": len(scenario.measure)}
    if scenario.study is not None:
        counts["points"] = _points(scenario)
    if scenario.network is not None and scenario.search is None:
        resolved = scenario.resolve()
        counts |= {"nodes": len(resolved.nodes), "ports": len(resolved.ports)}
    return counts
