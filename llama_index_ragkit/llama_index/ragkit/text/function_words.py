"""Words that are about nothing: function words by language, interjections, contractions, dates, and words of programs.

Function words (articles, pronouns, prepositions and the like) identify the language of a text, begin sentences without
being names, and separate the phrases of scripts without capitals. The lists are short on purpose: the most common
words, none of which is a frequent name. The others have capitals in dialogue ("Oh", "I'm"), in dates ("June 2017") and
in code ("None"), but nobody asks for them.
"""

import calendar
import re
from collections import Counter
from collections.abc import Iterable

from llama_index.ragkit.text.characters import LETTER, script_of
from llama_index.ragkit.text.sentences import language_of

__all__ = [
    "FUNCTION_WORDS",
    "function_words",
    "in_another_language",
    "is_aside",
    "is_date",
    "is_filler",
    "is_name",
    "language_votes",
    "written_language",
]

# ISO 639-1 code -> words. English comes first because ties go to the first.
_TEXTS = {
    "en": """
the a an this that these those he it she they we you i his her its their our my your in on at by for from to of with as
and or but if when while where who whom whose which what why how after before during since until upon although though
because so then there here however also both each some many most several all no not one two is are was were be been am
do does did has have had can could may might will would shall should must than about into over between through such
later meanwhile finally originally eventually subsequently previously initially recently currently
""",
    "cs": """
a aby ale ani až bez bude by byl byla bylo byly co do dne ho i ja jak jako je jeho její jejich jen ještě jeho již jsem
jsou k kde kdo kdy která které který kteří když ke má mezi na nad ne než nebo o od po pod podle pro proti před při s se
si tak také tento to tím u v ve však z za ze že
""",
    "da": """
af at da de den der det dette du efter eller en er et for fra han hans har havde hun hvad hvem hvilken hvilket hvor
hvordan hvorfor hvornår i ikke ind jeg kan kun man med meget men mod måtte ned nogle nu når og også om op over på
sin skal som til ud under var ved vi vil være været
""",
    "de": """
aber als am an auch auf aus bei beim bis da damit dann das dass dem den denen der deren des dessen die dies diese dieser
dieses doch durch ein eine einem einen einer eines er es für gegen hat hatte hatten ich ihm ihn ihr ihre ihrem ihren
ihrer im in ins ist jedoch kann kein keine können man mehr mit nach nicht noch nur ob oder ohne sehr sein seine seinem
seinen seiner seit sich sie sind so sowie um und unter vom von vor wann war waren warum was welche welchem welchen
welcher welches wenn wer werden wie wir wird wo wurde wurden während zu zum zur zwischen über
""",
    "es": """
a al como con cuando cuál cuáles cuándo cuánto cuántos cómo de del desde donde dónde durante e el ella ellos en entre
era eran es esta este esto estos está están fue fueron ha hace hacia han hasta hay la las le les lo los me mientras más
muy no nos o para pero por porque que quien quién quiénes qué se ser si sin sobre son su sus también un una unas uno
unos y ya
""",
    "fi": """
ei eivät että he hän hänen ja jo joka joiden joissa jonka jos jossa jota jotka kanssa koska kuin kuinka kuka kun ketkä
mikä miksi millainen milloin minkä missä mitä mutta mukaan myös ne niin niiden niitä noin ole oli olivat olla on ovat
se sen sekä siitä sillä sitä tai tämä tämän vain voi vuonna yli
""",
    "fr": """
a ainsi au aux avec car ce ces cet cette ceux comme comment dans de depuis des donc dont du elle elles en entre est et
ils il était étaient été être fut furent je la le les leur leurs lors lui mais même ne non nos notre nous on ont ou où
par pas pendant plus pour pourquoi quand que quel quelle quelles quels qui quoi sa sans se selon ses si son sont sous
sur tandis très un une vers vous à
""",
    "hu": """
a az egy és hogy is nem volt voltak van vannak ez ezt azt aki amely amelyek ami azonban be csak de ha hol hogyan ki
kik kinek között le már még meg mely melyik mert mi mikor mint miért mit nagyon ne pedig szerint után vagy
""",
    "it": """
a ai al alla alle allo anche che chi ci col come con cosa così cui da dagli dai dal dalla dalle degli dei del dell della
delle dello di dopo dove durante e ed era erano essere fu furono gli ha hanno i il in la le lo loro ma mentre nei
nel nella nelle non o per perché più poi prima quale quali quando quanti quanto questa questo qui se sono su sua sue sui
sul sulla suo suoi tra un una uno è
""",
    "nl": """
aan al als bij dan dat de deze die dit doch door een en er geen had hadden heeft het hij hoe hoeveel hun ik in is kan
maar meer met na naar niet nog nu of om onder ook op over sinds te tegen tijdens toch tot uit van vanaf voor waar
waarom wanneer waren was wat welk welke werd werden wie wordt ze zich zij zijn zoals zou
""",
    "no": """
av at ble da de den der det dette du eller en er et etter for fra han hans har hadde hun hva hvem hvilken hvilket hvor
hvordan hvorfor i ikke jeg kan kun man med men mot ned noen nå når og også om opp over på seg sin skal som til under
ut var ved vi vil være vært
""",
    "pl": """
a aby ale bez był była było były być co czy dla do gdy gdzie go i ich ile jak jaka jaki jakie jako jego jej jest jeszcze
już kiedy kto która które którego której który którzy lub ma mu na nad nie o od oraz po pod podczas poza przed przez
przy roku się są ta tak także tam te tego tej ten to tych tylko tym w we więc z za zaś ze że
""",
    "pt": """
a ao aos as até com como da das de depois desde do dos durante e ela elas ele eles em entre era eram essa esse esta este
estava está foi foram há isso isto já lhe mais mas muito na nas no nos não o onde os ou para pela pelas pelo pelos
por porque qual quais quando quantos quanto que quem se sem ser seu seus sobre sua suas são também um uma à às é
""",
    "ro": """
a ai al ale acest această aceste acestui acum au ca cand care ce cel cele cine cu cum când cât câte câți căci de deci
decât deoarece din după dar este el ea ei ele era erau fi fie fost fără iar in la le lor lui mai mult nu o pe pentru
prin sa sau se spre sub sunt un una unde unei unor unui va în între și
""",
    "ru": """
а без более бы был была были было быть в вам вас во все всё вы где да для до его ее её если есть еще ещё же за и из или
им их к как какая какие каким каких какого какое какой каком какую ко когда кого который которая которые которого
которой кем кому кто куда ли либо между меня мне много может мы на над не него нее неё нет ни них но о об однако он она
они оно от откуда по под после потому почему при про с сколько со так также такой там тем то тоже только у уже хотя чего
чей чем что чтобы чьё чья эта эти это этого этой этом этот я
""",
    "sv": """
alla att av de dem den denna deras dess det detta där då efter eller en ett från för ha hade han hans har hon hur i
icke inte jag kan kunde man med men mot mycket ned nu någon när och också om på sedan sig sin ska skulle som till under
upp ut vad var vara varför vart varit vem vid vilka vilken vilket över är
""",
    "tr": """
acaba ama ancak bir biri bu bunu çok da daha de diye en gibi göre hangi hem her hiç için ile ise kadar kaç ki kim kimin
mi mu mı mü nasıl ne neden nedir nerede nereye niçin o olan olarak oldu olduğu olduğunu onu onun sonra şu tarafından
üzere ve veya ya yani
""",
    "uk": """
а без би був була були було бути в від вона вони воно все вся він де для до з за зі і із й його її їх кого коли котрий
ким кому ми на над не ні ним них о однак он по при про під після та також там те тому у хто це цей цього цієї ці чи чий
чому що щоб як яка яке який якого якої якому яку які я є
""",
    "el": """
αλλά αν από αυτά αυτή αυτό αυτός για γιατί δεν εάν είναι είχε ένα ένας ενώ επίσης έχει έχουν η ήταν θα και κατά με μετά
μας μη μια μέχρι να ο οι όπου όπως όταν ό,τι όχι πόσα πόσο πόσοι πότε που πού πριν προς πως πώς σε στα στη στην στις
στο στον στους τα τη την της τι τις το τον του τους των ως
""",
    "ar": """
أحد أما أن أنا أنه أنها أو أول أي أية أين إذا إلا إلى إن أم التي الذي الذين اللذان اللتان اللاتي أيضا أيضًا بعد
بعض بل بها به بهذا بهذه بين تحت تلك تم ثم حتى حول حيث حين خلال دون ذلك سوف ضد ضمن عام على عليه عليها عن عند
عندما عنها عنه غير فقد فقط فى في فيه فيها قبل قد كان كانت كانوا كل كم كما كيف لا لدى لذلك لقد لكن لم لماذا لن له
لها لهم ليس ليست لما ما ماذا متى مثل مع من منذ منها منه مما نحو نفس هذا هذه هؤلاء هل هم هما هنا هناك هو هي وقد
وكان وكانت ولا ولم وما ومن وهو وهي وفي يتم يكون يمكن
""",
    "fa": """
از است اما اگر او این با باید بر برای برخی بسیار بعد بود بودند به بین تا تحت تر ترین تنها تو جز چرا چگونه چه چند چون حتی
خود خواهد داد دارد دارند داشت داشتند در درباره دو دیگر را روی زیرا سپس شد شدند شده شما شود طی عنوان قبل که کجا کدام کرد
کردند کرده کسی کند کنند کی ما می نیز نیست ها های هایی هر هم همه همچنین هنگام هیچ و وقتی ولی وی یا یک
""",
    "he": """
אבל או אותה אותו אותם אז אחר אחרי אין איך איזה איזו איפה אך אל אלה אלו אם אנחנו אני אף אשר את באיזה באיזו ביותר בין
גם דרך הוא היא היה היו היתה הייתה הם הן זאת זה זו יותר יש כאשר כדי כי כך כל כמה כמו לא לאחר לכן לפי לפני לפיכך מאוד
מאז מה מהו מהי מי מן מתי על עד עוד עם עצמו פי רק של שלה שלהם שלו תחת
""",
    "hi": """
अगर अथवा अन्य अपना अपनी अपने अब आदि आप इन इनके इस इसका इसकी इसके इसमें इसे उन उनका उनकी उनके उनको उन्हें उन्होंने उस
उसका उसकी उसके उसने उसे एक एवं ऐसे और कई कब कर करता करते करना करने करें कहा कहाँ कहां का कितना कितनी कितने किन किया
किस किसका किसकी किसके किसने किसी किसे की कुछ के को कोई कौन कौनसा कौनसी क्या क्यों गई गए गया गये चाहिए जब जहाँ जहां जा जाता
जाती जाते जाना जाने जिन जिनके जिस जिसका जिसकी जिसके जिसने जिसमें जिसे जैसा जैसे जो तक तब तथा तो था थी थीं थे दिया दी दो द्वारा
न नहीं ने पर पहले फिर बहुत बाद भी में मे मैं यदि यह यहाँ यहां या ये रहा रही रहे लिए लिया ले लेकिन लोग व वह वहाँ वहां वाला वाली वाले
वे सकता सकती सकते सबसे सभी साथ से हम हर ही हुआ हुई हुए है हैं हो होता होती होते होना होने
""",
}

