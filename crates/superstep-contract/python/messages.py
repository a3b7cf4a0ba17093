"""The other side of threads with messages and with values of many types: LangGraph makes them, and looks at them again when
Rust has run the next node.

    messages.py make sqlite FILE SEED COUNT
    messages.py check sqlite FILE SEED COUNT
    messages.py make postgres URL SEED COUNT
    messages.py check postgres URL SEED COUNT

The values depend on the seed alone. `check` fails if a message is not of the class it was, or not equal to what it was.
"""

import random
import sqlite3
import sys
import warnings
from collections import deque, namedtuple
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from ipaddress import ip_address, ip_network
from pathlib import PurePosixPath, PosixPath
from typing import Annotated, Any, Literal, TypedDict
from uuid import UUID
import re

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    ChatMessageChunk,
    FunctionMessage,
    FunctionMessageChunk,
    HumanMessage,
    HumanMessageChunk,
    RemoveMessage,
    SystemMessage,
    SystemMessageChunk,
    ToolMessage,
    ToolMessageChunk,
    message_chunk_to_message,
)
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import _messages_delta_reducer, add_messages
from pydantic import BaseModel

warnings.filterwarnings("ignore")


class Graded(AIMessage):
    """A class of a user, with a field of its own."""

    grade: float = 0.5


class Poem(BaseMessage):
    """A class of a user, of a type of its own."""

    type: Literal["poem"] = "poem"
    verses: list[str] = []
    status: str = "draft"


class Shout(AIMessageChunk):
    """Pieces of a class of a user."""

    loud: bool = True


class Color(Enum):
    RED = "red"
    BLUE = 7


@dataclass
class Point:
    x: Any
    y: Any


class Model(BaseModel):
    name: str
    inner: Any = None


Pair = namedtuple("Pair", ["left", "right"])

TEXTS = ["", "hi", "Grüße", "日本語", "a\nb", "\u0000", "🦀" * 40, "x" * 300, "é" * 20_000]


class State(TypedDict):
    whole: Annotated[list, add_messages]
    deltas: Annotated[list, DeltaChannel(_messages_delta_reducer)]
    last: list
    other: Any
    untouched: Any


def text(rng):
    return rng.choice(TEXTS[:8]) if rng.random() < 0.97 else TEXTS[8]


def number(rng):
    return rng.choice([0, 1, -1, 127, 128, -33, 255, 256, 65_535, 65_536, 2**32, -(2**31) - 1, 2**63, 2**64 - 1, -(2**63)])


