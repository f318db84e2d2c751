"""Rapid over UDP between real hosts: the machines of the compiled core, with the clock of this one."""

from weirlab.testbed.rapid.keys import make_key as make_key, read_key as read_key
from weirlab.testbed.rapid.settings import (
    VARIANTS as VARIANTS,
    Settings as Settings,
    transport_of as transport_of,
)
from weirlab.testbed.rapid.transfer import Transfer as Transfer, send as send, serve as serve
