# SPDX-License-Identifier: Apache-2.0
"""BIRD as the route reflector of two nodes: the checks of test_fabric.py."""
import contextlib
import os

import pytest

from fabric import BirdReflector
from test_fabric import (KILLED_ELSEWHERE, Lab, kill_and_count, test_own_routes_come_back_from_the_reflector_and_are_not_used,
                         test_tenants_reach_each_other)

__all__ = ["test_own_routes_come_back_from_the_reflector_and_are_not_used", "test_tenants_reach_each_other"]
pytestmark = pytest.mark.skipif(not os.path.exists(BirdReflector.program), reason="bird2 is not installed")


@pytest.fixture(scope="module")
def lab():
    with contextlib.ExitStack() as stack:
        yield Lab(stack, BirdReflector)


@pytest.mark.parametrize("who", KILLED_ELSEWHERE)
def test_nothing_stops_when_it_is_killed(lab, who):
    kill_and_count(lab, who)
