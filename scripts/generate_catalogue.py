"""Write docs/catalogue.md: the ready-made scenarios, each with what it measures and a picture of its network.

Pictures are drawn of the scenarios themselves. The documentation's configuration calls this; neither the
page nor the pictures are kept.
"""

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

from weirlab import load
from weirlab.api.catalogue import ReadyMade, scenarios
from weirlab.fields.base import kind_of
from weirlab.plots.topology import arranged, roles, svg_parts
from weirlab.scenario.network.layout import Layout, layout_of, plan_network
from weirlab.scenario.traffic.flows import flows_of

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = DOCS / "catalogue.md"
PICTURES = DOCS / "images/scenarios"
HEAD = """# Ready-made scenarios

Each scenario can be run by its name, printed (`weir scenarios NAME`), and copied to be changed
(`weir scenarios NAME --copy FILE`). `weir scenarios --search WORD` finds one. In the pictures hosts that send
are blue, hosts that only receive orange, and switches grey.
"""
BLUE, ORANGE, GREY, LINE = "#2f74d0", "#d9730f", "#6f7a88", "#9aa4b1"
STYLE = (
    f"<style>.link{{stroke:{LINE}}}.sender{{fill:{BLUE}}}.receiver{{fill:{ORANGE}}}.idle{{fill:{LINE}}}"
    f".switch,text{{fill:{GREY}}}</style>"
)
WIDTH = 640
"""Of a picture."""

Place = tuple[float, float]


def picture(width: float, height: float, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" font-family="sans-serif" font-size="12">{"".join(parts)}</svg>\n'
    )


def text(x: float, y: float, words: str, anchor: str = "middle") -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{GREY}">{escape(words)}</text>'


def line(start: Place, end: Place) -> str:
    return f'<line x1="{start[0]:g}" y1="{start[1]:g}" x2="{end[0]:g}" y2="{end[1]:g}" stroke="{LINE}"/>'


def box(x: float, y: float, words: str, fill: str) -> str:
    wide = 24 + 7 * len(words)
    return (
        f'<rect x="{x - wide / 2:g}" y="{y - 15:g}" width="{wide:g}" height="30" rx="5" fill="{fill}"/>'
        f'<text x="{x:g}" y="{y + 4:g}" text-anchor="middle" fill="#ffffff">{escape(words)}</text>'
    )


def drawn_network(layout: Layout, senders: frozenset[str], receivers: frozenset[str]) -> str:
    found = arranged(layout, senders, WIDTH)
    kinds = roles(found, layout, senders, receivers)
    parts = svg_parts(found, ["link"] * len(found.edges), kinds, {})
    return picture(found.width, found.height, [STYLE, *parts])


def of_line(direction: Any) -> list[str]:
    """A direction of a path in two lines of words."""
    first = [str(direction.rate)] if direction.rate else []
    first += [str(direction.delay)]
    second = [] if isinstance(direction.buffer, str) else [f"{direction.buffer} buffer"]
    if direction.queue is not None:
        second.append(kind_of(type(direction.queue)))
    if direction.loss or direction.bursts is not None:
        second.append("random loss")
    if direction.cross:
        second.append("cross traffic")
    return [", ".join(first), ", ".join(second)]


def drawn_path(hops: dict[str, Any], hosts: Sequence[str]) -> str:
    """Boxes for what is at the ends of each hop, and what each direction is like."""
    names = [" ".join(hosts) or "sender", *(f"router {n + 1}" for n in range(len(hops) - 1)), "receiver"]
    height = 120
    xs = [60 + (WIDTH - 120) * n / (len(names) - 1) for n in range(len(names))]
    parts = [line((xs[0], height / 2), (xs[-1], height / 2))]
    for n, (name, hop) in enumerate(hops.items()):
        middle = (xs[n] + xs[n + 1]) / 2
        forward, backward = of_line(hop.forward), of_line(hop.backward or hop.forward)
        parts += [text(middle, 20 + 16 * k, words) for k, words in enumerate(["→ " + forward[0], forward[1]])]
        parts += [
            text(middle, 84 + 16 * k, words) for k, words in enumerate(["← " + backward[0], backward[1]])
        ]
        parts.append(text(middle, 55, name))
    parts += [
        box(x, height / 2, name, BLUE if n == 0 else ORANGE if n == len(xs) - 1 else GREY)
        for n, (x, name) in enumerate(zip(xs, names, strict=True))
    ]
    return picture(WIDTH, height, parts)


def drawn_device(device: str) -> str:
    """A tester on both sides of what it measures."""
    xs, y = (WIDTH / 6, WIDTH / 2, WIDTH * 5 / 6), 35.0
    parts = [line((xs[0], y), (xs[2], y))]
    parts += [
        box(x, y, words, fill)
        for x, words, fill in zip(xs, ("tester", device, "tester"), (BLUE, GREY, ORANGE), strict=True)
    ]
    return picture(WIDTH, 70, parts)


def drawn(scenario: Any) -> tuple[str, str]:
    """A picture, and what it shows in words."""
    bed = scenario.testbed
    if scenario.network is not None:
        layout = layout_of(plan_network(scenario.network).spec)
        flows = [flow for traffic in scenario.traffic.values() for flow in flows_of(traffic, layout)]
        senders = frozenset(layout.nodes[flow.source] for flow in flows)
        receivers = frozenset(layout.nodes[target] for flow in flows for target in flow.targets)
        hosts, switches = len(layout.hosts), len(layout.nodes) - len(layout.hosts)
        return (
            drawn_network(layout, senders, receivers),
            f"{counted(hosts, 'host')}, {counted(switches, 'switch', 'es')}",
        )
    if getattr(bed, "hops", None):
        hosts = list(getattr(bed, "hosts", {}) or {})
        return drawn_path(bed.hops, hosts), f"A path of {counted(len(bed.hops), 'hop')}"
    device = getattr(bed, "device", None)
    if device is not None:
        kind = kind_of(type(device))
        return drawn_device(f"device: {kind}"), f"A tester and the device '{kind}'"
    if kind_of(type(bed)) == "netns":
        return drawn_device("Linux router"), "A tester and a Linux router"
    return drawn_device("your program"), "Your program as the tester"


def counted(number: int, noun: str, ending: str = "s") -> str:
    return f"{number} {noun}{ending if number != 1 else ''}"


def facts(scenario: Any) -> Iterator[str]:
    """What a scenario holds, in a few words each."""
    if scenario.search is not None:
        yield "goals: " + ", ".join(f"`{name}`" for name in scenario.search.goals)
    if scenario.study is not None:
        factors = [f"`{name}`" for name in scenario.study.factors or {}]
        if factors:
            yield "varies " + ", ".join(factors)
    if scenario.measure:
        yield "measures " + ", ".join(f"`{name}`" for name in scenario.measure)


def entry(ready: ReadyMade) -> str:
    scenario = load(ready.name)
    svg, words = drawn(scenario)
    (PICTURES / f"{ready.name}.svg").write_text(svg, encoding="utf-8")
    told = "; ".join(facts(scenario))
    return (
        f"\n### {ready.name}\n\n{ready.about}\n\n![{words}](images/scenarios/{ready.name}.svg)\n\n"
        f"`weir {ready.kind} {ready.name}`: {words[0].lower()}{words[1:]}{'; ' if told else ''}{told}.\n"
    )


def main() -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    parts = [HEAD]
    for topic, group in scenarios().by_topic().items():
        parts.append(f"\n## {topic}\n")
        parts += [entry(ready) for ready in group]
    PAGE.write_text("".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
