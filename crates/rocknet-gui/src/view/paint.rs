//! Shapes and texts that several parts draw.

use fltk::draw;
use fltk::enums::{Align, Font};
use rocknet_gui::screen::Mark;
use rocknet_gui::theme::{Rgb, Theme};

use super::shared::colour;

/// Sizes of texts in pixels.
pub const TITLE: i32 = 22;
pub const BODY: i32 = 14;
pub const SMALL: i32 = 12;

/// Radius of cards, buttons and fields in pixels.
pub const RADIUS: i32 = 6;

/// Font of all texts in two weights, and the font of logs.
pub const REGULAR: Font = Font::Helvetica;
pub const BOLD: Font = Font::HelveticaBold;
pub const MONO: Font = Font::Courier;

/// A rectangle.
#[derive(Debug, Clone, Copy)]
pub struct Area {
    pub x: i32,
    pub y: i32,
    pub w: i32,
    pub h: i32,
}

impl Area {
    /// Creates a rectangle.
    pub fn new(x: i32, y: i32, w: i32, h: i32) -> Area {
        Area { x, y, w, h }
    }

    /// Returns the rectangle without a margin at each side.
    pub fn inset(self, by: i32) -> Area {
        Area::new(self.x + by, self.y + by, self.w - 2 * by, self.h - 2 * by)
    }
}

/// Fills a rectangle.
pub fn fill(area: Area, rgb: Rgb) {
    draw::draw_rect_fill(area.x, area.y, area.w, area.h, colour(rgb));
}

/// Fills a rectangle with rounded corners.
pub fn round(area: Area, rgb: Rgb) {
    draw::set_draw_color(colour(rgb));
    draw::draw_rounded_rectf(area.x, area.y, area.w, area.h, RADIUS);
}

/// Draws the thumb of a scroll bar: a bar with round ends.
pub fn thumb(area: Area, rgb: Rgb) {
    draw::set_draw_color(colour(rgb));
    draw::draw_rounded_rectf(area.x, area.y, area.w, area.h, area.w.min(area.h) / 2);
}

/// Draws the edge of a rectangle with rounded corners.
pub fn edge(area: Area, rgb: Rgb, width: i32) {
    draw::set_draw_color(colour(rgb));
    draw::set_line_style(draw::LineStyle::Solid, width);
    draw::draw_rounded_rect(area.x, area.y, area.w, area.h, RADIUS);
    draw::set_line_style(draw::LineStyle::Solid, 0);
}

/// Draws one line of text within a rectangle, and cuts it with an ellipsis if it is too long.
pub fn text(words: &str, area: Area, font: Font, size: i32, rgb: Rgb, align: Align) {
    draw::set_font(font, size);
    draw::set_draw_color(colour(rgb));
    let shown = fitted(words, area.w);
    draw::push_clip(area.x, area.y, area.w, area.h);
    // Unlike the labels of widgets, `@` is drawn as it is.
    draw::draw_text2(&shown, area.x, area.y, area.w, area.h, align);
    draw::pop_clip();
}

/// Returns a path that fits into a width: without its first folders if it is too long. The font has to be set.
pub fn fitted_path(path: &str, width: i32) -> String {
    let fits = |text: &str| draw::width(text) <= f64::from(width);
    if fits(path) {
        return path.to_owned();
    }
    let ends = path.match_indices('/').map(|(at, _)| format!("…{}", &path[at..]));
    ends.into_iter()
        .find(|end| fits(end))
        .unwrap_or_else(|| path.to_owned())
}

/// Returns a text that fits into a width, with an ellipsis if it was cut. The font has to be set.
pub fn fitted(words: &str, width: i32) -> String {
    let words = words.lines().next().unwrap_or_default();
    if draw::width(words) <= f64::from(width) {
        return words.to_owned();
    }
    let mut low = 0;
    let ends: Vec<usize> = words.char_indices().map(|(at, _)| at).collect();
    let mut high = ends.len();
    while low + 1 < high {
        let middle = usize::midpoint(low, high);
        let cut = format!("{}…", &words[..ends[middle]]);
        if draw::width(&cut) <= f64::from(width) {
            low = middle;
        } else {
            high = middle;
        }
    }
    format!("{}…", words[..ends.get(low).copied().unwrap_or(0)].trim_end())
}

