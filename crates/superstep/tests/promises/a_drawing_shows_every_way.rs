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
    write -->|\"all\"| review
    draw -->|\"all\"| review
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
  --> review  (all)
[draw]
  --> review  (all)
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

/// Nodes whose names look alike to Mermaid, or mean something to it, are still as many nodes.
#[test]
fn every_node_has_an_id_of_its_own() {
    let graph = StateGraph::<Essay>::new()
        .add_node("a-b", || ())
        .add_node("a_b", || ())
        .add_node("a b", || ())
        .add_node("end", || ())
        .add_node("#1 <b>`x`</b>", inner())
        .add_edge(START, "a-b")
        .add_edge("a-b", "a_b")
        .add_edge("a_b", "a b")
        .add_edge("a b", "end")
        .add_edge("end", "#1 <b>`x`</b>")
        .compile()
        .expect("the graph is sound");
    let expected = "\
flowchart TD
    __start__([start])
    __end__([end])
    a_b_2[\"a-b\"]
    a_b[\"a_b\"]
    a_b_3[\"a b\"]
    end_2[\"end\"]
    subgraph _1__b__x___b_[\"#35;1 #60;b#62;#96;x#96;#60;/b#62;\"]
        _1__b__x___b_.__start__([start])
        _1__b__x___b_.__end__([end])
        _1__b__x___b_.check[\"check\"]
        _1__b__x___b_.__start__ --> _1__b__x___b_.check
        _1__b__x___b_.check --> _1__b__x___b_.__end__
    end
    __start__ --> a_b_2
    a_b_2 --> a_b
    a_b --> a_b_3
    a_b_3 --> end_2
    end_2 --> _1__b__x___b_
    _1__b__x___b_ --> __end__
";
    assert_eq!(graph.to_mermaid(), expected);
    let text = graph.to_ascii();
    assert!(text.contains("[\"end\"]\n  --> #1 <b>`x`</b>\n"), "{text}");
    assert!(text.contains("--> \"end\"\n") && text.contains("--> end\n"), "{text}");
}
