"""Threads that LangGraph leaves for `a_thread_that_langgraph_left_goes_on.rs`.

    left.py FILE    begins a thread of each kind in FILE and leaves it there
"""

import asyncio
import operator
import sys
from typing import Annotated, TypedDict

from langgraph.channels import DeltaChannel
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.errors import GraphDrained
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.runtime import RunControl
from langgraph.types import Command, interrupt


def extended(state, writes):
    return [*state, *(item for write in writes for item in write)]


class Deltas(TypedDict):
    log: Annotated[list, DeltaChannel(extended)]


class Whole(TypedDict):
    log: Annotated[list, operator.add]


async def asked(state):
    return {"log": [interrupt("first?"), interrupt("second?")]}


def one_node(schema, saver):
    graph = StateGraph(schema)
    graph.add_node("ask", asked)
    graph.add_edge(START, "ask")
    return graph.compile(checkpointer=saver)


async def main(file):
    async with AsyncSqliteSaver.from_conn_string(file) as saver:
        deltas, whole = one_node(Deltas, saver), one_node(Whole, saver)

        # A run that stores at its end hangs the writes of a delta channel on a checkpoint without a source.
        thread = {"configurable": {"thread_id": "stub"}}
        await deltas.ainvoke({"log": ["in"]}, thread, durability="exit")

        # An answer is accepted, and the run is drained before the node takes it.
        thread = {"configurable": {"thread_id": "answered"}}
        await whole.ainvoke({"log": ["in"]}, thread)
        await drained(whole, Command(resume="one"), thread)

        # The first answer was taken, and is still there when the second question waits.
        thread = {"configurable": {"thread_id": "stale"}}
        await whole.ainvoke({"log": ["in"]}, thread)
        await whole.ainvoke(Command(resume="one"), thread)

        # A graph inside a task waits.
        @task
        async def call():
            return (await one_node(Whole, None).ainvoke({"log": ["in"]}))["log"]

        @entrypoint(checkpointer=saver)
        async def workflow(_):
            return await call()

        thread = {"configurable": {"thread_id": "called"}}
        await workflow.ainvoke("go", thread)


async def drained(graph, given, thread):
    control = RunControl()
    control.request_drain("deploy")
    try:
        await graph.ainvoke(given, thread, control=control)
    except GraphDrained:
        return
    raise AssertionError("the run was not drained")


asyncio.run(main(sys.argv[1]))
