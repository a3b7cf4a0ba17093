//! The ratios as bars on a logarithmic scale.

use std::fmt::Write;

use crate::figures::Figures;

const LABELS: f64 = 260.0;
const BARS: f64 = 520.0;
const LINE: f64 = 20.0;
const TOP: f64 = 56.0;

/// A picture of how many times faster than LangGraph each row is.
pub(crate) fn chart(rows: &[Figures]) -> String {
    let bars: Vec<(String, f64)> = rows
        .iter()
        .filter_map(|row| {
            Some((format!("{}, {}", row.cell.title(), row.cell.place()), row.ratio()?))
        })
        .collect();
    let highest = bars.iter().map(|(_, ratio)| *ratio).fold(10.0, f64::max);
    let decades = highest.log10().ceil();
    let height = TOP + LINE * bars.len() as f64 + LINE;
    let width = LABELS + BARS + 80.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"16\" y=\"24\" font-size=\"16\">Time of LangGraph divided by time of superstep (logarithmic)</text>\n"
    );
    for decade in 0..=decades as i32 {
        grid(&mut svg, decade, decades, height);
    }
    for (at, (label, ratio)) in bars.iter().enumerate() {
        bar(&mut svg, TOP + LINE * at as f64, label, *ratio, decades);
    }
    svg.push_str("</svg>\n");
    svg
}

fn grid(svg: &mut String, decade: i32, decades: f64, height: f64) {
    let x = LABELS + BARS * f64::from(decade) / decades;
    let (label, bottom) = (10_f64.powi(decade), height - LINE / 2.0);
    let _ = writeln!(
        svg,
        "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom}\" stroke=\"#ddd\"/>\
         <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"#666\">{label}x</text>",
        TOP - 8.0
    );
}

/// A bar that would begin left of one is drawn as none.
fn bar(svg: &mut String, y: f64, label: &str, ratio: f64, decades: f64) {
    let length = (BARS * ratio.log10() / decades).max(0.0);
    let (text, end) = (y + 14.0, LABELS + length + 6.0);
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{text}\" text-anchor=\"end\">{label}</text>\
         <rect x=\"{LABELS}\" y=\"{}\" width=\"{length:.1}\" height=\"14\" fill=\"#3b6ea5\"/>\
         <text x=\"{end:.1}\" y=\"{text}\">{ratio:.1}x</text>",
        LABELS - 8.0,
        y + 3.0
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Checkpointer;
    use crate::report::examples::row;

    #[test]
    fn bars_are_as_long_as_the_logarithm_of_their_ratio() {
        let rows = [
            row(Checkpointer::None, 10, Some(1_000), None),
            row(Checkpointer::Memory, 10, Some(100), None),
        ];
        let svg = chart(&rows);
        assert!(svg.contains("width=\"520.0\""), "a hundred is the whole of two decades: {svg}");
        assert!(svg.contains("width=\"260.0\""), "ten is half of it: {svg}");
        assert!(svg.contains("loop 1000, memory"), "{svg}");
    }

    #[test]
    fn rows_that_were_not_compared_have_no_bar() {
        assert!(!chart(&[row(Checkpointer::None, 10, None, None)]).contains("loop"));
    }
}
