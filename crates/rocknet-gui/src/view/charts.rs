//! Charts over time, in as many columns as fit.

use std::cell::RefCell;
use std::rc::Rc;

use fltk::draw;
use fltk::enums::Align;
use fltk::prelude::*;
use fltk::widget::Widget;
use rocknet_gui::screen::{Chart, Series};
use rocknet_gui::theme::{Rgb, Theme};

use super::paint::{self, Area};
use super::shared::{SharedHandle, colour};

/// Space between two charts.
const GAP: i32 = 14;

/// Minimum width of a chart. Below twice that width, the charts are in one column.
const MIN_WIDTH: i32 = 250;

/// Share of the colour of the first line in the area below it, in percent.
const FILL: u16 = 14;

/// Charts view.
pub struct ChartsView {
    pub widget: Widget,
    charts: Rc<RefCell<Vec<Chart>>>,
}

impl ChartsView {
    /// Creates the view in the present group.
    pub fn new(shared: &SharedHandle) -> ChartsView {
        let mut widget = Widget::new(0, 0, 100, 100, None);
        let charts = Rc::new(RefCell::new(Vec::new()));
        let (colours, drawn) = (SharedHandle::clone(shared), Rc::clone(&charts));
        widget.draw(move |widget| draw_charts(&colours.theme(), widget, &drawn.borrow()));
        ChartsView { widget, charts }
    }

    /// Shows charts.
    pub fn show(&mut self, charts: &[Chart]) {
        self.charts.replace(charts.to_vec());
        self.widget.redraw();
    }

    /// Places the view.
    pub fn layout(&mut self, area: Area) {
        self.widget.resize(area.x, area.y, area.w, area.h);
    }
}

fn draw_charts(theme: &Theme, widget: &Widget, charts: &[Chart]) {
    let area = Area::new(widget.x(), widget.y(), widget.w(), widget.h());
    paint::fill(area, theme.back);
    let count = charts.len() as i32;
    let columns = (area.w / (MIN_WIDTH + GAP)).clamp(1, 2);
    let rows = (count + columns - 1) / columns;
    let h = (area.h - (rows - 1) * GAP) / rows.max(1);
    for (index, chart) in charts.iter().enumerate() {
        let (column, row) = (index as i32 % columns, index as i32 / columns);
        // A last chart that is alone in its row takes the whole width.
        let is_alone = index as i32 == count - 1 && column == 0;
        let w = match is_alone {
            true => area.w,
            false => (area.w - (columns - 1) * GAP) / columns,
        };
        draw_chart(
            theme,
            chart,
            Area::new(area.x + column * (w + GAP), area.y + row * (h + GAP), w, h),
        );
    }
}

/// Returns the unbroken lines of a series.
fn lines(series: &Series) -> impl Iterator<Item = &[Option<(f32, f32)>]> {
    series.points.split(Option::is_none).filter(|line| !line.is_empty())
}

/// Fills the area between a line and the base of its chart.
fn fill_below(points: impl Iterator<Item = (f64, f64)>, base: f64) {
    let points: Vec<(f64, f64)> = points.collect();
    // Strips between neighbours, because a polygon has to be convex.
    for pair in points.windows(2) {
        let ((left, first), (right, second)) = (pair[0], pair[1]);
        // Strips that overlap by a pixel leave no seams.
        let right = right + 1.0;
        draw::begin_polygon();
        for (x, y) in [(left, base), (left, first), (right, second), (right, base)] {
            draw::vertex(x, y);
        }
        draw::end_polygon();
    }
}

fn draw_chart(theme: &Theme, chart: &Chart, area: Area) {
    paint::round(area, theme.card);
    paint::edge(area, theme.soft, 1);
    let left = Align::Left | Align::Inside;
    let right = Align::Right | Align::Inside;
    let title = Area::new(area.x + 14, area.y + 8, area.w / 2 - 14, 22);
    paint::text(&chart.title, title, paint::REGULAR, paint::SMALL + 1, theme.dim, left);
    let value = Area::new(area.x + area.w / 3, area.y + 8, area.w * 2 / 3 - 14, 22);
    paint::text(&chart.value, value, paint::BOLD, paint::BODY, theme.text, right);
    let plot = Area::new(area.x + 14, area.y + 38, area.w - 28, area.h - 38 - 26);
    if plot.h < 10 {
        return;
    }
    let at = |(x, y): (f32, f32)| {
        (
            f64::from(plot.x) + f64::from(x) * f64::from(plot.w),
            f64::from(plot.y + plot.h) - f64::from(y.clamp(0.0, 1.0)) * f64::from(plot.h),
        )
    };
    if let Some(first) = chart.series.first() {
        draw::set_draw_color(colour(theme.card.mixed(theme.accent, FILL)));
        for line in lines(first) {
            fill_below(line.iter().copied().flatten().map(at), f64::from(plot.y + plot.h));
        }
    }
    draw::set_draw_color(colour(theme.soft));
    for step in 0..=2 {
        let y = plot.y + plot.h * step / 2;
        draw::draw_xyline(plot.x, y, plot.x + plot.w);
    }
    for (index, series) in chart.series.iter().enumerate() {
        let rgb = set_line(theme, index);
        for line in lines(series) {
            draw::begin_line();
            for point in line.iter().copied().flatten() {
                let (x, y) = at(point);
                draw::vertex(x, y);
            }
            draw::end_line();
            if let [Some(alone)] = line {
                let (x, y) = at(*alone);
                draw::draw_circle_fill(x as i32 - 2, y as i32 - 2, 4, colour(rgb));
                draw::set_draw_color(colour(rgb));
            }
        }
        draw::set_line_style(draw::LineStyle::Solid, 0);
    }
    let base = Area::new(plot.x, plot.y + plot.h + 3, plot.w, 20);
    paint::text(&chart.begin, base, paint::REGULAR, paint::SMALL, theme.dim, left);
    // The label is in front of the line that may pass it.
    draw::set_font(paint::REGULAR, paint::SMALL);
    let top = Area::new(plot.x, plot.y + 1, draw::width(&chart.top).ceil() as i32 + 2, 15);
    paint::fill(Area::new(top.x, top.y, top.w + 2, top.h), theme.card);
    paint::text(&chart.top, top, paint::REGULAR, paint::SMALL, theme.dim, left);
    let mut end = plot.x + plot.w;
    for (index, series) in chart
        .series
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, series)| !series.name.is_empty())
    {
        draw::set_font(paint::REGULAR, paint::SMALL);
        let width = draw::width(&series.name) as i32 + 4;
        paint::text(
            &series.name,
            Area::new(end - width, base.y, width, 20),
            paint::REGULAR,
            paint::SMALL,
            theme.dim,
            right,
        );
        set_line(theme, index);
        draw::draw_xyline(end - width - 22, base.y + 10, end - width - 2);
        draw::set_line_style(draw::LineStyle::Solid, 0);
        end -= width + 34;
    }
}

/// Sets the colour and the pattern of the line of a series, and returns the colour. Lines differ by their pattern as
/// well as by their colour.
fn set_line(theme: &Theme, index: usize) -> Rgb {
    let (rgb, pattern) = match index {
        0 => (theme.accent, draw::LineStyle::Solid),
        _ => (theme.second, draw::LineStyle::Dash),
    };
    draw::set_draw_color(colour(rgb));
    draw::set_line_style(pattern, 2);
    rgb
}
