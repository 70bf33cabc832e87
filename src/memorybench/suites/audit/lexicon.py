"""Word lists: the verbs, prepositions and small words that reading a statement takes."""

from __future__ import annotations


def listed(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text.split()))


IRREGULAR_VERBS = """
be was been, become became become, begin began begun, bite bit bitten, blow blew blown, break broke broken,
bring brought brought, build built built, burn burnt burnt, buy bought bought, catch caught caught,
choose chose chosen, come came come, cost cost cost, cut cut cut, deal dealt dealt, do did done, draw drew drawn,
drink drank drunk, drive drove driven, eat ate eaten, fall fell fallen, feed fed fed, feel felt felt,
fight fought fought, find found found, fly flew flown, forget forgot forgotten, freeze froze frozen, get got gotten,
give gave given, go went gone, grow grew grown, have had had, hear heard heard, hide hid hidden, hit hit hit,
hold held held, hurt hurt hurt, keep kept kept, know knew known, lay laid laid, lead led led, learn learnt learnt,
leave left left, lend lent lent, let let let, lose lost lost, make made made, mean meant meant, meet met met,
pay paid paid, put put put, quit quit quit, read read read, ride rode ridden, ring rang rung, rise rose risen,
run ran run, say said said, see saw seen, sell sold sold, send sent sent, set set set, shake shook shaken,
shoot shot shot, show showed shown, shut shut shut, sing sang sung, sit sat sat, sleep slept slept, speak spoke spoken,
spend spent spent, split split split, stand stood stood, steal stole stolen, stick stuck stuck, strike struck struck,
swear swore sworn, swim swam swum, take took taken, teach taught taught, tear tore torn, tell told told,
think thought thought, throw threw thrown, understand understood understood, wake woke woken, wear wore worn,
win won won, withdraw withdrew withdrawn, write wrote written, rewrite rewrote rewritten, undergo underwent undergone,
spread spread spread, seek sought sought, bet bet bet, breed bred bred, weave wove woven,
sew sewed sewn, upset upset upset
"""
"""Base, past and participle."""

REGULAR_VERBS = listed("""
    acknowledge
    accept achieve acquire act adapt add admire adopt advise afford agree aim allow answer apologize appear apply
    appoint appreciate approve argue arrange arrive ask assist attend audit audition avoid award bake ban bank base
    battle believe belong bike bill board boil book borrow bother bottle box call camp cancel cap care carry cause
    celebrate change charge chase chat check clean climb close coach collect combine commit commute compete complain
    complete compose conduct confirm connect consider consist consume contact contain continue contribute convert
    cook cover crash crave create credit crochet cross cycle dance date deadlift debut decide declare decline
    decorate dedicate defer deliver depend deploy describe deserve design despise detest develop diagnose dine
    direct disagree discover discuss dislike distrust dive divorce donate download draft dread dream dress dye earn
    edit elect email embrace employ encourage end enjoy enrol enroll enter escape estimate examine exceed exercise
    exhibit expand expect expire explain explore express face fail fast favor favour fear feature file fill film
    finish fish fix focus follow force foster fund gain garden gather generate graduate greet grieve guess guide
    hand handle hang happen hate head heal help hike hire host identify import improve include increase ingest inherit
    injure inspire install intend interview introduce invest invite invoice involve jog join journal judge juggle
    jump kayak knit label lack land last laugh launch lease lecture license lift like limit list listen live load
    locate lock long look love maintain major manage march marry master measure mention mentor migrate mind miss
    move name need negotiate nickname notice nurse object occur offer onboard open operate oppose order organise
    organize outsource overcome owe own pack paint park participate pass perform photograph pick plan plant play
    plead polish post practice practise prefer prepare present prevent price print process produce program project
    promise promote propose protect prove provide publish purchase pursue question raise rate reach realise realize
    receive recommend record recover redecorate reduce refer refuse register regret rehearse relate relax release
    relocate rely remain remember remind remodel remove renew renovate rent repair repeat replace report represent
    request require rescue research resent reserve resign rest restore result retire return reveal review roast roll
    row run sail save schedule score search seem separate serve settle shadow share ship shop sign skate sketch ski
    skip smoke solve sort specialise specialize sponsor start stay step stop store stream stretch struggle study
    submit subscribe succeed suffer suggest supervise supply support surf surprise survive switch talk target taste
    tend test text thank total touch tour track trade train transfer translate travel treat trigger try turn tutor
    type unlock update upgrade use value visit volunteer vote wait walk want warn wash waste watch water weigh
    welcome wish wonder work worry wrap yearn admire advocate affect amaze announce appreciate attract balance bond
    boost brew brush calm capture challenge cheer clear clone comfort compliment congratulate cope create cuddle
    customise customize damage debate define delight depict detect disappoint display donate doubt emphasise
    emphasize empower engage entertain envision express fetch fuel highlight hint hook hug illustrate imagine impact
    impress incorporate influence inform inspect kick lighten manage meditate mend motivate
    nap narrate navigate nominate nurture observe obtain offer overlook paddle pitch plunge possess praise
    preserve press promise pull push quote recharge recite recycle reflect regard reignite reject rekindle resonate
    resolve respond resume reunite revise revisit revolve reward rush scare scrape select shape signal sip
    slip snap socialise socialize soothe spark stare state stir strengthen stress stumble surround sustain swap
    sympathise sympathize tackle tailor tease thrive toss trace transform transition trust unwind urge
    vacation validate venture view visualise visualize wander warm witness cherish assemble attempt
    voice blog
""")

