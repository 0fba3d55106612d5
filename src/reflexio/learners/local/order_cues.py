"""How users tell an agent to do otherwise: rejecting, instructing, asking to forget, confirming."""

import re

REJECTING = re.compile(
    r"^(?:(?:um+|uh|hmm+|oh|but|sorry|hey|well|ok(?:ay)?)[\s,]+)*(?:"
    r"no+(?=\s*[,.!–—-])|nope|no\s+(?=(?:that|this|it|you|i\s+(?:said|asked|meant|want))\b)|wrong|incorrect|not\s+(?:quite|what|like\s+that|right)|"
    r"(?:that|this|it)(?:['’]s|\s+is|\s+was)\s+(?:\w+\s+){0,2}?(?:wrong|incorrect|false|not\s+(?:right|correct|true|what|it|how|helpful)|"
    r"outdated|too\s+(?:long|short|vague|complicated|formal|technical|generic|verbose|much))|"
    r"(?:that|this)\s+(?:isn['’]t|wasn['’]t|is\s+not)\s+(?:right|correct|true|what|it|how|helpful)|"
    r"(?:that|this|it)\s+(?:still\s+)?(?:doesn['’]t|didn['’]t|does\s+not|did\s+not|won['’]t)\s+(?:work|help|compile|run|answer|solve|fix|match)|"
    r"(?:that|this|it)(?:['’]s|\s+is)?\s+still\s|still\s+(?:not|wrong|the\s+same|no\b|broken|fail)|"
    r"i\s+(?:already\s+)?(?:told|asked)\s+you|i\s+(?:just\s+)?said\b|as\s+i\s+said|i\s+(?:already\s+)?asked\s+for|"
    r"i\s+(?:meant|didn['’]t\s+(?:ask|mean|want|say)|never\s+(?:asked|said|received|got))|"
    r"you\s+(?:forgot|missed|misunderstood|ignored|got\s+(?:it|that|this)\s+wrong|didn['’]t|did\s+not|keep|should(?:n['’]t|\s+not)?\s+have|"
    r"were\s+supposed|again\s)|stop\s+\w+ing|"
    r"actually\s*,?\s+(?:it|that|the|you|this|no|please|use|i\s+(?:meant|asked|said|wanted))|"
    r"nein\b|falsch\b|das\s+(?:ist\s+(?:falsch|nicht\s+richtig)|stimmt\s+nicht)|no,\s+eso|eso\s+(?:no\s+es|está\s+mal)|incorrecto|"
    r"non\s*,|c['’]est\s+faux|ce\s+n['’]est\s+pas)",
    re.I,
)
"""At the beginning of what a user says after an answer: they do not accept it."""

PLAIN_NO = re.compile(r"^(?:(?:um+|uh|hmm+|oh|well|ok(?:ay)?)[\s,]+)*(?:no+|nope|nein|non)\b", re.I)
"""Turns an answer down, unless it answers a question."""
ABIDING = re.compile(r"\b(?:always|never|ever|every|any|anything|again|from\s+now|future)\b", re.I)
"""Words by which an order outlives the moment."""

TASK = re.compile(r"(?:make\s+sure|stop)\b", re.I)
"""Without an answer before it, a task like any other."""

FAILED = re.compile(
    r"\b(?:(?:doesn['’]t|didn['’]t|does\s+not|did\s+not|isn['’]t|is\s+not|still\s+not|not)\s+(?:work|working|help|helping|compile|run|load|there)|"
    r"same\s+(?:error|problem|issue|result)|still\s+(?:get|getting|see|seeing|broken|fails?|failing|happens|not)|"
    r"never\s+(?:received|arrived|got|worked)|no\s+luck|fails?\s+with|keeps?\s+(?:failing|crashing|happening))\b",
    re.I,
)
"""An attempt that came to nothing."""

WORKED = re.compile(
    r"\b(?:(?:that|this|it|which|the\s+\w+(?:\s+\w+)?)\s+(?:finally\s+|really\s+|actually\s+|totally\s+|now\s+|just\s+)?"
    r"(?:worked|works\s+now|did\s+(?:it|the\s+trick)|does\s+the\s+trick|fixed\s+(?:it|the|that|my)|solved\s+(?:it|the|that|my))|"
    r"it\s+(?:finally\s+|now\s+)?works|(?:problem|issue)\s+(?:is\s+)?solved|^found\s+it(?=\s*[.!,]|\s*$)|working\s+now|"
    r"it['’]s\s+(?:fixed|working|solved)|that['’]s\s+exactly\s+what\s+i\s+(?:needed|wanted|meant|was\s+looking\s+for)|"
    r"(?:das|jetzt)\s+(?:hat\s+)?(?:geklappt|funktioniert|geht\s+es)|(?:ya\s+)?funcion[aó]|ça\s+marche|ça\s+a\s+marché)(?!\w)"
    r"(?!\s+(?:for\s+(?:a|the|\d)|until|fine\s+before|but|like|out|on\s+me))",
    re.I,
)
"""The user says that it worked: an outcome, not a courtesy."""
NOT_YET = re.compile(
    r"\b(?:if|whether|hope|unless|until|doesn['’]t|didn['’]t|not|never|almost|before|used\s+to|how\s+it)\b|\?", re.I
)

