"""Threads of LangGraph in every state, for a test of the list of threads.

    status.py DATABASE make     makes them
    status.py DATABASE kill     begins `killed`, and ends the process while one task asks and another runs
    status.py DATABASE go_on    changes some of them
"""

import os
import sqlite3
import sys
from contextlib import closing, contextmanager
from operator import add
from typing import Annotated, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt

DATABASE = sys.argv[1]


class State(TypedDict):
    log: Annotated[list, add]


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


def config(thread, **metadata):
    return {"configurable": {"thread_id": thread}, "metadata": metadata}


def fine(state):
    return {"log": ["fine"]}


def ask(state):
    return {"log": [interrupt("sure?")]}


def ask_twice(state):
    return {"log": [interrupt("sure?"), interrupt("really?")]}


def fail(state):
    raise ValueError("no")


def asked():
    with saver_of(DATABASE) as saver:
        head = saver.get_tuple(config("killed"))
        return head and any(channel == "__interrupt__" for _, channel, _ in head.pending_writes)


def kill(state):
    while not asked():
        pass
    os._exit(0)


def graph(*nodes):
    builder = StateGraph(State)
    for node in nodes:
        builder.add_node(node.__name__, node)
        builder.add_edge(START, node.__name__)
        builder.add_edge(node.__name__, END)
    return builder


def fan_out():
    builder = StateGraph(State)
    builder.add_node("ask", ask)
    builder.add_conditional_edges(START, lambda state: [Send("ask", {"log": [n]}) for n in range(3)])
    return builder


def joined():
    builder = StateGraph(State)
    for name in ["a", "b"]:
        builder.add_node(name, fine)
        builder.add_edge(START, name)
    builder.add_node("c", fine)
    builder.add_edge(["a", "b"], "c")
    return builder


@task
def question():
    return interrupt("sure?")


def workflow(saver):
    @entrypoint(checkpointer=saver)
    def workflow(input):
        return question().result() if input else "done"

    return workflow


def make(saver):
    start = {"log": ["in"]}
    graph(fine).compile(checkpointer=saver).invoke(start, config("done", user="ada"))
    graph(ask).compile(checkpointer=saver).invoke(start, config("waits", user="ada"))
    graph(ask, fine).compile(checkpointer=saver).invoke(start, config("waits beside one that ended"))
    graph(ask_twice).compile(checkpointer=saver).invoke(start, config("answered once"))
    graph(ask_twice).compile(checkpointer=saver).invoke(Command(resume=True), config("answered once"))
    fan_out().compile(checkpointer=saver).invoke(start, config("dispatched"))
    stopped = graph(fine).compile(checkpointer=saver, interrupt_before=["fine"])
    stopped.invoke(start, config("stopped before a node"))
    stopped = joined().compile(checkpointer=saver, interrupt_before=["c"])
    stopped.invoke(start, config("stopped before a join"))
    joined().compile(checkpointer=saver).invoke(start, config("joined"))
    workflow(saver).invoke(True, config("a call asks"))
    workflow(saver).invoke(False, config("a function ended"))
    try:
        graph(fail, fine).compile(checkpointer=saver).invoke(start, config("failed"))
    except ValueError:
        pass


def go_on(saver):
    graph(ask).compile(checkpointer=saver).invoke(Command(resume=True), config("waits", user="bob"))
    graph(ask).compile(checkpointer=saver).invoke({"log": ["in"]}, config("done", user="ada"))


with saver_of(DATABASE) as saver:
    match sys.argv[2]:
        case "make":
            make(saver)
        case "kill":
            graph(ask, kill).compile(checkpointer=saver).invoke({"log": []}, config("killed"))
        case "go_on":
            go_on(saver)