_BY_LANGUAGE = {language: frozenset(words.split()) for language, words in _TEXTS.items()}

_LANGUAGES_OF = {
    word: [code for code, words in _BY_LANGUAGE.items() if word in words]
    for word in frozenset[str]().union(*_BY_LANGUAGE.values())
}

_ARTICLES = "let der die das ein eine el la los las le les un une il lo"
FUNCTION_WORDS = _BY_LANGUAGE["en"] | frozenset(_ARTICLES.split())
"""English function words, and articles that begin names in related languages: never names by themselves."""

_OTHER_SCRIPTS = ("ru", "uk", "el", "ar", "fa", "he", "hi")
_BY_SCRIPT = {
    "en": tuple(language for language in _BY_LANGUAGE if language not in _OTHER_SCRIPTS),  # Latin script
    "ru": ("ru", "uk"),
    "ar": ("ar", "fa"),
}
_WORD = re.compile(f"{LETTER}+")
_CHARACTERS_READ = 2_000  # enough to identify the language of a text

_COMPARED = 4_000  # characters of a text that is compared with another
_LEAST_LETTERS = 4  # of a text whose script counts
_FOREIGN = 0.1  # share of letters in the other script that may be chance
_LEAST_VOTES = 4  # function words of a text whose language counts
_MUCH_MORE = 4  # times as many function words of one language as of the other
_TOGETHER = {"HIRAGANA": "CJK", "KATAKANA": "CJK", "HALFWIDTH": "CJK", "FULLWIDTH": "LATIN"}


