//! Workflows that are plain functions.

use superstep::CompiledGraph;
use superstep::func::{Entrypoint, Final, Workflow};
use superstep::prelude::*;

use crate::workload::{Answers, Play, World, workload};

type Flow<O = i64> = CompiledGraph<Workflow<i64>, O>;

pub(crate) fn all() -> Vec<Box<dyn Play>> {
    vec![
        Box::new(workload("a workflow", calls).inputs([1]).sequential()),
        Box::new(workload("a workflow that remembers", remembers).inputs([1, 2, 3]).sequential()),
        Box::new(workload("a workflow that saves something else", saves).inputs([1, 2, 3])),
        Box::new(workload("a workflow with calls side by side", at_once).inputs([1, 2])),
        Box::new(
            workload("a workflow that asks", asks)
                .inputs([1, 2])
                .answers(Answers::Bare)
                .sequential(),
        ),
        Box::new(workload("a workflow that is tried again", retried).inputs([1])),
        Box::new(workload("a workflow that fails once", fails).inputs([1]).failures(1)),
    ]
}

async fn double(n: i64) -> Result<i64, NodeError> {
    Ok(n * 2)
}

fn calls() -> Flow {
    Entrypoint::new("calls", |n: i64, task: Task| async move {
        let two = task.call("double", move || double(n)).await?;
        let four = task.call("double", move || double(two)).await?;
        task.call("double", move || double(four)).await
    })
    .compile()
}

fn remembers() -> Flow {
    Entrypoint::new("remembers", |n: i64, task: Task| async move {
        let before: i64 = task.previous()?.unwrap_or_default();
        let doubled = task.call("double", move || double(n)).await?;
        let again = task.call("double", move || double(doubled)).await?;
        Ok::<_, NodeError>(before * 10 + again)
    })
    .compile()
}

fn saves() -> Flow {
    Entrypoint::new("saves", |n: i64, task: Task| async move {
        let before: Vec<i64> = task.previous()?.unwrap_or_default();
        let value = task.call("double", move || double(n)).await?;
        let save = [before, vec![value]].concat();
        Ok::<_, NodeError>(Final { value, save })
    })
    .compile()
}

fn at_once() -> Flow {
    Entrypoint::new("at_once", |n: i64, task: Task| async move {
        let before: i64 = task.previous()?.unwrap_or_default();
        let calls = [1, 2, 3].map(|m| task.call("double", move || double(n * m)).spawn());
        let mut sum = before;
        for call in calls {
            sum += call.await?;
        }
        Ok::<_, NodeError>(sum)
    })
    .compile()
}

fn asks() -> Flow<String> {
    Entrypoint::new("asks", |n: i64, task: Task| async move {
        let before: String = task.previous()?.unwrap_or_default();
        let doubled = task.call("double", move || double(n)).await?;
        let answer: String = task.interrupt(format!("{doubled}?")).await;
        let more = task.call_with("ask", |call: Task| async move {
            Ok::<String, NodeError>(call.interrupt("more?").await)
        });
        let more = more.await?;
        Ok::<_, NodeError>(format!("{before}{answer} {more};"))
    })
    .compile()
}

fn retried() -> Flow {
    let flow = Entrypoint::new("retried", |n: i64, task: Task| async move {
        let doubled = task.call("double", move || double(n)).await?;
        let world: World = task.context().ok_or("no world")?;
        if world.tried("workflow") < 3 {
            return Err(NodeError::from("not yet"));
        }
        Ok(doubled)
    });
    flow.retry(5).compile()
}

fn fails() -> Flow {
    Entrypoint::new("fails", |n: i64, task: Task| async move {
        let doubled = task.call("double", move || double(n)).await?;
        let world: World = task.context().ok_or("no world")?;
        if world.tried("workflow") < 2 {
            return Err(NodeError::permanent("not now"));
        }
        task.call("double", move || double(doubled)).await
    })
    .compile()
}
