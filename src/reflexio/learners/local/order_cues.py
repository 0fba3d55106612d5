"""How users tell an agent to do otherwise: rejecting, instructing, asking to forget, confirming."""

import re

from reflexio.learners.local.phrases import phrase

REJECTING = phrase(
    r"^((um+|uh|hmm+|oh|but|sorry|hey|well|ok(ay)?)[\s,]+)*("
    r"no+(?=\s*[,.!–—-])|nope|no (?=(that|this|it|you|i (said|asked|meant|want))\b)|wrong|incorrect|not (quite|what|"
    r"like that|right)|(that|this|it)('s| is| was) (\w+ ){0,2}?(wrong|incorrect|false|not (right|correct|true|what|"
    r"it|how|helpful)|outdated|too (long|short|vague|complicated|formal|technical|generic|verbose|much))|"
    r"(that|this) (isn't|wasn't|is not) (right|correct|true|what|it|how|helpful)|"
    r"(that|this|it) (still )?(doesn't|didn't|does not|did not|won't) (work|help|compile|run|answer|solve|fix|match)|"
    r"(that|this|it)('s| is)? still\s|still (not|wrong|the same|no\b|broken|fail)|"
    r"i (already )?(told|asked) you|i (just )?said\b|as i said|i (already )?asked for|"
    r"i (meant|didn't (ask|mean|want|say)|never (asked|said|received|got))|"
    r"you (forgot|missed|misunderstood|ignored|got (it|that|this) wrong|didn't|did not|keep|should(n't| not)? have|"
    r"were supposed|again\s)|stop \w+ing|actually\s*,? (it|that|the|you|this|no|please|use|i (meant|asked|said|"
    r"wanted))|nein\b|falsch\b|das (ist (falsch|nicht richtig)|stimmt nicht)|no, eso|eso (no es|está mal)|incorrecto|"
    r"non\s*,|c'est faux|ce n'est pas|(way |much |far )?too (long|short|vague|complicated|formal|technical|generic|"
    r"verbose)\b|"
    r"(it|this) (should|needs to) (?!be (fine|ok|okay|good|great|fun|enough|possible|there|nice|easy|all|it)\b)"
    r"(be|use|say|include|contain|start|end)\b|[\w-]+( [\w-]+){0,4}, not [\w-]+( [\w-]+){0,4}[.!]*$)",
)
"""At the beginning of what a user says after an answer: they do not accept it."""

PLAIN_NO = phrase(r"^((um+|uh|hmm+|oh|well|ok(ay)?)[\s,]+)*(no+|nope|nein|non)\b")
"""Turns an answer down, unless it answers a question."""
ABIDING = phrase(r"\b(always|never|ever|every|any|anything|again|from now|future)\b")
"""Words by which an order outlives the moment."""

TASK = phrase(r"make sure\b|stop (\w+ing\W*$|talking|playing|it\b|that\b|the\b)")
"""Without an answer before it, a task like any other."""

FAILED = phrase(
    r"\b((doesn't|didn't|does not|did not|isn't|is not|still not|not) (work|working|help|helping|compile|run|load|"
    r"there)|same (error|problem|issue|result)|still (get|getting|see|seeing|broken|fails?|failing|happens|not)|"
    r"never (received|arrived|got|worked)|no luck|fails? with|keeps? (failing|crashing|happening))\b",
)
"""An attempt that came to nothing."""

STANDING = phrase(
    r"^(from now on|going forward|in (the )?future|for (the )?future (reference|answers?|replies)|next time|"
    r"from here on|henceforth|every time|each time|as a rule|by default|in general|for all future \w+|"
    r"ab (jetzt|sofort)|in zukunft|künftig|a partir de ahora|de ahora en adelante|en el futuro|"
    r"à partir de maintenant|désormais|dorénavant|à l'avenir)\b[\s,:]*",
)
STANDING_LATER = phrase(
    r"\b(from now on|from here on|going forward|in (the )?future)\b|[\s,]+(next time|every time|each time)[.!]*$",
)
"""An order that outlives the moment, said at its beginning or later in it."""

