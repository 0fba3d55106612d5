"""How people tell about themselves: the beginnings of clauses that state a lasting fact, strongest first.

`weight` decides what is kept when a conversation tells more than there is room for.
"""

import re
from dataclasses import dataclass

_ADV = r"(?:(?:also|always|never|often|still|just|even|much|most|far|kind of|sort of|only|do|both|[a-z]+ly)\s+){0,4}"
_BE = r"I(?:['’]m|\s+am)\s+"
_NOT = r"(?:do\s+not|don['’]t|cannot|can['’]t|can\s+not|won['’]t|will\s+not)"
_VERB_OF_HABIT = (
    r"(?:use|eat|drink|buy|wear|watch|read|play|order|choose|pick|cook|shop|travel|stay|book|drive|ride|listen|work|"
    r"learn|study|train|exercise|feed|support|go for|opt for|stick (?:to|with)|rely on|look for|go with)"
)
_DIET = (
    r"(?:vegan|vegetarian|pescatarian|kosher|halal|coeliac|celiac|diabetic|lactose|gluten|sober|dyslexic|colou?r[- ]?blind|"
    r"deaf|blind|left[- ]handed|autistic|pregnant|retired|married|divorced|widowed|single|bilingual|muslim|christian|jewish|"
    r"hindu|buddhist|atheist|self[- ]employed|unemployed|claustrophobic|asthmatic|introvert(?:ed)?|extrovert(?:ed)?|"
    r"right[- ]handed|an? vegetarian)"
)
_ROLE_END = (
    r"(?:er|or|ist|ian|ant|ent|eer|nurse|mom|dad|mum|mother|father|parent|student|wife|husband|chef|cook|officer|coach|"
    r"clerk|owner|guy|girl|man|woman|person|fan|vegan|veteran|judge|scientist|analyst|pilot|cop|grandparent|freelancer|"
    r"founder|ceo|cto|lead|head|beginner|expert|native|citizen|resident|member|widow|widower|orphan|twin|nut|buff|geek)s?"
)


@dataclass(frozen=True)
class FactCue:
    about: str
    weight: float
    begins: re.Pattern[str]


def _cue(about: str, weight: float, *begins: str) -> FactCue:
    return FactCue(about, weight, re.compile("(?:" + "|".join(begins) + r")(?:(?<=\s)|(?=[\s,.;:!]|$))", re.I))


