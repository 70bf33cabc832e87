"""What searches show of the writes of a violation: the evidence on a store that cannot list its facts."""

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
    """Return by user what searches for the texts of a violation find. `violation` still has its placeholders."""
    found: dict[str, dict[str, StoredFact]] = {}
    async with open_copy(fixture, ()) as (store, _):
        for step in violation.steps if "recall" in store.capabilities else ():
            if isinstance(step, Remember | Update) and (query := remove_placeholders(step.content).strip()):
                facts = await store.recall(step.user, query, _LIMIT)
                found.setdefault(step.user, {}).update({fact.content: fact for fact in facts})
    return {user: tuple(facts.values()) for user, facts in found.items()}


def find_shown_secret(fixture: Fixture, found: FactsByUser) -> list[Finding]:
    """Return a finding if a search shows a planted secret."""
    texts = {f"fact {fact.id} of {user}": fact.content for user, facts in found.items() for fact in facts}
    for name, value in fixture.planted_values.items():
        if name.startswith("secret:"):
            for sighting in find_secret(value, texts):
                problem = f"a search shows the planted {name.partition(':')[2]} ({sighting.encoding}: {sighting.where})"
                return [Finding(claim=SECRETS_NOT_FOUND, kind="secret_free", status="broken", found=problem)]
    return []
