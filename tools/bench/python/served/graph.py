"""The graph that the served reference runs: one node that does nothing but count."""

import operator
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    count: Annotated[int, operator.add]


async def add(state: State):
    return {"count": 1}


graph = (
    StateGraph(State).add_node("add", add).add_edge(START, "add").add_edge("add", END).compile()
)