/// Splits a text into lines that fit into a width. The font has to be set.
pub fn wrapped(words: &str, width: i32) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in words.lines() {
        let mut line = String::new();
        for word in paragraph.split(' ') {
            let longer = if line.is_empty() {
                word.to_owned()
            } else {
                format!("{line} {word}")
            };
            if draw::width(&longer) > f64::from(width) && !line.is_empty() {
                lines.push(std::mem::replace(&mut line, word.to_owned()));
            } else {
                line = longer;
            }
        }
        lines.push(line);
    }
    lines
}

/// Splits a text into at most `count` lines that fit into a width; the last one ends in `…` if there is more. The font
/// has to be set. The work is bounded for a text of any length.
pub fn wrapped_to(words: &str, width: i32, count: usize) -> Vec<String> {
    // No letter is narrower than two pixels.
    let most = count * (width.max(2) as usize / 2) + 1;
    let end = words.char_indices().nth(most).map_or(words.len(), |(at, _)| at);
    let mut lines = wrapped(&words[..end], width);
    if lines.len() > count || end < words.len() {
        lines.truncate(count);
        if let Some(last) = lines.last_mut() {
            *last = fitted(&format!("{last} …"), width);
        }
    }
    lines
}

/// Returns the colour of a mark.
pub fn mark_colour(theme: &Theme, mark: Mark) -> Rgb {
    match mark {
        Mark::Good => theme.good,
        Mark::Fair => theme.fair,
        Mark::Bad => theme.bad,
        Mark::Off => theme.dim,
        Mark::Busy => theme.accent,
    }
}

/// Draws a mark in a square of `size` pixels: marks differ in shape as well as in colour.
pub fn mark(theme: &Theme, mark: Mark, x: i32, y: i32, size: i32) {
    mark_in(mark_colour(theme, mark), mark, x, y, size);
}

/// Draws the shape of a mark in the given colour.
pub fn mark_in(rgb: Rgb, mark: Mark, x: i32, y: i32, size: i32) {
    draw::set_draw_color(colour(rgb));
    let (left, top, side) = (f64::from(x), f64::from(y), f64::from(size));
    let at = |h: f64, v: f64| draw::vertex(left + h * side, top + v * side);
    match mark {
        Mark::Good => {
            draw::set_line_style(draw::LineStyle::Solid, (size / 6).max(2));
            draw::begin_line();
            at(0.1, 0.55);
            at(0.4, 0.85);
            at(0.95, 0.15);
            draw::end_line();
        }
        Mark::Fair => {
            draw::begin_polygon();
            at(0.5, 0.0);
            at(1.0, 0.95);
            at(0.0, 0.95);
            draw::end_polygon();
        }
        Mark::Bad => {
            draw::set_line_style(draw::LineStyle::Solid, (size / 6).max(2));
            for (from, to) in [((0.1, 0.1), (0.9, 0.9)), ((0.9, 0.1), (0.1, 0.9))] {
                draw::begin_line();
                at(from.0, from.1);
                at(to.0, to.1);
                draw::end_line();
            }
        }
        Mark::Off => draw::draw_rectf(x + size / 8, y + size / 8, size * 3 / 4, size * 3 / 4),
        Mark::Busy => {
            draw::set_line_style(draw::LineStyle::Solid, (size / 6).max(2));
            draw::draw_arc(x + 1, y + 1, size - 2, size - 2, 60.0, 360.0);
        }
    }
    draw::set_line_style(draw::LineStyle::Solid, 0);
}

/// Draws the sign of RockNet, three layers of rock, in a square of `size` pixels.
pub fn sign(theme: &Theme, x: i32, y: i32, size: i32) {
    let (height, step) = (size / 4, size * 3 / 8);
    for (layer, rgb) in [theme.second, theme.accent, theme.text].into_iter().enumerate() {
        let layer = layer as i32;
        let inset = (2 - layer) * size / 6;
        fill(Area::new(x + inset, y + layer * step, size - 2 * inset, height), rgb);
    }
}