LEAD_IN = phrase(
    r"^((no+|nope|wrong|incorrect|and|but|so|also|ok(ay)?|well|sorry|hey|hi|hello|thanks|thank you|great|hmm+|oh|"
    r"actually|again|yes|please|pls|just|instead|then|look|listen|remember|btw|by the way|like i said|as i said|"
    r"(that|this|it)('s| is) (wrong|incorrect|not (right|correct|it))|"
    r"nein|bitte|por favor|non|s'il (te|vous) pla[iî]t)\b(\s*[,.!:;–—-]+\s*| ))+",
)

TOLD = phrase(
    r"^(i('ve| have)? (already |just |specifically )?(told|asked|reminded) you ((before|already|twice|many times) )?"
    r"(that (?=you\b)|not to |to )?|(can|could|would|will) you (please )?(?=(always|never|stop|not)\b)|"
    r"(please )?remember to |keep in mind (that )?(to )?|be sure to )",
)
"""What stands between a user and the order that follows."""

ADVISED = phrase(
    r"^((i (want|need|would like|expect)|i'd like) you to|you (should|must|need to|have to|ought to)) (really )?"
    r"(?!(have|know|see|be able|try|check out|come|visit|watch|meet)\b)",
)
"""An order only where an answer was turned down; among friends it is advice."""

_NEVER_MIND = (
    r"worry|know|think|mind|get me wrong|be (sorry|silly|shy)|forget|have|understand|see|believe|remember|want|need|"
    r"like|care|mention it|ask|bother|hesitate|feel|seem|really|even|you\b|we\b|they\b|let (me|it)"
)
ENCOURAGING = phrase(
    r"\b(give up|quit(?! (the|it|this|my|a)\b)|miss a beat|(bring|get|drag) you down|let (any|no)\w* stop|"
    r"be (scared|afraid|discouraged|so hard|too hard|sad)|get discouraged|"
    r"lose (hope|faith)|stop (believing|dreaming|trying)|your (dreams?|heart|passion|head up)|believe in yourself|"
    r"always here|take care|stay (strong|positive|safe)|keep (going|it up|up the)|do it$|have (fun|a good)|good luck|"
    r"say never|miss out)\b",
)
"""Good wishes have the form of orders."""
ORDER = phrase(
    rf"^(always (?!been\b|a\s|nice|good|great|the\s|happy|here\b|up\b|down\b|in\b|on\b|\w+ing\b)\w+|never (?!mind|"
    rf"been|heard|had|seen|tried|thought|knew|again|a\s|saw|got|did|was|were|felt|expected|imagined|too\b|i\b|"
    rf"received)\w+|(do not|don't) (ever |always )?(?!({_NEVER_MIND})\b)\w+|stop (?!by\b|at\b|there|in\b)\w+ing\b|"
    rf"avoid \w+ing\b|"
    r"make sure (to|you|that|it|the)\s|refrain from|quit \w+ing\b|"
    r"immer\s|nie(mals)?\s|nicht\s|kein[e]?\s|(siempre|nunca)\s|no (uses|hagas|pongas|escribas|me)\s|(toujours|"
    r"jamais)\s|ne \w+ (pas|jamais)\s)",
)
"""An order that stands by itself, at the beginning of a clause."""

IMPERATIVE = phrase(
    r"^(use|give|show|write|answer|reply|respond|send|put|add|include|keep|call|check|ask|say|explain|list|start|"
    r"begin|end|return|format|convert|round|sort|skip|leave|remove|drop|limit|stick|refer|link|cite|quote|mention|"
    r"confirm|verify|run|try|read|look|search|book|order|schedule|tell|speak|talk|translate|spell|name|import|test|"
    r"deploy|commit|set|turn|switch|make|do(?! (i|you|we|they)\b)|be|take|get|"
    r"go|open|only|provide|offer|escalate|apply|charge|refund|wait|double-check|follow|focus|quote|address|count|"
    r"calculate|exclude|prefer|assume|default|handle|delete|clean|clear|restart|reset|reboot|update|upgrade|unplug|"
    r"plug|press|hold|uninstall|reinstall|enable|disable|select|choose|enter|copy|paste|edit|save|close|download|log|"
    r"contact|create|connect|disconnect|tap|click|insert|point|install|pass|wrap|move|rename|replace|sign|attach|"
    r"summari[sz]e|shorten)\b",
)
"""A verb that begins a direct order; believed only after a rejection or with a word that makes it stand."""

