"""Finds the writes of a violation by searching, for stores that cannot list their facts."""

from __future__ import annotations

from memorybench.core.stores import StoredFact
from memorybench.secrets.canaries import find_secret

from .assertions_base import Finding
from .driver import Fixture, open_copy
from .evidence import FactsByUser
from .placeholders import remove_placeholders
from .scenario import Violation
from .script import Remember, Update

SECRETS_NOT_FOUND = "no search finds a planted secret"
_LIMIT = 10


async def search_writes(fixture: Fixture, violation: Violation) -> FactsByUser:
    """Search for the text of each write of a violation; return the facts that were found, by user.

    `violation` still has its placeholders, which are left out of the queries.
    """
    found: dict[str, dict[str, StoredFact]] = {}
    async with open_copy(fixture, ()) as (store, _):
        for step in violation.steps if "recall" in store.capabilities else ():
            if isinstance(step, Remember | Update) and (query := remove_placeholders(step.content).strip()):
                facts = await store.recall(step.user, query, _LIMIT)
                found.setdefault(step.user, {}).update({fact.content: fact for fact in facts})
    return {user: tuple(facts.values()) for user, facts in found.items()}


def find_shown_secret(fixture: Fixture, found: FactsByUser) -> list[Finding]:
    """Return one finding if a found fact contains a planted secret, else an empty list."""
    texts = {f"fact {fact.id} of {user}": fact.content for user, facts in found.items() for fact in facts}
    for name, value in fixture.planted_values.items():
        if name.startswith("secret:"):
            for sighting in find_secret(value, texts):
                problem = f"a search shows the planted {name.partition(':')[2]} ({sighting.encoding}: {sighting.where})"
                return [Finding(claim=SECRETS_NOT_FOUND, kind="secret_free", status="broken", found=problem)]
    return []
