"""Responses with known verdicts for each named judge prompt. They are part of no benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class CanaryCase:
    """A question with its gold answer and one response of each kind. The first two are right, the others wrong."""

    question: str
    gold: str
    verbatim: str
    """The unchanged gold answer; for a rubric, a response that fulfils all of it."""
    paraphrased: str
    vague: str
    """A long response on the topic that does not answer the question."""
    negated: str
    stale: str
    """An outdated value, or one of something similar."""
    refusal: str
    echo: str = ""
    """The question itself; "": not asked."""
    hedge: str = ""
    """The correct answer as one of several possibilities; "": not asked."""
    both: str = ""
    """Both options or values, without a choice; "": not asked."""
    partial: str = ""
    """A response that meets a part of a rubric's item; "": not asked. A judge that calls it fully met errs."""
    options: tuple[str, ...] = ()
    """The options of a question about an order; the gold is one of them with its label."""


RIGHT = ("verbatim", "paraphrased")
PARTIAL = "partial"
KINDS = tuple(field.name for field in fields(CanaryCase) if field.name not in ("question", "gold", "options"))

_DEFAULT = (
    CanaryCase(
        question="What instrument does Ines practise in the evenings?",
        gold="The cello",
        verbatim="The cello",
        paraphrased="In the evenings Ines sits down with her cello.",
        vague="Ines is fond of music and practises an instrument most evenings, something one learns as a child.",
        negated="Ines does not practise the cello.",
        stale="The recorder, as she did at school.",
        refusal="I'm sorry, I don't have enough information to answer that.",
    ),
    CanaryCase(
        question="How many bicycles has Tomasz repaired for his neighbours this year?",
        gold="Seven",
        verbatim="Seven",
        paraphrased="He has fixed 7 of his neighbours' bikes.",
        vague="Tomasz has repaired quite a few bicycles, as his neighbours are glad to tell.",
        negated="It was not seven bicycles.",
        stale="Four, by the end of spring.",
        refusal="I don't know.",
    ),
    CanaryCase(
        question="Where did Wanda leave the spare key to the greenhouse?",
        gold="Under the third flower pot to the left of the door",
        verbatim="Under the third flower pot to the left of the door",
        paraphrased="It is beneath the flower pot that is third on the left side of the door.",
        vague="She left it somewhere near the greenhouse where a gardener would think of looking.",
        negated="The key is not under the third flower pot to the left of the door.",
        stale="On the hook in the kitchen, where it always hung.",
        refusal="I can't say where the key is.",
    ),
    CanaryCase(
        question="Which two towns did the walking group visit on the long weekend?",
        gold="Kelso and Melrose",
        verbatim="Kelso and Melrose",
        paraphrased="They went to Melrose, and to Kelso as well.",
        vague="They visited two charming towns in the Borders, with an abbey and a market square.",
        negated="They visited neither Kelso nor Melrose.",
        stale="Kelso and Jedburgh, as in the year before.",
        refusal="There is nothing about that in my memory.",
    ),
)
_TEMPORAL = (
    CanaryCase(
        question="How many days passed between Ruth's interview and the offer?",
        gold="18 days",
        verbatim="18 days",
        paraphrased="The offer came eighteen days after the interview.",
        vague="Some time passed; such processes often take a few weeks in her line of work.",
        negated="It was not 18 days.",
        stale="9 days, as with the job before.",
        refusal="I don't know how many days passed.",
    ),
    CanaryCase(
        question="In which month did Pavel move into the houseboat?",
        gold="September",
        verbatim="September",
        paraphrased="He moved aboard in the ninth month, September.",
        vague="He moved when the weather allowed it and the mooring was free.",
        negated="Pavel did not move in September.",
        stale="In March, when he moved into the flat.",
        refusal="I have no information about when he moved.",
    ),
    CanaryCase(
        question="Which happened first, the flood in the cellar or the sale of the van?",
        gold="The sale of the van",
        verbatim="The sale of the van",
        paraphrased="The van had been sold before the cellar was flooded.",
        vague="Both happened within the same busy stretch of that year.",
        negated="The sale of the van did not come first.",
        stale="The flood in the cellar.",
        refusal="I can't tell which came first.",
    ),
    CanaryCase(
        question="How long had Amara been learning Greek when she flew to Crete?",
        gold="5 months",
        verbatim="5 months",
        paraphrased="She had been at it for five months by then.",
        vague="She had been learning for a while, enough to order a coffee.",
        negated="It had not been 5 months.",
        stale="2 years, as with her Italian.",
        refusal="That was never mentioned, as far as I remember.",
    ),
)
_KNOWLEDGE_UPDATE = (
    CanaryCase(
        question="What is Milos's phone plan called now?",
        gold="Unlimited Plus",
        verbatim="Unlimited Plus",
        paraphrased="He was on Basic 10 and has changed; the plan is now Unlimited Plus.",
        vague="He is on one of the common plans of his provider, which suits him well enough.",
        negated="His plan is not Unlimited Plus.",
        stale="Basic 10.",
        refusal="I don't know his phone plan.",
    ),
    CanaryCase(
        question="Where does the reading circle meet?",
        gold="At Hana's flat",
        verbatim="At Hana's flat",
        paraphrased="They moved from the library and now gather in Hana's apartment.",
        vague="They meet at a place that is easy to reach for all of them.",
        negated="They do not meet at Hana's flat.",
        stale="In the back room of the library.",
        refusal="I'm not able to answer this.",
    ),
    CanaryCase(
        question="How much does Oleg weigh?",
        gold="84 kg",
        verbatim="84 kg",
        paraphrased="After the summer he is down to eighty-four kilograms.",
        vague="He has been working on his weight and is content with how it goes.",
        negated="He does not weigh 84 kg.",
        stale="91 kg.",
        refusal="There is no record of his weight.",
    ),
    CanaryCase(
        question="Who looks after the twins on Thursdays?",
        gold="Their grandfather",
        verbatim="Their grandfather",
        paraphrased="It used to be a neighbour; on Thursdays grandpa minds the twins now.",
        vague="Somebody they trust looks after the twins, as on other days.",
        negated="Their grandfather does not look after them on Thursdays.",
        stale="Mrs Lind from next door.",
        refusal="I don't have that information.",
    ),
)
_RUBRIC = (
    CanaryCase(
        question="Can you suggest something for dinner tonight?",
        gold="The user is vegan and loves Thai food; the response should suggest vegan Thai dishes.",
        verbatim="Since you are vegan and love Thai food, how about a green curry with tofu, made without fish sauce?",
        paraphrased="A tom yum with mushrooms and no animal products would be just your kind of Thai evening.",
        vague="There are so many nice dishes one can cook in the evening; a warm meal is always a good idea.",
        negated="As you are not vegan and do not care for Thai food, roast a chicken tonight.",
        stale="You used to like steak with pepper sauce, so grill one tonight.",
        refusal="I'm sorry, I can't suggest dishes.",
    ),
    CanaryCase(
        question="What should I read on the train?",
        gold="The user has just begun to enjoy short crime novels set in Scandinavia and dislikes long books.",
        verbatim="You like Scandinavian crime and no long books, so take a crime novel from Oslo with 200 pages.",
        paraphrased="Take one of the slim Nordic mysteries that you have come to like; it will last just for the ride.",
        vague="A train ride is a fine time for reading. Choose a book whose cover speaks to you.",
        negated="You do not enjoy crime novels from Scandinavia, so take a thousand pages of Russian history.",
        stale="You were reading long fantasy series last year, so bring the next volume of 900 pages.",
        refusal="I don't know what you like to read.",
    ),
    CanaryCase(
        question="How should I train this week?",
        gold="The user is recovering from a knee injury and may swim but not run.",
        verbatim="With your knee still recovering, swim three times this week and leave the running out.",
        paraphrased="Go easy on that injured knee: the pool is fine, jogging has to wait.",
        vague="Regular movement is good for everybody. Set yourself a goal and stick to it.",
        negated="Your knee is not injured, so run ten kilometres every other day.",
        stale="You are preparing for the half marathon in spring, so add intervals on Wednesday and a long run.",
        refusal="I can't give advice about training.",
    ),
    CanaryCase(
        question="Any idea for my sister's birthday present?",
        gold="The sister has taken up pottery and already owns a wheel; a present for her pottery would be right.",
        verbatim="As your sister makes pottery and has a wheel, trimming tools or some glazes would please her.",
        paraphrased="She throws pots these days and has her wheel; some coloured glazes would be lovely.",
        vague="Presents that come from the heart are the best. Perhaps something she can use.",
        negated="Your sister does not do pottery, so nothing of that kind.",
        stale="She plays the guitar, so give her new strings.",
        refusal="I don't have any information on your sister.",
    ),
)
_ABSTENTION = (
    CanaryCase(
        question="What did Lena name her parrot?",
        gold="Lena spoke of a cat named Biscuit. She never mentioned a parrot.",
        verbatim="Lena spoke of a cat named Biscuit. She never mentioned a parrot.",
        paraphrased="I can't tell: there is talk of her cat Biscuit, but nothing about a parrot.",
        vague="Lena chose a cheerful name for it, as people do with birds.",
        negated="Lena did mention a parrot, and named it Mango.",
        stale="Biscuit.",
        refusal="I'd rather not talk about pets.",
    ),
    CanaryCase(
        question="How much did Goran pay for his motorbike?",
        gold="Goran told that he bought a motorbike, but not what it cost.",
        verbatim="Goran told that he bought a motorbike, but not what it cost.",
        paraphrased="The price was never mentioned, only that he bought one.",
        vague="He paid a fair price for a machine of that age.",
        negated="He told what it cost: 4,200 euros.",
        stale="1,900 euros, which is what the car had cost.",
        refusal="Money is a private matter, let us talk about something else.",
    ),
    CanaryCase(
        question="On which day does Sofia's swimming class take place?",
        gold="Sofia goes to a pottery class on Mondays; a swimming class does not occur.",
        verbatim="Sofia goes to a pottery class on Mondays; a swimming class does not occur.",
        paraphrased="There is no information about a swimming class; I only know of pottery on Mondays.",
        vague="It takes place once a week, in the evening hours.",
        negated="A swimming class does occur: it is on Fridays.",
        stale="On Mondays.",
        refusal="Please ask me another question.",
    ),
    CanaryCase(
        question="Which university did Kwame's brother attend?",
        gold="Only Kwame's own university is known; of a brother nothing was said.",
        verbatim="Only Kwame's own university is known; of a brother nothing was said.",
        paraphrased="That can't be answered from our conversations, which never touched on a brother.",
        vague="His brother attended a well-known university not far from home.",
        negated="It was said that his brother attended Leiden.",
        stale="Accra, where Kwame studied.",
        refusal="This request is outside of what I do.",
    ),
)
_RECALL = (
    CanaryCase(
        question="What is the name of Petra's rowing club?",
        gold="Blue Heron",
        verbatim="Blue Heron",
        paraphrased="She rows with the club called Blue Heron.",
        vague="Petra rows with a club on the river, most weekends when the weather allows it.",
        negated="It is not Blue Heron.",
        stale="Red Kite, the club of her sister.",
        refusal="I don't know the name of her club.",
        echo="What is the name of Petra's rowing club?",
        hedge="It could be Blue Heron, Red Kite or Grey Goose.",
    ),
    CanaryCase(
        question="How many chairs does the workshop have?",
        gold="14",
        verbatim="14",
        paraphrased="There are fourteen chairs in it.",
        vague="It has enough chairs for everybody who comes to a course.",
        negated="The workshop does not have 14 chairs.",
        stale="40.",
        refusal="That was not mentioned.",
        echo="You would like to know how many chairs the workshop has.",
        hedge="Perhaps 12, 13, 14 or 15.",
    ),
    CanaryCase(
        question="What does Ibrahim not eat?",
        gold="fish",
        verbatim="fish",
        paraphrased="Ibrahim does not eat fish.",
        vague="There is one food that he leaves on his plate.",
        negated="He does eat fish.",
        stale="Mushrooms.",
        refusal="The context provided doesn't contain details on this.",
        echo="What Ibrahim does not eat.",
        hedge="Fish, meat, eggs or nuts, one of these.",
    ),
    CanaryCase(
        question="Does Noor prefer meetings or written updates?",
        gold="written updates",
        verbatim="written updates",
        paraphrased="She would rather read than meet: updates in writing.",
        vague="She has a clear preference about how her team reports.",
        negated="Not written updates.",
        stale="Meetings over written updates.",
        refusal="I can't tell what she prefers.",
        echo="Noor prefers meetings or written updates.",
        hedge="Either meetings or written updates.",
    ),
)
_OTHER_TIMES = "\nValues of other times: "
_CONFLICT = (
    CanaryCase(
        question="In which town is Greta based now?",
        gold=f"Whitby{_OTHER_TIMES}Halifax; York",
        verbatim="Whitby",
        paraphrased="She lived in York before; now her home is Whitby.",
        vague="She lives in a town in the north, not far from the coast.",
        negated="Not Whitby.",
        stale="York.",
        refusal="I don't know where she lives now.",
        echo="In which town is Greta based now?",
        hedge="It could be Halifax, York or Whitby.",
        both="York and Whitby.",
    ),
    CanaryCase(
        question="What is the opening time of the bakery now?",
        gold=f"6:45{_OTHER_TIMES}7:30",
        verbatim="6:45",
        paraphrased="It used to open at half past seven, and since May at a quarter to seven.",
        vague="It opens early enough for people on their way to work.",
        negated="It does not open at 6:45.",
        stale="It opens at 7:30 now; it was 6:45 before.",
        refusal="There is no information about the opening time.",
        echo="The opening time of the bakery now.",
        hedge="Either 6:45 or 7:30.",
        both="6:45, 7:30.",
    ),
    CanaryCase(
        question="Who is Tariq's manager now?",
        gold=f"Ms Olsen{_OTHER_TIMES}Mr Duarte",
        verbatim="Ms Olsen",
        paraphrased="Olsen has taken over from Duarte as his manager.",
        vague="Somebody from his own department manages the team.",
        negated="Ms Olsen is not his manager.",
        stale="Mr Duarte.",
        refusal="I'm not sure who his manager is.",
        echo="You ask who Tariq's manager is now.",
        hedge="Ms Olsen or Mr Duarte, I can't say which.",
        both="Mr Duarte, Ms Olsen.",
    ),
    CanaryCase(
        question="What is Yuki's favourite tea now?",
        gold=f"rooibos{_OTHER_TIMES}Assam",
        verbatim="rooibos",
        paraphrased="Rooibos, ever since she gave up Assam.",
        vague="She has taken to a tea without caffeine, or so it seems.",
        negated="It is no longer rooibos.",
        stale="Assam is her favourite these days.",
        refusal="She never said.",
        echo="Yuki's favourite tea now.",
        hedge="Maybe Assam, maybe rooibos.",
        both="Assam and rooibos.",
    ),
)
_ORDER = tuple(
    CanaryCase(
        question=f"What happened {asked}? (A) {one}. (B) {other}.",
        gold=f"({label}) {one if label == 'A' else other}",
        verbatim=label,
        paraphrased=paraphrased,
        vague="",
        negated="",
        stale=f"({'B' if label == 'A' else 'A'})",
        refusal=f"I don't know which came {asked}.",
        echo=f"What happened {asked}? (A) {one}. (B) {other}.",
        hedge="It could have been A or B.",
        both=f"{one}, {other}",
        options=(one, other),
    )
    for asked, one, other, label, paraphrased in (
        ("first", "Vera sold the van", "The cellar was flooded", "A", "The van had gone before the water came in."),
        ("last", "Luis broke his arm", "Luis joined the choir", "A", "He sang in the choir before he broke the arm."),
        ("first", "The shop won a prize", "The oven arrived", "B", "The prize came after the oven."),
        ("last", "Mei adopted a cat", "Mei passed her exam", "B", "She had the cat already when she passed."),
    )
)
_RUBRIC_ITEM = (
    CanaryCase(
        question="When does the first stage of the garden project end, and what is done by then?",
        gold="The response should state that the first stage ends on 29 March and that the beds are dug by then.",
        verbatim="The first stage ends on 29 March. By then the beds are dug.",
        paraphrased="By March 29th, when stage one is over, you will have finished digging the beds.",
        vague="The garden project has several stages, and each of them ends with something that can be seen.",
        negated="The first stage does not end on 29 March, and the beds are not dug by then.",
        stale="",
        refusal="I'm sorry, I don't have enough information to answer that.",
        partial="The first stage ends on 29 March.",
    ),
    CanaryCase(
        question="Have I ever kept bees?",
        gold="The response should say that the statements contradict each other, and name both: that you never kept"
        " bees, and that you harvested honey from your own hive.",
        verbatim="Your statements contradict each other: you said that you never kept bees, and you also said that you"
        " harvested honey from your own hive. Which is right?",
        paraphrased="There is a conflict here. Once you told me you have never been a beekeeper, yet you also mentioned"
        " taking honey out of a hive of yours. Could you clarify?",
        vague="Bees are a recurring subject of our conversations, and you know a good deal about them.",
        negated="Yes, you kept bees; everything that you said about it agrees.",
        stale="",
        refusal="I don't know.",
        partial="You said that you never kept bees, so the answer is no.",
    ),
    CanaryCase(
        question="What should I have for breakfast before the race?",
        gold="The response should suggest a breakfast, and should not contain any nuts, because the user is allergic"
        " to them.",
        verbatim="Have porridge with berries and a banana; it contains no nuts.",
        paraphrased="Toast with jam and a glass of milk would be a light start, and safe with your allergy.",
        vague="Before a race, what one eats matters a lot, and so does when one eats it.",
        negated="Have a bowl of muesli with almonds, and a slice of bread with peanut butter.",
        stale="",
        refusal="I cannot say what you should eat.",
        partial="Have porridge with berries; a few chopped walnuts on top are optional.",
    ),
    CanaryCase(
        question="In which order did I mention the parts of the tool?",
        gold="The response should name these three in this order: the database, the login page, the export.",
        verbatim="You mentioned the database first, then the login page, then the export.",
        paraphrased="1) database 2) the page for signing in 3) exporting the data",
        vague="You mentioned the parts of the tool one after the other, over several conversations.",
        negated="You mentioned neither the database nor the login page nor the export.",
        stale="",
        refusal="There is nothing about that in what I have been given.",
        partial="You began with the database; then you spoke of the login page.",
    ),
)

CASES: Mapping[str, tuple[CanaryCase, ...]] = {
    "default": _DEFAULT,
    "temporal": _TEMPORAL,
    "knowledge-update": _KNOWLEDGE_UPDATE,
    "rubric": _RUBRIC,
    "rubric-item": _RUBRIC_ITEM,
    "abstention": _ABSTENTION,
    "recall": _RECALL,
    "conflict": _CONFLICT,
    "order": _ORDER,
}
