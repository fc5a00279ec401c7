//! Horizontal bar charts as SVG: one chart per group, one panel per row, each with its own scale and printed values.

use std::fmt::Write as _;

/// One row of a group. Its bars have a common scale.
pub struct Panel {
    pub title: String,
    pub unit: String,
    pub bars: Vec<Bar>,
}

pub struct Bar {
    pub label: String,
    pub value: f64,
    /// Minimum and maximum of the rounds, drawn as a whisker.
    pub spread: Option<(f64, f64)>,
}

// Lengths in pixels.
const WIDTH: f64 = 760.0;
pub const MARGIN: f64 = 16.0;
/// Width of the names to the left of the bars.
const LABELS: f64 = 170.0;
/// Width of the values to the right of the bars.
const VALUES: f64 = 90.0;
/// Height of a bar, and distance from the top of a bar to the top of the next one.
const BAR: f64 = 16.0;
const STEP: f64 = 24.0;
/// Height of the title of a panel, and gap above the title.
const TITLE: f64 = 30.0;
const GAP: f64 = 18.0;

pub const INK: &str = "#1f2933";
const FAINT: &str = "#7b8794";
const FLOOR: &str = "#b8c2cc";
const OURS: &str = "#d9480f";
const OTHERS: &str = "#4c78a8";

/// Draws `panels` under one `title`. A panel without bars is left out.
pub fn svg(title: &str, panels: &[Panel]) -> String {
    let mut body = String::new();
    let mut y = MARGIN + 24.0;
    for panel in panels.iter().filter(|panel| !panel.bars.is_empty()) {
        y += GAP;
        draw(&mut body, panel, y);
        y += TITLE + STEP * panel.bars.len() as f64;
    }
    document(title, (WIDTH, y + MARGIN), &body)
}

/// Returns an SVG document with a title above `body`, on a white ground.
pub fn document(title: &str, (width, height): (f64, f64), body: &str) -> String {
    let title = escape(title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" role=\"img\" font-family=\"system-ui, sans-serif\" fill=\"{INK}\">\n\
         <title>{title}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"{MARGIN}\" y=\"{:.0}\" font-size=\"18\" font-weight=\"600\">{title}</text>\n{body}</svg>\n",
        MARGIN + 14.0
    )
}

/// Draws a panel with its upper edge at `top`.
fn draw(body: &mut String, panel: &Panel, top: f64) {
    let most = panel
        .bars
        .iter()
        .map(|bar| bar.spread.map_or(bar.value, |(_, most)| most.max(bar.value)));
    let most = most.fold(f64::MIN_POSITIVE, f64::max);
    let left = MARGIN + LABELS;
    let scale = (WIDTH - MARGIN - VALUES - left) / most;
    let _ = writeln!(
        body,
        "<text x=\"{MARGIN}\" y=\"{:.1}\" font-size=\"13\" font-weight=\"600\">{} \
         <tspan font-weight=\"400\" fill=\"{FAINT}\">({})</tspan></text>",
        top + 14.0,
        escape(&panel.title),
        escape(&panel.unit)
    );
    for (index, bar) in panel.bars.iter().enumerate() {
        let y = top + TITLE + STEP * index as f64;
        let (middle, end) = (y + BAR / 2.0, left + bar.value * scale);
        let colour = match bar.label.as_str() {
            label if label.starts_with("floor") => FLOOR,
            label if label.starts_with("rocknet") => OURS,
            _ => OTHERS,
        };
        let _ = writeln!(
            body,
            "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"12\" text-anchor=\"end\">{}</text>\n\
             <rect x=\"{left:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{BAR:.0}\" rx=\"2\" fill=\"{colour}\"/>",
            left - 8.0,
            middle + 4.0,
            escape(&bar.label),
            bar.value * scale
        );
        let mut behind = end;
        if let Some((least, most)) = bar.spread {
            behind = left + most * scale;
            let _ = writeln!(
                body,
                "<path d=\"M{:.1} {middle:.1}H{behind:.1}\" stroke=\"{INK}\" stroke-width=\"1\"/>",
                left + least * scale
            );
        }
        let _ = writeln!(
            body,
            "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"12\">{}</text>",
            behind.max(end) + 6.0,
            middle + 4.0,
            figure(bar.value)
        );
    }
}

/// Formats a figure with three significant digits.
pub fn figure(value: f64) -> String {
    match value.abs() {
        _ if value.is_nan() => "–".into(),
        0.0 => "0".into(),
        size if size >= 1000.0 => grouped(value),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// Formats a whole number with commas between thousands.
fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::from(if value < 0.0 { "-" } else { "" });
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Escapes a text for XML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_significant_digits() {
        let rows = [
            (1.0374, "1.04"),
            (0.4321, "0.432"),
            (25.04, "25.0"),
            (123.4, "123"),
            (149_333.3, "149,333"),
            (1000.0, "1,000"),
            (0.0, "0"),
            (f64::NAN, "–"),
        ];
        for (value, expected) in rows {
            assert_eq!(figure(value), expected);
        }
    }

    #[test]
    fn bars_stay_inside_the_chart_and_names_are_escaped() {
        let bars = vec![
            Bar {
                label: "floor".into(),
                value: 1.0,
                spread: None,
            },
            Bar {
                label: "a<b>&".into(),
                value: 4.0,
                spread: Some((3.0, 5.0)),
            },
        ];
        let text = svg(
            "T",
            &[Panel {
                title: "P".into(),
                unit: "× floor".into(),
                bars,
            }],
        );
        assert!(text.contains("a&lt;b&gt;&amp;") && !text.contains("a<b>"));
        // The whisker of the widest bar ends where the space for the values begins.
        assert!(text.contains(&format!("H{:.1}", WIDTH - MARGIN - VALUES)));
        assert_eq!(text.matches("rx=\"2\"").count(), 2);
    }

    #[test]
    fn empty_panels_are_left_out() {
        let text = svg(
            "T",
            &[Panel {
                title: "nothing".into(),
                unit: String::new(),
                bars: Vec::new(),
            }],
        );
        assert!(!text.contains("nothing"));
    }
}
