"""Words such as "tomorrow", whose meaning depends on the time of speaking, for several languages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date
from functools import lru_cache
from typing import Literal, NamedTuple


class TimeWords(NamedTuple):
    """Patterns of one language. Case is ignored, unless a pattern says otherwise."""

    day: str
    """Matches a day or period that depends on the day of speaking, such as `tomorrow` or `this week`."""
    distance: str
    """Matches other times that depend on it, such as `in two weeks`. In a question, most of these words have another
    meaning: `How often in two weeks?`, `Che lavoro fa Anna?`."""
    plan: str
    """Matches words about the future, such as `next` or `is to be`."""
    as_of_now: str
    """The prefix that makes a question ask about the present."""
    as_of_day: str
    """The prefix that makes a question ask about the day in place of `{day}`."""


_DAYS = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_PERIODS = (
    r"years?|months?|weeks?|weekends?|days?|quarters?|terms?|semesters?|seasons?|nights?|mornings?|afternoons?|evenings?"
    rf"|spring|summer|autumn|fall|winter|{_DAYS}|january|february|march|april|may|june|july|august|september|october"
    r"|november|december"
)
_COUNT = r"(?:\d+|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|a few|a couple of|some|several)"
_UNITS = r"(?:minutes?|hours?|days?|nights?|weeks?|weekends?|months?|years?)"

TIME_WORDS = {
    "en": TimeWords(
        rf"\b(?:today|tonight|tomorrow|yesterday)\b|\b(?:this|last|next|past|coming) (?:{_PERIODS})\b",
        rf"\b{_COUNT} {_UNITS} (?:ago|from now)\b|\bin {_COUNT} {_UNITS}(?:' time)?\b|^on {_DAYS}$",
        r"\b(?:next(?! of\b| to\b|[ -]door)|upcoming|forthcoming|planned|scheduled"
        r"|(?:is|are) (?:due |supposed )?to be)\b",
        "As things stand now: ",
        "As of {day}: ",
    ),
    "de": TimeWords(
        # `morgen` is tomorrow, `Morgen` after an article or preposition the morning
        r"\b(?:heute|gestern|vorgestern|übermorgen)\b|(?-i:\bmorgen\b|^Morgen\b)"
        r"|\b(?:diese[nmrs]?|(?:über)?nächste[nmrs]?|kommende[nmrs]?|letzte[nmrs]?|vergangene[nmrs]?|vorige[nmrs]?) "
        r"(?:jahr\w*|monat\w*|woche\w*|wochenende|tage?|\w*(?:mon|diens|donners|frei|sams|sonn|feier|geburts)tag|mittwoch|sonnabend|frühjahr|frühling|sommer|herbst|winter|januar|februar|märz"
        r"|april|mai|juni|juli|august|september|oktober|november|dezember)\b",
        r"\b(?:vor|in) \w+ (?:minuten?|stunden?|tag(?:en?)?|wochen?|monat(?:en?)?|jahr(?:en?)?)\b",
        r"\b(?:nächste[nmrs]?|geplante?[nmrs]?|bevorstehende?[nmrs]?|kommende[nmrs]?|soll(?:en)?)\b",
        "Stand jetzt: ",
        "Stand {day}: ",
    ),
    "fr": TimeWords(
        r"\b(?:aujourd['’]hui|demain|hier|avant-hier|après-demain)\b"
        r"|\bce(?:tte)? (?:semaine|année|mois|soir|matin|après-midi|nuit)\b",
        r"\b(?:prochaine?|derni[eè]re?|passée?)$|\bil y a \w+"
        r"|\bdans \w+ (?:jours?|semaines?|mois|ans?)\b",
        r"\b(?:prochaine?s?|prévue?s?)\b",
        "À ce jour : ",
        "Au {day} : ",
    ),
    "es": TimeWords(
        r"\b(?:hoy|ayer|anteayer)\b|\best[ea] (?:semana|mes|año|noche|tarde)\b",
        r"(?<!\bla )\bmañana\b|\b(?:próxim[oa]|pasad[oa]|que viene)\b|\bhace \w+"
        r"|\b(?:dentro de|en) \w+ (?:días?|semanas?|mes(?:es)?|años?)\b",
        r"\b(?:próxim[oa]s?|previst[oa]s?)\b",
        "A día de hoy: ",
        "A fecha de {day}: ",
    ),
    "it": TimeWords(
        r"\b(?:oggi|domani|dopodomani|ieri|stasera|stamattina)\b|\bquest[oa] (?:settimana|mese|anno|sera)\b",
        r"\b(?:prossim[oa]|scors[oa])\b|\b\w+ fa\b"
        r"|\b(?:tra|fra) \w+ (?:giorn[oi]|settiman[ae]|mes[ei]|ann[oi])\b",
        r"\b(?:prossim[oaie]|previst[oaie])\b",
        "Allo stato attuale: ",
        "Alla data del {day}: ",
    ),
    "pt": TimeWords(
        r"\b(?:hoje|amanhã|ontem|anteontem)\b|\best[ea] (?:semana|mês|ano|noite|tarde)\b",
        r"\b(?:próxim[oa]|passad[oa]|que vem)\b|\bhá \w+|\bdaqui a \w+",
        r"\b(?:próxim[oa]s?|previst[oa]s?)\b",
        "Neste momento: ",
        "Na data de {day}: ",
    ),
    "nl": TimeWords(
        r"\b(?:vandaag|(?<!\bde )(?<!\belke )(?<!\biedere )morgen|overmorgen|gisteren|eergisteren"
        r"|vanavond|vanochtend|vanmiddag)\b"
        r"|\b(?:volgende?|komende?|vorige?|afgelopen|deze) (?:week|maand|jaar|weekend|\w+dag)\b",
        r"\b\w+ geleden\b|\bover \w+ (?:dag(?:en)?|weken?|week|maand(?:en)?|jaar)\b",
        r"\b(?:volgende?|geplande?|komende?)\b",
        "Op dit moment: ",
        "Per {day}: ",
    ),
    "zh": TimeWords(
        "[今明昨后前]天|今[早晚年]|明[早晚年]|昨晚|去年|前年|后年|[上下这本]个?(?:周|星期|礼拜|月|学期|季度)",
        "[一二两三四五六七八九十几\\d]+个?[天周月年]+[前后]",
        "下次|下一|下个|计划|打算|预定",
        "目前：",
        "截至{day}：",
    ),
    "ja": TimeWords(
        "今日|明日|昨日|明後日|一昨日|今[週月年朝晩夜]|来[週月年]|先[週月]|去年|昨年",
        "[一二三四五六七八九十数\\d]+(?:日|週間|か月|ヶ月|年)[前後]",
        "次の|次回|予定",
        "現時点で：",
        "{day}時点で：",
    ),
}  # fmt: skip


def has_time_words(kind: Literal["day", "distance", "plan"], text: str, languages: Iterable[str]) -> bool:
    """Return whether a text has words of this kind, a field of TimeWords, in one of these languages."""
    patterns = (getattr(TIME_WORDS[language], kind) for language in languages if language in TIME_WORDS)
    return any(re.search(pattern, text, re.IGNORECASE) for pattern in patterns)


def ask_as_of(question: str, day: date | None, language: str) -> str:
    """Return the question with a prefix that makes it ask about a day; None: about the end of the conversation.

    The question is returned unchanged if the language is not in the table.
    """
    words = TIME_WORDS.get(language)
    if words is None:
        return question
    return (words.as_of_now if day is None else words.as_of_day.format(day=day_text(day, language))) + question


@lru_cache(maxsize=1024)
def day_text(day: date, language: str = "en") -> str:
    """Return a date in words, such as `9 March 2024` or `2024年3月9日`."""
    from babel.dates import format_date

    return format_date(day, "long", locale=language if language in TIME_WORDS and language != "en" else "en_GB")
