//! A list of cases by name, and running them one after the other.

use std::future::Future;
use std::pin::Pin;

use crate::checkpointers::kit::{Case, Fault};
use crate::{Outcome, Report};

/// A case, to be run on its own subject.
pub(crate) type Run<S> = fn(S) -> Pin<Box<dyn Future<Output = Case> + Send>>;

/// Declares `CASES`: every case of these modules, and what it runs.
macro_rules! cases {
    ($($module:ident: $($case:ident),+ $(,)?;)+) => {
        /// Every case and what it runs.
        const CASES: &[(&str, $crate::cases::Run<Subject>)] = &[
            $($((
                concat!(stringify!($module), "::", stringify!($case)),
                |subject| Box::pin($module::$case(subject)),
            )),+),+
        ];
    };
}

pub(crate) use cases;

/// Runs every case, each on a fresh subject.
pub(crate) async fn run<S, F>(cases: &[(&'static str, Run<S>)], fresh: impl Fn() -> F) -> Report
where
    F: Future<Output = S>,
{
    let mut report = Report::default();
    for (name, case) in cases {
        let outcome = match case(fresh().await).await {
            Ok(()) => Outcome::Passed,
            Err(Fault::Unsupported) => Outcome::Unsupported,
            Err(Fault::Failed(how)) => Outcome::Failed(how),
        };
        report.cases.push((name, outcome));
    }
    report
}
