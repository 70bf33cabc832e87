"""Whether a question of ours reads as English and asks for what answers it.

By its words alone: who asks need not know how it was made. It is strict where it must guess, for there are more facts
than anybody wants to ask about.
"""

from __future__ import annotations

import re

from .lexicon import ADJECTIVES, ADVERBS, BELONGINGS, KIN, MASS_NOUNS, PEOPLE, ROLES, listed
from .phrases import DATE, bare
from .subjects import MODALS, USER, is_plural
from .verbs import BASES, base_form, is_gerund, is_participle, is_past, is_third_person
from .words import NUMBERS

GAP = "____"
_PREFIX = re.compile(r"^Fill the gap[^:]*: ")
_LEADS = (
    "and|or|but|with|without|of|named|called|ago|about|for|as|by|that|which|who|than|because|so|rather|such|to|also"
)
_TRAILS = (
    "and|or|but|with|of|named|called|about|for|as|by|that|which|who|than|because|so|rather|such|to|in|on|at|from|into|a"
    "|an|the|his|her|their|how|related|is|are|was|were|has|being|not|some|very|pushed|filled|like|both"
)
_HALF = re.compile(
    rf"^(?:{_LEADS})\b|\b(?:{_TRAILS})$|^[,;:'\-]|[,;:\-]$|^ago$"
    r"|\b(?:he|she|they|it|he's|she's|it's|they're|is|are|was|were|has|have|which|who|that)\b"
    r"|^(?:him|them|this|these|those|forward|everything|anything|something|how|what|better|well|more|less|only|badly"
    r"|together|both|half|least|lots?)\b(?! \w+ (?:of|from))"
    r"|\band (?:something|anything|everything|more|others)$|\band \w+ed (?:an?|the|some|his|her|their|it|to)\b"
    r"|^(?:(?:his|her|their|the|an?) )?(?:\w+ )?(?:way|times?|things?|bit|lot)$"
    r"|^'[^']*$|^[^']*[^s]'$",
    re.IGNORECASE,
)
_HOLLOW = frozenset(
    listed("""
    going making doing being having getting finding using taking giving seeing creating trying keeping looking
    ways way time times things people others part bit fun everyone someone while
""")
)
"""Words that are no answer when they stand alone."""
_GUESSED = frozenset(
    listed("""
    question chat conversation importance value role one ones life support bit desire chance
""")
)
"""What anybody would put into a gap."""
_ADJECTIVAL = re.compile(r"[a-z]+(?:ful|ive|ous|able|ible|less|ly|ent|iest)$")
_NOUNS_TOO = frozenset(
    listed("""
    family italy july monopoly jelly belly present student parent accident president event
""")
)
_HARD = "from|to|for|with|about|of|at|by|as|into"
_BROKEN = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\b(?:{_HARD}|in|on) (?:{_HARD})\b(?! (?:\d|night|noon|midnight|once|home|work))",
        r"\b(?:and|or|the|a|an|his|her|their|it|them|him|at least|as|way|ago|rather|such|that|which|how|not|never|most"
        r"|also|due|last|next|every|each|once|starting|beginning|including|aimed|inspired|related|regarding)\?$",
        r"(?<!\d)[:;]|,\?|, (?:had|has|is|was|and|but|then)\b",
        r"\b(?:two|three|four|\d+|several|few) (?:week(?:end)?s|days|months)\?$",
        r"\b(?:and|but) (?:bring|keep|get|give|go|come|take|make|find|buy|tell|think|teach|write|send|leave|become|hear"
        r"|share|help|believe|enjoy|ask|eat|use|feel|support|appreciate|connect|stay|explore|supporting|feeling)\b",
        r"\band \w+ing (?:\w+ )?(?:for|with|to|on|of|about)\?$",
        r"^(?:When|Why|How often)\b.* (?:of|by|for|with|at|in|on|to|from|about)\?$",
        r".{5}\b(?:as (?:he|she|they|it)|which|who \w+s)\b",
        r"\b(?:month|week|year|day|lately|[A-Z]\w+day) to(?: do)?\?$|\b(?:has|have|is|are) (?:for|to|with)\?$",
        r"\b(?:for|with|by|to|about|from) (?:on|in) (?!\d|[A-Z]|the (?:morning|evening|summer|winter)|spring)",
        r"^How many people does .* have\?$",
        r"favou?rites?\?$|\bdoes .* consider \w+ing |\bname of .*(?:at least|\d)",
    )
)
"""What is left over of a statement that was cut in the wrong place: two prepositions, a second verb, a loose end."""
_RETURNING = frozenset(
    listed("""
    give go come get send bring call pay take move fly drive put hold write walk
""")
)
_NEEDS_OBJECT = frozenset(
    listed("""
    express find make take have give bring buy use put show get see want need share enjoy create recommend
    suggest offer mention appreciate believe consider say tell think describe
""")
)
_FRONTS = "|".join(("does", "do", "did", "is", "are", "was", "were", "has", "have", "had", *MODALS))
_OPENING = re.compile(
    rf"^(?:What|Who|Whose|Where|When|Why|Which|How|For|Since|Until|At|In|By)\b(?: (?!(?:{_FRONTS}) )[\w'-]+){{0,5}}"
    rf" (?P<front>{_FRONTS}) (?P<rest>.+)\?$"
)
_OWNED = re.compile(r"(?:the|his|her|their|this|[\w-]+'s?)\b", re.IGNORECASE)
_NUMBER = re.compile(rf"\d|\b(?:{'|'.join(NUMBERS)}|dozens|hundreds|half|several|a couple)\b", re.IGNORECASE)
_OUTING = re.compile(r"\b(?:trip|tour|journey|ride|leave|kinds|vacation|roadtrip|adventure|diet|date)\b")
_NAME = re.compile(r"(?:(?:Dr|Mr|Mrs|Ms)\.? )?[A-ZÀ-Þ][\w'-]*(?: [A-ZÀ-Þ][\w'-]*){0,2}")
_QUALITIES = frozenset(
    listed("""
    colour color mood status style size shape nationality grade result diet type dress
""")
)
"""What an adjective may answer."""
_VERBS_ONLY = frozenset(
    listed("""
    eat go take give make keep bring feel find grow know leave lose reach reset become
""")
)
_DETERMINERS = frozenset(
    listed("""
    a an the his her their its some of in for with on about by at from into this that any
""")
)
_BEFORE_VERBS = frozenset(listed("to not is are was am were be been being can will would does did feels feel felt"))
_NAMES_TOO = frozenset(("will", "rose", "drew", "james", "grace", "mark"))
_LINKING = frozenset(
    listed("""
    get feel become stay seem look sound remain keep turn go be
""")
)


