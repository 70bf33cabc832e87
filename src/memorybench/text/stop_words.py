"""Stop words: for English one list for each purpose, for other languages one."""

from __future__ import annotations


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.casefold().split())


FUNCTION_WORDS = _word_set("""
    a an the this that these those and or but so if then as because while
    i me my mine you your yours he him his she her hers it its we our ours they them their theirs
    am is are was were be been being do does did doing have has had having can could would should shall must
    at by for from in into of off on onto out to up with about during through
    what when where which who whom whose why how there here
    any some all both each such very too also just only d ll m re s ve
""")
"""Words that do not change what a fact says: articles, prepositions and other function words, and endings such as 's.

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
"""English words that reveal no answer when a question contains them, such as "user" and "name"."""

STOP_WORDS_BY_LANGUAGE = {
    "de": _word_set("""
        der die das den dem des ein eine einen einem einer eines kein keine keinen keinem keiner keines
        und oder aber denn weil dass wenn als ob wie so auch nur noch schon sehr nicht mehr immer oft
        ich mich mir mein meine meinen meinem meiner meines du dich dir dein deine er ihn ihm sein seine seinen seinem
        seiner seines sie ihr ihre ihren ihrem ihrer ihres es wir uns unser unsere man sich selbst
        dieser diese dieses diesen diesem jeder jede jedes jeden jedem alle beide etwas
        bin bist ist sind war waren wird werden wurde wurden hat haben habe hatte hatten kann können muss soll will
        ab am an ans auf aus bei beim bis durch für gegen im in ins mit nach ohne seit über um unter vom von vor wegen
        während zu zum zur zwischen
        wer wen wem wessen was wann wo wohin woher warum wieso welche welcher welches welchen welchem wieviel viele viel
        da dort hier dann jetzt nun zurzeit derzeit aktuell gerade momentan heute
        nutzer nutzers nutzerin benutzer benutzers benutzerin name namens heißt heißen hieß genannt
    """),
    "fr": _word_set("""
        le la les l un une des du de d au aux et ou mais car donc ni que qu qui quoi dont où si comme ne n pas plus
        je j me m moi mon ma mes tu te t toi ton ta tes il elle on se s soi son sa ses nous notre nos vous votre vos ils
        elles leur leurs lui eux ce c cet cette ces cela ça y en
        suis es est sommes êtes sont était étaient être été ai as a avons avez ont avait avaient avoir fait
        à dans par pour sur sous avec sans chez vers depuis pendant entre avant après jusqu jusque contre
        quel quelle quels quelles quand comment pourquoi combien lequel laquelle
        très aussi encore toujours souvent tout toute tous toutes autre autres même actuellement maintenant aujourd hui
        utilisateur utilisatrice nom appelle nommé nommée appelé appelée
    """),
    "es": _word_set("""
        el la los las lo un una unos unas y e o u pero porque que si como ni no ya más muy también todavía siempre
        yo me mí mi mis tú te ti tu tus él ella ello se sí su sus nosotros nos nuestro nuestra vosotros os ellos ellas
        les le este esta esto estos estas ese esa eso esos esas aquel aquella
        soy eres es somos son era eran fue fueron ser sido estoy está están estaba estar he has ha han había haber hay
        a al ante bajo con contra de del desde durante en entre hacia hasta para por según sin sobre tras
        qué quién quiénes cuál cuáles cuándo cuánto cuánta cuántos cuántas cómo dónde adónde
        quien cual cuando cuanto donde otro otra otros otras todo toda todos todas mismo misma ahora actualmente hoy
        usuario usuaria nombre llama llaman llamado llamada
    """),
}
"""Words of other languages that reveal no answer when a question contains them, by ISO 639 code."""
