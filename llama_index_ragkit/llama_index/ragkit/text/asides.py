"""Words and phrases that are about nothing: interjections, contractions, dates, and words of program code.

They have capitals in dialogue ("Oh", "I'm"), in dates ("June 2017") and in code ("None"), but nobody asks for them.
"""

import calendar
import re

from llama_index.ragkit.text.function_words import FUNCTION_WORDS

__all__ = ["is_aside", "is_date", "is_filler"]

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
