"""The online suite: measures whether an agent in production finds and uses memories, and stores what users state."""

from __future__ import annotations

from memorybench.suites.suite import Command, Suite

from .spec import OnlineSpec

SUITE = Suite(
    name="online",
    commands=(
        Command(
            "online",
            "measure recorded searches and writes of an agent's memory",
            OnlineSpec,
            "memorybench.suites.online.prepare:prepare",
            "MEMORY OPERATIONS, ONLINE",
        ),
    ),
    report_module="memorybench.suites.online.report",
)
