"""What tshark's expert information and tcptrace say of the same files, in our words.

Neither tells why packets were lost: what they say of retransmissions stands for a lossy path and for a full
queue. An expert information counts when it is there once: it has no thresholds. What a program has no word
for it cannot find.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

_TSHARK = (
    (r"This frame is a \(suspected\) (fast )?retransmission", ("lossy-path", "queue-overflow")),
    (r"Previous segment\(s\) not captured", ("lossy-path", "queue-overflow")),
    (r"This frame is a \(suspected\) spurious retransmission", ("spurious-retransmissions",)),
    (r"This frame is a \(suspected\) out-of-order segment", ("reordering",)),
    (r"TCP window specified by the receiver is now completely full", ("window-limited",)),
    (r"TCP Zero Window segment", ("zero-window", "slow-reader")),
)
_TCPTRACE = (
    ("rexmt data pkts", ("lossy-path", "queue-overflow")),
    ("outoforder pkts", ("reordering",)),
    ("zero win adv", ("zero-window", "slow-reader")),
)


def _tshark(file: Path) -> Mapping[str, str]:
    said = _said("tshark", "-r", str(file), "-q", "-z", "expert")
    return {
        kind: "notice" for words, kinds in _TSHARK if re.search(words, said, re.IGNORECASE) for kind in kinds
    }


def _tcptrace(file: Path) -> Mapping[str, str]:
    plain = file
    if file.suffix == ".pcapng":
        plain = file.with_suffix(".pcap")
        if not plain.exists():
            _said("editcap", "-F", "pcap", str(file), str(plain))
    said = _said("tcptrace", "-l", "-n", str(plain))
    found: dict[str, str] = {}
    for words, kinds in _TCPTRACE:
        counts = [int(count) for count in re.findall(rf"{words}:\s+(\d+)", said)]
        if any(counts):
            found |= dict.fromkeys(kinds, "notice")
    return found


def _said(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, timeout=300, check=False).stdout


TOOLS: Mapping[str, Callable[[Path], Mapping[str, str]]] = {
    name: ask for name, ask in (("tshark", _tshark), ("tcptrace", _tcptrace)) if shutil.which(name)
}
"""Programs that are there."""