def malformed(question: str, value: str) -> bool:
    if is_half(value):
        return True
    if _PREFIX.match(question):
        return _bad_gap(_PREFIX.sub("", question), value)
    opening = _OPENING.match(question)
    if opening is None or _fragment(question, value):
        return True
    front, rest = opening["front"], opening["rest"].split()
    subject = _subject(rest)
    if subject is None or _disagrees(front, rest[:subject], rest[subject:]):
        return True
    return _mismatch(question, value, rest[subject:])


def is_half(value: str) -> bool:
    """Whether it is a part of something: `and juggling`, `knitted toy fox named`, `storms he has faced`."""
    said = [bare(token) for token in value.split()]
    if not said or _HALF.search(value.strip()) or value.count('"') % 2 or value.strip("'\"") == "":
        return True
    if len(said) == 1 and (said[0] in _HOLLOW or said[0] in ADVERBS):
        return True
    if len(said) > 1 and is_participle(said[-1]) and said[-1].endswith("ed") and said[-1] not in BASES:
        return True  # a painting inspired
    if "," in value and not re.search(r"\b(?:and|or)\b|\d", value):
        return True  # a list that breaks off
    return bool(
        re.search(r"\band (?:also |then )?(?:keep|is|has|believes|enjoys|feels|plans|wants|looks|finds)\b", value)
    )


def _fragment(question: str, value: str) -> bool:
    if any(broken.search(question) for broken in _BROKEN):
        return True
    second = re.search(r"\b(?:and|but) (?:often |also |usually )?([a-z]+s|[a-z]+ed) [a-z]", question)
    if second is not None and (is_third_person(second[1]) or (is_past(second[1]) and second[1] not in BASES)):
        return True
    said = question.rstrip("?").split()
    if said[-1] == "back" and base_form(said[-2]) not in _RETURNING:
        return True
    if re.match(r"(?:Where|When|Why|How often)\b", question) and said[-1] in _NEEDS_OBJECT:
        return True
    kind = re.match(r"What kind of (\S+)", question)
    if kind is None:
        return False
    noun = kind[1]
    if bare(value.split()[0]) in ADJECTIVES:
        return True
    return noun[0].isupper() or noun in ADJECTIVES or noun in ADVERBS or (is_participle(noun) and noun not in BASES)


