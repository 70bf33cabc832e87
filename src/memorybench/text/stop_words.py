"""English stop words, one list for each purpose."""

from __future__ import annotations


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTION_WORDS = _word_set("""
    a an the this that these those and or but so if then as because while
    i me my mine you your yours he him his she her hers it its we our ours they them their theirs
    am is are was were be been being do does did doing have has had having can could would should shall must
    at by for from in into of off on onto out to up with about during through
    what when where which who whom whose why how there here
    any some all both each such very too also just only d ll m re s ve
""")
"""Words that change no fact: closed word classes and endings after an apostrophe.

"will", "may" and "us" are left out because they can be names.
"""

STOP_WORDS = FUNCTION_WORDS | _word_set("""
    nor than over after before between under until not no own same other more most t
""")
"""Words that a search ignores."""

AUDIT_STOP_WORDS = STOP_WORDS | _word_set("""
    every another myself us themselves himself herself itself done will may might ought yet although though
    unless without above below down again near per via around since within against among towards toward upon n't
    never still already ever even much many less least few lot lots now currently recently usually often always
    sometimes really quite rather almost please complete blank user user's thing things something kind name
    named called
""")
"""Words that reveal no answer. "user" and "name" occur in questions about any fact."""
