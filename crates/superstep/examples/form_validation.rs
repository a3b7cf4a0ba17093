//! A form that asks until the answer is valid.
//!
//! Each turn of the loop is a question of its own. Every answer starts the node again from its first line, and the
//! questions that were answered before take their answers again, so the loop comes to where it was.

use superstep::CompiledGraph;
use superstep::prelude::*;

#[derive(State, Clone, Debug, Default)]
struct Form {
    age: Option<u8>,
}

async fn ask_age(task: Task) -> FormUpdate {
    let mut question = "What is your age?".to_owned();
    loop {
        let answer: Value = task.interrupt(question).await;
        match answer.as_i64().and_then(|age| u8::try_from(age).ok()) {
            Some(age) => return Form::update().age(age),
            None => {
                question = format!("{} is not a valid age.", answer.to_string().replace('"', "'"));
            }
        }
    }
}

fn app() -> Result<CompiledGraph<Form>, CompileError> {
    let graph =
        StateGraph::new().add_node("ask_age", ask_age).add_edge(START, "ask_age").compile()?;
    Ok(graph.with_checkpointer(MemorySaver::new()))
}

/// Fills in the form with one answer after the other; returns what was asked and what came of it.
async fn fill_in(
    answers: impl IntoIterator<Item = Value>,
) -> Result<(Vec<Value>, Option<u8>), RunError> {
    let thread = app().expect("a graph of one node").thread("form-1");
    let mut asked = Vec::new();
    let mut outcome = thread.invoke(Form::update()).await?;
    for answer in answers {
        let Outcome::Interrupted(questions) = outcome else { break };
        asked.push(questions[0].value.clone());
        outcome = thread.resume(answer).await?;
    }
    Ok((asked, outcome.done().and_then(|form| form.age)))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), RunError> {
    let (asked, age) = fill_in(["thirty".into(), Value::from(-30), Value::from(30)]).await?;
    for question in asked {
        println!("{question}");
    }
    println!("{age:?}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_asks_until_the_answer_is_valid() {
        let answers = ["thirty".into(), Value::from(-30), Value::from(30)];
        let (asked, age) = fill_in(answers).await.expect("runs");
        let asked: Vec<_> = asked.iter().filter_map(Value::as_str).collect();
        let twice = ["'thirty' is not a valid age.", "-30 is not a valid age."];
        assert_eq!(asked, ["What is your age?", twice[0], twice[1]]);
        assert_eq!(age, Some(30));
        assert_eq!(fill_in(["thirty".into()]).await.expect("runs").1, None, "it still asks");
    }
}