CUES = (
    _cue(
        "health",
        1.0,
        rf"{_BE}{_ADV}(?:(?:very|severely|deathly|highly)\s+)?(?:allergic|intolerant|sensitive)\s+to",
        r"I\s+(?:have|suffer\s+from)\s+(?:an?\s+)?(?:\w+\s+){0,2}(?:allerg(?:y|ies)|intolerance|diabetes|asthma|epilepsy|"
        r"migraines?|arthritis|adhd|dyslexia|celiac|coeliac|sensitive\s+skin|condition|disability|phobia|insomnia|anxiety|"
        r"high\s+blood\s+pressure|bad\s+(?:back|knees?))",
        rf"I\s+{_ADV}{_NOT}\s+(?:eat|drink|tolerate|digest)",
    ),
    _cue(
        "dislike",
        1.0,
        rf"I\s+{_ADV}(?:tend\s+to\s+)?(?:{_ADV})(?:hate|dislike|loathe|detest|despise|avoid|abhor|shun)",
        rf"I\s+(?:tend|try|like|prefer)\s+to\s+{_ADV}(?:avoid|skip|steer\s+clear|stay\s+away|shy\s+away|dislike)",
        r"I\s+(?:\w+ly\s+)?(?:prefer|tend)\s+(?:not\s+to|avoiding|staying\s+away)",
        rf"I\s+{_ADV}(?:can['’]t|cannot|can\s+not|couldn['’]t)\s+(?:stand|bear|abide|tolerate|get\s+into)",
        rf"I\s+{_ADV}(?:do\s+not|don['’]t)\s+{_ADV}(?:like|enjoy|care\s+for|appreciate|trust|support|believe\s+in|"
        rf"drive|smoke|wear|watch|use|own|buy|play|travel|fly|do\s+well\s+with|see\s+the\s+appeal)",
        rf"{_BE}{_ADV}not\s+{_ADV}(?:an?\s+|the\s+)?(?:(?:big|huge|great)\s+)?(?:fan|into|interested|keen|comfortable|fond|"
        r"drawn|crazy|one\s+for|attracted)",
        rf"I\s+{_ADV}(?:steer\s+clear\s+of|stay\s+away\s+from|shy\s+away\s+from|refuse\s+to|struggle\s+with|lose\s+interest)",
        rf"I\s+(?:tend\s+to\s+)(?:lose|get\s+(?:bored|overwhelmed|anxious|sick)|struggle|find)",
        rf"I\s+have\s+(?:an?\s+|no\s+)?(?:\w+\s+){{0,2}}(?:aversion|dislike|objection|distaste|fear|interest)(?:s)?\b",
        rf"I\s+(?:have|had)\s+(?:never|not)\s+(?:been\s+(?:an?\s+)?(?:(?:big|huge)\s+)?(?:fan|into|one\s+for|keen)|liked|enjoyed)",
        rf"I['’]ve\s+(?:never|not)\s+(?:{_ADV})(?:been\s+(?:an?\s+)?(?:(?:big|huge)\s+)?(?:fan|into|one\s+for|keen|fond)|liked|enjoyed)",
        rf"I\s+{_ADV}find\s+(?!out\b|it\s+(?:hard|challenging|difficult|interesting|fascinating)\s+to\s+(?:believe|say)\b|myself)"
        r"(?:[^\s,.;!?]+\s+){1,9}?(?:too\s|so\s|overly\s|quite\s|rather\s|a\s+bit\s|very\s|pretty\s|really\s)?"
        r"(?:boring|tedious|disorienting|overwhelming|childish|distracting|stressful|uncomfortable|unappealing|annoying|"
        r"slow|dull|repetitive|ineffective|demotivating|draining|exhausting|predictable|intimidating|tiring|off-putting|"
        r"unpleasant|impersonal|restrictive|frustrating|confusing|loud|crowded|intense|cheesy|shallow|limiting|difficult|hard)",
        r"(?:I\s+)?(?:can['’]t\s+stand|not\s+a\s+(?:big\s+|huge\s+)?fan\s+of|not\s+(?:really\s+)?into)",
        r"I['’]?d?\s*(?:would\s+)?rather\s+not",
    ),
    _cue(
        "preference",
        0.9,
        rf"I\s+{_ADV}(?:prefer|favou?r|adore|gravitate\s+towards?|lean\s+towards?|swear\s+by|insist\s+on)",
        rf"I(?:['’]m|\s+am)\s+{_ADV}(?:(?:a|an|more\s+of\s+an?)\s+)(?:(?:big|huge|great|total)\s+)?(?:fan\s+of|lover\s+of|\w+\s+person)",
        rf"I\s+{_ADV}learn\s+{_ADV}(?:best|better)",
        rf"I\s+have\s+(?:an?\s+)?(?:(?:strong|clear|slight)\s+)?(?:preference|soft\s+spot|weakness|passion)",
        rf"I\s+(?:\w+ly\s+)?(?:always|only|exclusively|strictly|never|usually|generally|mostly|typically|normally)\s+(?:\w+ly\s+)?"
        rf"(?:try\s+to\s+)?{_VERB_OF_HABIT}",
        rf"I\s+{_ADV}(?:tend\s+to)\s+(?:only\s+|mostly\s+)?(?:{_VERB_OF_HABIT}|learn|like|prefer|enjoy|gravitate|be\s+more|focus|"
        rf"go|have|keep|feel|seek|value|respond|work|lean)",
        r"I\s+(?:always\s+)?make\s+sure\s+to\s+(?:use|bring|buy|choose|eat|avoid|pick)",
        r"my\s+(?:(?:all[- ]time|absolute|personal)\s+)?(?:favou?rite|preferred|go-to)\s+[^,.;!?]{2,60}?\s+(?:is|are)",
    ),
    _cue(
        "liking",
        0.55,
        rf"I\s+(?!would|['’]d){_ADV}(?:love|like|enjoy|value)\s+(?!that\b|the\s+(?:idea|sound|suggestion)|your\b|it\b|this\b|"
        r"those\b|these\b|the\b|their\b|his\b|her\b|to\s*(?:[.!,]|$)|to\s+(?:know|hear|see|learn|get|book|ask)\b|how\b)",
        rf"{_BE}{_ADV}(?:into|passionate\s+about|obsessed\s+with|fond\s+of|keen\s+on)",
        r"I(?:['’]ve|\s+have)\s+(?:always\s+)(?:loved|liked|enjoyed|preferred|hated|avoided|wanted|been\s+(?:fascinated|into|drawn))",
    ),
    _cue(
        "constraint",
        0.8,
        rf"I\s+{_ADV}(?:can['’]t|cannot|can)\s+only(?!\s+(?:imagine|hope|guess|say))",
        r"I\s+only\s+have\s+(?!one\s+(?:more\s+)?question|a\s+(?:question|minute|second)|questions?)",
        r"my\s+(?:\w+\s+)?(?:budget|deadline|limit|diet|allerg\w+|religion|doctor)\s+(?:\w+\s+)?(?:is|are|does|doesn['’]t|requires?|says?|"
        r"ends|forbids|prohibits)",
        rf"{_BE}(?:on\s+a\s+(?:\w+\s+){{0,2}}(?:diet|budget)|trying\s+to\s+(?:quit|cut\s+(?:back|down)|avoid|lose|stop))",
    ),
    _cue(
        "identity",
        0.6,
        rf"{_BE}{_ADV}{_DIET}",
        rf"{_BE}(?:\w+ly\s+)?(?:an?|the)\s+(?!bit\b|little\b|lot\b|fan\b|few\b|huge\b|big\b)(?:[\w-]+\s+){{0,4}}?[\w-]*{_ROLE_END}",
        rf"{_BE}(?:originally\s+)?(?:from|based\s+in|living\s+in|located\s+in)\s+(?=(?-i:[A-Z]))",
        rf"{_BE}\d{{1,3}}(?:\s+years?\s+old|[- ]year[- ]old)",
        r"I\s+(?:\w+ly\s+)?(?:live|work|teach|study|volunteer|grew\s+up)\s+(?:as|at|for|in|on|with|near|from)(?!\s+(?:this|it|that)\b)",
        r"I\s+(?:just\s+|recently\s+)?(?:moved|relocated)\s+(?:back\s+)?to(?!\s+the\s+next\b)",
        r"I(?:['’]ve|\s+have)\s+(?:just\s+|recently\s+)?(?:moved|relocated)\s+(?:back\s+)?to",
        r"I\s+(?:run|own|manage)\s+(?:an?|my\s+own|the|two|three)\s",
        r"my\s+(?:(?:first|last|full|middle)\s+)?(?:name|nickname|birthday|hometown|native\s+language|mother\s+tongue|job|profession|"
        r"occupation|nationality|blood\s+type|shoe\s+size|time\s*zone)\s+(?:is|are)",
        r"my\s+(?:wife|husband|partner|son|daughter|kids?|children|dog|cat|mother|father|mom|dad|brother|sister|girlfriend|"
        r"boyfriend|boss|team|company|pet|baby)(?:\s+\w+)?\s+(?:is|are|has|have|works?|lives?|loves?|hates?|can['’]t|prefers?)"
        r"(?!\s+(?:been|asking|coming|going|getting|doing|(?:so\s+|really\s+|very\s+)?excited|so\s+(?:much|happy)|always\s+asking))",
        r"I\s+speak\s+(?=(?-i:[A-Z]))",
        r"I\s+have\s+(?:an?|two|three|four|five|\d+)\s+(?:\w+\s+){0,3}(?:kids?|children|sons?|daughters?|dogs?|cats?|pets?|"
        r"rabbits?|horses?|birds?|parrots?|toddlers?|teenagers?|siblings?|brothers?|sisters?|grandchildren|cars?|trucks?)",
        r"I\s+(?:drive|own|ride)\s+(?:an?|my|two|three)\s",
        r"(?:please\s+)?call\s+me\s+(?=(?-i:[A-Z]))",
    ),
    _cue(
        "goal",
        0.5,
        r"my\s+(?:\w+\s+){0,2}(?:goal|dream|plan|ambition)\s+(?:is|has)",
        rf"{_BE}(?:currently\s+)?(?:training\s+for|saving\s+(?:up\s+)?for|learning\s+(?!more\b|about\b|a\s+(?:lot|ton)\b)|studying\s+(?:for|to)|"
        r"preparing\s+for|working\s+towards?|getting\s+married|moving\s+to|expecting|pregnant)",
        r"I(?:['’]m|\s+am)\s+(?:planning\s+(?:on|to\s+(?:move|visit|travel|retire|buy|start|run|get))|flying|travell?ing|leaving|"
        r"going\s+on\s+(?:a\s+)?(?:holiday|vacation|trip|leave))",
    ),
)

