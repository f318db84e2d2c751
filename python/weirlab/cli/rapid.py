"""`weir rapid`: Rapid over UDP between two hosts."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weirlab.cli import shared
from weirlab.cli.tables import say, show
from weirlab.errors import InputError, Interrupted, TestbedError

if TYPE_CHECKING:
    from weirlab._core import RapidEvent
    from weirlab.testbed.rapid import Settings, Transfer
    from weirlab.testbed.rapid.transfer import TransferDocument


_KeyOption = Annotated[
    Path,
    typer.Option(
        "--key",
        metavar="FILE",
        envvar="WEIR_RAPID_KEY_FILE",
        help="The key that both ends have ('weir rapid key FILE' makes one).",
    ),
]
_CpuOption = Annotated[int | None, typer.Option(help="CPU to run on. Default: any.", min=0)]
_PortOption = Annotated[int, typer.Option(help="UDP port of the receiver.", min=1, max=65535)]


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help=_HELP, rich_markup_mode=None)
    group.command("key", short_help="Make a key for both ends.")(key)
    group.command("serve", short_help="Receive from those who hold the key.")(serve)
    group.command("send", short_help="Send to a host where 'weir rapid serve' runs.")(send)
    app.add_typer(group, name="rapid")


_HELP = """Send Rapid over UDP between two hosts, with the code of the simulator.

