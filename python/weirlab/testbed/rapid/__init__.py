"""Rapid over UDP between real hosts: the machines of the compiled core, with the clock of this one."""

from weirlab.testbed.rapid.keys import make_key, read_key
from weirlab.testbed.rapid.settings import DEFAULT_PORT, VARIANTS, Settings, Variant, transport_of
from weirlab.testbed.rapid.transfer import LossEvent, Transfer, send, serve

__all__ = [
    "DEFAULT_PORT",
    "VARIANTS",
    "LossEvent",
    "Settings",
    "Transfer",
    "Variant",
    "make_key",
    "read_key",
    "send",
    "serve",
    "transport_of",
]
