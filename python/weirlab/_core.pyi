"""Compiled core: translation of one resolved spec into columns, and the live parts."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypedDict

from numpy.typing import NDArray

__all__ = [
    "Meters",
    "SimulationError",
    "SpecError",
    "Table",
    "check",
    "check_line",
    "clock_quality",
    "create_device",
    "create_namespace",
    "emulate",
    "enter_own_user_namespace",
    "expand",
    "format_quantity",
    "is_release",
    "keep_administration",
    "one_way_delays",
    "parse_quantity",
    "paths",
    "probe_path",
    "read_trace",
    "replay_line",
    "send_rapid",
    "serve_rapid",
    "simulate",
    "simulate_path",
    "steer_receive",
    "table_schemas",
    "udp_trial",
    "version",
    "write_timeline",
]

class SpecError(Exception):
    """A resolved spec is not legal. `args` are the message and the place as a JSON pointer."""

    args: tuple[str, str]

class Table:
    """A table in memory, for whoever reads Arrow by its PyCapsule interface: `polars.DataFrame(table)`."""

    def __len__(self) -> int: ...
    @staticmethod
    def of(frame: object) -> Table:
        """A table of another library, such as a data frame in one chunk."""

    def values(self, column: str) -> list[Any]:
        """The values of a column, None for what is unknown."""

    def totals(
        self,
        column: str,
        key: str,
        ids: Sequence[int] | None,
        window: tuple[int, int] | None = None,
        *,
        greatest: bool = False,
    ) -> dict[int, Any]:
        """Sum (or, with `greatest`, maximum) of a column by replicate, over the rows of which the column
        `key` is one of `ids` (None: any) and the time is in the `window` (after the first, until the second).
        Replicates without such a row are absent; None where all values are unknown."""

    def adds_up(self, whole: str, parts: Sequence[str]) -> bool:
        """Whether a column is the sum of others in every row."""

    def covers(self, key: str, ids: Sequence[int], window: tuple[int, int]) -> tuple[list[int], bool]:
        """Those of `ids` that the column `key` does not hold, and whether the rows of each of the others have
        in each replicate one that ends at the begin of the window, unless that is 0, and one that ends at its
        end."""

    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

class _ColumnSchema(TypedDict):
    """What a column is. `type`: `u32`, `u64`, `f64`, `text` or `binary`."""

    name: str
    type: str
    nullable: bool
    unit: str | None
    meaning: str

class _TableSchema(TypedDict):
    """What a row of a table is, and its columns."""

    about: str
    columns: list[_ColumnSchema]

class SimulationError(Exception):
    """A run broke a law or could not finish."""

def version() -> str: ...
def engine() -> str: ...
def is_release() -> bool: ...
def expand(network_json: str) -> _Network: ...
def check(spec_json: str) -> str: ...
def headroom(spec_json: str) -> list[tuple[int, int]]: ...
def paths(network_json: str, pairs: Sequence[tuple[int, int]]) -> list[list[int]]: ...

class Plan:
    """A spec that the simulator takes, read and checked once for all its runs. With `sums` nobody asks for
    single flows: where the slotted engine can, it counts what a source sends as one."""

    def __init__(self, spec_json: str, sums: bool = False) -> None: ...

def simulate(
    spec: str | Plan,
    seeds: Sequence[int],
    threads: int | None = None,
    watch: Callable[[int, int], object] | None = None,
    news: Callable[[list[tuple[int, int, int, int, int, int, int]]], object] | None = None,
    parts: tuple[Callable[[int, str, Table], object], int] | None = None,
) -> dict[str, Table]: ...
def table_schemas() -> dict[str, _TableSchema]: ...
def simulate_path(spec_json: str, seed: int) -> LoadedPath: ...
def read_trace(
    path: str | Path,
    *,
    every_ps: int,
    detailed: int = 0,
    detail_rows: int = 1_048_576,
    kept_rows: int = 2_097_152,
    connections: int = 1_048_576,
    series_rows: int = 8_388_608,
    stream_packets: int | None = None,
    link_rate_bps: int | None = None,
    watch: Callable[[int, int], object] | None = None,
) -> dict[str, Table]: ...
def write_timeline(
    out: str | Path,
    captures: Sequence[tuple[Sequence[str], bytes | Path]],
    series: Sequence[tuple[Sequence[str], str, str, Sequence[int], Sequence[float]]],
    *,
    flows: dict[str, str],
    framing: dict[str, int],
    rate_bps: int | None = None,
    watch: Callable[[int, int], object] | None = None,
) -> tuple[int, int]: ...
def parse_quantity(kind: str, text: str) -> int: ...
def format_quantity(kind: str, value: int) -> str: ...
def clock_quality() -> _ClockQuality: ...
def create_namespace() -> int: ...
def enter_own_user_namespace() -> None: ...
def keep_administration() -> None: ...
def create_device(namespace: str, name: str, *, joined: bool = False) -> tuple[int, list[str]]: ...
def check_line(line_json: str) -> str: ...
def replay_line(
    line_json: str,
    *,
    seed: int,
    name: str,
    t_ps: NDArray[Any],
    size_bytes: NDArray[Any],
    flow: NDArray[Any],
    ecn: NDArray[Any],
    until_ps: int,
) -> dict[str, NDArray[Any]]: ...
def emulate(
    *,
    hops: Sequence[Hop],
    seed: int,
    stop: int,
    real_time: bool = True,
    cpu: int | None = None,
    spin_ps: int = 50_000_000,
    mtu: int = 1500,
    joined: bool = False,
    memory_bytes: int = 268_435_456,
    record: int = 0,
    edges_ps: Sequence[int] = (),
    meters: Meters | None = None,
) -> Emulated: ...

class EmulatedLine(TypedDict):
    """Also counts of packets by name; see `weirlab.testbed.path_report.LineReport`."""

    hop: int
    direction: str
    name: str
    transmitters: list[dict[str, int]]
    lateness_ns: dict[str, int] | None
    lateness_counts: list[int]
    record: dict[str, object]

class Emulated(TypedDict):
    real_time: bool
    cpu: int | None
    elapsed_ns: int
    on_cpu_ns: int
    waited_ns: int | None
    lines: list[EmulatedLine]

class RapidGaps(TypedDict):
    count: int
    within_1_us: int
    within_a_quarter: int
    quantiles: list[float]
    error_ns: list[int]
    lateness_ns: dict[str, int] | None

class RapidFacts(TypedDict):
    ending: str
    real_time: bool
    cpu: int | None
    elapsed_ns: int
    on_cpu_ns: int
    waited_ns: int | None
    min_rtt_ns: int | None
    srtt_ns: int | None
    blocked: int
    strangers: int
    counts: dict[str, int]
    receiver: dict[str, int] | None
    gaps: RapidGaps

class SentRapid(RapidFacts, total=False):
    outcomes: list[str]
    states: list[str]
    tables: dict[str, Table]

class RapidEvent(TypedDict, total=False):
    """What happened, and with `listening`, `opened`, `refused` and `ended` what belongs to it."""

    what: str
    address: str
    real_time: bool
    peer: str
    reason: str
    end: str
    counts: dict[str, int]

class Meters:
    """What an emulator at work has counted."""

    def __init__(self, hops: int) -> None: ...
    def read(self) -> list[dict[str, int]]: ...

def send_rapid(
    *,
    peer: str,
    secret: bytes,
    config_json: str,
    duration_ps: int,
    watch: Callable[[int, int, int], bool],
    source: str | None = None,
    every_ps: int = 100_000_000_000,
    patience_ps: int = 5_000_000_000_000,
    spin_ps: int = 50_000_000,
    real_time: bool = True,
    cpu: int | None = None,
    buffer_bytes: int = 4_194_304,
    packets: bool = False,
) -> SentRapid: ...
def serve_rapid(
    *,
    listen: str,
    secret: bytes,
    watch: Callable[[Sequence[RapidEvent]], bool],
    sessions: int | None = None,
    most_sessions: int = 4,
    longest_ps: int = 600_000_000_000_000,
    most_bytes: int = 1_000_000_000_000,
    memory_bytes: int = 16_777_216,
    real_time: bool = True,
    cpu: int | None = None,
    buffer_bytes: int = 8_388_608,
) -> dict[str, int]: ...
def steer_receive(namespace: str, interface: str, cpus: Sequence[int]) -> None: ...
def udp_trial(
    *,
    directions: Sequence[_TrialDirection],
    payload_runs: Sequence[tuple[int, int]],
    duration_ps: int,
    settle_ps: int,
    real_time: bool = True,
    send_buffer_bytes: int = 4194304,
    receive_buffer_bytes: int = 67108864,
    spin_ps: int = 0,
    loss_budget_frames: int | None = None,
    look_ps: int | None = None,
    look_budget_frames: int = 0,
    flight_ps: int = 100_000_000_000,
    accounts: Sequence[str | Path] = (),
) -> _UdpTrial: ...
def one_way_delays(
    *,
    near: str | Path,
    far: str | Path,
    to: str,
    port: int,
    count: int,
    every_ps: int,
    payload_bytes: int,
    timeout_ps: int,
    real_time: bool = True,
) -> _OneWayDelays: ...

class _OneWayDelays(TypedDict):
    forward_s: NDArray[Any]
    backward_s: NDArray[Any]
    round_trip_s: NDArray[Any]
    late_s: NDArray[Any]
    clock_step_s: float

def probe_path(
    *,
    destination: str,
    port: int,
    rotating: bool,
    source_port: int,
    token: int,
    at_ps: Sequence[int],
    hops: Sequence[int],
    size_bytes: Sequence[int],
    timeout_ps: int,
    real_time: bool = True,
) -> _Answers: ...

class _Answers(TypedDict):
    waited_ns: int | None
    source: str
    source_port: int
    sent_ps: NDArray[Any]
    rtt_ps: NDArray[Any]
    quoted_bytes: NDArray[Any]
    stamped: int
    word: list[str]
    code: NDArray[Any]
    mtu_bytes: NDArray[Any]
    router: NDArray[Any]
    routers: list[str]
    duplicates: int
    strangers: int
    replies: int
    clock_step_ns: int
    real_time: bool

class PathStream(TypedDict):
    delivered_bytes: int
    retransmits: int
    timeouts: int
    interval_delivered_bytes: NDArray[Any]
    interval_retransmits: NDArray[Any]
    interval_window_bytes: NDArray[Any]
    interval_flight_bytes: NDArray[Any]
    interval_srtt_ps: NDArray[Any]

class LoadedPath(TypedDict):
    began_ps: int | None
    counted_ps: int
    streams: list[PathStream]
    answers: NDArray[Any]
    rtt_ps: NDArray[Any]
    lines: list[dict[str, int]]

class _TrialDirection(TypedDict):
    source: str
    destination: str
    frames: int
    run_id: int
    sender_namespace: str
    receiver_namespace: str
    sender_cpu: int | None
    receiver_cpu: int | None

class Hop(TypedDict):
    near: int
    far: int
    forward: str
    backward: str
    strips_window_scale: bool

class _Node(TypedDict):
    name: str
    kind: str

_Port = TypedDict("_Port", {"name": str, "from": int, "to": int, "rate_bps": int, "framing_bytes": int})

class _Network(TypedDict):
    nodes: list[_Node]
    ports: list[_Port]

class _ClockQuality(TypedDict):
    resolution_ns: int
    reading_ns: int
    overshoot_ns: dict[str, int]
    real_time_overshoot_ns: dict[str, int] | None

class _UdpTrial(TypedDict):
    directions: list[_UdpDirection]
    delay_ns: dict[str, int] | None
    clock_step_ns: int
    stopped: bool
    accounts: list[tuple[int, list[str]]]

class _UdpDirection(TypedDict):
    intended: int
    sent: int
    received: int
    lost_early: int
    duplicated: int
    reordered: int
    strangers: int
    receiver_drops: int
    sending_ps: int
    lateness_ns: dict[str, int] | None
    late: int
    delay_ns: dict[str, int] | None
    blocked: int
    batches: int
    sender_real_time: bool
    sender_cpu: int | None
    receiver_real_time: bool
    receiver_cpu: int | None
    sender_on_cpu_ns: int | None
    sender_waited_ns: int | None
    receiver_on_cpu_ns: int | None
    receiver_waited_ns: int | None
