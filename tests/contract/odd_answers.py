"""Answers of servers in the wild that say what was asked for, in one form or another: all of them are read."""

import json
from typing import Any

from tests.scripted_model import Raw

FACT = {"content": "Lives in Oslo.", "quote": "I moved to Oslo"}
RULE = {"content": "Offer a pickup point.", "quote": "then I'd rather\nfetch it"}
GOOD = {"facts": [FACT], "rules": [RULE]}
TEXT = json.dumps(GOOD)


def completion(message: dict[str, Any], finish: str | None = "stop", **more: Any) -> Raw:
    """A whole response; a value of `...` leaves the field out."""
    usage = {"prompt_tokens": 700, "completion_tokens": 50, "total_tokens": 750}
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "usage": usage}
    body |= {"choices": [{"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}}], **more}
    return Raw(json.dumps({name: value for name, value in body.items() if value is not ...}).encode())


def call(arguments: Any, **more: Any) -> dict[str, Any]:
    made = {"id": "c", "type": "function", "function": {"name": "answer", "arguments": arguments}, **more}
    return {name: value for name, value in made.items() if value is not ...}


def calls(*made: dict[str, Any], finish: str | None = "tool_calls", **more: Any) -> Raw:
    return completion({"content": None, "tool_calls": list(made)}, finish, **more)


def text(words: Any, finish: str | None = "stop", **more: Any) -> Raw:
    return completion({"content": words, **more}, finish)


def stream(*deltas: dict[str, Any]) -> Raw:
    chunks = [{"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    lines = [": keep-alive", *(f"data: {json.dumps(chunk)}" for chunk in chunks), "data: [DONE]"]
    return Raw("\n\n".join(lines).encode(), content_type="text/event-stream")


READ: dict[str, Raw] = {
    "a tool call": calls(call(TEXT)),
    "arguments as an object": calls(call(GOOD)),
    "arguments encoded twice": calls(call(json.dumps(TEXT))),
    "arguments and then a tag": calls(call(TEXT + "\n</function>")),
    "a raw line break in a string": calls(call(TEXT.replace("\\n", "\n"))),
    "a trailing comma": calls(call(TEXT[:-1] + ",}")),
    "one call for each list": calls(
        call(json.dumps({"facts": [FACT], "rules": []})), call({"rules": [RULE], "facts": []})
    ),
    "the same call twice": calls(call(TEXT), call(TEXT)),
    "another name of the tool": calls({"id": "c", "type": "function", "function": {"name": "f.x", "arguments": TEXT}}),
    "a call without id": calls(call(TEXT, id=...)),
    "a call with the id null": calls(call(TEXT, id=None)),
    "a call without type": calls(call(TEXT, type=...)),
    "the older function_call": completion({"content": None, "function_call": {"name": "answer", "arguments": TEXT}}),
    "no usage": calls(call(TEXT), usage=...),
    "usage null": calls(call(TEXT), usage=None),
    "usage of zeros": calls(call(TEXT), usage={"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}),
    "usage in words": calls(call(TEXT), usage={"prompt_tokens": "many", "details": None}),
    "no id, time and model": calls(call(TEXT), id=..., created=..., model=..., object=...),
    "finish null": calls(call(TEXT), finish=None),
    "finish of another kind": calls(call(TEXT), finish="end_turn"),
    "finish length with a whole answer": calls(call(TEXT), finish="length"),
    "wrapped in the name of the tool": calls(call(json.dumps({"answer": GOOD}))),
    "wrapped twice": calls(call(json.dumps({"arguments": json.dumps({"result": GOOD})}))),
    "a field more": calls(call(json.dumps({**GOOD, "thoughts": "hm"}))),
    "lists as strings": calls(call({name: json.dumps(value) for name, value in GOOD.items()})),
    "entries as strings": calls(call({name: [json.dumps(value[0])] for name, value in GOOD.items()})),
    "JSON as text": text(TEXT),
    "JSON in a fence between words": text(f"Of course {{name}}!\n```json\n{TEXT}\n```\nAnything {{else}}?"),
    "thoughts before": text(f"<think>Is {{facts: …}} right?</think>{TEXT}"),
    "thoughts without a beginning": text(f'Maybe {{"facts": []}}? No.\n</think>\n\n{TEXT}'),
    "a call written as text": text(f"<tool_call>{json.dumps({'name': 'answer', 'arguments': GOOD})}</tool_call>"),
    "content in parts": text([{"type": "text", "text": TEXT[:30]}, {"type": "text", "text": TEXT[30:]}]),
    "the answer among the thoughts": text(None, reasoning_content=f"So: {TEXT}"),
    "thoughts apart": text(TEXT, reasoning_content='{"facts": []}'),
    "a stream that nobody asked for": stream({"role": "assistant", "content": TEXT[:20]}, {"content": TEXT[20:]}),
    "a stream with a tool call": stream(
        {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "answer", "arguments": TEXT[:9]}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": TEXT[9:]}}]},
    ),
}

FACTS_ONLY: dict[str, Any] = {"facts": [FACT], "rules": []}
RULES_ONLY: dict[str, Any] = {"facts": [], "rules": [RULE]}
DRAFT = json.dumps({"facts": [{"content": "Lives in Rome.", "quote": "Rome"}], "rules": []})
JSON5 = """{facts: [{content: 'Lives in Oslo.', quote: "I moved to Oslo"}], // the move
  rules: [{"content": 'Offer a pickup point.', quote: 'then I\\'d rather\\nfetch it',},],}"""


def written_call(arguments: dict[str, Any]) -> str:
    return json.dumps({"name": "answer", "arguments": arguments})


def parts(form: str) -> str:
    """Both lists in a form such as `<{name}>{value}</{name}>`."""
    return "\n".join(form.format(name=name, value=json.dumps(value)) for name, value in GOOD.items())


def chunk(**delta: Any) -> str:
    return json.dumps({"choices": [{"delta": delta}]})


def events(*lines: str) -> Raw:
    return Raw("\r\n\r\n".join(f"data:{line}" for line in lines).encode(), content_type="text/event-stream")


def calls_in_stream(**more: Any) -> Raw:
    """Two calls under one number, or under none."""
    asked = [("a", FACTS_ONLY), ("b", RULES_ONLY)]
    made = [{"id": at, "function": {"name": "answer", "arguments": json.dumps(part)}, **more} for at, part in asked]
    return events(*(chunk(tool_calls=[call]) for call in made))


NEARLY_JSON: dict[str, Raw] = {
    "the repr of Python": text(repr(GOOD)),
    "the repr of Python in a call": calls(call(repr(GOOD))),
    "JSON5": text(JSON5),
    "JSON5 in a call": calls(call(JSON5)),
    "typographic quotes": text(TEXT.replace('"', "”")),
    "a comment behind the last field": text(TEXT[:-1] + "\n// done\n}"),
    "a comment before the first field": text("{/* facts first */" + TEXT[1:]),
    "NaN in a field more": text(TEXT[:-1] + ', "confidence": NaN}'),
    "undefined in a field more": text(TEXT[:-1] + ', "confidence": undefined}'),
    "an escaped apostrophe": text(TEXT.replace("I'd", "I\\'d")),
    "a missing comma": text(TEXT.replace('}], "rules"', '}] "rules"')),
    "quotes of HTML": text(TEXT.replace('"', "&quot;")),
    "no brace at the end": text(TEXT[:-1]),
    "no brackets at the end of a call": calls(call(TEXT[:-2])),
    "a thousand lists in a field more": text(TEXT[:-1] + ', "x": ' + "[" * 1000 + "]" * 1000 + "}"),
}
SHAPES: dict[str, Raw] = {
    "names in capitals": text(TEXT.replace('"facts"', '"Facts"').replace('"quote"', '"QUOTE"')),
    "an entry without its list": text(json.dumps({"facts": FACT, "rules": RULE})),
    "entries by number": text(json.dumps({"facts": {"1": FACT}, "rules": {"1": RULE}})),
    "inside of the schema": text(json.dumps({"type": "object", "properties": GOOD})),
    "behind a thought in the object": text(json.dumps({"thought": "I see {facts}.", "answer": GOOD})),
    "encoded three times": calls(call(json.dumps(json.dumps(TEXT)))),
    "arguments in a list": calls(call([GOOD])),
    "in a list": text(f"[{TEXT}]"),
    "in a list of two": text(json.dumps([FACTS_ONLY, RULES_ONLY])),
    "in two objects": text(f"{json.dumps(FACTS_ONLY)}\n{json.dumps(RULES_ONLY)}"),
    "in two code fences": text("\n".join(f"```json\n{json.dumps({name: GOOD[name]})}\n```" for name in GOOD)),
    "in two objects with words between": text("\nThen: ".join(json.dumps({name: GOOD[name]}) for name in GOOD)),
}
WRITTEN_CALLS: dict[str, Raw] = {
    "two written calls": text(
        "".join(f"<tool_call>{written_call(part)}</tool_call>\n" for part in (FACTS_ONLY, RULES_ONLY))
    ),
    "as Mistral writes calls": text(f"[TOOL_CALLS][{written_call(FACTS_ONLY)}, {written_call(RULES_ONLY)}]"),
    "as Mistral writes them now": text(f"[TOOL_CALLS]answer[ARGS]{TEXT}"),
    "as Llama writes calls": text(f'<|python_tag|>{{"name": "answer", "parameters": {TEXT}}}'),
    "as a tag of the function": text(f"<function=answer>{TEXT}</function>"),
    "as Qwen Coder writes calls": text(
        f"<tool_call><function=answer>{parts('<parameter={name}>{value}</parameter>')}</function>"
    ),
    "as GLM writes calls": text(
        f"<tool_call>answer\n{parts('<arg_key>{name}</arg_key><arg_value>{value}</arg_value>')}</tool_call>"
    ),
    "as Claude writes calls": text(
        f'<invoke name="answer">{parts("""<parameter name="{name}">{value}</parameter>""")}</invoke>'
    ),
    "as a call in Python": text(f"[answer(facts={[FACT]!r}, rules={[RULE]!r})]"),
    "as Gemma writes calls": text(
        f"```tool_code\nprint(answer(facts={json.dumps([FACT])}, rules={json.dumps([RULE])}))\n```"
    ),
    "as DeepSeek writes calls": text(
        f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>answer\n```json\n{TEXT}\n```<｜tool▁call▁end｜>"
    ),
    "as Kimi writes calls": text(
        f"<|tool_call_begin|>functions.answer:0<|tool_call_argument_begin|>{TEXT}<|tool_call_end|>"
    ),
    "as tags": text(f"<answer>{parts('<{name}>{value}</{name}>')}</answer>"),
    "under headings": text(parts("### {name}\n```json\n{value}\n```")),
    "behind names in bold": text(parts("**{name}**:\n{value}")),
}
THOUGHTS: dict[str, Raw] = {
    f"a draft before {end}": text(f"{begin}Maybe {DRAFT}?{end}{TEXT}")
    for begin, end in [
        ("[THINK]", "[/THINK]"),
        ("◁think▷", "◁/think▷"),
        ("<reasoning>", "</reasoning>"),
        ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
        ("Thought: ", " That is wrong.\nAnswer: "),
    ]
}
MESSAGES: dict[str, Raw] = {
    "content as an object": text(GOOD),
    "content as a list with an object": text([GOOD]),
    "content with the call of another protocol": text([{"type": "tool_use", "name": "answer", "input": GOOD}]),
    "content with text in an object": text([{"type": "text", "text": {"value": TEXT}}]),
    "content with a part of thoughts": text([{"type": "thinking", "thinking": DRAFT}, {"type": "text", "text": TEXT}]),
    "words and a call": completion({"content": "I note that.", "tool_calls": [call(TEXT)]}),
    "a call without arguments beside the text": completion({"content": TEXT, "tool_calls": [call("")]}),
    "one call without its list": completion({"content": None, "tool_calls": call(TEXT)}),
    "choices without their list": completion({}, choices={"message": {"content": TEXT}}),
    "the whole wrapped once more": Raw(json.dumps({"data": json.loads(text(TEXT).body)}).encode()),
    "as Ollama answers": Raw(
        json.dumps({"message": {"content": TEXT}, "prompt_eval_count": 9, "eval_count": 8}).encode()
    ),
    "as Anthropic answers": Raw(
        json.dumps(
            {"role": "assistant", "content": [{"type": "tool_use", "input": GOOD}], "stop_reason": "tool_use"}
        ).encode()
    ),
    "a mark of the byte order": Raw(b"\xef\xbb\xbf" + text(TEXT).body),
    "status 201": Raw(text(TEXT).body, 201),
    "numbers for id and model": calls(call(TEXT, id=5), id=1, model=7, created="today"),
    "finish as a number": calls(call(TEXT), finish=1),  # type: ignore[arg-type]
    "odd fields beside the text": text(TEXT, refusal=False, annotations="none", audio=1),
    "usage as a list": calls(call(TEXT), usage=[]),
    "usage below zero": calls(call(TEXT), usage={"prompt_tokens": -1, "completion_tokens": -1}),
    "usage of nothing received": calls(call(TEXT), usage={"prompt_tokens": 700, "completion_tokens": 0}),
}
STREAMS: dict[str, Raw] = {
    "chunks without `data`": Raw("\n".join([chunk(content=TEXT[:20]), chunk(content=TEXT[20:])]).encode()),
    "a stream that ends with the whole message": events(
        chunk(content=TEXT), json.dumps({"choices": [{"message": {"content": TEXT}}]}), "[DONE]"
    ),
    "a stream of calls under one number": calls_in_stream(index=0),
    "a stream of calls without number": calls_in_stream(),
    "a stream with arguments as an object": events(chunk(tool_calls=[{"index": 0, "function": {"arguments": GOOD}}])),
}
READ |= NEARLY_JSON | SHAPES | WRITTEN_CALLS | THOUGHTS | MESSAGES | STREAMS
