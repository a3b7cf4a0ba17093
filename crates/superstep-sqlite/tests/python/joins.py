"""Reads a thread whose graph has a join that LangGraph does not have, and goes on with it. Prints what it found."""

import json
import operator
import sys
from typing import Annotated, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph


class Log(TypedDict):
    log: Annotated[list[str], operator.add]


def note(name):
    return lambda state: {"log": [name]}


builder = StateGraph(Log)
for name in ["a", "b", "c", "some", "all"]:
    builder.add_node(name, note(name))
builder.add_edge(START, "a")
builder.add_edge("a", "b")
builder.add_edge("b", "c")
# Of the two joins of the graph, LangGraph has this one.
builder.add_edge(["a", "c"], "all")

with SqliteSaver.from_conn_string(sys.argv[1]) as checkpointer:
    graph = builder.compile(checkpointer=checkpointer)
    config = {"configurable": {"thread_id": "t"}}
    state = graph.get_state(config)
    print(
        json.dumps(
            {
                "log": state.values["log"],
                "next": list(state.next),
                "history": len(list(graph.get_state_history(config))),
                "end": graph.invoke(None, config)["log"],
            }
        )
    )
