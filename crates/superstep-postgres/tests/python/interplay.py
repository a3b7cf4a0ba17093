"""The other engine's side of the interplay test.

interplay.py write URL          makes a thread `py` by running a graph, and prints what is stored of it
interplay.py dump URL THREAD    prints what this engine reads of a thread
interplay.py store URL          puts an item into the store, and prints all items it finds there

Each value is printed as the bytes this engine encodes it to, so that equal lines are equal values.
"""

import json
import sys
import uuid
from datetime import datetime, timezone
from operator import add
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.store.postgres import PostgresStore
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt


class State(TypedDict, total=False):
    messages: Annotated[list, add_messages]
    log: Annotated[list, add]
    count: int
    ratio: float
    great: int
    text: str
    long: str
    flag: bool
    nothing: Any
    raw: bytes
    mixed: Any


def draft(state):
    return {
        "messages": [AIMessage("draft", id="m2")],
        "log": ["draft"],
        "count": 1,
        "ratio": 0.1,
        "great": 2**64 - 1,
        "text": "Grüße",
        "long": "x" * 5000,
        "flag": True,
        "nothing": None,
        "raw": b"\x00\xff",
        "mixed": {
            "set": {1, 2},
            "uuid": uuid.UUID(int=7),
            "time": datetime(2025, 1, 2, 3, 4, 5, tzinfo=timezone.utc),
            "tuple": (1, "a"),
            1: float("nan"),
        },
    }


def review(state):
    return {"log": [interrupt({"question": "ok?"})]}


def write(saver):
    saver.setup()
    graph = StateGraph(State)
    graph.add_node("draft", draft)
    graph.add_node("review", review)
    graph.add_edge(START, "draft")
    graph.add_edge("draft", "review")
    graph.add_edge("review", END)
    app = graph.compile(checkpointer=saver)
    config = {"configurable": {"thread_id": "py"}, "metadata": {"user": "ada", "run_id": "r1"}}
    app.invoke({"messages": [HumanMessage("hi", id="m1")], "log": []}, config)
    app.invoke(Command(resume="yes"), config)
    config["metadata"]["run_id"] = "r2"
    app.invoke({"count": 5}, config)


def dump(saver, thread):
    def typed(value):
        tag, data = saver.serde.dumps_typed(value)
        return [tag, data.hex()]

    for found in saver.list({"configurable": {"thread_id": thread}}):
        checkpoint = found.checkpoint
        parent = found.parent_config and found.parent_config["configurable"]["checkpoint_id"]
        line = {
            "id": checkpoint["id"],
            "ns": found.config["configurable"]["checkpoint_ns"],
            "parent": parent,
            "values": {name: typed(value) for name, value in checkpoint["channel_values"].items()},
            "versions": checkpoint["channel_versions"],
            "seen": checkpoint["versions_seen"],
            "updated": checkpoint.get("updated_channels"),
            "metadata": found.metadata,
            "writes": [[task, channel, *typed(value)] for task, channel, value in found.pending_writes],
        }
        print(json.dumps(line))


def store(url):
    with PostgresStore.from_conn_string(url) as items:
        items.setup()
        items.put(("users", "bob"), "python", {"n": 2, "f": 0.5, "deep": {"list": [1, "é", None]}}, ttl=5)
        for found in items.search(("users",)):
            line = {"ns": list(found.namespace), "key": found.key, "value": found.value}
            print(json.dumps(line))


def main():
    mode, url, *rest = sys.argv[1:]
    if mode == "store":
        return store(url)
    with PostgresSaver.from_conn_string(url) as saver:
        if mode == "write":
            write(saver)
            dump(saver, "py")
        else:
            dump(saver, rest[0])


main()
