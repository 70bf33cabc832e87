"""What can be asked that a conversation does not tell, as data.

Beside each question stand what it is about and the words that would give an answer to it, or bear out its premise. It
is asked only of conversations in which none of them stands anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from .lexicon import listed


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    question: str
    words: str


TOPICS = (
    Topic("shoe size", "What is {own} shoe size?", "shoe shoes sneakers boots feet"),
    Topic("blood type", "What is {own} blood type?", "blood donor transfusion"),
    Topic("middle name", "What is {own} middle name?", "middle initial"),
    Topic("star sign", "What is {own} star sign?", "zodiac horoscope astrology aries taurus gemini leo virgo libra"),
    Topic("instrument", "Which musical instrument does {s} play?",
          "music musical instrument piano guitar violin cello drums flute band orchestra ukulele saxophone trumpet"),
    Topic("tattoo", "What does {own} tattoo show?", "tattoo ink inked"),
    Topic("heart rate", "What is {own} resting heart rate?", "heartbeat pulse resting cardiologist bpm"),
    Topic("first pet", "What was the name of {own} childhood pet?", "childhood pet dog cat puppy kitten hamster"),
    Topic("car", "What colour is {own} car?", "car vehicle drive driving colour color van truck sedan suv"),
    Topic("library", "Which book is {s} reading?", "book books read reading novel author library chapter"),
    Topic("team", "Which football club does {s} support?", "football soccer club team fan league match"),
    Topic("chess", "What is {own} chess rating?", "chess elo rating rated"),
    Topic("phone", "Which model of phone does {s} use?", "phone smartphone iphone android mobile samsung"),
    Topic("perfume", "Which perfume does {s} wear?", "perfume fragrance cologne scent"),
    Topic("bank", "Which bank does {s} have an account with?", "bank banking savings"),
    Topic("dentist", "Who is {own} dentist?", "dentist dental teeth tooth"),
    Topic("school", "Which primary school did {s} go to?", "primary pupil classmate elementary"),
    Topic("accent", "In which accent does {s} speak?", "accent dialect"),
    Topic("sunglasses", "What brand are {own} sunglasses?", "sunglasses shades"),
    Topic("gym", "Which gym is {s} a member of?", "gym fitness workout membership member"),
    Topic("coffee", "How does {s} take their coffee?", "coffee espresso latte caffeine cappuccino"),
    Topic("wifi", "What is {own} wifi password?", "wifi password router network internet"),
    Topic("wedding song", "Which song was played at {own} wedding?", "wedding song married marriage bride groom"),
    Topic("podcast", "Which podcast does {s} listen to?", "podcast episode listen radio"),
    Topic("insurance", "Which company is {own} insurance with?", "insurance insured insurer"),
    Topic("scar", "How did {s} get their scar?", "scar stitches wound"),
    Topic("lottery", "Which lottery numbers does {s} play?", "lottery jackpot gamble"),
    Topic("passport", "In which year does {own} passport expire?", "passport visa"),
    Topic("hairdresser", "Who cuts {own} hair?", "hair haircut hairdresser barber salon stylist"),
    Topic("superstition", "Which superstition does {s} hold?", "superstition superstitious jinx"),
    Topic("ringtone", "What is {own} ringtone?", "ringtone"),
    Topic("recipe", "Whose recipe does {s} use for pancakes?", "pancakes recipe breakfast batter"),
    Topic("plant", "Which plant stands on {own} windowsill?", "plant windowsill houseplant flower cactus"),
    Topic("newspaper", "Which newspaper does {s} subscribe to?", "newspaper subscribe subscription gazette magazine"),
)  # fmt: skip

PREMISES = (
    Topic("boat", "Why did {s} sell the boat?", "boat yacht sailing sail"),
    Topic("choir", "Why did {s} leave the choir?", "choir sing singing singer chorus"),
    Topic("iceland", "Why did {s} cancel the trip to Iceland?", "iceland reykjavik"),
    Topic("cello", "When did {s} return the rented cello?", "cello"),
    Topic("marathon", "Why did {s} drop out of the marathon?", "marathon"),
    Topic("landlord", "Why did {s} sue the landlord?", "landlord sue sued lawsuit lawyer tenant"),
    Topic("beehive", "Where did {s} put the second beehive?", "bee bees beehive hive honey beekeeper"),
    Topic("telescope", "Who gave {s} the telescope?", "telescope astronomy stargazing observatory"),
    Topic("caravan", "How much did {s} get for the caravan?", "caravan camper campervan motorhome"),
    Topic("speech", "What did {s} say in the eulogy?", "eulogy funeral mourning"),
    Topic("burglary", "What was stolen in the burglary at {own} place?", "burglary burglar stolen theft robbed"),
    Topic("twins", "How did {s} name the twins?", "twin twins triplets"),
    Topic("kiln", "Why did {s} send the kiln back?", "kiln pottery ceramics clay"),
    Topic("motorbike", "How did {s} crash the motorbike?", "motorbike motorcycle crash crashed scooter"),
    Topic("election", "By how many votes did {s} lose the election?", "election elected vote candidate"),
    Topic("greenhouse", "Who built the greenhouse for {s}?", "greenhouse conservatory glasshouse"),
    Topic("tenant", "Why did {s} evict the lodger?", "lodger evict evicted tenant subtenant"),
    Topic("audition", "Which role did {s} get at the audition?", "audition casting cast theatre theater acting actor"),
    Topic("knee", "Which surgeon operated on {own} knee?", "knee surgeon surgery operated"),
    Topic("patent", "What is the number of {own} patent?", "patent invention invented inventor"),
    Topic("vineyard", "How many bottles did {own} vineyard give?", "vineyard grapes winery"),
    Topic("parachute", "Where did {s} make the parachute jump?", "parachute skydive skydiving"),
    Topic("fine", "What was the speeding ticket that {s} got for?", "speeding police officer"),
    Topic("flood", "What did the flood in {own} cellar destroy?", "flood flooded flooding cellar basement"),
)  # fmt: skip

SIBLINGS = tuple(
    listed(group)
    for group in (
        "dog cat parrot rabbit hamster tortoise goldfish ferret canary",
        "sister brother cousin aunt uncle niece nephew stepbrother godmother",
        "son daughter grandson granddaughter stepson goddaughter",
        "mother father grandmother grandfather stepmother godfather",
        "wife husband girlfriend boyfriend",
        "manager boss mentor assistant supervisor intern accountant",
        "piano guitar violin cello trumpet flute clarinet harp",
        "car motorbike van caravan tractor scooter",
        "book film painting play musical",
        "breakfast lunch dinner",
        "school university kindergarten",
        "tennis football cricket badminton hockey volleyball",
        "colour season flower",
        "color season flower",
    )
)
"""Things that a careless memory takes for one another."""

RELATIVES = listed("aunt nephew godmother stepbrother grandson landlady penfriend stepdaughter")
NAMES = listed("Ottilie Lorcan Benedikt Samira Yevgenia Takumi Rosalind Ignacio Freya Desmond")
