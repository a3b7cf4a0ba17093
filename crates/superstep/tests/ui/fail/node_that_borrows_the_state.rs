//! A node that borrows the state is told to take an `Arc`.
use superstep::prelude::*;

#[derive(State, Clone, Default)]
struct Essay {
    topic: String,
}

async fn write(essay: &Essay) -> EssayUpdate {
    Essay::update().topic(essay.topic.clone())
}

fn main() {
    let _ = StateGraph::<Essay>::new().add_node("write", write);
}
