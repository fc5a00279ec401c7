//! Charts, as the window draws them.

/// Chart over time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Chart {
    pub title: String,
    /// Present value in words.
    pub value: String,
    /// Words for the largest value of the vertical axis.
    pub top: String,
    /// Words for the beginning of the time axis.
    pub begin: String,
    pub series: Vec<Series>,
}

/// Line of a chart.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Series {
    /// Name in the legend; empty for the only line of a chart.
    pub name: String,
    /// Points from left to right: the position on the time axis and the value, each from 0 to 1. `None` breaks the
    /// line.
    pub points: Vec<Option<(f32, f32)>>,
}
