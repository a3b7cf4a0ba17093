//! Of several arguments, the one that nothing provides is named.
use superstep::prelude::*;

#[derive(State, Clone, Default)]
struct Essay {
    topic: String,
}

async fn write(_essay: Arc<Essay>, _task: Task, _words: usize) -> EssayUpdate {
    Essay::update().topic("rust")
}

fn main() {
    let _ = StateGraph::<Essay>::new().add_node("write", write);
}