ADVERBS = listed("""
    currently recently usually often always sometimes really also still already just now once normally typically
    generally mostly mainly originally previously formerly actually finally first secretly officially rarely
    occasionally regularly strongly especially probably definitely ultimately initially eventually absolutely only
    deeply greatly truly genuinely highly firmly fully simply constantly frequently
""")

CATENATIVES = frozenset(
    listed("""
    want plan hope need like love prefer intend expect try learn start begin continue hate wish dream agree decide
    promise refuse use tend aim manage stop finish keep enjoy avoid consider dread mean have go dislike offer struggle
    get
""")
)
"""Verbs that another verb may follow: plans to visit, enjoys swimming."""

PREPOSITIONS = frozenset(
    listed("""
    in on at to for with from about by as into near under during since until after before between through around
    against without within across behind toward towards onto over along beside besides inside outside alongside
    despite except throughout via upon among per
""")
)

CLAUSE_OPENERS = frozenset(
    listed("""
    because so but while when which who that where if although though unless whose whereas than whenever wherever
    instead rather including specifically particularly especially
""")
)

TIME_WORDS = frozenset(
    listed("""
    every each last next yesterday today tomorrow tonight twice daily weekly monthly yearly ago
""")
)

PLACE_VERBS = frozenset(
    listed("""
    live work move go fly travel grow study relocate commute stay drive walk settle return
""")
)

PLACE_MARKERS = frozenset(
    listed("""
    in at near to from on behind outside inside across
""")
)

OPINIONS = frozenset(
    listed("""
    think believe say feel find mention express emphasize suggest encourage ask tell realize realise remind
    describe know hope agree state note explain highlight stress see view regard imagine appreciate wish show
""")
)
"""Verbs after which comes a thought, no object."""

KIN = frozenset(
    listed("""
    sister brother son daughter wife husband partner mother father mom mum dad baby child kid kids children parents
    friend boss manager cousin aunt uncle niece nephew grandmother grandfather grandma grandpa girlfriend boyfriend
    fiancé fiancée fiance fiancee roommate flatmate neighbour neighbor colleague coworker therapist doctor dentist
    landlord landlady twin twins tutor teacher coach mentor assistant supervisor trainer stepson stepdaughter
    stepmother stepfather godson goddaughter godmother godfather grandson granddaughter spouse vet accountant lawyer
    physiotherapist tailor nanny apprentice godparent in-law bandmate teammate classmate workmate stepbrother
    stepsister grandparents penfriend
""")
)
"""Persons by what they are to somebody."""

