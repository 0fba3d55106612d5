"""Instructions: what users tell the agent to do differently from now on, and what they ask it to forget.

Cues are data: patterns for the beginnings of clauses. What an instruction applies to is decided in `triggers`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from reflexio.language.words import phrase
from reflexio.learners.local.sentences import MASK, Sentence, as_instruction, in_third_person, own_sentences
from reflexio.models.extraction import Turn

EVERYTHING = "everything about the user"
_END_OF_ANSWER = 250  # characters in which an answer asks its question

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
"""Begins what a user says after an answer that they do not accept."""

_PLAIN_NO = phrase(r"^((um+|uh|hmm+|oh|well|ok(ay)?)[\s,]+)*(no+|nope|nein|non)\b")
"""Rejects an answer, unless it answers a question."""
_ABIDING = phrase(r"\b(always|never|ever|every|any|anything|again|from now|future)\b")
"""Words that make an instruction outlast the moment."""

_TASK = phrase(r"make sure\b|stop (\w+ing\W*$|talking|playing|it\b|that\b|the\b)")
"""Only a task when no answer comes before it."""

FAILED = phrase(
    r"\b((doesn't|didn't|does not|did not|isn't|is not|still not|not) (work|working|help|helping|compile|run|load|"
    r"there)|same (error|problem|issue|result)|still (get|getting|see|seeing|broken|fails?|failing|happens|not)|"
    r"never (received|arrived|got|worked)|no luck|fails? with|keeps? (failing|crashing|happening))\b",
)
"""An attempt that failed."""

STANDING = phrase(
    r"^(from now on|going forward|in (the )?future|for (the )?future (reference|answers?|replies)|next time|"
    r"from here on|henceforth|every time|each time|as a rule|by default|in general|for all future \w+|"
    r"ab (jetzt|sofort)|in zukunft|künftig|a partir de ahora|de ahora en adelante|en el futuro|"
    r"à partir de maintenant|désormais|dorénavant|à l'avenir)\b[\s,:]*",
)
_STANDING_LATER = phrase(
    r"\b(from now on|from here on|going forward|in (the )?future)\b|[\s,]+(next time|every time|each time)[.!]*$"
)
"""Words at the beginning of an instruction, or later in it, that make it a standing one."""

LEAD_IN = phrase(
    r"^((no+|nope|wrong|incorrect|and|but|so|also|ok(ay)?|well|sorry|hey|hi|hello|thanks|thank you|great|hmm+|oh|"
    r"actually|again|yes|please|pls|just|instead|then|look|listen|remember|btw|by the way|like i said|as i said|"
    r"(that|this|it)('s| is) (wrong|incorrect|not (right|correct|it))|"
    r"nein|bitte|por favor|non|s'il (te|vous) pla[iî]t)\b(\s*[,.!:;–—-]+\s*| ))+",
)

_REMINDER = phrase(
    r"^(i('ve| have)? (already |just |specifically )?(told|asked|reminded) you ((before|already|twice|many times) )?"
    r"(that (?=you\b)|not to |to )?|(can|could|would|will) you (please )?(?=(always|never|stop|not)\b)|"
    r"(please )?remember to |keep in mind (that )?(to )?|be sure to )",
)
"""Words that introduce the instruction itself."""

_ADVISED = phrase(
    r"^((i (want|need|would like|expect)|i'd like) you to|you (should|must|need to|have to|ought to)) (really )?"
    r"(?!(have|know|see|be able|try|check out|come|visit|watch|meet)\b)",
)
"""An instruction only after a rejected answer; among friends it is advice."""

_NEVER_MIND = (
    r"worry|know|think|mind|get me wrong|be (sorry|silly|shy)|forget|have|understand|see|believe|remember|want|need|"
    r"like|care|mention it|ask|bother|hesitate|feel|seem|really|even|you\b|we\b|they\b|let (me|it)"
)
_ENCOURAGING = phrase(
    r"\b(give up|quit(?! (the|it|this|my|a)\b)|miss a beat|(bring|get|drag) you down|let (any|no)\w* stop|"
    r"be (scared|afraid|discouraged|so hard|too hard|sad)|get discouraged|"
    r"lose (hope|faith)|stop (believing|dreaming|trying)|your (dreams?|heart|passion|head up)|believe in yourself|"
    r"always here|take care|stay (strong|positive|safe)|keep (going|it up|up the)|do it$|have (fun|a good)|good luck|"
    r"say never|miss out)\b",
)
"""Good wishes that have the form of instructions."""
ORDER = phrase(
    rf"^(always (?!been\b|a\s|nice|good|great|the\s|happy|here\b|up\b|down\b|in\b|on\b|\w+ing\b)\w+|never (?!mind|"
    rf"been|heard|had|seen|tried|thought|knew|again|a\s|saw|got|did|was|were|felt|expected|imagined|too\b|i\b|"
    rf"received)\w+|(do not|don't) (ever |always )?(?!({_NEVER_MIND})\b)\w+|stop (?!by\b|at\b|there|in\b)\w+ing\b|"
    rf"avoid \w+ing\b|"
    r"make sure (to|you|that|it|the)\s|refrain from|quit \w+ing\b|"
    r"immer\s|nie(mals)?\s|nicht\s|kein[e]?\s|(siempre|nunca)\s|no (uses|hagas|pongas|escribas|me)\s|(toujours|"
    r"jamais)\s|ne \w+ (pas|jamais)\s)",
)
"""Begins a clause that is an instruction without further signs."""

IMPERATIVE = phrase(
    r"^(use|give|show|write|answer|reply|respond|send|put|add|include|keep|call|check|ask|say|explain|list|start|begin|"
    r"end|return|format|convert|round|sort|skip|leave|remove|drop|limit|stick|refer|link|cite|quote|mention|confirm|"
    r"verify|run|try|read|look|search|book|order|schedule|tell|speak|talk|translate|spell|name|import|test|deploy|"
    r"commit|set|turn|switch|make|do(?! (i|you|we|they)\b)|be|take|get|go|open|only|provide|offer|escalate|apply|"
    r"charge|refund|wait|double-check|follow|focus|quote|address|count|calculate|exclude|prefer|assume|default|handle|"
    r"delete|clean|clear|restart|reset|reboot|update|upgrade|unplug|plug|press|hold|uninstall|reinstall|enable|disable|"
    r"select|choose|enter|copy|paste|edit|save|close|download|log|contact|create|connect|disconnect|tap|click|insert|"
    r"point|install|pass|wrap|move|rename|replace|sign|attach|summari[sz]e|shorten)\b",
)
"""A verb that begins a direct order; believed only after a rejection or in a standing instruction."""

_SHOULD = phrase(
    r"^(it|that|this|the [\w\s-]{1,40}?|they|there|prices?|dates?|answers?|replies|[\w-]+s?) (should|must|needs? to|"
    r"has to|have to|is supposed to|are supposed to|ought to) (?!have been|be (so|really|such)\b)(always |never |"
    r"not )?(be|have|use|go|say|include|"
    r"contain|come|read|start|end|stay|return|look|only|point|fit|match|\w+)\b",
)
"""How something should be: "it should be in euros"."""
_MEANT = phrase(r"^i (meant|asked for|said|(already )?told you) (that )?(?!no\b|so\b)")
_X_NOT_Y = phrase(r"^[\w-]+( [\w-]+){0,4}, not [\w-]+( [\w-]+){0,4}$")
_NOT_BUT = phrase(r"^(not .{2,60}?,\s*(but )?\S|(it|that|this)'s \S.{1,60},\s*not\s)")
_REPROACHES = (
    (phrase(r"^you (forgot|failed|neglected|were supposed) to "), "be sure to "),
    (phrase(r"^you (didn't|did not) (?!have\b|know\b|need\b|mean\b)"), "be sure to "),
    (phrase(r"^you (forgot|missed|left out|ignored|omitted) "), "do not leave out "),
    (phrase(r"^you keep (on )?(?=\w+ing\b)"), "stop "),
    (phrase(r"^you (?=should(n't| not)? have\b)"), "the agent "),
)
"""What the agent is blamed for, and how the instruction begins that avoids it."""

_CONDITION_FIRST = phrase(
    r"^((when(ever)?|if|every time|each time|any time) (?P<when>(?!i (can|could|have|had|was|were|am|do|don't)\b)(i|"
    r"you|we|someone|a|an|the|there)\b[^,]{3,120})),\s*(then )?(please )?(?P<then>.+)$",
    re.S,
)
_CONDITION_LAST = phrase(
    r"^(?P<then>.{8,200}?),? (when(ever)?|every time|each time|any time|if) (?P<when>(i|you|we|someone|a|an|"
    r"there)\s.{3,100})$",
    re.S,
)
"""An instruction that names its own condition."""

_REASON = phrase(r"(,| because| since| as) (?=(I|my|I'\w+) ).*$", re.S)
"""The reason that a user adds: a fact about them, not part of the instruction."""

_POLITE_ORDER = phrase(r"\b(can|could|would|will) you (please )?(always|never|stop|not)\b")
"""An instruction in the form of a question."""
_STATEMENT = phrase(
    r"^(i|you|we|he|she|it|they|there|this|that|these|those|the|an?|my|your|our|his|her|their|what|how|why|when|"
    r"where|who|is|are|was|were|will|would|can|could|may|might|should|some|more|no|yes|if|as|with|it's|that's|let's|"
    r"i'\w+|we'\w+|you'\w+|not|and|or|but|so|hopefully|maybe|perhaps|in|at|on|for|to|of|ich|du|sie|wir|yo|tú|usted|"
    r"je|tu|vous|nous)(?=[\s,]|'|$)",
)
"""A sentence with a subject after "from now on": no instruction."""
_FOREIGN = phrase(
    r"^(immer|nie|niemals|nicht|kein|keine|siempre|nunca|toujours|jamais|ne)\b|[äöüßñ¿¡éèàç]|\b(bitte|antworte|"
    r"por favor|responde)\b",
)

SMALL_TALK = phrase(
    r"^((hi|hello|hey|thanks|thank you|thx|great|perfect|ok(ay)?|sure|yes|yeah|no|good (morning|evening|afternoon)|"
    r"bye|cheers|lol|haha|nice|cool|awesome|wow|please)\b[\s,.!]*)+(there|so much|you|everyone|again|a lot)?[\s,.!]*$",
)

_FORGET = phrase(
    r"^(can you |could you |i want you to |i'd like you to |you can |please |just |now )*("
    r"forget (what i (said|told you) (about|regarding) |everything (you know )?(about )?|all (you know )?about |"
    r"that |about |what you know (about )?)?(?P<what>(i\b|my\b|me\b|the\b|our\b|we\b|\w).{1,200})|"
    r"(delete|remove|erase|drop|clear|wipe) (everything|all|anything|what(ever)?|the (fact|note|preference|rule|"
    r"memory))?\s*(that )?(you('ve| have)? (know|learned|learnt|stored|saved|remember(ed)?|noted) )?(about|on|"
    r"regarding|that) (?P<what2>.{2,200})|(delete|remove|erase) (?P<what3>.{2,150}?) from (your )?(memory|profile|"
    r"records?|notes?)|(do not|don't|stop) (remember(ing)?|stor(e|ing)|keep(ing)? track of) (?P<what4>.{2,200})|"
    r"vergiss\s*,?\s*(dass )?(?P<what5>.{3,200})|olvida (que )?(?P<what6>.{3,200})|oublie (que )?(?P<what7>.{3,200}))$",
    re.S,
)
_NOT_TO_FORGET = phrase(
    r"^(forget (it|that|this|about (it|that|this)|you|him|her|them|the (whole )?(thing|idea))\s*[.!,]?\s*$|"
    r"forget to\b)",
)
_UNNAMED = phrase(r"(what|how|to|it|this|these|those|why|who)\b")


@dataclass(frozen=True)
class Instruction:
    """What the user wants. `trigger` is empty unless the instruction names its own condition."""

    weight: float
    content: str
    trigger: str
    rationale: str
    sentence: Sentence


@dataclass(frozen=True)
class Clause:
    """What is left of a sentence while its introduction is removed, and what the introduction said."""

    own: str
    text: str
    is_rejection: bool = False  # the user rejects an answer
    is_standing: bool = False  # "from now on", "next time", "whenever"
    begins_standing: bool = False  # it begins with these words
    is_reminder: bool = False  # "I told you to", "you should"
    is_negated: bool = False  # "I asked you not to"
    trigger: str = ""

    def after(self, match: re.Match[str] | None) -> "Clause":
        return replace(self, own=self.own[match.end() :], text=self.text[match.end() :]) if match else self

    def without_reason(self) -> "Clause":
        reason = _REASON.search(self.own, 1)
        return replace(self, own=self.own[: reason.start()], text=self.text[: reason.start()]) if reason else self


def instructions(turns: Sequence[Turn], place: int) -> Iterator[Instruction]:
    """The instructions in one turn of the user, given the turns before it."""
    answer = next((turn.content.rstrip() for turn in reversed(turns[:place]) if turn.role == "agent"), "")
    has_question = "?" in answer[-_END_OF_ANSWER:]
    is_rejection = is_refusal = False
    for sentence in own_sentences(turns[place]):
        says_no = bool(_PLAIN_NO.match(sentence.own))
        is_refusal = is_refusal or (has_question and says_no)
        is_rejection = is_rejection or bool(answer and REJECTING.match(sentence.own) and not (has_question and says_no))
        instruction = _instruction(sentence, is_rejection=is_rejection)
        is_momentary = is_refusal or (not answer and instruction and _TASK.match(instruction.content))
        # "No, don't book it" answers the question; "No, never book it" is meant for the next time, too.
        if instruction and (instruction.trigger or _ABIDING.search(sentence.own) or not is_momentary):
            yield instruction


def rejects(turn: Turn) -> bool:
    return any(REJECTING.match(sentence.own) or FAILED.search(sentence.own) for sentence in own_sentences(turn))


def to_forget(sentence: Sentence) -> str:
    """What the user asks to forget, in the third person; empty when a sentence is no such request."""
    core = LEAD_IN.sub("", sentence.own)
    own, text = core.rstrip(" .!?"), sentence.text[len(sentence.own) - len(core) :]
    request = _FORGET.match(own)
    if not request or _NOT_TO_FORGET.match(own):
        return ""
    group = next(name for name, match in request.groupdict().items() if match)
    subject = text[request.start(group) : request.end(group)].strip()
    if _UNNAMED.match(subject):
        return ""
    if subject.lower() in {"me", "about me", "i", "everything", "everything about me"}:
        return EVERYTHING
    return in_third_person(subject).rstrip(".")


def _instruction(sentence: Sentence, *, is_rejection: bool) -> Instruction | None:
    if MASK in sentence.own or (sentence.is_question and not _POLITE_ORDER.search(sentence.own)):
        return None
    clause = Clause(sentence.own.rstrip(" .!?"), sentence.text.rstrip(" .!?"), is_rejection)
    clause = _without_introduction(clause).without_reason()
    content = "" if len(clause.own.split()) < 2 else _content(clause)
    if not content:
        return None
    if clause.is_negated:
        content = f"Do not {content[:1].lower()}{content[1:]}"
    rationale = "The user gave this instruction."
    if is_rejection:
        rationale = "The user rejected the answer and said how it should be."
    weight = 1.3 if clause.is_standing or ORDER.match(clause.own) else 1.2
    if clause.is_rejection and clause.is_standing:
        weight = 1.4
    return Instruction(weight, content, clause.trigger, rationale, sentence)


def _without_introduction(clause: Clause) -> Clause:
    clause = clause.after(LEAD_IN.match(clause.own))
    standing = STANDING.match(clause.own)
    is_standing = bool(standing or _STANDING_LATER.search(clause.own))
    clause = replace(clause.after(standing), is_standing=is_standing, begins_standing=bool(standing))
    clause = _with_condition(clause)
    outlasts = clause.is_rejection or clause.is_standing or _ABIDING.search(clause.own)
    reminder = _REMINDER.match(clause.own) or (_ADVISED.match(clause.own) if outlasts else None)
    is_negated = bool(reminder and reminder.group().rstrip().lower().endswith(" not to"))
    return replace(clause.after(reminder), is_reminder=bool(reminder), is_negated=is_negated)


def _with_condition(clause: Clause) -> Clause:
    """ "When I ask for code, …" names its own condition, and so is a standing instruction."""
    match = _CONDITION_FIRST.match(clause.own) or _CONDITION_LAST.match(clause.own)
    if not match:
        return clause
    then = match["then"]
    if match.re is _CONDITION_LAST and not (clause.is_standing or ORDER.match(then)):
        return clause
    if not (ORDER.match(then) or IMPERATIVE.match(then) or _REMINDER.match(then)):
        return clause
    (start, end), (first, last) = match.span("when"), match.span("then")
    trigger = in_third_person(clause.text[start:end]).rstrip(".")
    return replace(clause, own=clause.own[first:last], text=clause.text[first:last], is_standing=True, trigger=trigger)


def _content(clause: Clause) -> str:
    """The instruction, or nothing when the clause is none."""
    own, text = clause.own, clause.text
    if _ENCOURAGING.search(own):
        return ""
    is_direct = clause.is_rejection or clause.is_standing or clause.is_reminder
    is_order = ORDER.match(own) or (is_direct and IMPERATIVE.match(own))
    if is_order or (clause.begins_standing and not _STATEMENT.match(own)):
        return f"Do as the user said: “{text}”." if _FOREIGN.search(text) else as_instruction(text)
    if not (clause.is_rejection or clause.is_standing):
        return ""
    if _SHOULD.match(own):
        return as_instruction(re.sub(r"^(?:it|that|this)\b", "The answer", text, flags=re.I))
    if meant := _MEANT.match(own):
        return "Take it as the user meant it: " + as_instruction(text[meant.end() :])
    for reproach, remedy in _REPROACHES:
        if match := reproach.match(own):
            return as_instruction(remedy + text[match.end() :])
    if _X_NOT_Y.match(own):
        return as_instruction(f"the answer should be {text}")
    if _NOT_BUT.match(own):
        return as_instruction(re.sub(r"^(?:it|that|this)['’]s\b", "The answer is", text, flags=re.I))
    return ""
