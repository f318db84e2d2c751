"""Trials on a TRex server (https://trex-tgn.cisco.com) in stateless mode, over its own RPC interface.

`wire` and `streams` are pure: messages and what ports send. `connection` carries messages, `server` gives the
calls names, `counters` reads what can be believed, `stretch` sends, `testbed` makes trials of it.
"""

from weirlab.testbed.trex.settings import TrexSettings as TrexSettings
from weirlab.testbed.trex.streams import FrameMix as FrameMix
from weirlab.testbed.trex.testbed import TrexTestbed as TrexTestbed, opened as opened, refusals as refusals
