"""The online suite: does an agent in production find memories, and use them?"""

from __future__ import annotations

from memorybench.suites.suite import Command, Suite

from .spec import OnlineSpec

SUITE = Suite(
    name="online",
    commands=(
        Command(
            "online",
            "measure recorded searches of an agent in its memory",
            OnlineSpec,
            "memorybench.suites.online.prepare:prepare",
            "MEMORY SEARCHES, ONLINE",
        ),
    ),
    report_module="memorybench.suites.online.report",
)
