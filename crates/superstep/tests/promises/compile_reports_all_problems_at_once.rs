//! Shows that `compile()` names everything that is wrong with a graph, each with the thing it is about and the way out,
//! and not only the first. It would break if one kind of check kept another from running.

use crate::common::{Notes, line, says};
use superstep::prelude::*;
use superstep::state::{Schema, Table, TableChannel};

/// The one problem that has all these parts.
#[track_caller]
fn one<'a>(problems: &'a [String], parts: &[&str]) -> &'a str {
    let fits = |problem: &&String| parts.iter().all(|part| problem.contains(part));
    let found: Vec<_> = problems.iter().filter(fits).collect();
    assert_eq!(found.len(), 1, "{parts:?} in {problems:#?}");
    found[0]
}

fn problems(graph: StateGraph<Notes>) -> Vec<String> {
    graph.compile().expect_err("a graph with problems").problems().to_vec()
}

#[test]
fn every_kind_of_problem_in_one_graph() {
    let problems = problems(
        StateGraph::new()
            .add_node("plan", || line("plan"))
            .add_node("plan", || line("another"))
            .add_node("review", || line("review"))
            .add_node("__interrupt__", || line("reserved"))
            .add_node("a:b", || line("reserved letters"))
            .add_node("island", || line("island"))
            .add_node("end", || line("end"))
            .add_edge(START, "plan")
            .add_edge("plan", "reviw")
            .add_edge("plan", "review")
            .add_edge("nobody", "review")
            .add_edge(["review", "island"], "end")
            .interrupt_before(["revue"]),
    );
    one(&problems, &["edge", "`plan`", "unknown node `reviw`", "did you mean `review`?"]);
    one(&problems, &["unknown node `nobody`"]);
    one(&problems, &["two nodes named `plan`"]);
    one(&problems, &["`__interrupt__`", "reserved"]);
    one(&problems, &["`a:b`", "reserved"]);
    one(&problems, &["breakpoint", "`revue`"]);
    one(&problems, &["join", "`end`", "`island`", "for ever"]);
    one(&problems, &["nothing leads to node `island`"]);
}

/// The macros ask the same function, and have a test of their own for it.
#[test]
fn every_name_that_is_reserved() {
    for name in superstep_names::RESERVED.iter().copied().chain(["", ":", "|", "a:b", "join:a+b:c"])
    {
        let node = StateGraph::new().add_node(name, || line("one")).add_edge(START, name);
        one(&problems(node), &["the node name", &format!("`{name}` ")]);

        let mut schema = Schema::<Table>::default();
        schema.table(name, TableChannel::last());
        let channel = StateGraph::with_schema(schema)
            .add_node("one", || ())
            .add_edge(START, "one")
            .compile()
            .expect_err("a graph with problems");
        one(channel.problems(), &["the channel name", &format!("`{name}` ")]);
    }
}

#[test]
fn a_graph_without_a_beginning() {
    let problems = problems(
        StateGraph::new()
            .add_node("a", || line("a"))
            .add_node("b", || line("b"))
            .add_edge("a", "b")
            .add_edge("b", "cc"),
    );
    one(&problems, &["no beginning", START]);
    one(&problems, &["unknown node `cc`"]);
}

#[test]
fn edges_to_the_start_and_from_the_end() {
    let problems = problems(
        StateGraph::new()
            .add_node("a", || line("a"))
            .add_edge(START, "a")
            .add_edge("a", START)
            .add_edge(END, "a"),
    );
    one(&problems, &["`a`", "leads to the beginning"]);
    one(&problems, &["from the end", "`a`"]);
}

#[test]
fn joins() {
    let problems = problems(
        StateGraph::new()
            .add_node("a", || line("a"))
            .add_node("b", || line("b"))
            .add_edge(START, "a")
            .add_edge(["a", "a"], "b")
            .add_edge(["a", "missing"], "b")
            .add_edge(Vec::<&str>::new(), "b"),
    );
    one(&problems, &["`b`", "`a` twice"]);
    one(&problems, &["`b`", "unknown node `missing`"]);
    one(&problems, &["`b`", "waits for no node"]);
}

#[test]
fn a_dead_join_alone() {
    let problems = problems(
        StateGraph::new()
            .add_node("a", || line("a"))
            .add_node("b", || line("b"))
            .add_node("c", || line("c"))
            .add_edge(START, "a")
            .add_edge(["a", "b"], "c"),
    );
    one(&problems, &["join", "`c`", "`b`", "for ever"]);
    one(&problems, &["nothing leads to node `b`"]);
    assert_eq!(problems.len(), 2, "{problems:#?}");
}

#[test]
fn routers_commands_channels_and_options() {
    let problems = problems(
        StateGraph::new()
            .retry(RetryPolicy::default())
            .add_node("a", || line("a"))
            .destinations(["nowhere"])
            .writes(["lins"])
            .add_edge(START, "a")
            .add_conditional_edges("a", ["elsewhere", END], |_: &Notes| END)
            .add_conditional_edges("ghost", [END], |_: &Notes| END)
            .input_channels(["topic"])
            .output_channels(["totl"]),
    );
    one(&problems, &["command", "unknown node `nowhere`"]);
    one(&problems, &["router", "unknown node `elsewhere`"]);
    one(&problems, &["router", "unknown node `ghost`"]);
    one(&problems, &["node `a`", "unknown channel `lins`", "did you mean `lines`?"]);
    one(&problems, &["input", "unknown channel `topic`"]);
    one(&problems, &["output", "unknown channel `totl`", "did you mean `total`?"]);
    one(&problems, &["`retry`", "there is none"]);
}

#[test]
fn the_error_shows_them_all() {
    let error = StateGraph::<Notes>::new()
        .add_node("a", || line("a"))
        .add_edge("a", "b")
        .compile()
        .expect_err("two problems");
    says(&error, &["unknown node `b`", "no beginning"]);
}

#[test]
fn a_lenient_graph_may_have_nodes_that_nothing_leads_to() {
    let graph = StateGraph::<Notes>::new()
        .add_node("a", || line("a"))
        .add_node("island", || line("island"))
        .add_edge(START, "a")
        .lenient();
    assert!(graph.compile().is_ok());
}
