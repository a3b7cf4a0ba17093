//! If the future of a node cannot go to another thread, the compiler says what it holds.
use superstep::prelude::*;

#[derive(State, Clone, Default)]
struct Essay {
    topic: String,
}

async fn write() -> EssayUpdate {
    let held = std::rc::Rc::new(1);
    tokio::task::yield_now().await;
    Essay::update().topic(held.to_string())
}

fn main() {
    let _ = StateGraph::<Essay>::new().add_node("write", write);
}
