"""Every testbed of scenarios has a module that opens it."""

from importlib import import_module
from typing import get_args

import pytest

from weirlab.fields.base import kind_of
from weirlab.scenario import testbeds

MODELS = get_args(get_args(testbeds.AnyTestbed)[0])


@pytest.mark.parametrize("model", MODELS, ids=kind_of)
def test_a_home_refuses_and_opens(model):
    home = import_module(model.HOME)
    assert callable(home.refusals)
    assert callable(home.opened)