def written_language(text: str) -> str:
    """The language of a text, an ISO 639-1 code: among those of its script, the one with the most function words in the
    text.

    If the script has only one language here, or the text has no function words, the language is that of
    :func:`~llama_index.ragkit.text.sentences.language_of`.

    >>> written_language("Wo wurde Max Planck geboren?"), written_language("Где Москва?")
    ('de', 'ru')
    """
    usual = language_of(text)
    languages = _BY_SCRIPT.get(usual, (usual,))
    if len(languages) == 1:
        return usual
    votes = language_votes(text, languages)
    return votes.most_common(1)[0][0] if votes.total() else usual


def language_votes(text: str, languages: Iterable[str] = _BY_LANGUAGE) -> Counter[str]:
    """How many words at the beginning of a text are function words of each language."""
    votes = Counter(dict.fromkeys(languages, 0))
    for word in _WORD.findall(text[:_CHARACTERS_READ]):
        for code in _LANGUAGES_OF.get(word.casefold(), ()):
            if code in votes:
                votes[code] += 1
    return votes


def function_words(language: str) -> frozenset[str]:
    """The function words of a language, in lower case; empty for a language without a list."""
    return _BY_LANGUAGE.get(language, frozenset())


def in_another_language(text: str, reference: str) -> bool:
    """Whether a text is in another script or, by its function words, in another language than the reference.

    A text that is too short to tell, or a name alone, is not.

    >>> in_another_language("灯塔的灯烧鲸油，由守塔人点亮。", "The lamp burned whale oil.")
    True
    >>> in_another_language("Otto Lindqvist", "The glassworks was founded by Otto Lindqvist.")
    False
    """
    one, other = _scripts(text), _scripts(reference)
    if min(one.total(), other.total()) < _LEAST_LETTERS:
        return False
    usual = other.most_common(1)[0][0]
    if one[usual] < _FOREIGN * one.total():
        return True
    votes, expected = language_votes(text), language_votes(reference)
    language, count = votes.most_common(1)[0]
    own, known = expected.most_common(1)[0]
    return (
        count >= _LEAST_VOTES
        and known >= _LEAST_VOTES
        and count > _MUCH_MORE * votes[own]
        and (known > _MUCH_MORE * expected[language])
    )


