"""Captures whose cause is known because we made it, and how often `weir diagnose` finds it.

    python benches/corpus make DIR --seed 1            # captures, and counts.jsonl
    python benches/corpus score DIR [DIR ...]          # precision and recall, beside tshark and tcptrace

Each seed draws every case anew: rates, round trips, buffers, losses, controls, and when things happen. Cases
run over the emulator, with Linux senders and captures at both ends, or in the simulator. What is true of a
case is taken from what the emulator, the simulator and the kernels counted, never from the capture (`truth`).
"""