TELLING = (
    (
        re.compile(
            r"(?:^|[,;!?–-]\s*|\byears\s+|\bworking\s+)as\s+(an?\s+(?!result|matter|consequence|whole|side|bonus|rule|general)[^,.!?;:]{3,60}),",
            re.I,
        ),
        "identity",
        0.6,
    ),
    (
        re.compile(r"\bAs\s+(someone\s+who\s+[^,.!?;]{5,120}),", re.I),
        "preference",
        0.9,
    ),
)
"""Asides that tell who speaks; the group follows "The user is"."""

AFFECTED = re.compile(
    r"^(?!you|it|that|this|what|which|who|he|she|there|let|please|can|could|would|will|do|does)"
    r"(?:[^\s,.;!?]+\s+){1,8}(?:makes?|tends?\s+to\s+make|gives?|leaves?)\s+me\s+(?:feel\s+|feeling\s+)?"
    r"(?:(?:very|so|really|too|a\s+bit|quite)\s+)?(?:sick|ill|nauseous|nausea|dizzy|anxious|anxiety|uncomfortable|disoriented|"
    r"uneasy|nervous|stressed|headaches?|migraines?|bored|sad|tired|itchy|hives|sleepy|claustrophobic|happy|relaxed|energi[sz]ed)"
    r"|^(?!it|that|this)(?:[^\s,.;!?]+\s+){1,8}(?:isn['’]t|aren['’]t|is\s+not|are\s+not|just\s+isn['’]t)\s+(?:really\s+)?"
    r"(?:for\s+me|my\s+(?:thing|style|cup\s+of\s+tea))\b",
    re.I,
)
"""Things that do something to the user: "Strong perfumes give me headaches"."""

