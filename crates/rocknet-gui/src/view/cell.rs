//! Cells of a table: a text with its mark, and a detail below it in a smaller size.

use fltk::draw;
use fltk::enums::{Align, Font};
use rocknet_gui::screen::Cell;
use rocknet_gui::theme::{Rgb, Theme};

use super::paint::{self, Area};

/// Height of a line of the text, and of a line of the detail, in a column that wraps.
pub const LINE: i32 = 18;
pub const DETAIL: i32 = 17;

/// Maximum number of lines of a text or a detail in a column that wraps.
pub const MAX_LINES: i32 = 4;

/// Height of a row that has room for two lines.
const TWO_LINES: i32 = 52;

/// Returns the alignment of a column.
pub fn align(is_number: bool) -> Align {
    match is_number {
        true => Align::Right | Align::Inside,
        false => Align::Left | Align::Inside,
    }
}

/// Draws a cell of a column that does not wrap. A long text without a detail takes two lines if the row is high enough.
pub fn draw(theme: &Theme, cell: &Cell, place: Area, is_number: bool, is_first: bool) {
    let (words, rgb) = draw_mark(theme, cell, place);
    let font = if is_first { paint::BOLD } else { paint::REGULAR };
    draw::set_font(font, paint::BODY);
    let lines = match is_number || place.h < TWO_LINES {
        true => Vec::new(),
        false => paint::wrapped(&cell.text, words.w),
    };
    if let ([first, second, ..], "") = (&lines[..], &*cell.detail) {
        let rest = match lines.len() {
            2 => second.clone(),
            _ => lines[1..].join(" "),
        };
        for (line, top) in [(first, 6), (&rest, 25)] {
            let row = Area::new(words.x, words.y + top, words.w, 20);
            paint::text(line, row, font, paint::BODY, rgb, align(is_number));
        }
        return;
    }
    if cell.detail.is_empty() {
        paint::text(&cell.text, words, font, paint::BODY, rgb, align(is_number));
        return;
    }
    let upper = Area::new(words.x, words.y + 7, words.w, 20);
    paint::text(&cell.text, upper, font, paint::BODY, rgb, align(is_number));
    let lower = Area::new(words.x, words.y + 27, words.w, 17);
    draw::set_font(paint::REGULAR, paint::SMALL);
    let detail = match cell.detail.starts_with('/') {
        true => paint::fitted_path(&cell.detail, lower.w),
        false => cell.detail.clone(),
    };
    paint::text(
        &detail,
        lower,
        paint::REGULAR,
        paint::SMALL,
        theme.dim,
        align(is_number),
    );
}

/// Draws a cell of a column that wraps: its text and its detail, in the middle of the row.
pub fn draw_wrapped(theme: &Theme, cell: &Cell, place: Area, is_first: bool) {
    let (words, rgb) = draw_mark(theme, cell, place);
    let font = if is_first { paint::BOLD } else { paint::REGULAR };
    let texts = lines(&cell.text, font, paint::BODY, words.w);
    let details = lines(&cell.detail, paint::REGULAR, paint::SMALL, words.w);
    let height = texts.len() as i32 * LINE + details.len() as i32 * DETAIL;
    let mut top = place.y + (place.h - height) / 2;
    for line in texts {
        let row = Area::new(words.x, top, words.w, LINE);
        paint::text(&line, row, font, paint::BODY, rgb, align(false));
        top += LINE;
    }
    for line in details {
        let row = Area::new(words.x, top, words.w, DETAIL);
        paint::text(&line, row, paint::REGULAR, paint::SMALL, theme.dim, align(false));
        top += DETAIL;
    }
}

/// Draws the mark of a cell, if it has one. Returns the area beside it, and the colour of the text.
fn draw_mark(theme: &Theme, cell: &Cell, place: Area) -> (Area, Rgb) {
    let Some(mark) = cell.mark else {
        return (place, theme.text);
    };
    paint::mark(theme, mark, place.x, place.y + place.h / 2 - 6, 12);
    let words = Area::new(place.x + 20, place.y, place.w - 20, place.h);
    (words, paint::mark_colour(theme, mark))
}

/// Splits a text into at most [`MAX_LINES`] lines. The last one has the rest.
fn lines(text: &str, font: Font, size: i32, width: i32) -> Vec<String> {
    draw::set_font(font, size);
    let mut lines = paint::wrapped(text, width);
    let most = MAX_LINES as usize;
    if lines.len() > most {
        let rest = lines.split_off(most - 1).join(" ");
        lines.push(rest);
    }
    lines
}
