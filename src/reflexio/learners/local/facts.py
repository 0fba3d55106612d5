"""Facts about the user, from what they say about themselves. Each becomes a sentence in the third person.

Cues are data: the beginnings of clauses that state a lasting fact, strongest first. The weight decides what is kept
when a conversation tells more than there is room for.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from reflexio.language.words import phrase
from reflexio.learners.local.sentences import MASK, Sentence, in_third_person
from reflexio.models.learning import ProfileTimeToLive as Live

FEWEST_WORDS = 3  # "I'm vegetarian" counts as three

_LEAD_IN = phrase(
    r"^((and|but|so|well|also|plus|oh|yes|yeah|no|hi|hello|hey|hmm|ok(ay)?|sure|thanks|actually|honestly|personally|"
    r"besides|anyway|however|remember|please (note|remember)|note|fyi|btw|by the way|just so you know|you know|"
    r"as you know|you should know|i (think|guess|mean|must say|should mention|have to (say|admit)|admit|"
    r"realized|forgot to mention)|i('ve)? (already )?(told|said) you( that)?|like i said|as i (said|mentioned)|"
    r"to be honest|in general|generally|usually|normally|typically|lately|these days|since then|"
    r"on (another|a different|a related|a side) (note|topic)|most of the time|most \w+s|"
    r"speaking of [^,]{1,60}|for (context|me|the record)|when [^,]{1,60}|as for [^,]{1,40}|"
    r"although|though|because|since|as|while|whereas|like how|just like how|much like how|how|that|"
    r"in my (free|spare) time|as an? [^,]{1,60}|as someone [^,]{1,120})\b[\s,:–-]*)+",
)
# A new clause begins where the speaker speaks of themselves again, or changes the subject.
_BREAK = phrase(
    r" [-–—]{1,2} |(\s*[;]|,) ((and|but|so|although|though|because|since|as|while|yet|plus|which is why|"
    r"(just|much)?\s*like how) )?(?=(I|my)\b)| (but|because|since|although|though|while|whereas|so|as|just like how|"
    r"like how|and) (?=(I|I'\w+)\s)| of how (?=I\b)|, (?=(it|they|he|she|that|this)('\w+)?\s)"
    r"|,? but |, so (?!much\b)|; |, though\b|, (and|or) (?=(do|can|could|would|what|how|are|is)\s)"
    r"|,? please |, (?=(any|do|can|could|would|what|how|which|where|is|are)\s)"
    r"| and (?=(the|you|it|my|we|attempted|tried|wanted|started|noticed|would|want|wanna|need|i'\w+)\s)",
)

_ADV = r"((also|always|never|often|still|just|even|much|most|far|kind of|sort of|only|do|both|[a-z]+ly) ){0,4}"
_BE = r"I('m| am) "
_NOT = r"(do not|don't|cannot|can't|can not|won't|will not)"
_VERB_OF_HABIT = (
    r"(use|eat|drink|buy|wear|watch|read|play|order|choose|pick|cook|shop|travel|stay|book|drive|ride|listen|work|"
    r"learn|study|train|exercise|feed|support|go for|opt for|stick (to|with)|rely on|look for|go with)"
)
_TRAIT = (
    r"(vegan|vegetarian|pescatarian|kosher|halal|coeliac|celiac|diabetic|lactose|gluten|sober|dyslexic|"
    r"colou?r[\s-]?blind|deaf|blind|left[\s-]handed|autistic|pregnant|retired|married|divorced|widowed|single|"
    r"bilingual|muslim|christian|jewish|hindu|buddhist|atheist|self[\s-]employed|unemployed|claustrophobic|asthmatic|"
    r"introvert(ed)?|extrovert(ed)?|right[\s-]handed|an? vegetarian)"
)
_ROLE_END = (
    r"(er|or|ist|ian|ant|ent|eer|nurse|mom|dad|mum|mother|father|parent|student|wife|husband|chef|cook|officer|coach|"
    r"clerk|owner|guy|girl|man|woman|person|fan|vegan|veteran|judge|scientist|analyst|pilot|cop|grandparent|freelancer|"
    r"founder|ceo|cto|lead|head|beginner|expert|native|citizen|resident|member|widow|widower|orphan|twin|nut|buff|"
    r"geek)s?"
)

_BEGINNINGS = {
    ("health", 1.0): (
        rf"{_BE}{_ADV}((very|severely|deathly|highly) )?(allergic|intolerant|sensitive) to",
        r"I (have|suffer from) (an? )?(\w+ ){0,2}(allerg(y|ies)|intolerance|diabetes|asthma|epilepsy|"
        r"migraines?|arthritis|adhd|dyslexia|celiac|coeliac|sensitive skin|condition|disability|phobia|insomnia|"
        r"anxiety|high blood pressure|bad (back|knees?))",
        rf"I {_ADV}{_NOT} (eat|drink|tolerate|digest)",
    ),
    ("dislike", 1.0): (
        rf"I {_ADV}(tend to )?({_ADV})(hate|dislike|loathe|detest|despise|avoid|abhor|shun)",
        rf"I (tend|try|like|prefer) to {_ADV}(avoid|skip|steer clear|stay away|shy away|dislike)",
        r"I (\w+ly )?(prefer|tend) (not to|avoiding|staying away)",
        rf"I {_ADV}(can't|cannot|can not|couldn't) (stand|bear|abide|tolerate|get into)",
        rf"I {_ADV}(do not|don't) {_ADV}(like|enjoy|care for|appreciate|trust|support|believe in|"
        rf"drive|smoke|wear|watch|use|own|buy|play|travel|fly|do well with|see the appeal)",
        rf"{_BE}{_ADV}not {_ADV}(an? |the )?((big|huge|great) )?(fan|into|interested|keen|comfortable|fond|"
        r"drawn|crazy|one for|attracted)",
        rf"I {_ADV}(steer clear of|stay away from|shy away from|refuse to|struggle with|lose interest)",
        r"I (tend to )(lose|get (bored|overwhelmed|anxious|sick)|struggle|find)",
        r"I have (an? |no )?(\w+ ){0,2}(aversion|dislike|objection|distaste|fear|interest)(s)?\b",
        r"I (have|had) (never|not) (been (an? )?((big|huge) )?(fan|into|one for|keen)|liked|enjoyed)",
        rf"I've (never|not) ({_ADV})(been (an? )?((big|huge) )?(fan|into|one for|keen|fond)|liked|enjoyed)",
        rf"I {_ADV}find (?!out\b|it (hard|challenging|difficult|interesting|fascinating) to (believe|say)\b|myself)"
        r"([^\s,.;!?]+ ){1,9}?(too\s|so\s|overly\s|quite\s|rather\s|a bit\s|very\s|pretty\s|really\s)?"
        r"(boring|tedious|disorienting|overwhelming|childish|distracting|stressful|uncomfortable|unappealing|annoying|"
        r"slow|dull|repetitive|ineffective|demotivating|draining|exhausting|predictable|intimidating|tiring|"
        r"off-putting|unpleasant|impersonal|restrictive|frustrating|confusing|loud|crowded|intense|cheesy|shallow|"
        r"limiting|difficult|hard)",
        r"(I )?(can't stand|not a (big |huge )?fan of|not (really )?into)",
        r"I'?d?\s*(would )?rather not",
    ),
    ("preference", 0.9): (
        rf"I {_ADV}(prefer|favou?r|adore|gravitate towards?|lean towards?|swear by|insist on)",
        rf"I('m| am) {_ADV}((a|an|more of an?) )((big|huge|great|total) )?(fan of|lover of|\w+ person)",
        rf"I {_ADV}learn {_ADV}(best|better)",
        r"I have (an? )?((strong|clear|slight) )?(preference|soft spot|weakness|passion)",
        rf"I (\w+ly )?(always|only|exclusively|strictly|never|usually|generally|mostly|typically|normally) (\w+ly )?"
        rf"(try to )?{_VERB_OF_HABIT}",
        rf"I {_ADV}(tend to) (only |mostly )?({_VERB_OF_HABIT}|learn|like|prefer|enjoy|gravitate|be more|focus|"
        rf"go|have|keep|feel|seek|value|respond|work|lean)",
        r"I (always )?make sure to (use|bring|buy|choose|eat|avoid|pick)",
        r"my ((all[\s-]time|absolute|personal) )?(favou?rite|preferred|go-to) [^,.;!?]{2,60}? (is|are)",
    ),
    ("liking", 0.55): (
        rf"I (?!would|'d){_ADV}(love|like|enjoy|value) (?!that\b|the (idea|sound|suggestion)|your\b|it\b|this\b|"
        r"those\b|these\b|the\b|their\b|his\b|her\b|to\s*([.!,]|$)|to (know|hear|see|learn|get|book|ask)\b|how\b)",
        rf"{_BE}{_ADV}(into|passionate about|obsessed with|fond of|keen on)",
        r"I('ve| have) (always )(loved|liked|enjoyed|preferred|hated|avoided|wanted|been (fascinated|into|drawn))",
    ),
    ("constraint", 0.8): (
        rf"I {_ADV}(can't|cannot|can) only(?! (imagine|hope|guess|say))",
        r"I only have (?!one (more )?question|a (question|minute|second)|questions?)",
        r"my (\w+ )?(budget|deadline|limit|diet|allerg\w+|religion|doctor) (\w+ )?(is|are|does|doesn't|requires?|says?|"
        r"ends|forbids|prohibits)",
        rf"{_BE}(on a (\w+ ){{0,2}}(diet|budget)|trying to (quit|cut (back|down)|avoid|lose|stop))",
    ),
    ("identity", 0.6): (
        rf"{_BE}{_ADV}{_TRAIT}",
        rf"{_BE}(\w+ly )?(an?|the) (?!bit\b|little\b|lot\b|fan\b|few\b|huge\b|big\b)([\w-]+ ){{0,4}}?[\w-]*{_ROLE_END}",
        rf"{_BE}(originally )?(from|based in|living in|located in) (?=(?-i:[A-Z]))",
        rf"{_BE}\d{{1,3}}( years? old|[\s-]year[\s-]old)",
        r"I (\w+ly )?(live|work|teach|study|volunteer|grew up) (as|at|for|in|on|with|near|from)(?! (this|it|that)\b)",
        r"I (just |recently )?(moved|relocated) (back )?to(?! the next\b)",
        r"I('ve| have) (just |recently )?(moved|relocated) (back )?to",
        r"I (run|own|manage) (an?|my own|the|two|three)\s",
        r"my ((first|last|full|middle) )?(name|nickname|birthday|hometown|native language|mother tongue|job|profession|"
        r"occupation|nationality|blood type|shoe size|time\s*zone) (is|are)",
        r"my (wife|husband|partner|son|daughter|kids?|children|dog|cat|mother|father|mom|dad|brother|sister|girlfriend|"
        r"boyfriend|boss|team|company|pet|baby)( \w+)? (is|are|has|have|works?|lives?|loves?|hates?|can't|prefers?)"
        r"(?! (been|asking|coming|going|getting|doing|(so |really |very )?excited|so (much|happy)|always asking))",
        r"I speak (?=(?-i:[A-Z]))",
        r"I have (an?|two|three|four|five|\d+) (\w+ ){0,3}(kids?|children|sons?|daughters?|dogs?|cats?|pets?|rabbits?|"
        r"horses?|birds?|parrots?|toddlers?|teenagers?|siblings?|brothers?|sisters?|grandchildren|cars?|trucks?)",
        r"I (drive|own|ride) (an?|my|two|three)\s",
        r"(please )?call me (?=(?-i:[A-Z]))",
    ),
    ("goal", 0.5): (
        r"my (\w+ ){0,2}(goal|dream|plan|ambition) (is|has)",
        rf"{_BE}(currently )?(training for|saving (up )?for|learning (?!more\b|about\b|a (lot|ton)\b)|"
        r"studying (for|to)|preparing for|working towards?|getting married|moving to|expecting|pregnant)",
        r"I('m| am) (planning (on|to (move|visit|travel|retire|buy|start|run|get))|flying|travell?ing|leaving|"
        r"going on (a )?(holiday|vacation|trip|leave))",
    ),
}
_CUES = tuple(
    (about, weight, phrase(rf"(?:{'|'.join(beginnings)})((?<=\s)|(?=[\s,.;:!]|$))"))
    for (about, weight), beginnings in _BEGINNINGS.items()
)

_ASIDES = (
    (
        "identity",
        0.6,
        phrase(
            r"(^|[,;!?–-]\s*|\byears |\bworking )as (?P<who>an? (?!result|matter|consequence|whole|side|bonus|rule|"
            r"general)[^,.!?;:]{3,60}),",
        ),
    ),
    ("preference", 0.9, phrase(r"\bAs (?P<who>someone who [^,.!?;]{5,120}),")),
)
"""Asides that say who is speaking; the group follows "The user is"."""

_AFFECTED = phrase(
    r"^(?!you|it|that|this|what|which|who|he|she|there|let|please|can|could|would|will|do|does)"
    r"([^\s,.;!?]+ ){1,8}(makes?|tends? to make|gives?|leaves?) me (feel |feeling )?"
    r"((very|so|really|too|a bit|quite) )?(sick|ill|nauseous|nausea|dizzy|anxious|anxiety|uncomfortable|disoriented|"
    r"uneasy|nervous|stressed|headaches?|migraines?|bored|sad|tired|itchy|hives|sleepy|claustrophobic|happy|relaxed|"
    r"energi[sz]ed)|^(?!it|that|this)([^\s,.;!?]+ ){1,8}(isn't|aren't|is not|are not|just isn't) (really )?"
    r"(for me|my (thing|style|cup of tea))\b",
)
"""What has an effect on the user: "Strong perfumes give me headaches"."""

_MOMENTARY = phrase(
    r"\b(my (order|booking|reservation|confirmation|tracking|ticket|account|user|customer|phone|card|credit|"
    r"member\w*|case|passport|flight|invoice|login|e-?mail|password|pin)\b[^,.]{0,30}\b(is|are|number|id)\b|"
    r"user\s*id|social security|api[\s_-]?keys?|passwords?)\b|\b(that one|the (first|second|third|last|other|"
    r"next) (one|option|suggestion)|option \w\b|this one)\b|\d([\s-]?\d){5,}|\b(new|frequent|long-?time|"
    r"loyal) customer\b|\binstead\W*$|\b(for|of) (this|the) (payment|booking|reservation|order|trip|flight|return|"
    r"change|upgrade)\b|\bsame day\b|\bmy original\b|\bthat (time|date|flight|option|day)\b|\bif it's\b"
    r"|\b(like|love|prefer) ((all|both) )?(of )?(the|your|these|those) ([\w-]+ ){0,5}?(ideas?|suggestions?|way|"
    r"tips?|recommendations?|concepts?|look|sound|approach|advice)\b|\ball the\b",
)
"""Identifiers, secrets and choices of the moment: true today, and not to be kept."""

_DANGLING = phrase(
    r"^\s*((\w+ing|to \w+|of|with|within|in|about|for|when) ){0,2}(them|it|those|these|this|that|him|her|his|here|"
    r"there|you|your)\b",
)
"""What follows the beginning refers to something said elsewhere: the fact could not be understood alone."""

_FOREIGN = phrase(
    r"^(ich (bin ((ein[e]? )?(strenge\w* )?(vegetarier|veganer|allergisch|diabetiker|lehrer|arzt|ärztin|student)\w*)|"
    r"mag\s|bevorzuge|hasse|wohne in|lebe in|arbeite (als|bei|in)|esse (kein|nur|nie)|trinke (kein|nur|nie)|vermeide|"
    r"habe eine? \w*allergie|heiße|vertrage kein)|mein name ist|(yo )?(soy (vegetarian|vegan|alérgic|diabétic|celíac|"
    r"médic|profesor|maestr|enfermer|estudiante)\w*|prefiero|odio|evito|"
    r"vivo en|trabajo (como|en|de)|no (me gustan?|como|bebo|soporto|puedo comer)|me encantan?|me gustan? más|"
    r"me llamo)|je (suis (végétarien|végan|allergique|diabétique|médecin|professeur|infirmi|étudiant|enseignant)\w*|"
    r"préfère|déteste|évite|travaille (comme|chez|à)|ne (mange|bois|supporte) (pas|jamais|plus)|n'aime pas|m'appelle)"
    r"|j'(adore|habite|évite|ai une allergie))(?=[\s,.!]|\b)",
)
"""German, Spanish and French beginnings of the same kinds. These facts are kept in the user's own words."""

