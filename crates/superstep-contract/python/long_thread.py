"""The other side of a long thread: LangGraph's own savers and a graph of its own read what was stored.

    long_thread.py sqlite FILE THREAD
    long_thread.py postgres URL THREAD

Prints the steps that `list` gives, and the state at the head and half way.
"""

import json
import operator
import sqlite3
import sys
from contextlib import contextmanager
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    messages: Annotated[list, operator.add]


@contextmanager
def opened(kind, place):
    if kind == "sqlite":
        from langgraph.checkpoint.sqlite import SqliteSaver

        yield SqliteSaver(sqlite3.connect(place, check_same_thread=False))
    else:
        from langgraph.checkpoint.postgres import PostgresSaver

        with PostgresSaver.from_conn_string(place) as saver:
            yield saver


def compiled(saver):
    graph = StateGraph(State)
    graph.add_node("say", lambda state: {"messages": ["not to run"]})
    graph.add_edge(START, "say")
    graph.add_conditional_edges("say", lambda state: END, ["say", END])
    return graph.compile(checkpointer=saver)


def main():
    kind, place, thread = sys.argv[1:]
    config = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    with opened(kind, place) as saver:
        listed = list(saver.list(config))
        half = len(listed[1:-1]) // 2
        middle = next(found.config for found in listed if found.metadata["step"] == half)
        assert saver.get_tuple(config).checkpoint == listed[0].checkpoint
        graph = compiled(saver)
        head = graph.get_state(config)
        print(
            json.dumps(
                {
                    "listed": [found.metadata["step"] for found in listed],
                    "head": [message.model_dump() for message in head.values["messages"]],
                    "next": head.next,
                    "middle": [message.model_dump() for message in graph.get_state(middle).values["messages"]],
                }
            )
        )


main()