def _subject(rest: list[str]) -> int | None:
    """How many words the subject takes, after the verb that was put before it; None: it is no noun phrase."""
    if rest[:2] == ["the", "user"]:
        return 2
    first = rest[0]
    if first.startswith(("the", "The")) and len(rest) > 1 and rest[1] == "user's" and len(rest) == 2:
        return None
    titled = len(rest) > 1 and rest[1][0].isupper()  # project Heron
    if not (
        _OWNED.match(first)
        or titled
        or first[0].isupper()
        or bare(first) in MASS_NOUNS
        or first.endswith(("tion", "ment"))
    ):
        return None
    lower = bare(first)
    if first[0].isupper() and not first.endswith("'s"):
        verbal = (
            is_third_person(lower) or is_past(lower) or lower in (*ADVERBS, "never", "last")
        ) and lower not in _NAMES_TOO
        common = lower in KIN | BELONGINGS or lower in ("things", "everything", "something")
        loose = len(rest) > 2 and _is_noun(rest[1]) and (rest[2] in BASES or rest[2] == "to")
        loose = loose or (len(rest) > 2 and rest[1] in ("for", "with", "of", "in"))
        if verbal or common or loose:
            return None
    return _length(rest)


def _is_noun(word: str) -> bool:
    return word.islower() and word.isalpha() and not (
        word in BASES or is_gerund(word) or is_participle(word) or word in ADVERBS or word in ADJECTIVES
        or word in ("and", "or", "not", "never", "a", "an", "the", "in", "on", "at", "to", "for", "of", "from", "with")
    )  # fmt: skip


def _length(rest: list[str]) -> int:
    """Up to the first word that may be a verb, or says where it is; all of it where there is none."""
    named = next((place for place, token in enumerate(rest) if not token[0].isupper()), len(rest))
    if named and not any(token.endswith(("'s", "s'")) for token in rest[:named]) and rest[named : named + 1] != ["and"]:
        return named
    owned = False
    for place, token in enumerate(rest):
        word = bare(token)
        if (
            place
            and not owned
            and (word in BASES or is_gerund(word) or is_participle(word) or word in ("not", "never"))
        ):
            return place
        if place and word in ADVERBS:
            return place
        owned = token.endswith(("'s", "s'")) or word in ("the", "his", "her", "their", "of", "for")
    return len(rest)


def _disagrees(front: str, subject: list[str], rest: list[str]) -> bool:
    """does the user's parents, what did the user painting."""
    named = " ".join(subject)
    if front in ("does", "is", "was", "has") and is_plural(named) and not re.search(r"\b(?:series|news)$", named):
        return True
    if front in ("do", "are", "were", "have") and (named == USER or (not is_plural(named) and "'s" not in named)):
        return True
    after = next((bare(token) for token in rest if bare(token) not in (*ADVERBS, "not", "never")), "")
    if front in ("does", "do", "did") and after:
        return after not in BASES or (base_form(after) != after and after != "found")
    return front in ("does", "do", "did") and named == USER


def _mismatch(question: str, value: str, rest: list[str]) -> bool:
    """Whether the question word asks for something else than it gets."""
    first = value.split()[0]
    if question.startswith("Where"):
        bare_word = value.islower() and len(value.split()) == 1 and value not in ("home", "abroad", "school", "church")
        return bare_word or bool(re.match(r"[\d$€£][^A-Z]*$", value)) or bool(_OUTING.search(value))
    if re.match(r"(?:When|Since when|Until when)", question):
        return not DATE.search(value) and not _NUMBER.search(value) and not value.istitle()
    if re.match(r"How (?:many|old|tall|much|large|long|wide|high|deep)\b|For how (?:much|long)", question):
        return not _NUMBER.search(value) and not DATE.search(value)
    if question.startswith("Who"):
        verb_within = not value[0].isupper() and any(bare(token) in BASES for token in value.split()[1:])
        made = re.search(r"\bmake\b", question) is not None
        long = len(value.split()) > 4 and not re.search(r",| and ", value)
        return (
            bool(re.match(r"(?:an?|some|being) (?!(?:\w+ )?(?:woman|man|friend|colleague|girl|boy)\b)", value))
            or verb_within
            or made
            or long
        ) and "work for" not in question
    if question.endswith(" job?"):
        return bool(_NUMBER.search(value)) or is_gerund(bare(first)) or _is_adjective(value)
    return question.startswith("What") and _no_thing(question, value, rest)


