"""Packet traces: what is in a capture, what limited its flows, and what went wrong.

    from weirlab.trace import diagnose, read_trace

    trace = read_trace("capture.pcapng")
    trace.flows()                 # one row per direction of each connection
    for finding in diagnose(trace):
        print(finding.verdict, finding.title)

Captures of any source are read: pcap, pcapng and ERF, simulated or real. See docs/traces.md.
"""

from weirlab.trace.findings import diagnose
from weirlab.trace.model import Finding, Trace, Verdict
from weirlab.trace.reading import load_trace, read_trace, save_trace
from weirlab.trace.simulated import ProbingSender, diagnose_records, diagnose_sender

__all__ = [
    "Finding",
    "ProbingSender",
    "Trace",
    "Verdict",
    "diagnose",
    "diagnose_records",
    "diagnose_sender",
    "load_trace",
    "read_trace",
    "save_trace",
]