ROLES = KIN | frozenset(
    listed("""
    lead leader man maid bridesmaid babysitter gardener cleaner plumber electrician builder hairdresser barber agent
    editor captain director nurse surgeon physio instructor rider singer drummer bassist guitarist author
    neighbour's president secretary treasurer chair host guide owner winner idol hero
""")
)
"""Attributes whose value is a person, where it looks like a name."""

PETS = frozenset(
    listed(
        "dog cat puppy kitten parrot rabbit hamster horse turtle tortoise goldfish bird lizard snake pet pony goat hen"
    )
)

BELONGINGS = frozenset(
    listed("""
    salary mortgage nationality favourite favorite birthday phone passport email address hometown car laptop hobby
    hobbies job employer height weight diet rent blood age name commute bedtime religion landline allergy allergies
""")
)
"""What a note leaves unsaid whose it is."""

MASS_NOUNS = frozenset(
    listed("""
    gaming reading music art yoga meditation nature writing painting dancing cooking exercise coffee tea sushi bread
    churn revenue
""")
)

STATES = frozenset(
    listed("""
    allergic afraid interested vegetarian vegan fluent married engaged born raised based divorced unemployed
    nearsighted left-handed right-handed retired single widowed pregnant keen scared pescatarian colour-blind
    lactose-intolerant
""")
) | {"lactose intolerant", "gluten intolerant", "color blind"}
"""What a note says of its subject without an is."""

RELATIONAL = frozenset(
    listed("""
    passion love interest key keys trip fear desire need respect gratitude admiration excitement appreciation
    commitment dedication visit advice tip tips ticket tickets journey lease degree career tour invitation letter
    email book books movie movies film films series song songs video videos documentary documentaries post posts
    poster message story stories article show connection experience experiences conversation idea ideas feeling
    sense talent knack taste opportunity chance support help gig job role position campaign enthusiasm concern
    curiosity belief faith pride joy comfort inspiration motivation access introduction answer reply reaction
    solution recipe recipes class classes course courses lesson lessons workshop vacation flight move return drive
    addition attention knowledge moments memories novel blog article articles subscription membership contract
    contest competition painting picture pictures photo photos play musical talk talks chat discussion project
    projects event room space place home gift present prize award scholarship
""")
)
"""Nouns that what follows them belongs to: a passion for dance, the keys to the house."""

PEOPLE = KIN | frozenset(
    listed("friends workmates colleagues family neighbours neighbors buddies kids ladies students coworkers teammates")
)

ADJECTIVES = frozenset(
    listed("""
    new first second last next old big small good great little other bit few own early late super nice bad best
    better worse worst favourite favorite happy sad tough hard easy real true full free young long short high low
    important cool awesome amazing fun funny special unique strong weak warm cold hot safe close open huge tiny
    beautiful gorgeous cute pretty lovely excited proud grateful supportive enthusiastic different similar same
    personal local dear whole entire main major minor certain various several extra delicious fresh comfortable
    familiar necessary possible recent upcoming current past future positive negative creative passionate emotional
    mental physical professional social digital stunning breathtaking inspiring rewarding challenging calming
    relaxing exciting interesting motivated inspired dedicated determined stressed overwhelmed thrilled blessed
    lucky loud quiet calm busy tired sick healthy crazy deep wide rich poor smart clever kind rough regional overall
    newest difficult varied honest brave bold bright dark light heavy thick thin soft sweet sour quick fast slow
    seasick okay fine black white red green blue rare pregnant sure ready glad worried nervous lonely alone alive
    aware able likely afraid
""")
)
"""Adjectives that nobody remembers a thing by, and that are no answer to what."""
