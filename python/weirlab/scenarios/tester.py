"""A tester for the testbed `command`: it receives a load and a duration, and prints what became of them.

Replace `measure` with what drives your generator. This one only claims to send: its device carries 1 Mframe/s
and loses the rest, and a trial takes no time. Run by search-command.yaml.
"""

import argparse
import json
import sys

CAPACITY_FPS = 1e6


def measure(load_fps: float, seconds: float) -> tuple[int, int]:
    """Offer a load for so long, wait until late frames are in, and give the frames sent and received."""
    sent = round(load_fps * seconds)
    received = min(sent, round(CAPACITY_FPS * seconds))
    return sent, received


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--load", type=float, required=True, help="frames/s")
    parser.add_argument("--seconds", type=float, required=True)
    trial = parser.parse_args()
    sent, received = measure(trial.load, trial.seconds)
    answer = {
        "sent_frames": sent,
        "received_frames": received,
        "effective_duration_s": trial.seconds,
        "facts": {"tester": "tester.py"},
    }
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