def _no_thing(question: str, value: str, rest: list[str]) -> bool:
    owned = re.match(r"What (?:is|are|was|were) (?:.+ )?(\S+)\?$", question)
    last = owned[1].lower() if owned else ""
    if last in _QUALITIES or " name of " in question:
        return False
    if last in KIN or (last in ROLES and _NAME.fullmatch(value)):
        return True
    said = [bare(token) for token in value.split()]
    if said[-1] in PEOPLE and said[0] in ("his", "her", "their", *PEOPLE):
        return True
    verbs = [base_form(bare(token)) for token in rest]
    main = next((verb for verb in verbs if verb in BASES), "")
    if main in _LINKING and (said[0] in ADJECTIVES or _is_adjective(value) or is_participle(said[0])):
        return True
    if {"help", "let", "watch", "hear", "see"} & set(verbs) and any(word in BASES for word in said[1:]):
        return True
    if said[0] in ("his", "her", "their") and len(said) > 2 and (said[-1] in ADJECTIVES or is_gerund(said[-1])):
        return True
    return _is_adjective(value)


def _is_adjective(value: str) -> bool:
    said = [bare(token) for token in value.split()]
    return all(word in ADJECTIVES or word in ADVERBS or _looks_adjectival(word) for word in said)


def _looks_adjectival(word: str) -> bool:
    return bool(_ADJECTIVAL.fullmatch(word)) and word not in _NOUNS_TOO


def _bad_gap(statement: str, value: str) -> bool:
    """A gap must stand for a thing, and leave a sentence around it."""
    before, _, after = statement.partition(GAP)
    if not re.match(r"[A-ZÀ-Þ]", statement) or before.endswith("-") or bare(statement.split()[0]) in (*NUMBERS, "ok"):
        return True
    said = [bare(token) for token in value.split()]
    named = value[0].isupper() or value[0].isdigit() or (said[0] in NUMBERS and said != ["one"])
    left, right = before.split()[-1:], after.split()[:1]
    if value[0].isupper() and (
        (right and right[0][0].isupper())
        or (len(before.split()) > 1 and left and left[0][0].isupper() and not left[0].endswith("'s"))
    ):
        return True  # half of a name
    if re.match(r" (?:and|or) |, .*?(?:, and|, or|(?:[\w-]+ ){1,3}(?:and|or)) ", after) and not named:
        return True  # one of several
    objects = ("oneself", "themselves", "each", "the", "a", "an", "his", "her", "their", "its", "it", "others")
    if said[-1].endswith("ing") and right and bare(right[0]) in objects:
        return True  # the importance of supporting each other
    return not named and _no_noun(said, left, right)


def _no_noun(said: list[str], left: list[str], right: list[str]) -> bool:
    head = said[-1]
    if "to" in said or (right and bare(right[0]) == "ago"):
        return True
    if len(said) > 1 and is_gerund(head) and head not in MASS_NOUNS:
        return True  # siblings coding
    if any(word in _VERBS_ONLY for word in said[1:]):
        return True  # geese eat clover
    determined = bool(left) and (bare(left[0]) in _DETERMINERS or bare(left[0]) in ADJECTIVES)
    if said[0] in BASES and not determined:
        return True
    if head in ADVERBS or head in ADJECTIVES or head in _HOLLOW | _GUESSED or _looks_adjectival(head):
        return True
    verbal = is_gerund(said[0]) or is_third_person(said[0]) or is_past(said[0]) or said[0] == "to"
    if verbal and not (left and bare(left[0]) in ("a", "an", "the")):
        return True
    if left and bare(left[0]) in _BEFORE_VERBS:
        return True
    ends = not right or bool(re.match(r"[.,;]", right[0])) or bool(re.match(r"[a-z]", right[0]))
    return not ends
