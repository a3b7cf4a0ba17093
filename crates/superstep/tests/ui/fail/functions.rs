//! Functions that cannot be made recorded calls or workflows.

use superstep::prelude::*;

#[task]
fn not_async(n: i64) -> Result<i64, NodeError> {
    Ok(n)
}

#[task(nam = "x")]
async fn misspelt(n: i64) -> Result<i64, NodeError> {
    Ok(n)
}

#[task]
async fn borrows(text: &str) -> Result<usize, NodeError> {
    Ok(text.len())
}

#[task]
async fn generic<T>(value: T) -> Result<T, NodeError> {
    Ok(value)
}

#[task]
async fn returns_nothing(n: i64) {
    let _ = n;
}

#[task]
async fn returns_no_result(n: i64) -> i64 {
    n
}

#[entrypoint]
async fn two_inputs(a: i64, b: i64) -> Result<i64, NodeError> {
    Ok(a + b)
}

fn main() {}