STANDING = re.compile(
    r"^(?:from\s+now\s+on|going\s+forward|in\s+(?:the\s+)?future|for\s+(?:the\s+)?future\s+(?:reference|answers?|replies)|next\s+time|"
    r"from\s+here\s+on|henceforth|every\s+time|each\s+time|as\s+a\s+rule|by\s+default|in\s+general|for\s+all\s+future\s+\w+|"
    r"ab\s+(?:jetzt|sofort)|in\s+zukunft|künftig|a\s+partir\s+de\s+ahora|de\s+ahora\s+en\s+adelante|en\s+el\s+futuro|"
    r"à\s+partir\s+de\s+maintenant|désormais|dorénavant|à\s+l['’]avenir)\b[\s,:]*",
    re.I,
)
STANDING_AT_THE_END = re.compile(
    r"[\s,]+(?:from\s+now\s+on|going\s+forward|in\s+(?:the\s+)?future|next\s+time|every\s+time|each\s+time|from\s+here\s+on)[.!]*$",
    re.I,
)

LEAD_IN = re.compile(
    r"^(?:(?:no+|nope|wrong|incorrect|and|but|so|also|ok(?:ay)?|well|sorry|hey|hi|hello|thanks|thank\s+you|great|hmm+|oh|actually|again|"
    r"yes|please|pls|just|instead|then|look|listen|remember|btw|by\s+the\s+way|like\s+i\s+said|as\s+i\s+said|"
    r"(?:that|this|it)(?:['’]s|\s+is)\s+(?:wrong|incorrect|not\s+(?:right|correct|it))|"
    r"nein|bitte|por\s+favor|non|s['’]il\s+(?:te|vous)\s+pla[iî]t)\b(?:\s*[,.!:;–—-]+\s*|\s+))+",
    re.I,
)

TOLD = re.compile(
    r"^(?:i(?:['’]ve|\s+have)?\s+(?:already\s+|just\s+|specifically\s+)?(?:told|asked|reminded)\s+you\s+(?:(?:before|already|twice|many\s+times)\s+)?"
    r"(?:that\s+(?=you\b)|not\s+to\s+|to\s+)?|"
    r"(?:can|could|would|will)\s+you\s+(?:please\s+)?(?=(?:always|never|stop|not)\b)|"
    r"(?:please\s+)?remember\s+to\s+|keep\s+in\s+mind\s+(?:that\s+)?(?:to\s+)?|be\s+sure\s+to\s+)",
    re.I,
)
"""What stands between a user and the order that follows."""

ADVISED = re.compile(
    r"^(?:(?:i\s+(?:want|need|would\s+like|expect)|i['’]d\s+like)\s+you\s+to|you\s+(?:should|must|need\s+to|have\s+to|ought\s+to))\s+(?:really\s+)?"
    r"(?!(?:have|know|see|be\s+able|try|check\s+out|come|visit|watch|meet)\b)",
    re.I,
)
"""An order only where an answer was turned down; among friends it is advice."""

