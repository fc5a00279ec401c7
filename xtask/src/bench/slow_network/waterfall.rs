//! Waterfall charts as SVG: for each visit a panel with a bar per resource, all panels with the same time scale.

use crate::bench::browser::visit::{PartTiming, Visit};
use crate::bench::plot::{INK, MARGIN, document, escape};
use std::fmt::Write as _;

/// One panel.
pub struct VisitPanel<'a> {
    pub label: &'a str,
    pub visit: &'a Visit,
}

/// Width of a panel in pixels, and gap between panels.
const PANEL: f64 = 270.0;
const GAP: f64 = 14.0;
/// Height of the picture's title, of a panel's title, and of the scale below the bars.
const TITLE: f64 = 30.0;
const PANEL_TITLE: f64 = 40.0;
const SCALE: f64 = 20.0;
/// Width of a label of the scale.
const LABEL: f64 = 20.0;
/// Distance of two bars, and height of one.
const STEP: f64 = 7.0;
const BAR: f64 = 5.0;
/// Height of the line of explanations.
const KEY: f64 = 30.0;

/// Width for the title and the explanations.
const MIN_WIDTH: f64 = 800.0;

const GRID: &str = "#e4e7eb";
const PARSED: &str = "#2f9e44";
const LOADED: &str = "#c92a2a";

/// Kinds of resources in the order of the bars, each with the end of its names, its label and its colour.
const KINDS: [(&str, &str, &str); 4] = [
    (".html", "document", "#495057"),
    (".css", "style sheet", "#9c36b5"),
    (".js", "script", "#f08c00"),
    (".bmp", "image", "#4c78a8"),
];

