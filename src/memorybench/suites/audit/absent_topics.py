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
    Topic("shoe size", "What is {own} shoe size?",
          "shoe shoes sneakers boots feet foot trainers heels sandals size footwear"),
    Topic("blood type", "What is {own} blood type?", "blood donor transfusion"),
    Topic("middle name", "What is {own} middle name?", "middle initial"),
    Topic("star sign", "What is {own} star sign?",
          "zodiac horoscope astrology aries taurus gemini cancer leo virgo libra scorpio sagittarius capricorn"
          " aquarius pisces"),
    Topic("instrument", "Which musical instrument does {s} play?",
          "music musical instrument piano guitar violin viola cello drums drummer flute band orchestra ukulele"
          " saxophone trumpet trombone clarinet harp bass banjo oboe bassoon keyboard organ accordion harmonica"
          " recorder mandolin sitar bagpipes tuba concert ensemble strings strum"),
    Topic("tattoo", "What does {own} tattoo show?", "tattoo ink inked"),
    Topic("heart rate", "What is {own} resting heart rate?", "heartbeat pulse resting cardiologist bpm"),
    Topic("first pet", "What was the name of {own} childhood pet?",
          "childhood pet pets dog cat puppy kitten hamster rabbit goldfish tortoise budgie pony guinea labrador"
          " terrier retriever poodle spaniel beagle collie shepherd dachshund"),
    Topic("car", "What colour is {own} car?",
          "car vehicle drive driving colour color van truck sedan suv hatchback estate tesla toyota volvo ford"
          " honda audi bmw"),
    Topic("library", "Which book is {s} reading?",
          "book books read reading novel author library chapter kindle audiobook"),
    Topic("team", "Which football club does {s} support?",
          "football soccer club team fan league match support supporter season stadium derby goal striker cup"
          " arsenal chelsea liverpool everton tottenham united barcelona madrid bayern juventus milan"),
    Topic("chess", "What is {own} chess rating?", "chess elo rating rated"),
    Topic("phone", "Which model of phone does {s} use?",
          "phone smartphone iphone android mobile samsung pixel handset nokia"),
    Topic("perfume", "Which perfume does {s} wear?",
          "perfume fragrance cologne scent eau chanel dior guerlain aftershave smell spritz"),
    Topic("bank", "Which bank does {s} have an account with?", "bank banking savings account mortgage"),
    Topic("dentist", "Who is {own} dentist?", "dentist dental teeth tooth"),
    Topic("school", "Which primary school did {s} go to?",
          "primary pupil classmate elementary school schooldays kindergarten"),
    Topic("accent", "Which accent does {s} speak with?", "accent dialect"),
    Topic("sunglasses", "What brand are {own} sunglasses?", "sunglasses shades"),
    Topic("gym", "Which gym is {s} a member of?", "gym fitness workout membership member crossfit pilates weights"),
    Topic("coffee", "What does {s} put into coffee?", "coffee espresso latte caffeine cappuccino"),
    Topic("wifi", "What is {own} wifi password?", "wifi password router network internet"),
    Topic("wedding song", "Which song was played at {own} wedding?", "wedding song married marriage bride groom"),
    Topic("podcast", "Which podcast does {s} listen to?", "podcast episode listen radio"),
    Topic("insurance", "Which company is {own} insurance with?", "insurance insured insurer"),
    Topic("scar", "Where does {s} have a scar?", "scar stitches wound"),
    Topic("lottery", "Which lottery numbers does {s} play?", "lottery jackpot gamble"),
    Topic("passport", "When does {own} passport expire?", "passport visa"),
    Topic("hairdresser", "Who is {own} hairdresser?", "hair haircut hairdresser barber salon stylist"),
    Topic("superstition", "Which superstition does {s} hold?", "superstition superstitious jinx"),
    Topic("ringtone", "What is {own} ringtone?", "ringtone"),
    Topic("recipe", "Where does {s} keep the pancake recipe?", "pancakes recipe breakfast batter"),
    Topic("plant", "Which plant is on {own} windowsill?", "plant windowsill houseplant flower cactus"),
    Topic("newspaper", "Which newspaper does {s} subscribe to?", "newspaper subscribe subscription gazette magazine"),
    Topic("alarm", "When does {own} alarm ring?", "alarm wake waking snooze"),
    Topic("cleaner", "Who is {own} cleaner?", "cleaner cleaning housekeeper maid"),
    Topic("piercings", "How many piercings does {s} have?", "piercing pierced earring earrings"),
    Topic("stamps", "How many stamps does {s} have in the album?", "stamp stamps album philately"),
    Topic("sauna", "Where does {s} go for a sauna?", "sauna steam spa"),
    Topic("parking", "How much is {own} parking permit?", "parking permit"),
)  # fmt: skip

