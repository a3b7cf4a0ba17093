//! A node asks before it does something, and a person says yes.
//!
//! The question ends the run; nothing waits in memory. The answer may come a week later, in another process: the node
//! then runs again from its first line, and `interrupt` returns what was answered.

use superstep::CompiledGraph;
use superstep::prelude::*;

#[derive(State, Clone, Debug, Default)]
struct Payment {
    amount: i64,
    status: String,
}

async fn pay(payment: Arc<Payment>, task: Task) -> PaymentUpdate {
    let approved: bool = task.interrupt(format!("Pay {} euros?", payment.amount)).await;
    Payment::update().status(if approved { "paid" } else { "declined" })
}

fn app() -> Result<CompiledGraph<Payment>, CompileError> {
    let graph = StateGraph::new().add_node("pay", pay).add_edge(START, "pay").compile()?;
    Ok(graph.with_checkpointer(MemorySaver::new()))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let thread = app()?.thread("invoice-7");
    let asked = thread.invoke(Payment::update().amount(250)).await?;
    let asked = asked.interrupted().ok_or("nobody was asked")?;
    println!("{}", asked[0].value);

    let payment = thread.resume(true).await?.done().ok_or("one answer was not enough")?;
    println!("{}", payment.status);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn answered(answer: bool) -> String {
        let thread = app().expect("a graph").thread("t");
        let asked = thread.invoke(Payment::update().amount(3)).await.expect("a run").interrupted();
        assert_eq!(asked.expect("a question")[0].value, "Pay 3 euros?".into());
        thread.resume(answer).await.expect("a run").done().expect("the end").status
    }

    #[tokio::test]
    async fn the_answer_decides() {
        assert_eq!(answered(true).await, "paid");
        assert_eq!(answered(false).await, "declined");
    }
}
