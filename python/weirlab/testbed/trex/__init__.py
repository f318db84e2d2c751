"""Trials on a TRex server (https://trex-tgn.cisco.com) in stateless mode, over its own RPC interface.

`wire` and `streams` are pure: messages and what ports send. `connection` carries messages, `server` gives the
calls names, `counters` reads what can be believed, `stretch` sends, `testbed` makes trials of it.
"""

from weirlab.testbed.trex.settings import TrexSettings, settings_of
from weirlab.testbed.trex.streams import FrameMix
from weirlab.testbed.trex.testbed import TrexTestbed, opened, refusals

__all__ = ["FrameMix", "TrexSettings", "TrexTestbed", "opened", "refusals", "settings_of"]
