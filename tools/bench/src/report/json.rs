//! For programs.

use serde_json::{Value, json};

use crate::figures::{Figures, Side};

/// Everything, each time of each round included.
pub(crate) fn json(rows: &[Figures], footer: &[String]) -> Value {
    json!({ "conditions": footer, "rows": rows.iter().map(row).collect::<Vec<_>>() })
}

fn row(row: &Figures) -> Value {
    json!({
        "workload": row.cell.workload,
        "size": row.cell.size,
        "unit": row.cell.unit,
        "checkpointer": row.cell.checkpointer,
        "durability": row.cell.durability,
        "ours": side(&row.ours),
        "theirs": side(&row.theirs),
        "floor": side(&row.floor),
        "ratio": row.ratio(),
        "ratio_of_medians": row.ratio_of_medians(),
        "above_floor": row.above_floor(),
    })
}

fn side(side: &Side) -> Value {
    json!({ "min_ns": side.min(), "median_ns": side.median(), "rounds": side })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Checkpointer;
    use crate::report::examples;

    #[test]
    fn programs_get_the_figures_and_every_round() {
        let rows = [examples::row(Checkpointer::Memory, 2000, Some(100_000), None)];
        let json = json(&rows, &["two cores".to_owned()]);
        assert_eq!(json["conditions"][0], "two cores");
        let row = &json["rows"][0];
        assert_eq!((&row["workload"], &row["checkpointer"]), (&json!("loop"), &json!("memory")));
        assert_eq!((&row["ratio"], &row["above_floor"]), (&json!(50.0), &Value::Null));
        assert_eq!(row["ours"]["rounds"]["per_unit"], json!([2000.0]));
    }
}
