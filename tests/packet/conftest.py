# SPDX-License-Identifier: Apache-2.0
import pytest

pytest.register_assert_rewrite("packets", "router")

from router import Router  # noqa: E402
from topology import Network  # noqa: E402

TAP_SPARE = 64


@pytest.fixture(scope="session")
def network():
    router = Router()
    try:
        router.cli("settings", "set", "--flow-denied", 43200)  # a slow test sees what it was denied, too
        yield Network(router)
        router.daemon.check_alive()
        # Only the buffers that taps keep ready for the next frames are still in use.
        assert int(router.cli("status")[0]["mbufs_in_use"]) <= TAP_SPARE * len(router.taps)
    except BaseException:
        print(router.daemon.log())
        raise
    finally:
        code = router.close()
    assert code == 0, f"corelaned ended with {code}"


@pytest.fixture
def router(network):
    network.router.daemon.check_alive()
    return network.router
