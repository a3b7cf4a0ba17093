//! A story whose past can be changed, from the program and from the command line.
//!
//! ```sh
//! cargo run -p superstep-examples --bin time_travel -- story.db         # tells the story
//! cargo run -- --db sqlite:story.db history story-1                     # its checkpoints
//! cargo run -- --db sqlite:story.db show story-1 --at head~1            # the state before the end
//! cargo run -- --db sqlite:story.db fork story-1 head~1 --yes           # a branch begins there
//! cargo run -p superstep-examples --bin time_travel -- story.db dragon  # continues it another way
//! ```

use superstep::prelude::*;
use superstep_sqlite::SqliteSaver;

#[derive(State, Clone, Default)]
struct Story {
    hero: String,
    #[channel(reduce = Append)]
    lines: Vec<String>,
}

async fn begin(story: Arc<Story>) -> StoryUpdate {
    Story::update().lines([format!("Once there was a {}.", story.hero)])
}

async fn end(story: Arc<Story>) -> StoryUpdate {
    Story::update().lines([format!("The {} lived happily ever after.", story.hero)])
}

/// Tells the story of a knight. If its thread is at another place than the end, continues it there, with this hero if one is named.
pub(crate) async fn tell(
    file: &str,
    hero: Option<String>,
) -> Result<String, Box<dyn std::error::Error>> {
    let thread = StateGraph::<Story>::new()
        .add_node("begin", begin)
        .add_node("end", end)
        .add_edge(START, "begin")
        .add_edge("begin", "end")
        .compile()?
        .with_checkpointer(SqliteSaver::open(file).await?)
        .thread("story-1");
    let now = thread.get_state().await?;
    if let (Some(hero), false) = (hero, now.next.is_empty()) {
        // As if `begin` had written this too: `end` still comes next.
        thread.update_state(Story::update().hero(hero)).as_node("begin").await?;
    }
    let outcome = match now.is_new() {
        true => thread.invoke(Story::update().hero("knight")).await?,
        false => thread.invoke(()).await?,
    };
    Ok(outcome.done().ok_or("nothing stops this graph")?.lines.join(" "))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let file = args.next().unwrap_or_else(|| "story.db".to_owned());
    println!("{}", tell(&file, args.next()).await?);
    Ok(())
}
