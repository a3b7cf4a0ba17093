//! A team of graphs: a lead hands work to a graph that researches and to one that writes, and looks at what comes back.
//!
//! Each member has a state of its own; two functions lead in and out of it. What happens inside is seen in the stream, under
//! the name of the member.

use superstep::prelude::*;
use superstep::{CompiledGraph, Data};

#[derive(State, Clone, Debug, Default)]
struct Report {
    topic: String,
    #[channel(reduce = Append)]
    facts: Vec<String>,
    text: Option<String>,
}

/// Decides who is next. It only routes, so that the work is done by the members.
async fn lead(report: Arc<Report>) -> Command<Report> {
    Command::new().goto(match (&report.facts[..], &report.text) {
        ([] | [_], _) => "researcher",
        (_, None) => "writer",
        (_, Some(_)) => END,
    })
}

#[derive(State, Clone, Debug, Default)]
struct Research {
    topic: String,
    known: usize,
    fact: String,
}

fn researcher() -> Result<CompiledGraph<Research>, CompileError> {
    StateGraph::<Research>::new()
        .add_node("search", |research: Arc<Research>| {
            let fact = format!("fact {} about {}", research.known + 1, research.topic);
            Research::update().fact(fact)
        })
        .add_edge(START, "search")
        .compile()
}

#[derive(State, Clone, Debug, Default)]
struct Draft {
    facts: Vec<String>,
    text: String,
}

fn writer() -> Result<CompiledGraph<Draft>, CompileError> {
    StateGraph::<Draft>::new()
        .add_node("outline", |draft: Arc<Draft>| Draft::update().text(draft.facts.join(", and ")))
        .add_node("polish", |draft: Arc<Draft>| Draft::update().text(format!("{}.", draft.text)))
        .add_edge(START, "outline")
        .add_edge("outline", "polish")
        .compile()
}

fn app() -> Result<CompiledGraph<Report>, CompileError> {
    let researcher = researcher()?.as_node(
        |report: &Report| Research::update().topic(&*report.topic).known(report.facts.len()),
        |research| Report::update().facts([research.fact]),
    );
    let writer = writer()?.as_node(
        |report: &Report| Draft::update().facts(report.facts.clone()),
        |draft| Report::update().text(draft.text),
    );
    StateGraph::new()
        .add_node("lead", lead)
        .destinations(["researcher", "writer", END])
        .add_node("researcher", researcher)
        .add_node("writer", writer)
        .add_edge(START, "lead")
        .add_edge("researcher", "lead")
        .add_edge("writer", "lead")
        .compile()
}

/// Lets the team work, and returns who did something, in order, and the text.
async fn report(topic: &str) -> Result<(Vec<String>, String), Box<dyn std::error::Error>> {
    let run = app()?.invoke(Report::update().topic(topic));
    let mut events = run.stream([Mode::Tasks]).subgraphs(true);
    let (mut worked, mut text) = (Vec::new(), None);
    while let Some(event) = events.next().await {
        let event = event?;
        match event.data {
            Data::TaskEnd(task) => {
                // The namespace of a subgraph is the node and the task that run it.
                let inside = event.ns.iter().filter_map(|level| level.split(':').next());
                let names: Vec<_> = inside.chain([&*task.name]).collect();
                worked.push(names.join("/"));
            }
            Data::Outcome(outcome) => text = outcome.done().and_then(|report| report.text),
            _ => {}
        }
    }
    Ok((worked, text.ok_or("there is no text")?))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{}", app()?.to_ascii());
    let (worked, text) = report("crabs").await?;
    println!("{}\n{text}", worked.join("\n"));
    Ok(())
}

#[cfg(test)]
#[tokio::test]
async fn each_member_does_its_part() {
    let (worked, text) = report("crabs").await.expect("a report");
    assert_eq!(text, "fact 1 about crabs, and fact 2 about crabs.");
    let researched = ["lead", "researcher/search", "researcher"].repeat(2);
    let written = ["lead", "writer/outline", "writer/polish", "writer", "lead"];
    assert_eq!(worked, [&researched[..], &written].concat());
}