_TIMES_NAMED = (
    (Live.ONE_DAY, r"today|tonight|tomorrow|this (morning|afternoon|evening)|right now|at the moment|heute|morgen|"
     r"hoy|mañana|demain|in (an|a few|two|three|\d+) (hours?|minutes?)"),
    (Live.ONE_WEEK, r"this (week|weekend)|next (week|weekend|monday|tuesday|wednesday|thursday|friday|saturday|sunday)|"
     r"(on|this) (monday|tuesday|wednesday|thursday|friday|saturday|sunday)|in (a few|two|three|\d) days|nächste woche|"
     r"la semaine prochaine|la próxima semana"),
    (Live.ONE_MONTH, r"this month|next month|in (a (few|couple of)|two|three|\d+) weeks|for a few weeks|temporarily|"
     r"for now|(really|very|so) sick|has the flu|in hospital|upcoming (trip|exam|meeting|event)"),
    (Live.ONE_QUARTER, r"this (quarter|season|semester|term|summer|winter|spring|autumn|fall)|next (quarter|season|"
     r"semester|term|summer|winter|spring|autumn|fall)|in (a few|two|three|\d) months"),
    (Live.ONE_YEAR, r"this year|next year|by the end of the year|these days|currently|lately"),
)  # fmt: skip
_LIFETIMES = tuple((lifetime, phrase(rf"\b({times})\b")) for lifetime, times in _TIMES_NAMED)


