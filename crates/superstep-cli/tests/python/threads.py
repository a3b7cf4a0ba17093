"""Threads of LangGraph for the tests of the command line.

    threads.py DATABASE           makes them
    threads.py DATABASE resume    runs `waits` with no input, and prints what it comes to

A database is an SQLite file, or the URL of one on a PostgreSQL server.
"""

import sqlite3
import sys
from contextlib import closing, contextmanager
from operator import add
from typing import Annotated, TypedDict

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt


class State(TypedDict):
    log: Annotated[list, add]
    message: object
    told: str


def first(state):
    return {"log": ["first"], "message": HumanMessage("hi", id="m1")}


def ask(state):
    return {"log": ["asked"], "told": interrupt({"send?": state["log"]})}


def fail(state):
    raise ValueError("the line went dead")


def graph(second):
    builder = StateGraph(State)
    builder.add_node("first", first)
    builder.add_node("second", second)
    builder.add_edge(START, "first")
    builder.add_edge("first", "second")
    builder.add_edge("second", END)
    return builder


@contextmanager
def saver_of(database):
    if database.startswith("postgres://"):
        from langgraph.checkpoint.postgres import PostgresSaver

        with PostgresSaver.from_conn_string(database) as saver:
            saver.setup()
            yield saver
    else:
        with closing(sqlite3.connect(database, check_same_thread=False)) as connection:
            yield SqliteSaver(connection)


def main(saver):
    config = lambda thread: {"configurable": {"thread_id": thread}}
    if sys.argv[2:] == ["resume"]:
        app = graph(ask).compile(checkpointer=saver)
        print(app.invoke(None, config("waits"))["told"])
        return
    graph(ask).compile(checkpointer=saver).invoke({"log": ["in"]}, config("waits"))
    graph(first).compile(checkpointer=saver).invoke({"log": ["in"]}, config("done"))
    try:
        graph(fail).compile(checkpointer=saver).invoke({"log": ["in"]}, config("failed"))
    except ValueError:
        pass


with saver_of(sys.argv[1]) as saver:
    main(saver)
