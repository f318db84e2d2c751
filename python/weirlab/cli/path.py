"""`weir path`: characterize a path hop by hop."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weirlab.cli import shared
from weirlab.cli.progress import progress_bar
from weirlab.errors import InputError, Interrupted, TestbedError

if TYPE_CHECKING:
    from weirlab.campaigns.path import Effort, WayBack


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("path")(path)


@dataclass(frozen=True)
class Probing:
    """Options: how a path is probed; those of `weirlab.path`."""

    precision: Annotated[
        float, typer.Option(help="Known well enough: half the interval of a capacity over the capacity.")
    ] = 0.03
    gap: Annotated[str, typer.Option(metavar="TIME", help="Mean time between two probes.")] = "10 ms"
    time: Annotated[str, typer.Option(metavar="TIME", help="Longest time for which probes are sent.")] = (
        "5 min"
    )
    probes: Annotated[int, typer.Option(help="Most probes.", min=100)] = 50_000
    rounds: Annotated[int, typer.Option(help="Most rounds: probes of each size to each hop.", min=8)] = 1000
    sizes: Annotated[int, typer.Option(help="Different sizes of probes.", min=6, max=200)] = 24
    share: Annotated[
        float,
        typer.Option(
            help="Share of the probes of a size that is assumed to meet no queue; 0: only the fastest."
        ),
    ] = 0.05
    mtu: Annotated[int, typer.Option(help="Longest probe, in bytes.", min=576, max=65_535)] = 1500
    hops: Annotated[int, typer.Option(help="Most hops.", min=1, max=255)] = 30
    timeout: Annotated[str, typer.Option(metavar="TIME", help="Longest wait for an answer.")] = "1 s"
    port: Annotated[int, typer.Option(help="UDP port of the host on which no program listens.")] = 33434
    seed: Annotated[
        int, typer.Option(help="Seed of the order and times of the probes.", min=0, max=shared.MOST_SEED)
    ] = 1


def path(
    host: Annotated[str, typer.Argument(metavar="HOST", help="A name or an address.")],
    ipv4: Annotated[bool, typer.Option("--ipv4", "-4", help="Use IPv4.")] = False,
    ipv6: Annotated[bool, typer.Option("--ipv6", "-6", help="Use IPv6.")] = False,
    *,
    probing: Probing,
    ssh: Annotated[
        str | None,
        typer.Option(metavar="HOST", help="Also trace the way back from this host, with its traceroute."),
    ] = None,
    ssh_config: Annotated[Path | None, typer.Option(help="Configuration of ssh.")] = None,
    back_to: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Address of this host as seen from the other one.")
    ] = None,
    out: shared.OutOption = None,
    report: shared.ReportFlag = False,
    as_json: shared.JsonFlag = False,
) -> None:
    """Measure the links to a host one by one: capacity, latency, queueing, loss.

    Routers on the way answer probes of many sizes that live for 1, 2, 3 ... hops (pathchar). This needs no
    privilege, and nothing at the other end. 100 probes/s are sent, about 0.8 Mbit/s: ask before you measure
    paths of others. Ctrl-C keeps what was measured.

    \b
    Examples:
      weir path example.net
      weir path 192.0.2.7 --precision 0.1 --time '1 min' --report
      weir path far.example.net --ssh me@far.example.net
    """
    from weirlab.api.measured import path as measure
    from weirlab.results import claimed_directory
    from weirlab.units import Span

    if ipv4 and ipv6:
        raise InputError("--ipv4 and --ipv6: one of them")
    for option, text in (("--gap", probing.gap), ("--timeout", probing.timeout), ("--time", probing.time)):
        shared.quantity(option, Span, text)
    if ssh is not None:
        _reach(ssh, ssh_config)
    with claimed_directory(f"path-{host}", out) as directory, progress_bar("probing", host) as progress:
        result = measure(
            host,
            family=4 if ipv4 else 6 if ipv6 else 0,
            **asdict(probing),
            out=directory,
            progress=progress,
            on_route=lambda route, effort: _tell_length(host, len(route.answering), effort),
            way_back=None if ssh is None else lambda source: _back(ssh, ssh_config, back_to or source),
        )
    page = shared.write_page(directory) if report else None
    if as_json:
        shared.print_json({**result.document, "directory": str(directory)})
    else:
        if result.found.disturbance:
            shared.tell(f"weir: disturbed: {result.found.disturbance}")
        shared.show_result(result, page)
    if result.found.ending == "interrupted":
        raise Interrupted(f"interrupted; what was measured is kept in {directory}")


_A_MINUTE = 60.0


def _tell_length(host: str, hops: int, effort: Effort) -> None:
    shared.tell(f"weir: {hops} hop{'s' * (hops != 1)} to {host}: {_length(effort, hops)}")


def _length(effort: Effort, hops: int) -> str:
    """How long the probes take, and what makes that less."""
    most = min(effort.most_probes, effort.most_rounds * effort.sizes * max(1, hops))
    seconds = min(effort.most_s, most * effort.gap_s)
    reported = f"{seconds:.0f} s" if seconds < 2 * _A_MINUTE else f"{seconds / _A_MINUTE:.0f} min"
    shorter = "; --time '1 min' or --precision 0.1 take less" if seconds > _A_MINUTE else ""
    return (
        f"probes for {reported} at most, less where each capacity is known to {effort.precision:.0%} before"
        f"{shorter}. Ctrl-C keeps what was measured"
    )


_REACHED_S = 20.0


def _reach(host: str, config: Path | None) -> None:
    """Raise TestbedError, before minutes of probing, where ssh does not get there."""
    from weirlab.campaigns.hosts import SshEnd, output

    try:
        output(SshEnd(host, None if config is None else str(config)), ["true"], _REACHED_S)
    except (TestbedError, OSError) as error:
        raise TestbedError(f"--ssh {host}: {error}") from error


def _back(host: str, config: Path | None, target: str) -> WayBack | None:
    """The way back; without it the rest is worth something, too."""
    from weirlab.campaigns.hosts import SshEnd
    from weirlab.campaigns.path import way_back

    try:
        return way_back(SshEnd(host, None if config is None else str(config)), host, target)
    except (TestbedError, OSError) as error:
        shared.tell(f"weir: the way back is not known: {error}")
        return None