SHOULD = phrase(
    r"^(it|that|this|the [\w\s-]{1,40}?|they|there|prices?|dates?|answers?|replies|[\w-]+s?) (should|must|needs? to|"
    r"has to|have to|is supposed to|are supposed to|ought to) (?!have been|be (so|really|such)\b)(always |never |"
    r"not )?(be|have|use|go|say|include|"
    r"contain|come|read|start|end|stay|return|look|only|point|fit|match|\w+)\b",
)
"""How a thing should be: "it should be in euros"."""
MEANT = phrase(r"^i (meant|asked for|said|(already )?told you) (that )?(?!no\b|so\b)")
X_NOT_Y = phrase(r"^[\w-]+( [\w-]+){0,4}, not [\w-]+( [\w-]+){0,4}$")
NOT_BUT = phrase(r"^(not .{2,60}?,\s*(but )?\S|(it|that|this)'s \S.{1,60},\s*not\s)")
REPROACHES = (
    (phrase(r"^you (forgot|failed|neglected|were supposed) to "), "be sure to "),
    (phrase(r"^you (didn't|did not) (?!have\b|know\b|need\b|mean\b)"), "be sure to "),
    (phrase(r"^you (forgot|missed|left out|ignored|omitted) "), "do not leave out "),
    (phrase(r"^you keep (on )?(?=\w+ing\b)"), "stop "),
    (phrase(r"^you (?=should(n't| not)? have\b)"), "the agent "),
)
"""What the agent is blamed for, and how the instruction begins that avoids it."""

CONDITION_FIRST = phrase(
    r"^((when(ever)?|if|every time|each time|any time) (?P<when>(?!i (can|could|have|had|was|were|am|do|don't)\b)(i|"
    r"you|we|someone|a|an|the|there)\b[^,]{3,120})),\s*(then )?(please )?(?P<then>.+)$",
    re.S,
)
CONDITION_LAST = phrase(
    r"^(?P<then>.{8,200}?),? (when(ever)?|every time|each time|any time|if) (?P<when>(i|you|we|someone|a|an|"
    r"there)\s.{3,100})$",
    re.S,
)
"""An order that says itself when it holds."""

REASON = phrase(r"(,| because| since| as) (?=(I|my|I'\w+) ).*$", re.S)
"""Why the user wants it: told about them, not ordered."""

POLITE_ORDER = phrase(r"\b(can|could|would|will) you (please )?(always|never|stop|not)\b")
"""A question in form only."""
STATEMENT = phrase(
    r"^(i|you|we|he|she|it|they|there|this|that|these|those|the|an?|my|your|our|his|her|their|what|how|why|when|"
    r"where|who|is|are|was|were|will|would|can|could|may|might|should|some|more|no|yes|if|as|with|it's|that's|let's|"
    r"i'\w+|we'\w+|you'\w+|not|and|or|but|so|hopefully|maybe|perhaps|in|at|on|for|to|of|ich|du|sie|wir|yo|tú|usted|"
    r"je|tu|vous|nous)(?=[\s,]|'|$)",
)
"""After "from now on": a sentence with a subject, and so no order."""
FOREIGN = phrase(
    r"^(immer|nie|niemals|nicht|kein|keine|siempre|nunca|toujours|jamais|ne)\b|[äöüßñ¿¡éèàç]|\b(bitte|antworte|"
    r"por favor|responde)\b",
)

SMALL_TALK = phrase(
    r"^((hi|hello|hey|thanks|thank you|thx|great|perfect|ok(ay)?|sure|yes|yeah|no|good (morning|evening|afternoon)|"
    r"bye|cheers|lol|haha|nice|cool|awesome|wow|please)\b[\s,.!]*)+(there|so much|you|everyone|again|a lot)?[\s,.!]*$",
)
