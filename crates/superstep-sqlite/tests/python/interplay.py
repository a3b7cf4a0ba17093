"""The other side of `python_and_rust_read_each_other.rs`: LangGraph's own SqliteSaver.

    interplay.py write FILE    stores threads with values of every kind
    interplay.py dump FILE     prints everything the saver lists, values as type and bytes
"""

import datetime
import decimal
import json
import sqlite3
import sys
import uuid
from collections import deque
from pathlib import PurePosixPath, Path

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command, Interrupt, Overwrite, Send

VALUES = {
    "none": None,
    "flag": True,
    "int": -5,
    "big": 2**64 - 1,
    "float": 1.5,
    "inf": float("inf"),
    "text": "Zoë\x00 🦀",
    "bytes": b"\x00\xff",
    "list": [1, "a", [None]],
    "map": {"b": 1, "a": {"x": [1.0]}},
    "odd keys": {1: "a", None: "b"},
    "set": {1},
    "deque": deque([1, 2]),
    "uuid": uuid.UUID(int=5),
    "decimal": decimal.Decimal("1.10"),
    "when": datetime.datetime(2025, 1, 2, 3, 4, 5),
    "day": datetime.date(2025, 1, 2),
    "span": datetime.timedelta(1, 2, 3),
    "path": Path("a/b"),
    "human": HumanMessage("hi", id="m1"),
    "ai": AIMessage("ho", id="m2", tool_calls=[{"name": "f", "args": {"x": 1}, "id": "c"}]),
    "sends": [Send("n", {"a": 1})],
    "overwrite": Overwrite([1]),
    "command": Command(resume="yes"),
    "questions": [Interrupt(value="b?", id="5bf8" * 8)],
    "deep": [[[[{"k": {2}}]]]],
}


def write(saver):
    for thread in ["py", "it's \"py\" 🦀"]:
        for ns in ["", "child:1"]:
            parent = None
            for step in range(-1, 3):
                checkpoint = empty_checkpoint()
                checkpoint["id"] = str(uuid6(clock_seq=step))
                version = saver.get_next_version(None, None)
                checkpoint["channel_values"] = dict(VALUES, step=step)
                checkpoint["channel_versions"] = {name: version for name in checkpoint["channel_values"]}
                checkpoint["versions_seen"] = {"__input__": {}, "node": {"step": version}}
                checkpoint["updated_channels"] = None if step < 0 else ["step"]
                config = {"configurable": {"thread_id": thread, "checkpoint_ns": ns}}
                if parent:
                    config["configurable"]["checkpoint_id"] = parent
                metadata = {
                    "source": "input" if step < 0 else "loop",
                    "step": step,
                    "parents": {"": checkpoint["id"]} if ns else {},
                    "user": "Zoë",
                    "score": 1.5,
                    "counters_since_delta_snapshot": {"log": [2, 3]},
                }
                config = saver.put(config, checkpoint, metadata, checkpoint["channel_versions"])
                parent = checkpoint["id"]
                task = str(uuid.UUID(int=step + 10))
                saver.put_writes(config, list(VALUES.items()), task, "~__pregel_pull, node")
                saver.put_writes(config, [("__interrupt__", VALUES["questions"])], task, "~__pregel_pull, node")
                saver.put_writes(config, [("__error__", ValueError("boom"))], str(uuid.UUID(int=1)), "~a")


def typed(saver, value):
    tag, data = saver.serde.dumps_typed(value)
    return [tag, (data or b"").hex()]


def dump(saver):
    found = []
    for item in saver.list(None):
        config = item.config["configurable"]
        checkpoint = item.checkpoint
        parent = item.parent_config and item.parent_config["configurable"]["checkpoint_id"]
        found.append(
            {
                "thread": config["thread_id"],
                "ns": config["checkpoint_ns"],
                "id": config["checkpoint_id"],
                "parent": parent,
                "v": checkpoint["v"],
                "ts": checkpoint["ts"],
                "values": {name: typed(saver, value) for name, value in checkpoint["channel_values"].items()},
                "versions": checkpoint["channel_versions"],
                "seen": checkpoint["versions_seen"],
                "updated": checkpoint.get("updated_channels"),
                "metadata": item.metadata,
                "writes": [[task, channel, *typed(saver, value)] for task, channel, value in item.pending_writes],
            }
        )
        latest = saver.get_tuple({"configurable": {"thread_id": config["thread_id"], "checkpoint_ns": config["checkpoint_ns"]}})
        assert latest is not None
    print(json.dumps(found))


def main():
    task, file = sys.argv[1:]
    # `list` holds the saver's lock while it is read, so the look at the latest needs a saver of its own.
    saver = SqliteSaver(sqlite3.connect(file, check_same_thread=False))
    if task == "write":
        write(saver)
    else:
        other = SqliteSaver(sqlite3.connect(file, check_same_thread=False))
        saver.get_tuple, saver.serde = other.get_tuple, other.serde
        dump(saver)


main()
