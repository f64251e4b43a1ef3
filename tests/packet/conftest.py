# SPDX-License-Identifier: Apache-2.0
import pytest

from router import Router
from topology import Network


@pytest.fixture(scope="session")
def network():
    router = Router()
    try:
        yield Network(router)
        router.daemon.check_alive()
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
