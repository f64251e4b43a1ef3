# SPDX-License-Identifier: Apache-2.0
"""Tests that are marked `measure` judge how long something takes. They run only with CORELANE_MEASURE=1: a verdict of
`make test` depends on the code alone. The files that CORELANE_CHANGED names, a line each, come first."""
import os


def pytest_configure(config):
    config.addinivalue_line("markers", "measure: judges times or rates; runs only with CORELANE_MEASURE=1")


def pytest_collection_modifyitems(config, items):
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    changed = {os.path.join(root, name) for name in os.environ.get("CORELANE_CHANGED", "").splitlines()}
    items.sort(key=lambda item: str(item.path) not in changed)
    if os.environ.get("CORELANE_MEASURE") == "1":
        return
    measured = [i for i in items if i.get_closest_marker("measure")]
    if measured:
        config.hook.pytest_deselected(items=measured)
        items[:] = [i for i in items if i not in measured]