_NEVER_MIND = (
    r"worry|know|think|mind|get\s+me\s+wrong|be\s+(?:sorry|silly|shy)|forget|have|understand|see|believe|remember|want|need|like|care|"
    r"mention\s+it|ask|bother|hesitate|feel|seem|really|even|you\b|we\b|they\b|let\s+(?:me|it)"
)
ENCOURAGING = re.compile(
    r"\b(?:give\s+up|quit(?!\s+(?:the|it|this|my|a)\b)|miss\s+a\s+beat|(?:bring|get|drag)\s+you\s+down|let\s+(?:any|no)\w*\s+stop|be\s+(?:scared|afraid|discouraged|so\s+hard|too\s+hard|sad)|get\s+discouraged|"
    r"lose\s+(?:hope|faith)|stop\s+(?:believing|dreaming|trying)|your\s+(?:dreams?|heart|passion|head\s+up)|believe\s+in\s+yourself|always\s+here|"
    r"take\s+care|stay\s+(?:strong|positive|safe)|keep\s+(?:going|it\s+up|up\s+the)|do\s+it$|have\s+(?:fun|a\s+good)|good\s+luck|"
    r"say\s+never|miss\s+out)\b",
    re.I,
)
"""Good wishes have the form of orders."""
ORDER = re.compile(
    rf"^(?:always\s+(?!been\b|a\s|nice|good|great|the\s|happy|here\b|up\b|down\b|in\b|on\b|\w+ing\b)\w+|never\s+(?!mind|been|heard|had|seen|tried|thought|knew|again|a\s|saw|got|did|was|were|felt|expected|imagined|too\b|i\b|received)\w+|"
    rf"(?:do\s+not|don['’]t)\s+(?:ever\s+|always\s+)?(?!(?:{_NEVER_MIND})\b)\w+|stop\s+(?!by\b|at\b|there|in\b)\w+ing\b|avoid\s+\w+ing\b|"
    r"make\s+sure\s+(?:to|you|that|it|the)\s|refrain\s+from|quit\s+\w+ing\b|"
    r"immer\s|nie(?:mals)?\s|nicht\s|kein[e]?\s|(?:siempre|nunca)\s|no\s+(?:uses|hagas|pongas|escribas|me)\s|(?:toujours|jamais)\s|"
    r"ne\s+\w+\s+(?:pas|jamais)\s)",
    re.I,
)
"""An order that stands by itself, at the beginning of a clause."""

IMPERATIVE = re.compile(
    r"^(?:use|give|show|write|answer|reply|respond|send|put|add|include|keep|call|check|ask|say|explain|list|start|begin|end|return|"
    r"format|convert|round|sort|skip|leave|remove|drop|limit|stick|refer|link|cite|quote|mention|confirm|verify|run|try|read|look|"
    r"search|book|order|schedule|tell|speak|talk|translate|spell|name|import|test|deploy|commit|set|turn|switch|make|do(?!\s+(?:i|you|we|they)\b)|be|take|get|"
    r"go|open|only|provide|offer|escalate|apply|charge|refund|wait|double-check|follow|focus|quote|address|count|calculate|exclude|"
    r"prefer|assume|default|handle|delete|clean|clear|restart|reset|reboot|update|upgrade|unplug|plug|press|hold|uninstall|reinstall|"
    r"enable|disable|select|choose|enter|copy|paste|edit|save|close|download|log|contact|create|connect|disconnect|tap|click|insert|point|"
    r"install|pass|wrap|move|rename|replace|sign|attach|summari[sz]e|shorten)\b",
    re.I,
)
"""A verb that begins a direct order; believed only after a rejection or with a word that makes it stand."""

SHOULD = re.compile(
    r"^(?:it|that|this|the\s+[\w\s-]{1,40}?|they|there|prices?|dates?|answers?|replies|[\w-]+s?)\s+(?:should|must|needs?\s+to|has\s+to|have\s+to|"
    r"is\s+supposed\s+to|are\s+supposed\s+to|ought\s+to)\s+(?:always\s+|never\s+|not\s+)?(?:be|have|use|go|say|include|contain|come|read|"
    r"start|end|stay|return|look|only|point|fit|match|\w+)\b",
    re.I,
)
"""How a thing should be: "it should be in euros"."""
MEANT = re.compile(r"^i\s+(?:meant|asked\s+for|said|(?:already\s+)?told\s+you)\s+(?:that\s+)?(?!no\b|so\b)", re.I)
NOT_BUT = re.compile(r"^(?:not\s+.{2,60}?,\s*(?:but\s+)?\S|(?:it|that|this)['’]s\s+\S.{1,60},\s*not\s)", re.I)
REPROACHES = (
    (re.compile(r"^you\s+(?:forgot|failed|neglected|were\s+supposed)\s+to\s+", re.I), "be sure to "),
    (re.compile(r"^you\s+(?:didn['’]t|did\s+not)\s+(?!have\b|know\b|need\b|mean\b)", re.I), "be sure to "),
    (re.compile(r"^you\s+(?:forgot|missed|left\s+out|ignored|omitted)\s+", re.I), "do not leave out "),
    (re.compile(r"^you\s+keep\s+(?:on\s+)?(?=\w+ing\b)", re.I), "stop "),
    (re.compile(r"^you\s+(?=should(?:n['’]t|\s+not)?\s+have\b)", re.I), "the agent "),
)
"""What the agent is blamed for, and how the instruction begins that avoids it."""