\b
Examples:
  weir rapid key rapid.key           copy it to the other host
  weir rapid serve --key rapid.key   on the receiving host
  weir rapid send HOST --key rapid.key --link '1 Gbit/s'"""


def key(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file.")],
) -> None:
    """Make a key: 256 random bits in a file that only you can read. Copy it to the other host."""
    from weirlab.testbed.rapid import make_key

    make_key(file)
    shared.tell(f"{file}: made; copy it to the other host, for example with scp")


def serve(
    key: _KeyOption,
    bind: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Listen at this address only. Default: all.")
    ] = None,
    port: _PortOption = 8642,
    once: Annotated[bool, typer.Option("--once", help="End after one session.")] = False,
    sessions: Annotated[int, typer.Option(help="Most sessions at one time.", min=1, max=64)] = 4,
    longest: Annotated[str, typer.Option(metavar="TIME", help="Longest session.")] = "600 s",
    most: Annotated[str, typer.Option(metavar="SIZE", help="Most payload of a session.")] = "1000 GB",
    real_time: Annotated[
        bool, typer.Option("--real-time/--no-real-time", help="Ask for real-time priority.")
    ] = True,
    cpu: _CpuOption = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print a JSON document on a line for each event."),
    ] = False,
) -> None:
    """Receive from those who hold the key, until Ctrl-C. Everybody else is ignored.

    \b
    Examples:
      weir rapid serve --key rapid.key
      weir rapid serve --key rapid.key --bind 192.0.2.7 --once
    """
    from weirlab.testbed.rapid import read_key, serve as run
    from weirlab.units import Size, Span

    secret = read_key(key)
    longest_s, most_bytes = (
        shared.quantity("--longest", Span, longest).s,
        shared.quantity("--most", Size, most).bytes,
    )
    if not 0 < longest_s <= 86_400:
        raise InputError(f"--longest: above 0 s and at most a day (got {longest})")
    if most_bytes <= 0:
        raise InputError(f"--most: more than 0 B (got {most})")
    with _stopped_by_signals() as stopped:

        def watch(events: Sequence[RapidEvent]) -> bool:
            for event in events:
                _tell_event(event, as_json)
            return stopped()

        counts = run(
            bind,
            port,
            secret,
            watch=watch,
            sessions=1 if once else None,
            most_sessions=sessions,
            longest_s=longest_s,
            most_bytes=most_bytes,
            real_time=real_time,
            cpu=cpu,
        )
    if as_json:
        _print_line({"what": "ended", **counts})
    else:
        many = "1 session" if counts["sessions"] == 1 else f"{counts['sessions']} sessions"
        shared.tell(f"{many}; {counts['strangers']} datagrams of strangers were ignored")


@dataclass(frozen=True)
class Sending:
    """Options: how a transfer is sent; those of `weirlab.testbed.rapid.Settings`."""

    duration: Annotated[str, typer.Option(metavar="TIME", help="How long to send.")] = "10 s"
    every: Annotated[str, typer.Option(metavar="TIME", help="Length of the intervals of counts.")] = "100 ms"
    mtu: Annotated[int, typer.Option(help="Longest IP packet of the path, bytes.")] = 1500
    around: Annotated[
        int,
        typer.Option(help="Bytes that the link puts around an IP packet; 0 on an emulated path."),
    ] = 38
    pacing: Annotated[
        str | None,
        typer.Option(help="spin (sleep, then spin briefly) or sleep. Default: that of the variant."),
    ] = None
    spin: Annotated[
        str, typer.Option(metavar="TIME", help="How long before a packet is due to stay awake.")
    ] = "50 us"
    real_time: Annotated[
        bool, typer.Option("--real-time/--no-real-time", help="Ask for real-time priority.")
    ] = True
    cpu: _CpuOption = None
    packets: Annotated[bool, typer.Option("--packets", help="Keep the times of each packet, too.")] = False


def send(
    host: Annotated[str, typer.Argument(metavar="HOST", help="The receiver: a name or an address.")],
    *,
    key: _KeyOption,
    link: Annotated[
        str,
        typer.Option(metavar="RATE", help="Rate of the narrowest link of the path, such as '200 Mbit/s'."),
    ],
    port: _PortOption = 8642,
    variant: Annotated[
        str | None, typer.Option(help="better (the default), ideal or flawed (Rapid 0.9.2).")
    ] = None,
    scenario: Annotated[
        str | None,
        typer.Option(
            "--scenario",
            metavar="FILE",
            help="Take the transport of this scenario, a file or a ready-made one, instead of a variant's.",
        ),
    ] = None,
    traffic: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which traffic of the scenario, if several probe.")
    ] = None,
    sending: Sending,
    ipv4: Annotated[bool, typer.Option("-4", help="IPv4 only.")] = False,
    ipv6: Annotated[bool, typer.Option("-6", help="IPv6 only.")] = False,
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="PATH=VALUE",
            help="Replace a value of the transport, such as congestion_control.eta=5. Repeatable.",
        ),
    ] = None,
    out: shared.OutOption = None,
    report: shared.ReportFlag = False,
    as_json: shared.JsonFlag = False,
) -> None:
    """Send to a host where 'weir rapid serve' runs with the same key, and keep what happened.

    Ctrl-C ends the transfer and keeps what was measured. Real-time priority needs root or CAP_SYS_NICE;
    without it the gaps are worse, and the result says so.

    \b
    Examples:
      weir rapid send rapid1.example.net --key rapid.key --link '1 Gbit/s'
      weir rapid send 198.18.0.2 --key rapid.key --link '200 Mbit/s' \\
          --around 0 --variant flawed --report
      weir rapid send rapid1.example.net --key rapid.key \\
          --link '1 Gbit/s' --scenario rapid-rivals
    """
    from weirlab.cli.progress import progress_bar
    from weirlab.records import save_tables
    from weirlab.results import Manifest, Provenance, Status, claimed_directory, write_json
    from weirlab.testbed.rapid import read_key, send as run, transport_of
    from weirlab.working import followed

    if ipv4 and ipv6:
        raise InputError("-4 and -6: name one of them")
    if scenario is not None and variant is not None:
        raise InputError("--scenario and --variant: each names the transport; give one of them")
    if scenario is None and traffic is not None:
        raise InputError("--traffic: names a traffic of --scenario; give that, too")
    taken: dict[str, object] = {} if variant is None else {"variant": variant}
    if scenario is not None:
        name, fields = transport_of(shared.read_scenario(scenario), traffic)
        taken = {"taken_from": name, "transport_fields": fields}
    settings = _settings(**taken, link=link, **asdict(sending), changes=shared.assignments(sets))
    settings.core_json(ipv6=ipv6)  # what cannot be sent is reported before a directory is made
    secret = read_key(key)
    with claimed_directory("rapid", out) as directory:
        manifest = Manifest(
            kind="rapid", name="rapid", provenance=Provenance.now(), overrides=shared.overrides(sets)
        )
        total = round(settings.duration.s * 1e9)
        with (
            _stopped_by_signals() as stopped,
            progress_bar("sending", host) as progress,
            followed(directory, "rapid", f"rapid to {host}", progress) as log,
        ):
            seen_ns, seen_bytes = 0, 0

            def watch(elapsed_ns: int, acked: int, rate: int) -> bool:
                nonlocal seen_ns, seen_bytes
                del rate
                if elapsed_ns - seen_ns >= _SEEN_NS:
                    bits = 8e9 * (acked - seen_bytes) / (elapsed_ns - seen_ns)
                    log.measured("Acknowledged", "Mbit/s", host, bits / 1e6)
                    seen_ns, seen_bytes = elapsed_ns, acked
                log(min(elapsed_ns, total), total)
                return stopped()

            try:
                transfer = run(
                    host,
                    port,
                    secret,
                    settings,
                    watch=watch,
                    family="ipv4" if ipv4 else "ipv6" if ipv6 else "any",
                )
            except KeyboardInterrupt:
                raise Interrupted("interrupted before a session was open") from None
        found = transfer.document()
        document = {**found, "directory": str(directory)}
        endings: dict[str, Status] = {"complete": "complete", "interrupted": "interrupted"}
        status = endings.get(transfer.ending, "failed")
        save_tables(transfer.tables, directory / "tables")
        write_json(directory / "settings.json", settings.model_dump(mode="json"))
        write_json(directory / "result.json", document)
        manifest.ended(status, "" if status == "complete" else transfer.ending).write(directory)
    page = shared.write_page(directory) if report else None
    kept = f"what was measured is in {directory}"
    if as_json:
        shared.print_json(document)
    else:
        _show(transfer, found)
        shared.show_place(directory, page)
    if status == "interrupted":
        shared.tell(f"weir: interrupted; {kept}")
        raise typer.Exit(Interrupted.exit_code)
    if status == "failed":
        shared.tell(f"weir: {host}: {_ENDINGS[transfer.ending]}; {kept}")
        raise typer.Exit(TestbedError.exit_code)


_SEEN_NS = 200_000_000
"""Of a rate that is shown while the transfer goes on."""
_ENDINGS = {
    "unfinished": "the last data was not acknowledged within 5 s",
    "hung-up": "the receiver ended the session",
    "gone": "nobody listens there any more",
    "silent": "nothing was heard for 8 s",
}


def _settings(**given: Any) -> Settings:
    """The settings of the command line. Raises InputError with the option that is wrong."""
    from pydantic import ValidationError

    from weirlab.testbed.rapid import Settings
    from weirlab.testbed.rapid.settings import what_is_wrong

    try:
        return Settings(**given)
    except ValidationError as error:
        first = error.errors()[0]
        if first["loc"]:
            message = f"--{first['loc'][0]}: {what_is_wrong(first)}"
        else:  # of the settings together: begins with the name of an option
            message = f"--{str(first['msg']).removeprefix('Value error, ')}"
        raise InputError(message) from None


@contextmanager
def _stopped_by_signals() -> Iterator[Callable[[], bool]]:
    """Something to ask whether Ctrl-C was pressed, or SIGTERM came; the second time it is an interruption."""
    pressed = False

    def handle(_number: int, _frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: pressed
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _tell_event(event: RapidEvent, as_json: bool) -> None:
    if as_json:
        _print_line(event)
        return
    match event["what"]:
        case "listening":
            priority = "real-time priority" if event["real_time"] else "ordinary priority"
            shared.tell(f"listening at {event['address']} (UDP), {priority}; Ctrl-C ends")
        case "opened":
            say(f"{event['peer']}: sends")
        case "refused":
            say(f"{event['peer']}: refused: {event['reason']}")
        case "ended":
            counts = event["counts"]
            seconds = counts["lasted_ns"] / 1e9
            rate = f", {counts['delivered_bytes'] * 8e-6 / seconds:.1f} Mbit/s" if seconds > 0 else ""
            delivered = f"{counts['delivered_bytes'] / 1e6:.1f} MB{rate}"
            disorder = f"{counts['out_of_order_segments']} out of order, {counts['duplicate_segments']} twice"
            say(f"{event['peer']}: {event['end']} after {seconds:.1f} s: {delivered}, {disorder}")
    sys.stdout.flush()


def _print_line(event: Mapping[str, object]) -> None:
    sys.stdout.write(json.dumps(dict(event)) + "\n")
    sys.stdout.flush()


def _show(transfer: Transfer, document: TransferDocument) -> None:
    from weirlab.report.rapid import transfer_sentence, transfer_tables

    for table in transfer_tables(document, transfer.settings):
        show(table)
    shared.conclude([transfer_sentence(document)])
    for finding in transfer.findings():
        shared.tell(f"weir: {finding.verdict}: {finding.title}: {finding.text}")
    for remark in transfer.remarks:
        shared.tell(f"weir: {remark}")
