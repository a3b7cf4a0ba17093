"""What LangGraph and LangChain make of messages: `add_messages`, and the sum of pieces.

    messages.py SEED COUNT

Writes the cases and their results as LangGraph stores them.
"""

import functools
import operator
import random
import sys

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessageChunk,
    FunctionMessageChunk,
    HumanMessage,
    HumanMessageChunk,
    RemoveMessage,
    SystemMessageChunk,
    ToolMessageChunk,
    message_chunk_to_message,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages


def attempt(function, *args):
    try:
        return function(*args)
    except (ValueError, TypeError):
        return None


def fold(rng):
    def message(removal):
        id, text = f"m{rng.randrange(6)}", f"text {rng.random()}"
        if removal and rng.random() < 0.25:
            return RemoveMessage(id=id)
        if removal and rng.random() < 0.1:
            return RemoveMessage(id=REMOVE_ALL_MESSAGES)
        return rng.choice([HumanMessage, AIMessage, AIMessageChunk, HumanMessageChunk][: 2 + 2 * removal])(text, id=id)

    left = [message(False) for _ in range(rng.randrange(6))]
    right = [message(True) for _ in range(rng.randrange(6))]
    copies = [m.model_copy() for m in left], [m.model_copy() for m in right]
    return {"left": left, "right": right, "result": attempt(add_messages, *copies)}


def mapping(rng, depth=2):
    given = {}
    for key in rng.sample(["id", "index", "created", "output_version", "model_provider", "n", "t", "l", "m"], rng.randrange(4)):
        given[key] = {
            "id": lambda: rng.choice(["", "i", "j", None]),
            "index": lambda: rng.choice([0, 1, "lc_1"]),
            "created": lambda: rng.randrange(5),
            "output_version": lambda: "v2",
            "model_provider": lambda: "p",
            "n": lambda: rng.choice([1, 2, True, 0.5, None]),
            "t": lambda: rng.choice(["a", "b", None]),
            "l": lambda: blocks(rng),
            "m": lambda: mapping(rng, depth - 1) if depth else {},
        }[key]()
    return given


def blocks(rng):
    def block():
        kind = rng.randrange(6)
        index = {"index": rng.choice([0, 1, "lc_0", "own"])} if rng.random() < 0.8 else {}
        if kind == 0:
            return rng.choice(["", "loose"])
        if kind == 1:
            return {"type": "text", "text": "t", **index}
        if kind == 2:
            return {"type": "non_standard", "value": {"type": "x", "a": "b"}, **index}
        if kind == 3:
            return {"type": "tool_call_chunk", "id": rng.choice(["c0", "c1", None]), "args": "{", **index}
        if kind == 4:
            args = rng.choice(["", "{", '{"a":1}', None])
            return {"type": "server_tool_call_chunk", "id": "s", "args": args, **index}
        return {"reasoning": "r", "extras": {"sig": "s"}, **index}

    return [block() for _ in range(rng.randrange(1, 4))]


ARGS = ["", "{", '{"a": ', '"b\\', 'c"', "[1, 2", "}", '"x": {"y": [', "1.5", "nul", "}]", "\n", '"', ",", None]


def piece(rng, kind):
    given = {
        "content": rng.choice(["", "x", " y"]) if rng.random() < 0.6 else blocks(rng),
        "additional_kwargs": mapping(rng),
        "response_metadata": {"output_version": "v1"} if rng.random() < 0.3 else mapping(rng),
        "id": rng.choice([None, "", "lc_1", "lc_run-2", "given", "other"]),
    }
    if kind is AIMessageChunk:
        given["tool_call_chunks"] = [
            {"name": rng.choice([None, "f"]), "args": rng.choice(ARGS), "id": rng.choice([None, "", "c0", "c1"]), "index": rng.choice([None, 0, 1])}
            for _ in range(rng.randrange(3))
        ]
        given["usage_metadata"] = rng.choice(
            [
                None,
                {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
                {"input_tokens": 1, "output_tokens": 0, "total_tokens": 1, "input_token_details": {"cache_read": rng.randrange(3)}},
            ]
        )
        given["chunk_position"] = rng.choice([None, None, "last"])
    if kind is ToolMessageChunk:
        given["tool_call_id"] = rng.choice(["c", "c", "d"])
        given["status"] = rng.choice(["success", "error"])
        given["artifact"] = rng.choice([None, "a", [1], {"k": "v"}])
    if kind is ChatMessageChunk:
        given["role"] = rng.choice(["critic", "critic", "poet"])
    if kind is FunctionMessageChunk:
        given["name"] = rng.choice(["f", "f", "g"])
    return kind(**given)


def merge(rng):
    kinds = [AIMessageChunk] * 6 + [HumanMessageChunk, SystemMessageChunk, ToolMessageChunk, ChatMessageChunk, FunctionMessageChunk]
    kind = rng.choice(kinds)
    pieces = [piece(rng, kind) for _ in range(rng.randrange(1, 5))]
    merged = attempt(functools.reduce, operator.add, [one.model_copy(deep=True) for one in pieces])
    message = None if merged is None else message_chunk_to_message(merged)
    return {"pieces": pieces, "merged": merged, "message": message}


def main():
    seed, count = sys.argv[1:]
    rng = random.Random(seed)
    cases = {"folds": [fold(rng) for _ in range(int(count))], "merges": [merge(rng) for _ in range(int(count))]}
    sys.stdout.buffer.write(JsonPlusSerializer().dumps_typed(cases)[1])


main()