def plain(rng, depth=3):
    """What JSON can hold."""
    kind = rng.randrange(8 if depth else 5)
    if kind == 0:
        return rng.choice([None, True, False])
    if kind == 1:
        return number(rng)
    if kind == 2:
        return rng.choice([0.0, -0.5, 1e300, 3.0, 0.1])
    if kind < 5:
        return text(rng)
    if kind == 5:
        return [plain(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {text(rng): plain(rng, depth - 1) for _ in range(rng.randrange(5))}


def any_value(rng, depth=3):
    kinds = [
        lambda: plain(rng, depth),
        lambda: rng.randbytes(rng.choice([0, 1, 40, 300])),
        lambda: datetime(2024, 2, 29, 12, 30, 5, 7, rng.choice([None, timezone.utc, timezone(timedelta(hours=2))])),
        lambda: date(2024, 2, 29),
        lambda: time(1, 2, 3, 4, rng.choice([None, timezone.utc])),
        lambda: timedelta(rng.randrange(400), 3, 4),
        lambda: UUID(int=rng.getrandbits(128)),
        lambda: Decimal(rng.choice(["1.10", "-0", "1E+40"])),
        lambda: {rng.choice([1, "b", 3.5, b"x", "zz"]) for _ in range(rng.randrange(5))},
        lambda: frozenset(rng.sample(range(1000), rng.randrange(6))),
        lambda: deque([plain(rng, 1)], maxlen=None),
        lambda: PosixPath("/tmp") / "x",
        lambda: ip_address("10.0.0.1"),
        lambda: ip_network("fe80::/64"),
        lambda: re.compile("a+b", re.IGNORECASE),
        lambda: rng.choice(list(Color)),
        lambda: Point(any_value(rng, depth - 1), 2) if depth else Point(1, 2),
        lambda: Model(name=text(rng), inner=plain(rng, 1)),
        lambda: Pair(1, any_value(rng, depth - 1)) if depth else Pair(1, 2),
        lambda: {k: plain(rng, 1) for k in rng.sample([1, "a", None, 2.5, b"k", -7, True], 4)},
        lambda: [any_value(rng, depth - 1) for _ in range(rng.randrange(5))] if depth else [],
        lambda: {text(rng): any_value(rng, depth - 1) for _ in range(rng.randrange(5))} if depth else {},
    ]
    return rng.choice(kinds)()


def fields(rng):
    """Fields of any message; what `model_dump` keeps as it is may be anything."""
    given = {}
    if rng.random() < 0.3:
        given["additional_kwargs"] = {text(rng): any_value(rng, 2) for _ in range(rng.randrange(3))}
        if rng.random() < 0.3:
            given["additional_kwargs"][5] = "five"
    if rng.random() < 0.3:
        given["response_metadata"] = {"model_name": "m", "created": number(rng), text(rng): plain(rng, 2)}
    if rng.random() < 0.3:
        given["name"] = text(rng)
    for name in ["example", "lc_extra", "status" if rng.random() < 0.1 else "score"]:
        if rng.random() < 0.2:
            given[name] = plain(rng, 2)
    return given


def content(rng):
    if rng.random() < 0.5:
        return text(rng)
    blocks = [
        lambda: text(rng),
        lambda: {"type": "text", "text": text(rng), "index": 0},
        lambda: {"type": "reasoning", "reasoning": text(rng), "extras": {"signature": "s"}},
        lambda: {"type": "image", "mime_type": "image/png", "base64": "iVBORw0KGgo="},
        lambda: {"type": "image_url", "image_url": {"url": "data:..."}},
        lambda: {"type": "non_standard", "value": {"a": plain(rng, 1)}},
        lambda: {"type": "tool_call", "id": "c", "name": "f", "args": {"a": plain(rng, 1)}},
        lambda: {"whatever": plain(rng, 2), "b": any_value(rng, 1)},
    ]
    return [rng.choice(blocks)() for _ in range(rng.randrange(4))]


def call(rng, nth):
    return {"name": text(rng), "args": {text(rng): plain(rng, 2)}, "id": rng.choice([None, f"call {nth}"])}


def usage(rng):
    if rng.random() < 0.5:
        return None
    given = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    if rng.random() < 0.5:
        given["input_token_details"] = {"cache_read": 1, "vendor": 2}
    return given


def ai(rng):
    given = {"usage_metadata": usage(rng)}
    if rng.random() < 0.5:
        given["tool_calls"] = [call(rng, nth) for nth in range(rng.randrange(3))]
    if rng.random() < 0.3:
        given["invalid_tool_calls"] = [{"name": "f", "args": "{", "id": "c", "error": rng.choice([None, "bad"])}]
    return given


def ai_chunk(rng):
    given = {"usage_metadata": usage(rng), "chunk_position": rng.choice([None, "last"])}
    if rng.random() < 0.6:
        given["tool_call_chunks"] = [
            {"name": rng.choice([None, "f"]), "args": rng.choice([None, "", '{"a":', "[1", '{"a": 1}']), "id": "c", "index": nth}
            for nth in range(rng.randrange(3))
        ]
    return given


def tool(rng):
    given = {"tool_call_id": text(rng), "status": rng.choice(["success", "error"])}
    if rng.random() < 0.5:
        given["artifact"] = any_value(rng)
    return given


def message(rng, nth, pieces=True, removal=False):
    id = {"id": f"m{nth}"}
    whole = [
        lambda: HumanMessage(content(rng), **id, **fields(rng)),
        lambda: AIMessage(content(rng), **id, **fields(rng), **ai(rng)),
        lambda: SystemMessage(content(rng), **id, **fields(rng)),
        lambda: ToolMessage(content(rng), **{**id, **fields(rng), **tool(rng)}),
        lambda: ChatMessage(content=content(rng), role=text(rng), **id, **fields(rng)),
        lambda: FunctionMessage(content=content(rng), **{**id, **fields(rng), "name": "fn"}),
        lambda: Graded(content(rng), grade=rng.random(), **id, **fields(rng), **ai(rng)),
        lambda: Poem(content=content(rng), verses=["a", "b"], **{**id, **fields(rng), "status": "done"}),
    ]
    parts = [
        lambda: HumanMessageChunk(content(rng), **id, **fields(rng)),
        lambda: AIMessageChunk(content(rng), **id, **fields(rng), **ai_chunk(rng)),
        lambda: SystemMessageChunk(content(rng), **id, **fields(rng)),
        lambda: ToolMessageChunk(content(rng), **{**id, **fields(rng), **tool(rng)}),
        lambda: ChatMessageChunk(content=content(rng), role=text(rng), **id, **fields(rng)),
        lambda: FunctionMessageChunk(content=content(rng), **{**id, **fields(rng), "name": "fn"}),
        lambda: Shout(content(rng), **id, **fields(rng), **ai_chunk(rng)),
    ]
    others = [lambda: RemoveMessage(**{**fields(rng), **id}), lambda: BaseMessage(content=content(rng), type="own", **id)]
    return rng.choice(whole + parts * pieces + others * removal)()


def values(seed, nth):
    rng = random.Random(f"{seed} {nth}")
    return {
        "whole": [message(rng, at) for at in range(rng.randrange(1, 9))],
        "deltas": [message(rng, at) for at in range(rng.randrange(1, 9))],
        "last": [message(rng, at, removal=True) for at in range(rng.randrange(1, 9))],
        "other": [any_value(rng) for _ in range(6)],
        "untouched": {str(at): any_value(rng) for at in range(6)},
    }


@contextmanager
def opened(kind, place):
    if kind == "sqlite":
        from langgraph.checkpoint.sqlite import SqliteSaver

        yield SqliteSaver(sqlite3.connect(place, check_same_thread=False))
    else:
        from langgraph.checkpoint.postgres import PostgresSaver

        with PostgresSaver.from_conn_string(place) as saver:
            saver.setup()
            yield saver


def compiled(saver, written):
    graph = StateGraph(State)
    graph.add_node("python", lambda state: written)
    graph.add_node("rust", lambda state: {"other": "not to run"})
    graph.add_edge(START, "python")
    graph.add_edge("python", "rust")
    graph.add_edge("rust", END)
    return graph.compile(checkpointer=saver, interrupt_before=["rust"])


def again(value):
    """The value as LangGraph itself reads it from what it stored."""
    serde = JsonPlusSerializer()
    return serde.loads_typed(serde.dumps_typed(value))


def same(found, expected, where):
    assert len(found) == len(expected), f"{where}: {len(found)} messages, not {len(expected)}"
    for at, (one, other) in enumerate(zip(found, expected)):
        assert type(one) is type(other), f"{where}, message {at}: {type(one)}, not {other!r}"
        assert one.model_dump() == other.model_dump(), f"{where}, message {at}:\n{one!r}\nnot\n{other!r}"
        assert list(one.model_dump()) == list(other.model_dump()), f"{where}, message {at}: other order of fields"
        assert one == other, f"{where}, message {at}:\n{one!r}\nnot\n{other!r}"


def main():
    task, kind, place, seed, count = sys.argv[1:]
    with opened(kind, place) as saver:
        for nth in range(int(count)):
            written = values(seed, nth)
            config = {"configurable": {"thread_id": f"messages {nth}"}}
            graph = compiled(saver, written)
            if task == "make":
                graph.invoke({"other": None}, config)
                continue
            state = graph.get_state(config)
            assert state.next == (), state.next
            found = state.values
            added = [AIMessage("from Rust", id="rust")]
            whole = [message_chunk_to_message(message) for message in written["whole"]]
            same(found["whole"], again(whole) + added, f"thread {nth}, `whole`")
            same(found["deltas"], again(written["deltas"]) + added, f"thread {nth}, `deltas`")
            same(found["last"], again(written["last"]) + added, f"thread {nth}, `last`")
            for name in ["other", "untouched"]:
                shown, expected = repr(found[name]), repr(again(written[name]))
                assert shown == expected, f"thread {nth}, `{name}`:\n{shown}\nnot\n{expected}"


main()
