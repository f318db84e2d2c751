"""The switch of the ZRL benchmark as the beginning of a scenario, for tests of its hotspots."""


def switch(hosts: int, load: str = "85 %") -> str:
    """256 cells of memory for each host; all send bursts to all others."""
    return f"""
weirlab: 1
name: hot
network:
  kind: star
  hosts: {hosts}
  link: {{rate: 10 Gbit/s, framing: none}}
  switch: {{memory: {{kind: shared, size: {256 * hosts} frames, frame_size: 64 B, pause: {{scope: switch}}}}}}
adapters: {{all: {{at: "@hosts", queues: voq-round-robin}}}}
traffic:
  background:
    from: "@hosts"
    to: "@hosts"
    pattern: {{kind: uniform}}
    source: {{kind: bursts, load: {load}, frame_size: 64 B}}
"""
