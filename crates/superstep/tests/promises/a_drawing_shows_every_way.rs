//! A drawing that left out an edge, or showed a conditional one as certain, would mislead whoever reads the graph. Both
//! forms are compared as a whole, so that nothing can go missing unnoticed.

use superstep::prelude::*;

#[derive(State, Clone, Default)]
struct Essay {
    draft: String,
}

fn inner() -> superstep::CompiledGraph<Essay> {
    StateGraph::<Essay>::new()
        .add_node("check", || ())
        .add_edge(START, "check")
        .compile()
        .expect("the graph is sound")
}

fn graph() -> superstep::CompiledGraph<Essay> {
    StateGraph::<Essay>::new()
        .add_node("plan", || ())
        .add_node("write", || ())
        .add_node("draw", || ())
        .add_node("review", inner())
        .add_node("send", || Command::<Essay>::new().goto(END))
        .destinations(["plan", END])
        .add_edge(START, "plan")
        .add_edge("plan", "write")
        .add_edge("plan", "draw")
        .add_edge(["write", "draw"], "review")
        .add_conditional_edges(
            "review",
            superstep::Targets::map([("good", "send"), ("bad", "write")]),
            |_: &Essay| "good",
        )
        .compile()
        .expect("the graph is sound")
}

#[test]
fn mermaid_nests_subgraphs_and_dots_conditional_edges() {
    let expected = "\
flowchart TD
    __start__([start])
    __end__([end])
    plan[\"plan\"]
    write[\"write\"]
    draw[\"draw\"]
    subgraph review[\"review\"]
        review.__start__([start])
        review.__end__([end])
        review.check[\"check\"]
        review.__start__ --> review.check
        review.check --> review.__end__
    end
    send[\"send\"]
    __start__ --> plan
    plan --> write
    plan --> draw
    write --> review
    draw --> review
    review -.->|\"good\"| send
    review -.->|\"bad\"| write
    send -.-> plan
    send -.-> __end__
";
    assert_eq!(graph().to_mermaid(), expected);
}

#[test]
fn text_lists_each_node_with_where_it_leads() {
    let expected = "\
[start]
  --> plan
[plan]
  --> write
  --> draw
[write]
  --> review
[draw]
  --> review
[review]
    [start]
      --> check
    [check]
      --> end
  ..> send  (good)
  ..> write  (bad)
[send]
  ..> plan
  ..> end
";
    assert_eq!(graph().to_ascii(), expected);
}