@dataclass(frozen=True)
class Fact:
    """Something about the user, and the sentence that says it."""

    about: str
    weight: float
    content: str
    sentence: Sentence
    is_aside: bool = False  # not what the sentence begins with


def facts(sentence: Sentence) -> Iterator[Fact]:
    """What a sentence says about its speaker."""
    for place, (start, end) in enumerate(_clauses(sentence.own)):
        if fact := _fact(sentence, start, end):
            yield replace(fact, is_aside=place > 0)
    for about, weight, aside in _ASIDES:
        if match := aside.search(sentence.own):
            who = sentence.text[match.start("who") : match.end("who")]
            yield Fact(about, weight, in_third_person(f"I am {who}"), sentence)


def time_to_live(about: str, text: str) -> Live:
    """How long a fact holds: traits for good, plans as long as the time they name.

    >>> time_to_live("goal", "I'm flying to Oslo tomorrow").value
    'one_day'
    >>> time_to_live("identity", "I live in Oslo").value
    'infinity'
    """
    default = Live.ONE_QUARTER if about == "goal" else Live.INFINITY
    return next((lifetime for lifetime, pattern in _LIFETIMES if pattern.search(text)), default)


def _fact(sentence: Sentence, start: int, end: int) -> Fact | None:
    own, text = sentence.own[start:end], sentence.text[start:end]
    is_question = sentence.is_question and end >= len(sentence.own.rstrip(" ?!"))  # the last clause of a question
    if MASK in own or _MOMENTARY.search(own) or len(re.findall(r"\w+", text)) < FEWEST_WORDS or is_question:
        return None
    for about, weight, beginning in _CUES:
        if (match := beginning.match(own)) and not _DANGLING.match(own[match.end() :]):
            return Fact(about, weight, in_third_person(text), sentence)
    if _AFFECTED.match(own):
        return Fact("health", 0.9, in_third_person(text), sentence)
    if _FOREIGN.match(own):
        return Fact("foreign", 0.9, f"The user says: “{text.rstrip(' .!,')}”", sentence)
    return None


def _clauses(own: str) -> Iterator[tuple[int, int]]:
    """Where the clauses stand, without the words that only lead in, such as "as" and "since"."""
    start = 0
    for end, following in [*((gap.start(), gap.end()) for gap in _BREAK.finditer(own)), (len(own), len(own))]:
        lead = _LEAD_IN.match(own[start:end])
        yield (start + lead.end() if lead else start), end
        start = following
