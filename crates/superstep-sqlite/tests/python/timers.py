"""Reads a thread that sleeps and has asked a question with a deadline, and answers both. Prints what it found."""

import json
import operator
import sys
from typing import Annotated, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt


class Log(TypedDict):
    log: Annotated[list[str], operator.add]


def nap(state):
    interrupt("asleep")
    return {"log": ["nap"]}


def ask(state):
    return {"log": [interrupt("sure?")]}


builder = StateGraph(Log)
builder.add_node("nap", nap)
builder.add_node("ask", ask)
builder.add_edge(START, "nap")
builder.add_edge(START, "ask")

with SqliteSaver.from_conn_string(sys.argv[1]) as checkpointer:
    graph = builder.compile(checkpointer=checkpointer)
    config = {"configurable": {"thread_id": "t"}}
    state = graph.get_state(config)
    shown = [
        {"value": asked.value, "schema": getattr(asked, "response_schema", None)}
        for task in sorted(state.tasks, key=lambda task: task.name)
        for asked in task.interrupts
    ]
    answers = {
        asked.id: "Python" if asked.value == "sure?" else True
        for task in state.tasks
        for asked in task.interrupts
    }
    ended = graph.invoke(Command(resume=answers), config)
    print(json.dumps({"asked": shown, "log": ended["log"], "next": list(graph.get_state(config).next)}))
