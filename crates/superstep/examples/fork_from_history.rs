//! Going back: look at the history of a thread, change a past state, and let a branch run from there.
//!
//! The old line stays as it was; the newest checkpoint of any branch is the head of the thread.

use futures_util::TryStreamExt;
use superstep::CompiledGraph;
use superstep::prelude::*;

#[derive(State, Clone, Debug, Default)]
struct Joke {
    topic: String,
    text: String,
}

async fn pick() -> JokeUpdate {
    Joke::update().topic("cats")
}

async fn tell(joke: Arc<Joke>) -> JokeUpdate {
    Joke::update().text(format!("Two {} walk into a bar.", joke.topic))
}

fn app() -> Result<CompiledGraph<Joke>, CompileError> {
    let graph = StateGraph::new()
        .add_node("pick", pick)
        .add_node("tell", tell)
        .add_edge(START, "pick")
        .add_edge("pick", "tell")
        .compile()?;
    Ok(graph.with_checkpointer(MemorySaver::new()))
}

/// Tells a joke, and the same one about something else.
async fn tell_twice(other: &str) -> Result<[String; 2], Box<dyn std::error::Error>> {
    let thread = app()?.thread("joke-1");
    let first = thread.invoke(Joke::update()).await?.done().ok_or("it stopped")?;

    let history: Vec<_> = thread.get_state_history().try_collect().await?;
    for past in &history {
        println!("{:?} next {:?}", past.state(), past.next);
    }
    let before = history.iter().find(|past| past.next.iter().any(|node| &**node == "tell"));
    let before = before.ok_or("nobody told the joke")?;

    // As if `pick` had said something else: `tell` comes next.
    let change = Joke::update().topic(other);
    let branch = thread.at(before).update_state(change).as_node("pick").await?;
    let second = thread.at(branch).invoke(()).await?.done().ok_or("it stopped")?;
    assert_eq!(thread.get_state().await?.state().text, second.text, "the branch is the head");
    assert_eq!(thread.at(&history[0]).get_state().await?.state().text, first.text);
    Ok([first.text, second.text])
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{:#?}", tell_twice("dogs").await?);
    Ok(())
}

#[cfg(test)]
#[tokio::test]
async fn the_branch_tells_another_joke() {
    let told = tell_twice("crabs").await.expect("two jokes");
    assert_eq!(told, ["Two cats walk into a bar.", "Two crabs walk into a bar."]);
}