CONDITION_FIRST = re.compile(
    r"^(?:(?:when(?:ever)?|if|every\s+time|each\s+time|any\s+time)\s+(?P<when>(?!i\s+(?:can|could|have|had|was|were|am|do|don['’]t)\b)(?:i|you|we|someone|a|an|the|there)\b[^,]{3,120})),\s*"
    r"(?:then\s+)?(?:please\s+)?(?P<then>.+)$",
    re.I | re.S,
)
CONDITION_LAST = re.compile(
    r"^(?P<then>.{8,200}?),?\s+(?:when(?:ever)?|every\s+time|each\s+time|any\s+time|if)\s+(?P<when>(?:i|you|we|someone|a|an|there)\s.{3,100})$",
    re.I | re.S,
)
"""An order that says itself when it holds."""

POLITE_ORDER = re.compile(r"\b(?:can|could|would|will)\s+you\s+(?:please\s+)?(?:always|never|stop|not)\b", re.I)
"""A question in form only."""
STATEMENT = re.compile(
    r"^(?:i|you|we|he|she|it|they|there|this|that|these|those|the|an?|my|your|our|his|her|their|what|how|why|when|where|who|is|are|"
    r"was|were|will|would|can|could|may|might|should|some|more|no|yes|if|as|with|it['’]s|that['’]s|let['’]s|i['’]\w+|we['’]\w+|"
    r"you['’]\w+|not|and|or|but|so|hopefully|maybe|perhaps|in|at|on|for|to|of|ich|du|sie|wir|yo|tú|usted|je|tu|vous|nous)(?=[\s,'’]|$)",
    re.I,
)
"""After "from now on": a sentence with a subject, and so no order."""
FOREIGN = re.compile(
    r"^(?:immer|nie|niemals|nicht|kein|keine|siempre|nunca|toujours|jamais|ne)\b|[äöüßñ¿¡éèàç]|\b(?:bitte|antworte|por favor|responde)\b",
    re.I,
)

FORGET = re.compile(
    r"^(?:can\s+you\s+|could\s+you\s+|i\s+want\s+you\s+to\s+|i['’]d\s+like\s+you\s+to\s+|you\s+can\s+|please\s+|just\s+|now\s+)*(?:"
    r"forget\s+(?:what\s+i\s+(?:said|told\s+you)\s+(?:about|regarding)\s+|everything\s+(?:you\s+know\s+)?(?:about\s+)?|all\s+(?:you\s+know\s+)?about\s+|"
    r"that\s+|about\s+|what\s+you\s+know\s+(?:about\s+)?)?(?P<what>(?:i\b|my\b|me\b|the\b|our\b|we\b|\w).{1,200})|"
    r"(?:delete|remove|erase|drop|clear|wipe)\s+(?:everything|all|anything|what(?:ever)?|the\s+(?:fact|note|preference|rule|memory))?\s*"
    r"(?:that\s+)?(?:you(?:['’]ve|\s+have)?\s+(?:know|learned|learnt|stored|saved|remember(?:ed)?|noted)\s+)?(?:about|on|regarding|that)\s+(?P<what2>.{2,200})|"
    r"(?:delete|remove|erase)\s+(?P<what3>.{2,150}?)\s+from\s+(?:your\s+)?(?:memory|profile|records?|notes?)|"
    r"(?:do\s+not|don['’]t|stop)\s+(?:remember(?:ing)?|stor(?:e|ing)|keep(?:ing)?\s+track\s+of)\s+(?P<what4>.{2,200})|"
    r"vergiss\s*,?\s*(?:dass\s+)?(?P<what5>.{3,200})|olvida\s+(?:que\s+)?(?P<what6>.{3,200})|oublie\s+(?:que\s+)?(?P<what7>.{3,200}))$",
    re.I | re.S,
)
NOT_FORGOTTEN = re.compile(
    r"^(?:forget\s+(?:it|that|this|about\s+(?:it|that|this)|you|him|her|them|the\s+(?:whole\s+)?(?:thing|idea))\s*[.!,]?\s*$|forget\s+to\b)",
    re.I,
)

SMALL_TALK = re.compile(
    r"^(?:(?:hi|hello|hey|thanks|thank\s+you|thx|great|perfect|ok(?:ay)?|sure|yes|yeah|no|good\s+(?:morning|evening|afternoon)|"
    r"bye|cheers|lol|haha|nice|cool|awesome|wow|please)\b[\s,.!]*)+(?:there|so\s+much|you|everyone|again|a\s+lot)?[\s,.!]*$",
    re.I,
)