PASSING = re.compile(
    r"\b(?:my\s+(?:order|booking|reservation|confirmation|tracking|ticket|account|user|customer|phone|card|credit|member\w*|case|"
    r"passport|flight|invoice|login|e-?mail|password|pin)\b[^,.]{0,30}\b(?:is|are|number|id)\b|user\s*id|social\s+security|"
    r"api[_ -]?keys?|passwords?)\b"
    r"|\b(?:that\s+one|the\s+(?:first|second|third|last|other|next)\s+(?:one|option|suggestion)|option\s+\w\b|this\s+one)\b"
    r"|\d(?:[ -]?\d){5,}|\b(?:new|frequent|long-?time|loyal)\s+customer\b"
    r"|\binstead\W*$|\b(?:for|of)\s+(?:this|the)\s+(?:payment|booking|reservation|order|trip|flight|return|change|upgrade)\b|\bsame\s+day\b"
    r"|\bmy\s+original\b|\bthat\s+(?:time|date|flight|option|day)\b|\bif\s+it['’]s\b"
    r"|\b(?:like|love|prefer)\s+(?:(?:all|both)\s+)?(?:of\s+)?(?:the|your|these|those)\s+(?:[\w-]+\s+){0,5}?(?:ideas?|suggestions?|way|tips?|recommendations?|"
    r"concepts?|look|sound|approach|advice)\b|\ball\s+the\b",
    re.I,
)
"""Identifiers, secrets and choices of the moment: true today, and nothing to keep."""

DANGLING = re.compile(
    r"^\s*(?:(?:\w+ing|to\s+\w+|of|with|within|in|about|for|when)\s+){0,2}(?:them|it|those|these|this|that|him|her|his|here|there|you|your)\b",
    re.I,
)
"""What follows the beginning points at something said elsewhere: it would not stand alone."""

FOREIGN = re.compile(
    r"^(?:ich\s+(?:bin\s+(?:(?:ein[e]?\s+)?(?:strenge\w*\s+)?(?:vegetarier|veganer|allergisch|diabetiker|lehrer|arzt|ärztin|student)\w*)|"
    r"mag\s|bevorzuge|hasse|wohne\s+in|lebe\s+in|arbeite\s+(?:als|bei|in)|esse\s+(?:kein|nur|nie)|trinke\s+(?:kein|nur|nie)|vermeide|"
    r"habe\s+eine?\s+\w*allergie|heiße|vertrage\s+kein)|mein\s+name\s+ist"
    r"|(?:yo\s+)?(?:soy\s+(?:vegetarian|vegan|alérgic|diabétic|celíac|médic|profesor|maestr|enfermer|estudiante)\w*|prefiero|odio|evito|"
    r"vivo\s+en|trabajo\s+(?:como|en|de)|no\s+(?:me\s+gustan?|como|bebo|soporto|puedo\s+comer)|me\s+encantan?|me\s+gustan?\s+más|"
    r"me\s+llamo)"
    r"|je\s+(?:suis\s+(?:végétarien|végan|allergique|diabétique|médecin|professeur|infirmi|étudiant|enseignant)\w*|préfère|déteste|évite|"
    r"travaille\s+(?:comme|chez|à)|ne\s+(?:mange|bois|supporte)\s+(?:pas|jamais|plus)|n['’]aime\s+pas|m['’]appelle)"
    r"|j['’](?:adore|habite|évite|ai\s+une\s+allergie)|my\s+name\s+ist)(?=[\s,.!]|\b)",
    re.I,
)
"""German, Spanish and French beginnings of the same kinds. They are kept in the user's own words."""
