"""Ctrl-C, as everything in the engine hears of it."""

from __future__ import annotations

import asyncio


class Interrupted(BaseException):
    """The run is draining: no new work starts. The job leaves no outcome and is done on resume.

    Not an Exception, so that no suite takes it for a failure of its subject.
    """


class Stop(asyncio.Event):
    """Set once the user wants to leave."""

    def check(self) -> None:
        if self.is_set():
            raise Interrupted

    async def pause(self, seconds: float) -> None:
        """Sleeps, but not through a Ctrl-C: nothing is under way while we only wait."""
        self.check()
        try:
            await asyncio.wait_for(self.wait(), seconds)
        except TimeoutError:
            return
        raise Interrupted