PREMISES = (
    Topic("boat", "What did {s} sell together with the boat?", "boat boating yacht sailing sail sailor ship marina"),
    Topic("choir", "When did {s} leave the choir?", "choir sing singing singer chorus vocal"),
    Topic("iceland", "Why did {s} cancel the trip to Iceland?", "iceland reykjavik"),
    Topic("cello", "When did {s} return the rented cello?", "cello orchestra strings"),
    Topic("marathon", "What did {s} win in the marathon?", "marathon run running runner jog jogging race"),
    Topic("landlord", "Why did {s} sue the landlord?",
          "landlord landlady sue sued lawsuit lawyer tenant rent court legal"),
    Topic("beehive", "Where did {s} put the second beehive?", "bee bees beehive hive honey beekeeper beekeeping"),
    Topic("telescope", "Where did {s} buy the telescope?", "telescope astronomy stargazing observatory stars"),
    Topic("caravan", "How much did {s} get for the caravan?", "caravan camper campervan motorhome rv"),
    Topic("speech", "What did {s} say in the eulogy?", "eulogy funeral mourning buried burial"),
    Topic("burglary", "What did the burglars take from {own} place?",
          "burglary burglar burglars stolen steal theft thief robbed robbery broke break intruder took"),
    Topic("twins", "What did {s} name the twins?", "twin twins triplets"),
    Topic("kiln", "Why did {s} send the kiln back?", "kiln pottery ceramics clay"),
    Topic("motorbike", "Where did {s} crash the motorbike?", "motorbike motorcycle crash crashed scooter accident"),
    Topic("election", "How many votes did {s} get in the election?",
          "election elected vote votes voter voting candidate campaign campaigning politics political"
          " politician office mayor council ballot"),
    Topic("greenhouse", "Who is building the greenhouse for {s}?", "greenhouse conservatory glasshouse"),
    Topic("tenant", "Why did {s} evict the lodger?", "lodger evict evicted tenant subtenant"),
    Topic("audition", "Which role did {s} get at the audition?",
          "audition auditioned casting cast theatre theater acting actor actress drama role stage"),
    Topic("knee", "Who was the surgeon for {own} knee?", "knee surgeon surgery operated operation"),
    Topic("patent", "What is {own} patent number?", "patent invention invented inventor"),
    Topic("vineyard", "How many bottles did {own} vineyard give?", "vineyard grapes winery wine"),
    Topic("parachute", "Where did {s} make the parachute jump?", "parachute skydive skydiving"),
    Topic("fine", "What did {s} get the speeding ticket for?", "speeding police officer fined"),
    Topic("flood", "What did the flood in {own} cellar destroy?", "flood flooded flooding cellar basement"),
    Topic("allotment", "What does {s} grow in the rented allotment?",
          "allotment grow growing garden gardening vegetables"),
    Topic("parrot", "What does {own} parrot say?", "parrot macaw budgie cockatoo"),
    Topic("college", "What does {s} teach at the evening college?", "teach teaching teacher college lecture lecturer"),
    Topic("lighthouse", "Where is the lighthouse that {s} owns?", "lighthouse"),
    Topic("antiques", "Who is {own} partner in the antiques shop?", "antique antiques"),
    Topic("fencing", "When did {s} win the fencing title?", "fencing fencer foil sabre epee"),
)  # fmt: skip

SIBLINGS = tuple(
    listed(group)
    for group in (
        "dog cat parrot rabbit hamster tortoise goldfish ferret canary",
        "sister aunt niece godmother stepsister",
        "brother uncle nephew godfather stepbrother",
        "son grandson stepson godson",
        "daughter granddaughter stepdaughter goddaughter",
        "mother grandmother stepmother",
        "father grandfather stepfather",
        "wife girlfriend",
        "husband boyfriend",
        "manager boss mentor assistant supervisor intern accountant",
        "piano guitar violin cello trumpet flute clarinet harp",
        "car motorbike van caravan tractor scooter",
        "book film painting musical",
        "breakfast lunch dinner",
        "school university kindergarten",
        "tennis football cricket badminton hockey volleyball",
    )
)
"""Nouns of one kind, and of one gender, that a careless memory takes for one another."""

RELATIVES = {
    "f": listed("aunt godmother landlady stepdaughter stepsister"),
    "m": listed("nephew stepbrother grandson godson penfriend"),
}
NAMES = {"f": listed("Ottilie Samira Yevgenia Rosalind Freya"), "m": listed("Lorcan Benedikt Takumi Ignacio Desmond")}