def _scripts(text: str) -> Counter[str]:
    """How many letters of each script the beginning of a text has."""
    names = map(script_of, filter(str.isalpha, text[:_COMPARED]))
    return Counter(_TOGETHER.get(name, name) for name in names)


_SAID_TEXT = """
ah aha ahem alright aw aww awww bye damn eh er gee gimme gonna goodbye gosh gotta ha hah haha hello hey hi hm hmm huh
hush kinda lemme mm mmm nah nope oh ohh ok okay oooh ooh oops ouch ow phew please really shh sorta sorry thank thanks
ugh uh uhh uhm um umm ummm wanna well whoa woah wow y'know ya yay yeah yep yes yup
ach äh ähm danke doch entschuldigung hallo ja jawohl naja nein oje tja tschüss
adiós ay bueno gracias hola oye sí vale allô bonjour euh hélas merci oui salut
ciao grazie sì boh grazie prego bom olá obrigado obrigada sim
ага ай ах здравствуйте ну ого ой ох привет пожалуйста спасибо эй
"""
_CODE_TEXT = """
args bool def elif false kwargs nan none null param params raise raises return returns rtype self str true undefined
"""
_ASIDES = frozenset((*_SAID_TEXT.split(), *_CODE_TEXT.split()))
_CONTRACTED = re.compile(
    r"(?:i|you|he|she|it|we|they|that|there|here|what|who|where|how|let|this)['’](?:m|ll|ve|re|d|s)|\w*n['’]t|['’]\w{1,2}"
)
_DRAWN_OUT = re.compile(r"(?=.{3,20}$).*(.)\1{2,}.*")  # "sooo", "oooooh": no word has three of one letter

_DATE_TEXT = """
januar februar märz mai juni juli oktober dezember montag dienstag mittwoch donnerstag freitag samstag sonntag
janvier février mars avril juin juillet août septembre octobre novembre décembre enero febrero marzo abril mayo junio
julio agosto septiembre octubre noviembre diciembre gennaio febbraio aprile maggio giugno luglio settembre
ottobre dicembre
"""
_NAMES = (calendar.month_name, calendar.month_abbr, calendar.day_name, calendar.day_abbr)
_DATES = frozenset((*_DATE_TEXT.split(), *(name.casefold() for names in _NAMES for name in names if name)))
_NUMBER = re.compile(r"\d[\d.,/:-]*(?:st|nd|rd|th|s)?")


def is_date(phrase: str) -> bool:
    """Whether a phrase consists of months, weekdays, numbers and function words, with a month or weekday among them.

    >>> is_date("June 2017"), is_date("1st of May"), is_date("May Day"), is_date("2017")
    (True, True, False, False)
    """
    words = [word.strip(".,()").casefold() for word in phrase.split()]
    named = any(word in _DATES for word in words)
    return named and all(word in _DATES or word in FUNCTION_WORDS or _NUMBER.fullmatch(word) for word in words)


def is_aside(phrase: str) -> bool:
    """Whether a phrase consists only of interjections, contractions, words of code and function words.

    >>> [is_aside(phrase) for phrase in ("Oh yeah", "I'm", "sooo", "None", "Danke", "Oh Ross", "2017")]
    [True, True, True, True, True, False, False]
    """
    words = [word.strip(".,()!?").casefold() for word in phrase.split()]
    return all(word in FUNCTION_WORDS or is_filler(word) for word in words)


def is_filler(word: str) -> bool:
    """Whether a word in lower case is an interjection, a contraction or a word of code.

    >>> is_filler("yeah"), is_filler("don't"), is_filler("los")
    (True, True, False)
    """
    is_long = word.isalpha() and word.isascii() and _DRAWN_OUT.fullmatch(word) is not None
    return word in _ASIDES or _CONTRACTED.fullmatch(word) is not None or is_long


def is_name(phrase: str) -> bool:
    """Whether a phrase may be a name. A function word, a number or a single letter may not."""
    return any(
        len(word) > 1 and word.casefold() not in FUNCTION_WORDS and not word.isdigit() for word in phrase.split()
    )
