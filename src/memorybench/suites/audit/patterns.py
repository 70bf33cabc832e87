"""The shapes of statement that have a question of their own, as data. The first that fits is tried first.

`said` is matched against what a statement says of its subject (`works as a nurse`), after adverbs. `{s}` is the
subject, `{own}` its possessive, `{do}` the does or did of what was said, other braces are groups of the match.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .lexicon import KIN

_KIN = "|".join(sorted(KIN))
_FAMILY = "son|cousin|partner|grandmother|grandfather|stepmother|stepfather|landlord|supervisor|neighbou?r|coworker"
_JOBS = (
    r"[\w-]*(?:er|or|ist|ian|ant|eer|nurse|chef|cook|clerk|pilot|guard|coach|judge|attorney|analyst|architect"
    r"|intern|student|athlete|barista|journalist|paramedic|freelancer|dean|mechanic|surgeon|scientist|agent|lead|vet|doctor|lieutenant|officer)"
)
_NUMBER = r"\d+|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_MONEY = r"[$€£]\s?\d[\d.,]*(?:k\b|\s(?:million|billion))?|[\d.,]+ (?:dollars|euros|pounds|yen|francs|kronor|rupees)"
_END = (
    r"(?=$|[,;]| (?:at|in|for|and|with|on|since|who|which|but|because|from|near|as|every|to|after|when|last|next|this"
    r"|yesterday|while|where|that)\b)"
)


@dataclass(frozen=True, slots=True)
class Pattern:
    name: str
    example: str
    said: str
    question: str
    attribute: str
    asked: str
    """The question to the example, and by it the test."""
    answer: str
    of_persons: bool = False
    """A thing of which this is said is not meant so: the flat is 40."""
    asks_subject: bool = False
    """The subject is what answers it."""


PATTERNS = (
    Pattern(
        "goes by",
        "User goes by Sal at work",
        said=rf"(?:goes by|go by|is known as|am called) (?P<value>.+?){_END}",
        question="What name does {s} go by?",
        attribute="name",
        asked="What name does the user go by?",
        answer="Sal",
    ),
    Pattern(
        "pet's name",
        "User has a golden retriever named Biscuit",
        said=(
            r"(?:has|have|owns?|got|adopted|is getting|rescued|bought) (?:a |an |one "
            r"|their )?(?P<kind>(?!at least|\d|two |three |four )(?:[\w-]+ ){0,3}?[\w-]+),?"
            rf" (?:named|called|whose name is) (?P<value>.+?){_END}"
        ),
        question="What is the name of {own} {kind}?",
        attribute="{kind} name",
        asked="What is the name of the user's golden retriever?",
        answer="Biscuit",
    ),
    Pattern(
        "kin",
        "User has a sister who lives in Ghent",
        said=(
            rf"(?:has|have) (?:a |an |one )?(?P<kind>(?:[\w-]+ )?(?:{_KIN})) (?:who )?(?:lives|living|works"
            r"|based) (?:in|at) (?P<value>.+?)(?=$|,| and )"
        ),
        question="Where does {own} {kind} live or work?",
        attribute="{kind} place",
        asked="Where does the user's sister live or work?",
        answer="Ghent",
    ),
    Pattern(
        "count",
        "User has three kids",
        said=(
            rf"(?:has|have|owns?|keeps?) (?:about |over |at least |around )?(?P<value>{_NUMBER}) (?P<kind>"
            r"(?!years?\b|months?\b|weeks?\b|days?\b|hours?\b)[\w-]+(?: [\w-]+)?s|children|people|siblings)\b"
        ),
        question="How many {kind} does {s} have?",
        attribute="number of {kind}",
        asked="How many kids does the user have?",
        answer="three",
    ),
    Pattern(
        "age",
        "My grandmother is 91 years old",
        said=r"(?:is|am|are|turned|just turned|is turning) (?P<value>\d{1,3}|[\w-]+)(?: years? old| years of age)",
        question="How old is {s}?",
        attribute="age",
        asked="How old is the user's grandmother?",
        answer="91",
        of_persons=True,
    ),
    Pattern(
        "bare age",
        "User is 34",
        said=r"(?:is|am|are) (?P<value>\d{1,3})(?=$|,| and )",
        question="How old is {s}?",
        attribute="age",
        asked="How old is the user?",
        answer="34",
        of_persons=True,
    ),
    Pattern(
        "turned",
        "User turned 40 in May",
        said=(
            r"(?:turned|is turning|turns|will turn) (?P<value>\d+|(?:two|three|four|five|six|seven|eight|nine|ten"
            r"|eleven|twelve|\w+teen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)(?:-\w+)?)\b"
        ),
        question="What age did {s} reach?",
        attribute="age",
        asked="What age did the user reach?",
        answer="40",
        of_persons=True,
    ),
    Pattern(
        "job and place",
        "Works as a nurse at St Mary's Hospital",
        said=rf"(?:works?|is working|is employed) as (?:an? |the )?(?P<value>.+?){_END}",
        question="What is {own} job?",
        attribute="job",
        asked="What is the user's job?",
        answer="nurse",
        of_persons=True,
    ),
    Pattern(
        "job",
        "User is a landscape architect",
        said=(
            r"(?:is|am|became|was) (?:an?|the) (?P<value>(?:(?!good|bad|big|great|better|member|owner|fan|lover"
            r"|morning|early|light|heavy|beginner|only|first|avid|huge|believer|supporter|collector|vegetarian"
            r"|drinker|eater|reader|runner|smoker|sleeper|swimmer)[\w-]+ )*(?!member|owner|lover|vegetarian"
            r"|drinker|eater|reader|runner|smoker|sleeper|swimmer|sister|brother|mother|father|daughter|minor"
            r"|major|older|younger|morning|believer|supporter|collector|beginner|over|under|pescatarian|Australian"
            r"|Italian|Canadian|Brazilian|Norwegian|Christian|Indian|teetotaler|her|player"
            rf"|another|{_FAMILY}|gamer|dancer|owner|winner)(?:{_JOBS}))"
            r"(?=$|,| (?:at|for|in|with|on|and|who|by|from)\b)"
        ),
        question="What is {own} job?",
        attribute="job",
        asked="What is the user's job?",
        answer="landscape architect",
        of_persons=True,
    ),
    Pattern(
        "promoted",
        "User was promoted to head of sales",
        said=(
            r"(?:was promoted|got promoted|was appointed|got hired|was hired|got a job|took a job|started a job"
            rf"|started work|started working|began working) (?:to|as) (?:an? |the )?(?P<value>.+?){_END}"
        ),
        question="What is {own} job?",
        attribute="job",
        asked="What is the user's job?",
        answer="head of sales",
        of_persons=True,
    ),
    Pattern(
        "employer",
        "I work for a small publisher",
        said=(
            r"(?:currently )?(?:works?|is working|is employed|started working|began working"
            r"|now works)(?: remotely| part time| full time)? (?:at|for|by) (?P<value>(?!night|home|(?:\w+ )?"
            r"(?:years|hours|months)).+?)(?=$|,| (?:as|and|in|since|on|from|doing|for|where|who)\b)"
        ),
        question="Who does {s} work for?",
        attribute="employer",
        asked="Who does the user work for?",
        answer="a small publisher",
        of_persons=True,
    ),
    Pattern(
        "joined",
        "User joined Northwind in 2021",
        said=rf"(?:joined|has joined|is joining) (?P<value>.+?){_END}",
        question="What did {s} join?",
        attribute="joined",
        asked="What did the user join?",
        answer="Northwind",
    ),
    Pattern(
        "home",
        "Lives in a small flat in Lyon",
        said=(
            r"(?:now |currently )?(?:lives?|is living|is based|resides?|has been living) (?:in|at"
            r"|near|on|outside|just outside) (?P<value>.+?)(?=$|,| (?:with|without|and|since|for|because|but|during"
            r"|until|while|where|when|after|as)\b)"
        ),
        question="Where does {s} live?",
        attribute="home",
        asked="Where does the user live?",
        answer="a small flat in Lyon",
        of_persons=True,
    ),
    Pattern(
        "moved",
        "User moved to Seattle last year",
        said=(
            r"(?:recently |just )?(?:moved|has moved|relocated"
            r"|has relocated)(?: back| out| away)?(?: from .+?)? (?:to|into) (?P<value>(?!Mon|Tues|Wednes|Thurs"
            r"|Fri|Satur|Sun|\d|Jan|Feb|a new team|the new).+?)(?=$|,| (?:with|and|since|for|because|but|in (?:\d+"
            r"|[A-Z][a-z]+ \d{4}|January|February|March|April|May|June|July|August|September|October|November"
            r"|December|the|early|late)|last|from|on|when|after|this|next)\b)"
        ),
        question="Where did {s} move to?",
        attribute="home",
        asked="Where did the user move to?",
        answer="Seattle",
    ),
    Pattern(
        "moving",
        "The head office is moving to Eindhoven next year",
        said=r"(?:is|are|am) (?:moving|relocating) to (?P<value>[A-Z].+?)(?=$|,| (?:with|and|in|next|this|for|on)\b)",
        question="Where is {s} moving to?",
        attribute="moving to",
        asked="Where is the head office moving to?",
        answer="Eindhoven",
    ),
    Pattern(
        "origin",
        "User is originally from Porto",
        said=r"(?:is|are|comes?|am|was) (?:originally )?from (?P<value>.+?)(?=$|,| (?:and|but)\b)",
        question="Where is {s} from?",
        attribute="origin",
        asked="Where is the user from?",
        answer="Porto",
    ),
    Pattern(
        "grew up",
        "User grew up in rural Kenya",
        said=(
            r"(?:grew up|was raised|was brought up|spent their childhood) (?:in|on|near) (?P<value>.+?)(?=$|,"
            r"| (?:and|but|with|before|until)\b)"
        ),
        question="Where did {s} grow up?",
        attribute="childhood",
        asked="Where did the user grow up?",
        answer="rural Kenya",
    ),
    Pattern(
        "born on",
        "User was born on 4 July 1990",
        said=(
            r"(?:was |were )?born (?:on|in) (?P<value>(?:\w+ )?\d.*|(?:January|February|March|April|May|June|July"
            r"|August|September|October|November|December)\b.*)"
        ),
        question="When was {s} born?",
        attribute="birth date",
        asked="When was the user born?",
        answer="4 July 1990",
    ),
    Pattern(
        "born in",
        "User was born in Lagos",
        said=r"(?:was |were )?born (?:in|at|near) (?P<value>.+?)(?=$|,| (?:and|but|on|in \d)\b)",
        question="Where was {s} born?",
        attribute="birth place",
        asked="Where was the user born?",
        answer="Lagos",
    ),
    Pattern(
        "married",
        "User is married to Tom",
        said=rf"(?:is |was |got |has been )?(?:married|engaged) to (?P<value>.+?){_END}",
        question="Who is {own} spouse or fiancé?",
        attribute="spouse",
        asked="Who is the user's spouse or fiancé?",
        answer="Tom",
    ),
    Pattern(
        "prefers over",
        "User prefers tea over coffee",
        said=(
            r"(?:prefers?|would rather have|likes?|would pick|picks) (?P<value>(?!to )(?:(?! in | at ).)+?) (?:over|to"
            r"|more than|better than|rather than|instead of) (?P<other>(?!after|before|during|when).+)"
        ),
        question="What does {s} prefer over {other}?",
        attribute="preference over {other}",
        asked="What does the user prefer over coffee?",
        answer="tea",
    ),
    Pattern(
        "allergic",
        "User is allergic to peanuts and shellfish",
        said=(
            r"(?:is |are |am )?(?:severely |highly |mildly |very |also )?allergic to (?P<value>.+?)(?=$|, \w+ing\b"
            r"|,? (?:so|but|which|since|because|and (?:has|is|carries|can|must))\b)"
        ),
        question="What is {s} allergic to?",
        attribute="allergy",
        asked="What is the user allergic to?",
        answer="peanuts and shellfish",
    ),
    Pattern(
        "allergy",
        "User has a severe peanut allergy",
        said=(
            r"(?:has|have|suffers from|developed) (?:an? )?(?:severe |bad |mild |serious )?(?P<value>(?!severe"
            r"|bad)[\w -]+?) (?:allergy|allergies|intolerance)\b"
        ),
        question="What is {s} allergic to or intolerant of?",
        attribute="allergy",
        asked="What is the user allergic to or intolerant of?",
        answer="peanut",
    ),
    Pattern(
        "diet",
        "I have been vegan since college",
        said=(
            r"(?:is|am|are|became|has been|have been|went|has gone|turned|follows|eats)?(?: an?)? ?(?:strict "
            r"|mostly |strictly |also )?(?P<value>vegan|vegetarian|pescatarian|keto|gluten-free|halal|kosher|paleo"
            r"|dairy-free)\b(?! restaurant| food| cheese| dish| meal| recipe| bak)"
        ),
        question="What diet does {s} follow?",
        attribute="diet",
        asked="What diet does the user follow?",
        answer="vegan",
    ),
    Pattern(
        "speaks",
        "User speaks Spanish and Portuguese",
        said=(
            r"(?:can speak|speaks?|is fluent in|fluent in|is learning to speak) (?:fluent |some |a little "
            r"|conversational |basic )?(?P<value>.+?)(?=$| (?:at|with|because|fluently|well|but|and is|from)\b)"
        ),
        question="Which language does {s} speak?",
        attribute="language",
        asked="Which language does the user speak?",
        answer="Spanish and Portuguese",
    ),
    Pattern(
        "drives",
        "User drives a blue Skoda",
        said=rf"(?:currently )?(?:drives|drive) (?P<value>(?:an?|their|the) .+?){_END}",
        question="What does {s} drive?",
        attribute="car",
        asked="What does the user drive?",
        answer="a blue Skoda",
    ),
    Pattern(
        "studies",
        "User studies marine biology at Bergen",
        said=(
            r"(?:studies|study|studied|is studying|majors in|majored in|is majoring in|has a degree in"
            r"|has a PhD in|holds a degree in|is pursuing a degree in) (?P<value>(?!at |for |in the).+?)(?=$|,"
            r"| (?:at|in|because|and is|with|from|under|abroad|on|for)\b)"
        ),
        question="What subject does {s} study or hold a degree in?",
        attribute="field of study",
        asked="What subject does the user study or hold a degree in?",
        answer="marine biology",
    ),
    Pattern(
        "degree",
        "User has a master's degree in linguistics",
        said=(
            r"(?:has|have|holds?|earned|got|completed|is doing|is finishing|received|is pursuing) (?:an?|their|his"
            r"|her) (?P<kind>(?:[\w'-]+ )?(?:degree|PhD|diploma|doctorate|certificate"
            r"|master's|bachelor's|minor|major)) (?:in|on) (?P<value>(?!\d)[a-z][\w -]+?)(?=$|,| (?:at|from|in"
            r"|and)\b)"
        ),
        question="What does {s} have a {kind} in?",
        attribute="{kind}",
        asked="What does the user have a master's degree in?",
        answer="linguistics",
    ),
    Pattern(
        "school",
        "User graduated from Leeds in 2012",
        said=r"(?:graduated|has graduated) from (?P<value>.+?)(?=$|,| (?:in|with|and|last|summa)\b)",
        question="Where did {s} graduate?",
        attribute="school",
        asked="Where did the user graduate?",
        answer="Leeds",
    ),
    Pattern(
        "price",
        "The monthly rent is $1,450",
        said=(
            r"(?:is|was|are|costs?|comes to|amounts to|totals?|stands at|went up to|is set at"
            rf"|is capped at) (?:about |around |roughly |now |over |only )?(?P<value>{_MONEY})"
        ),
        question="How much is {s}?",
        attribute="amount",
        asked="How much is the monthly rent?",
        answer="$1,450",
    ),
    Pattern(
        "paid",
        "User paid €900 for the bike",
        said=(
            r"(?P<verb>paid|pays?|spent|spends?) (?:about |around |roughly "
            rf"|over )?(?P<value>{_MONEY})(?: (?P<rest>(?:for|on|in|per|a|each|every) .+))?"
        ),
        question="How much {do} {s} {verb:base} {rest}?",
        attribute="payment {rest}",
        asked="How much did the user pay for the bike?",
        answer="€900",
    ),
    Pattern(
        "earns",
        "User earns $85,000 a year",
        said=(
            r"(?P<verb>earns?|makes?|saves?|budgeted|earned|raised|donates?|donated|owes?|saved)"
            r"(?P<whom> (?:his|her|their|the)(?: [a-z]+){1,2})? (?:about "
            rf"|around |roughly |over )?(?P<value>{_MONEY})(?P<rest> (?:a|per|each|every|for|to|from) .+)?"
        ),
        question="How much {do} {s} {verb:base}{whom}{rest}?",
        attribute="amount {verb:base}",
        asked="How much does the user earn a year?",
        answer="$85,000",
    ),
    Pattern(
        "becoming",
        "User is training to be an electrician",
        said=rf"(?:is|am) (?P<verb>training|studying|learning) to (?:be|become) (?P<value>an? .+?){_END}",
        question="What is {s} {verb} to become?",
        attribute="becoming",
        asked="What is the user training to become?",
        answer="an electrician",
        of_persons=True,
    ),
    Pattern(
        "used to be",
        "Used to be a competitive swimmer",
        said=rf"used to be (?P<value>an? .+?){_END}",
        question="What did {s} use to be?",
        attribute="used to be",
        asked="What did the user use to be?",
        answer="a competitive swimmer",
        of_persons=True,
    ),
    Pattern(
        "has it how",
        "Likes his steak medium rare",
        said=(
            r"(?P<verb>likes|takes|drinks|prefers|eats) (?:his|her|their) (?P<kind>[a-z]+)"
            r" (?P<value>(?:black|white|rare|medium|well done|scrambled|fried|boiled|hot|cold|iced|strong|weak|spicy"
            r"|plain|sweet)\b[^,;]*)"
        ),
        question="How does {s} {verb:base} {own} {kind}?",
        attribute="how {kind}",
        asked="How does the user like their steak?",
        answer="medium rare",
    ),
    Pattern(
        "weighs",
        "The package weighs 12 kilos",
        said=r"(?P<verb>weighs?|measures?) (?P<value>.+?)(?=$|,| (?:and|when|after)\b)",
        question="How much does {s} {verb:base}?",
        attribute="size",
        asked="How much does the package weigh?",
        answer="12 kilos",
    ),
    Pattern(
        "tall",
        "User is 185 cm tall",
        said=r"(?:is|am|stands) (?P<value>\d[\w'\". ]*?) (?P<how>tall|long|wide|high|deep)\b",
        question="How {how} is {s}?",
        attribute="size",
        asked="How tall is the user?",
        answer="185 cm",
    ),
    Pattern(
        "takes",
        "The commute takes 40 minutes by train",
        said=(
            r"(?P<verb>takes?|lasts?|took|lasted) (?P<value>(?:about |over |around |roughly "
            r"|nearly )?(?:\d[\w.]*|an?|half an|two|three|four|five|six|ten|twenty) (?:and a half )?(?:minute|hour"
            r"|day|week|month|year)s?(?: and a half)?)(?: (?P<rest>by .+))?"
        ),
        question="How long {do} {s} {verb:base} {rest}?",
        attribute="duration",
        asked="How long does the commute take by train?",
        answer="40 minutes",
    ),
    Pattern(
        "afraid",
        "User is afraid of heights",
        said=(
            r"(?:is|are|am|was)? ?(?:really |very |quite |terribly |so |deathly )?(?P<how>afraid of|scared of"
            r"|terrified of|interested in|passionate about|proud of|good at|bad at|responsible for|obsessed with"
            r"|fond of|not keen on|tired of|worried about|nervous about|excited about|addicted to|keen on|into"
            r"|fascinated by|in charge of|known for|famous for|sensitive to|intolerant to|involved in|skilled in"
            r"|skilled at|certified in|trained in|a fan of|a huge fan of|a big fan of|a member of|a supporter of"
            r"|anxious about|jealous of|ashamed of|grateful for|prone to|made of|based on) (?P<value>.+?)(?=$|,"
            r"| (?:because|so|since|which|but|ever|that|as|when|where|after|during|to"
            r"|and (?:is|has|\w+s (?:to|the|a|it|that|them)))\b)"
        ),
        question="What is {s} {how}?",
        attribute="{how}",
        asked="What is the user afraid of?",
        answer="heights",
    ),
    Pattern(
        "is kin",
        "Marta is the user's ex-wife",
        said=rf"(?:is|was) (?:the user's|their|his|her) (?P<kind>(?:ex-|older |younger |best )?(?:{_KIN}))$",
        question="Who is the user's {kind}?",
        attribute="{kind}",
        asked="Who is the user's ex-wife?",
        answer="Marta",
        of_persons=True,
        asks_subject=True,
    ),
    Pattern(
        "is somebody's",
        "Rebecca is the godmother of their son",
        said=rf"(?:is|was) the (?P<kind>(?:{_KIN})) of (?:their|the user's) (?P<whose>[\w -]+)$",
        question="Who is the {kind} of the user's {whose}?",
        attribute="{kind} of {whose}",
        asked="Who is the godmother of the user's son?",
        answer="Rebecca",
        of_persons=True,
        asks_subject=True,
    ),
    Pattern(
        "favourite",
        "Dune is the user's favorite book",
        said=r"(?:is|was|are) (?:the user's|their|his|her) (?P<kind>favou?rite .+)",
        question="What is the user's {kind}?",
        attribute="{kind}",
        asked="What is the user's favorite book?",
        answer="Dune",
        asks_subject=True,
    ),
    Pattern(
        "diagnosed",
        "User was diagnosed with asthma in 2018",
        said=(
            r"(?:was diagnosed with|has been diagnosed with|suffers from|suffered from|is recovering from"
            r"|has(?= type \d)|has(?= chronic)) (?P<value>.+?)(?=$|,| (?:in|at|since|last|when|and"
            r"|as|during|for|by)\b)"
        ),
        question="What health problem does {s} have?",
        attribute="illness",
        asked="What health problem does the user have?",
        answer="asthma",
    ),
    Pattern(
        "wakes",
        "User wakes up at 5:30 every day",
        said=(
            r"(?P<verb>wakes up|gets up|wake up|get up|goes to bed|goes to sleep|go to bed|starts work|starts"
            r"|begins|opens|closes|ends|finishes work|leaves|leaves home|departs|arrives|starts their day"
            r"|eats dinner|has dinner|has lunch) (?:at|around|by|before) (?P<value>(?:about )?(?:\d[\d:]* ?(?:am"
            r"|pm|a\.m\.|p\.m\.|o'clock)?|noon|midnight|dawn|six|seven|eight|nine|ten|five|sunrise)\b)"
        ),
        question="At what time does {s} {verb:base}?",
        attribute="time of {verb}",
        asked="At what time does the user wake up?",
        answer="5:30",
    ),
    Pattern(
        "named",
        "My sister is named Ingrid",
        said=r"(?:is|was|are) (?:named|called) (?P<value>.+?)(?=$|,| (?:and|after)\b)",
        question="What is {own} name?",
        attribute="name",
        asked="What is the name of the user's sister?",
        answer="Ingrid",
    ),
)

COMPILED = tuple((pattern, re.compile(pattern.said, re.IGNORECASE)) for pattern in PATTERNS)
