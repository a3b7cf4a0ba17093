"""Starts a thread that `from_python.rs` finishes.

    python3 from_python.py FILE

Needs the packages langgraph and langgraph-checkpoint-sqlite.
"""

import sqlite3
import sys
from operator import add
from typing import Annotated, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt


class Letter(TypedDict):
    to: str
    log: Annotated[list, add]
    sent: bool


def draft(letter):
    return {"log": ["drafted in Python"]}


def send(letter):
    sent = interrupt(f"Send it to {letter['to']}?")
    return {"sent": sent, "log": ["answered in Python"]}


builder = StateGraph(Letter)
builder.add_node("draft", draft)
builder.add_node("send", send)
builder.add_edge(START, "draft")
builder.add_edge("draft", "send")

connection = sqlite3.connect(sys.argv[1], check_same_thread=False)
app = builder.compile(checkpointer=SqliteSaver(connection))
result = app.invoke({"to": "Ada"}, {"configurable": {"thread_id": "letter-1"}})
print(result["__interrupt__"][0].value)
