//! Names of tasks, their places, and their questions. Everything here is part of the stored format.

use superstep_checkpoint::{CheckpointId, InterruptId, TaskId};
use xxhash_rust::xxh3::xxh3_128;

pub(crate) const PULL: &str = "__pregel_pull";
pub(crate) const PUSH: &str = "__pregel_push";
pub(crate) const HANDLER: &str = "node_error_handler";

/// Separates the levels of a namespace.
pub(crate) const LEVEL: char = '|';
/// Separates a node from its task id in a namespace.
pub(crate) const TASK: char = ':';

/// The id of a task: the hash of the checkpoint it belongs to and of what makes it differ from other tasks there.
pub(crate) fn task_id(checkpoint: CheckpointId, parts: &[&str]) -> TaskId {
    let length = parts.iter().fold(16_usize, |sum, part| sum.saturating_add(part.len()));
    let mut bytes = Vec::with_capacity(length);
    bytes.extend_from_slice(checkpoint.as_bytes());
    for part in parts {
        bytes.extend_from_slice(part.as_bytes());
    }
    TaskId::from_bytes(xxh3_128(&bytes).to_be_bytes())
}

/// The id of the question that a task asks when it already has `answers` answers.
pub(crate) fn interrupt_id(task_ns: &str, answers: usize) -> InterruptId {
    InterruptId::of_task(task_ns, answers)
}

/// Where node `node` stands in the graph with namespace `ns`.
pub(crate) fn place(ns: &str, node: &str) -> String {
    if ns.is_empty() { node.to_owned() } else { format!("{ns}{LEVEL}{node}") }
}

/// The namespace of a task.
pub(crate) fn task_ns(place: &str, id: TaskId) -> String {
    format!("{place}{TASK}{id}")
}

/// A namespace without task ids: where a subgraph with a history of its own is stored.
pub(crate) fn without_task_ids(ns: &str) -> String {
    let levels = ns.split(LEVEL).map(|level| level.split(TASK).next().unwrap_or(level));
    levels.collect::<Vec<_>>().join("|")
}

/// A namespace as a list of node names: without task ids and without the numbers of repeated calls.
pub(crate) fn node_names(ns: &str) -> String {
    let levels = ns.split(LEVEL).filter(|level| level.parse::<u64>().is_err());
    let names = levels.map(|level| level.split(TASK).next().unwrap_or(level));
    names.collect::<Vec<_>>().join("|")
}

/// Where a node that was triggered stands in its superstep. Writes are folded in the order of these texts.
pub(crate) fn pull_path(node: &str) -> String {
    format!("~{PULL}, {node}")
}

/// Where a dispatch stands, by its position among those of the superstep.
pub(crate) fn push_path(index: usize) -> String {
    format!("~{PUSH}, {index:010}, {:010}", 0)
}

/// Where a recorded call stands, by its position among those of its caller.
pub(crate) fn call_path(caller: &str, index: usize) -> String {
    format!("~{PUSH}, {caller}, {index:010}, {:010}", 1)
}

/// Where the error handler of a failed task stands.
pub(crate) fn handler_path(failed: &str) -> String {
    format!("{failed}, {HANDLER}, {:010}", 0)
}

/// Where an update from outside stands, by its position among those that are applied together.
pub(crate) fn update_path(index: usize) -> String {
    format!("~__interrupt__, {index:010}")
}

/// The node that was triggered, if the stored path is that of a triggered node.
pub(crate) fn pulled(path: &str) -> Option<&str> {
    let name = path.strip_prefix('~')?.strip_prefix(PULL)?.strip_prefix(", ")?;
    (!name.ends_with(&format!(", {HANDLER}, {:010}", 0))).then_some(name)
}

/// The position of a dispatch, if the stored path is that of a dispatched node.
pub(crate) fn pushed(path: &str) -> Option<usize> {
    let rest = path.strip_prefix('~')?.strip_prefix(PUSH)?.strip_prefix(", ")?;
    rest.split(", ").next()?.parse().ok().filter(|_| !path.contains(HANDLER))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint() -> CheckpointId {
        "1f0a1b2c-3d4e-6f50-8001-0123456789ab".parse().expect("an id")
    }

    #[test]
    fn task_ids_are_those_of_the_reference() {
        const FAILED: &str = "11111111-2222-3333-4444-555555555555";
        let called_from = pull_path("wf");
        let cases: &[(&[&str], &str)] = &[
            (&["a", "1", "a", PULL, "branch:to:a"], "780dbd26-0916-206b-fb2a-e0f7a66b0933"),
            (
                &["c", "2", "c", PULL, "branch:to:c", "join:a+b:c"],
                "f4e6af59-24a8-b789-5003-4181ce81b1d9",
            ),
            (
                &["sub:9b2d|inner", "0", "inner", PULL, "branch:to:inner"],
                "57cfc797-c7af-7237-3537-4afe0bba1cb6",
            ),
            (
                &["__start__", "0", "__start__", PULL, "__start__"],
                "f1b10186-2b61-4933-7c2c-8d5a239f7a26",
            ),
            (&["worker", "3", "worker", PUSH, "0"], "b838a173-358d-02de-e434-c4c7aa56cb14"),
            (
                &["wf:11111111-2222-3333-4444-555555555555|t", "1", "t", PUSH, &called_from, "0"],
                "d668fe4e-68e0-81af-4f91-da48c6440aaa",
            ),
            (
                &[
                    "a:11111111-2222-3333-4444-555555555555|__error_handler__a",
                    "1",
                    "__error_handler__a",
                    PUSH,
                    HANDLER,
                    FAILED,
                ],
                "409af78f-514f-84ba-24f2-3b6e01d53fa7",
            ),
        ];
        for (parts, id) in cases {
            assert_eq!(task_id(checkpoint(), parts).to_string(), *id, "{parts:?}");
        }
    }

    #[test]
    fn interrupt_ids_are_those_of_the_reference() {
        let ns = "a:11111111-2222-3333-4444-555555555555";
        assert_eq!(interrupt_id(ns, 0).as_str(), "4c10cdf8556da56f4bb172c06e4d8d03");
        assert_eq!(interrupt_id(ns, 1).as_str(), "1bd9e010fa99145ad6f1362b4ba40b34");
        assert_eq!(format!("{:032x}", xxh3_128(b"")), "99aa06d3014798d86001c324468d497f");
    }

    #[test]
    fn paths_print_as_the_reference_does_and_sort_by_it() {
        let pull = pull_path("wf");
        assert_eq!(pull, "~__pregel_pull, wf");
        assert_eq!(push_path(12), "~__pregel_push, 0000000012, 0000000000");
        assert_eq!(
            call_path(&pull, 3),
            "~__pregel_push, ~__pregel_pull, wf, 0000000003, 0000000001"
        );
        assert_eq!(handler_path(&pull), "~__pregel_pull, wf, node_error_handler, 0000000000");
        assert_eq!(pushed(&push_path(12)), Some(12));
        assert_eq!(pushed(&call_path(&push_path(1), 3)), None);
        assert!(push_path(2) < push_path(10));
        assert!(pull_path("z") < push_path(0));
    }

    #[test]
    fn namespaces_lose_task_ids_and_call_numbers() {
        assert_eq!(without_task_ids("a:ID|1|b:ID"), "a|1|b");
        assert_eq!(node_names("a:ID|1|b:ID"), "a|b");
        assert_eq!(place("", "a"), "a");
        assert_eq!(place("a:ID", "b"), "a:ID|b");
    }
}
