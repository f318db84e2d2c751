"""Packet traces: what is in a capture, what limited its flows, and what went wrong.

    from weirlab.traces import diagnose, read_trace

    trace = read_trace("capture.pcapng")
    trace.flows()                 # one row per direction of each connection
    for finding in diagnose(trace):
        print(finding.verdict, finding.title)

Captures of any source are read: pcap, pcapng and ERF, simulated or real. See docs/traces.md.
"""

from weirlab.traces.findings import diagnose as diagnose
from weirlab.traces.model import Finding as Finding, Trace as Trace
from weirlab.traces.reading import (
    load_trace as load_trace,
    read_trace as read_trace,
    save_trace as save_trace,
)
from weirlab.traces.simulated import (
    ProbingSender as ProbingSender,
    diagnose_records as diagnose_records,
    diagnose_sender as diagnose_sender,
)
