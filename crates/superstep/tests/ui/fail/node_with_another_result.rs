//! If the result is at fault, it is named, and not the arguments.
use superstep::prelude::*;

#[derive(State, Clone, Default)]
struct Essay {
    topic: String,
}

async fn write(essay: Arc<Essay>) -> String {
    essay.topic.clone()
}

fn main() {
    let _ = StateGraph::<Essay>::new().add_node("write", write);
}
