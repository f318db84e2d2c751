"""The registry of testbeds is that of scenarios."""

from importlib import import_module
from typing import get_args

import pytest

from weirlab.fields.base import kind_of
from weirlab.scenario.testbeds import AnyTestbed
from weirlab.testbed import HOMES

KINDS = [kind_of(model) for model in get_args(get_args(AnyTestbed)[0])]


def test_every_kind_of_testbed_has_a_home():
    assert list(HOMES) == KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_a_home_refuses_and_opens(kind):
    home = import_module(HOMES[kind])
    assert callable(home.refusals)
    assert callable(home.opened)
