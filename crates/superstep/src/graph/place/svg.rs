//! The picture of a placed drawing.

use std::fmt::{self, Write as _};

use super::{Placed, PlacedEdge};
use crate::engine::{END, START};

/// Readable on a white and on a dark page: the picture has its own colours for both.
const STYLE: &str = "\
.n rect{fill:#fff;stroke:#5a6478;stroke-width:1.4}.n.e rect{fill:#eef0f4}.n.s rect{stroke-dasharray:5 3}\
.g rect{fill:#8b94a5;fill-opacity:.1;stroke:#8b94a5;stroke-dasharray:2 3}\
.l path{fill:none;stroke:#7a8497;stroke-width:1.4}.l.c path{stroke-dasharray:5 4}\
text{font:12.5px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#191d26;text-anchor:middle}\
.g text{text-anchor:start;fill:#5a6478}.l text{font-size:11px;fill:#5a6478}#a path{fill:#7a8497}\
@media(prefers-color-scheme:dark){.n rect{fill:#1a1e28;stroke:#8b94a5}.n.e rect{fill:#232936}text{fill:#e7eaf1}\
.g text,.l text{fill:#a3adc0}}";

impl Placed {
    /// The drawing as an SVG picture that needs nothing else. It is readable on light and on dark pages.
    pub fn to_svg(&self) -> String {
        let mut text = String::new();
        self.write(&mut text).expect("a string can be written to");
        text
    }

    fn write(&self, text: &mut String) -> fmt::Result {
        let (width, height) = (self.width, self.height);
        writeln!(
            text,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\">"
        )?;
        let names = self.nodes.iter().filter(|node| node.id != START && node.id != END);
        let names: Vec<_> = names.map(|node| escaped(&node.id)).collect();
        writeln!(text, "<title>A graph with the nodes {}</title>", names.join(", "))?;
        writeln!(text, "<style>{STYLE}</style>")?;
        writeln!(
            text,
            "<marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0 .5L7.5 4L0 7.5z\"/></marker>"
        )?;
        for group in &self.groups {
            let area = group.area;
            writeln!(
                text,
                "<g class=\"g\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"10\"/><text x=\"{}\" y=\"{}\">{}</text></g>",
                area.x,
                area.y,
                area.width,
                area.height,
                area.x + 10.0,
                area.y + 18.0,
                escaped(&group.label)
            )?;
        }
        for edge in &self.edges {
            let class = if edge.edge.conditional { "l c" } else { "l" };
            write!(
                text,
                "<g class=\"{class}\"><path d=\"{}\" marker-end=\"url(#a)\"/>",
                path(edge)
            )?;
            if let Some(label) = edge.edge.shown_label() {
                let (x, y) = middle(&edge.points);
                write!(text, "<text x=\"{x}\" y=\"{y}\">{}</text>", escaped(label))?;
            }
            writeln!(text, "</g>")?;
        }
        for node in &self.nodes {
            let end = node.id == START || node.id == END;
            let class = match (end, node.subgraph) {
                (true, _) => "n e",
                (false, true) => "n s",
                (false, false) => "n",
            };
            let area = node.area;
            let round = if end { area.height / 2.0 } else { 7.0 };
            writeln!(
                text,
                "<g class=\"{class}\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{round}\"/><text x=\"{}\" y=\"{}\">{}</text></g>",
                area.x,
                area.y,
                area.width,
                area.height,
                area.x + area.width / 2.0,
                area.y + area.height / 2.0 + 4.0,
                escaped(&node.label)
            )?;
        }
        writeln!(text, "</svg>")
    }
}

/// A line through the points, rounded where it turns.
fn path(edge: &PlacedEdge) -> String {
    let mut path = String::new();
    let mut before: Option<(f64, f64)> = None;
    for (x, y) in &edge.points {
        // A string can be written to.
        let _ = match before {
            None => write!(path, "M{x} {y}"),
            Some((from_x, from_y)) => {
                let half = (y - from_y) / 2.0;
                write!(path, "C{from_x} {} {x} {} {x} {y}", from_y + half, y - half)
            }
        };
        before = Some((*x, *y));
    }
    path
}

fn middle(points: &[(f64, f64)]) -> (f64, f64) {
    let at = points.len() / 2;
    let (a, b) = (points.get(at.saturating_sub(1)), points.get(at));
    match (a, b) {
        (Some(a), Some(b)) => (f64::midpoint(a.0, b.0), f64::midpoint(a.1, b.1) - 2.0),
        _ => (0.0, 0.0),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