/// Draws `panels` beside each other. A resource has the same line in each panel.
pub fn svg(title: &str, panels: &[VisitPanel<'_>]) -> String {
    let end = panels.iter().map(|panel| end(panel.visit)).fold(1.0, f64::max);
    let lines = panels.iter().map(|panel| panel.visit.parts.len()).max().unwrap_or(0);
    let bars = STEP * lines as f64;
    let width = 2.0 * MARGIN + PANEL * panels.len() as f64 + GAP * panels.len().saturating_sub(1) as f64;
    let width = width.max(MIN_WIDTH);
    let top = MARGIN + TITLE;
    let bottom = top + PANEL_TITLE + bars + SCALE;
    let mut body = String::new();
    for (index, panel) in panels.iter().enumerate() {
        draw(
            &mut body,
            panel,
            (MARGIN + (PANEL + GAP) * index as f64, top),
            bars,
            end,
        );
    }
    key(&mut body, bottom + KEY / 2.0);
    document(title, (width, bottom + KEY + MARGIN), &body)
}

/// Returns the last moment of a visit.
fn end(visit: &Visit) -> f64 {
    visit.parts.iter().map(|part| part.end).fold(visit.loaded, f64::max)
}

/// Draws a panel. `bars`: height of all bars. `end`: time at the right edge in milliseconds.
fn draw(body: &mut String, panel: &VisitPanel<'_>, (left, top): (f64, f64), bars: f64, end: f64) {
    let x = |milliseconds: f64| left + milliseconds / end * PANEL;
    let first = top + PANEL_TITLE;
    let visit = panel.visit;
    let _ = writeln!(
        body,
        "<text x=\"{left:.1}\" y=\"{:.1}\" font-size=\"13\" font-weight=\"600\">{}</text>\n\
         <text x=\"{left:.1}\" y=\"{:.1}\" font-size=\"10\">styles {:.2}, DOMContentLoaded {:.2}, load {:.2} s</text>",
        top + 12.0,
        escape(panel.label),
        top + 28.0,
        visit.last_blocking() / 1e3,
        visit.parsed / 1e3,
        visit.loaded / 1e3
    );
    let step = grid_step(end);
    let mut at = 0.0;
    // A label at the right edge would run into the next panel.
    while x(at) <= left + PANEL - LABEL {
        let _ = writeln!(
            body,
            "<path d=\"M{0:.1} {first:.1}V{1:.1}\" stroke=\"{GRID}\"/>\n\
             <text x=\"{0:.1}\" y=\"{2:.1}\" font-size=\"10\">{3} s</text>",
            x(at),
            first + bars,
            first + bars + 12.0,
            at / 1e3
        );
        at += step;
    }
    for (index, part) in ordered(&visit.parts).into_iter().enumerate() {
        let y = first + STEP * index as f64;
        let colour = kind(part).map_or(INK, |kind| KINDS[kind].2);
        // Cached and failed resources report no first byte.
        let first_byte = part.first_byte.clamp(part.start, part.end);
        for (from, to, opacity) in [(part.start, first_byte, 0.3), (first_byte, part.end, 1.0)] {
            let _ = writeln!(
                body,
                "<rect x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{BAR}\" fill=\"{colour}\" opacity=\"{opacity}\"/>",
                x(from),
                (x(to) - x(from)).max(0.5)
            );
        }
    }
    for (at, colour) in [(visit.parsed, PARSED), (visit.loaded, LOADED)] {
        let _ = writeln!(
            body,
            "<path d=\"M{:.1} {first:.1}V{:.1}\" stroke=\"{colour}\" stroke-width=\"1.5\"/>",
            x(at),
            first + bars
        );
    }
}

/// Returns the distance of the vertical lines in milliseconds, so that there are at most six.
fn grid_step(end: f64) -> f64 {
    let steps = [100.0, 200.0, 500.0, 1_000.0, 2_000.0, 5_000.0, 10_000.0];
    steps.into_iter().find(|step| end / step <= 6.0).unwrap_or(20_000.0)
}

/// Returns the parts by kind, and each kind by its numbers, so that priorities are visible as groups.
fn ordered(parts: &[PartTiming]) -> Vec<&PartTiming> {
    let mut ordered: Vec<&PartTiming> = parts.iter().collect();
    ordered.sort_by_key(|part| {
        let number: Option<u32> = part.name.split('.').next().and_then(|word| word.parse().ok());
        (kind(part).unwrap_or(KINDS.len()), number)
    });
    ordered
}

/// Returns the index in [`KINDS`].
fn kind(part: &PartTiming) -> Option<usize> {
    KINDS.iter().position(|(end, _, _)| part.name.ends_with(end))
}

/// Draws the explanation of the colours.
fn key(body: &mut String, y: f64) {
    let mut x = MARGIN;
    let entries = KINDS.iter().map(|(_, label, colour)| (*label, *colour));
    let lines = [("DOMContentLoaded", PARSED), ("load", LOADED)];
    for (label, colour) in entries.chain(lines) {
        let _ = writeln!(
            body,
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"10\" height=\"10\" fill=\"{colour}\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" font-size=\"11\">{label}</text>",
            y - 9.0,
            x + 14.0,
            y
        );
        x += 34.0 + 6.5 * label.len() as f64;
    }
    let _ = writeln!(
        body,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"11\">pale: until the first byte of the response</text>"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::browser::visit::Visit;

    fn visit(loaded: f64) -> Visit {
        let part = |name: &str, start: f64| {
            format!(
                "{{\"name\":\"{name}\",\"protocol\":\"h3\",\"blocking\":false,\"start\":{start},\"first_byte\":{},\
                 \"end\":{},\"bytes\":1}}",
                start + 50.0,
                start + 100.0
            )
        };
        let parts = [
            ("2.bmp", 300.0),
            ("10.js", 200.0),
            ("2.js", 210.0),
            ("0.css", 100.0),
            ("index.html", 0.0),
        ];
        let parts = parts.map(|(name, start)| part(name, start)).join(",");
        let json = format!("{{\"parsed\":350,\"loaded\":{loaded},\"parts\":[{parts}]}}");
        serde_json::from_str(&json).expect("a visit")
    }

    #[test]
    fn bars_are_ordered_by_kind_and_number() {
        let visit = visit(400.0);
        let names: Vec<&str> = ordered(&visit.parts).iter().map(|part| &part.name[..]).collect();
        assert_eq!(names, ["index.html", "0.css", "2.js", "10.js", "2.bmp"]);
    }

    #[test]
    fn panels_share_one_scale() {
        let (short, long) = (visit(400.0), visit(1000.0));
        let panel = |label, visit| VisitPanel { label, visit };
        let text = svg("T & t", &[panel("a", &short), panel("b<", &long)]);
        assert!(text.contains("T &amp; t") && text.contains("b&lt;"));
        // The load event of the longer visit is at the right edge of its panel.
        let right = MARGIN + PANEL + GAP + PANEL;
        assert!(text.contains(&format!("<path d=\"M{right:.1} ")), "{right}");
        let first = MARGIN + PANEL * 0.4;
        assert!(text.contains(&format!("<path d=\"M{first:.1} ")), "{first}");
        assert_eq!(text.matches("opacity=\"0.3\"").count(), 10);
    }

    #[test]
    fn a_scale_has_few_lines() {
        for (end, expected) in [
            (1.0, 100.0),
            (600.0, 100.0),
            (601.0, 200.0),
            (9_000.0, 2_000.0),
            (1e6, 20_000.0),
        ] {
            assert_eq!(grid_step(end), expected, "{end}");
        }
    }
}
