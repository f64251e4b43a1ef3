# SPDX-License-Identifier: Apache-2.0
"""Waits for what must come true. How soon it does is no test's verdict, so all tests share one patience."""
import time

# Seconds. A right program needs a small part of them, but kernels of virtual machines have been seen to leave threads that are ready
# without their CPU for a minute.
PATIENCE = 180


def wait_until(what, look, done=bool, pause=0.05):
    """Calls look() until done() accepts what it returns, and returns that. Fails with `what`, and what it saw last."""
    deadline = time.monotonic() + PATIENCE
    while True:
        late = time.monotonic() > deadline  # before the look: the last one comes after the deadline
        seen = look()
        if done(seen):
            return seen
        assert not late, f"waited {PATIENCE} s for {what}; last seen: {seen!r}"
        time.sleep(pause)
