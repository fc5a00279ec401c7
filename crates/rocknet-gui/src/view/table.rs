//! Table of rows. Only the rows in view are drawn, so that a thousand of them cost no more than ten.

use std::cell::RefCell;
use std::rc::Rc;

use fltk::app;
use fltk::draw;
use fltk::enums::{Align, Event, Key};
use fltk::prelude::*;
use fltk::widget::Widget;
use rocknet_gui::act::Act;
use rocknet_gui::screen::{Column, Table, TableRow};

use super::cell;
use super::paint::{self, Area};
use super::shared::{SharedHandle, colour};
use super::state_widget::state_widget;

/// Height of the headings.
const HEAD: i32 = 36;

/// Height of a row with one line, and with two.
const LOW: i32 = 36;
const TALL: i32 = 52;

/// Width of the scroll bar.
const BAR: i32 = 8;

/// State of the view.
#[derive(Default)]
struct TableState {
    table: Table,
    /// Distance in pixels that the rows are scrolled by.
    offset: i32,
    hovered: Option<usize>,
    /// True while the bar is dragged.
    drags: bool,
    /// Top of each row and end of the last one, in pixels below the heading. Empty before the first measurement.
    tops: Vec<i32>,
}

/// Table view.
pub struct TableView {
    pub widget: Widget,
    state: Rc<RefCell<TableState>>,
}

impl TableView {
    /// Creates the view in the present group.
    pub fn new(shared: &SharedHandle) -> TableView {
        let (widget, state) = state_widget(shared, draw_table, handle);
        TableView { widget, state }
    }

    /// Shows a table. The selected row is brought into view when the selection changes.
    pub fn show(&mut self, table: &Table) {
        let mut state = self.state.borrow_mut();
        let has_moved = key(&state.table, state.table.selected) != key(table, table.selected);
        state.table.clone_from(table);
        measure(&mut state, self.widget.w());
        if has_moved {
            reveal(&mut state, self.widget.h());
        }
        clamp(&mut state, self.widget.h());
        self.widget.redraw();
    }

    /// Places the view.
    pub fn layout(&mut self, area: Area) {
        self.widget.resize(area.x, area.y, area.w, area.h);
        let mut state = self.state.borrow_mut();
        measure(&mut state, area.w);
        clamp(&mut state, area.h);
    }
}

fn key(table: &Table, row: Option<usize>) -> Option<&str> {
    Some(&table.rows.get(row?)?.key)
}

/// Computes the places of the rows in the present width. Texts of a column that wraps take as many lines as they need,
/// so the rows of its table differ in height.
fn measure(state: &mut TableState, width: i32) {
    let table = &state.table;
    let places = columns(table, width - BAR);
    let wraps: Vec<bool> = table
        .columns
        .iter()
        .zip(&places)
        .map(|(column, (_, w))| column.wraps && *w > 0)
        .collect();
    let has_detail = |row: &TableRow| row.cells.iter().any(|cell| !cell.detail.is_empty());
    let is_tall = !wraps.contains(&true) && table.rows.iter().any(has_detail);
    let mut tops = vec![0];
    let mut top = 0;
    for row in &table.rows {
        let (mut texts, mut details) = (1, 1);
        for ((cell, _), (_, w)) in row
            .cells
            .iter()
            .zip(&wraps)
            .zip(&places)
            .filter(|((_, wraps), _)| **wraps)
        {
            let room = w - 20 - if cell.mark.is_some() { 20 } else { 0 };
            let count = |text: &str, size: i32| {
                draw::set_font(paint::REGULAR, size);
                (paint::wrapped(text, room).len() as i32).min(cell::MAX_LINES)
            };
            texts = texts.max(count(&cell.text, paint::BODY));
            details = details.max(count(&cell.detail, paint::SMALL));
        }
        top += if is_tall || has_detail(row) { TALL } else { LOW };
        top += (texts - 1) * cell::LINE + (details - 1) * cell::DETAIL;
        tops.push(top);
    }
    state.tops = tops;
}

/// Returns the height of all rows.
fn total_height(state: &TableState) -> i32 {
    state.tops.last().copied().unwrap_or_default()
}

/// Returns the mean height of the rows, at least 1.
fn mean_height(state: &TableState) -> i32 {
    (total_height(state) / state.table.rows.len().max(1) as i32).max(1)
}

/// Returns the row at a distance below the heading, as if nothing was scrolled; the number of rows below the last one.
fn row_below(state: &TableState, distance: i32) -> usize {
    let begun = state.tops.partition_point(|top| *top <= distance);
    begun.saturating_sub(1)
}

fn clamp(state: &mut TableState, height: i32) {
    state.offset = state.offset.clamp(0, (total_height(state) - (height - HEAD)).max(0));
}

/// Scrolls until the selected row is in view.
fn reveal(state: &mut TableState, height: i32) {
    let Some(selected) = state.table.selected else {
        return;
    };
    let Some(&[top, end]) = state
        .tops
        .get(selected..selected + 2)
        .and_then(|tops| tops.first_chunk())
    else {
        return;
    };
    state.offset = state.offset.clamp((end - (height - HEAD)).min(top), top);
}

/// Returns left edge and width of each column; the width is 0 for a column that is left out.
fn columns(table: &Table, width: i32) -> Vec<(i32, i32)> {
    let share = |column: &Column| if column.from <= width { column.share } else { 0 };
    let shares: u32 = table.columns.iter().map(share).sum();
    let mut places = Vec::new();
    let mut x = 0;
    for column in &table.columns {
        let w = width * share(column) as i32 / shares.max(1) as i32;
        places.push((x, w));
        x += w;
    }
    places
}

fn row_at(state: &TableState, widget: &Widget, y: i32) -> Option<usize> {
    let inside = y - widget.y() - HEAD;
    if inside < 0 || y >= widget.y() + widget.h() {
        return None;
    }
    let row = row_below(state, inside + state.offset);
    (row < state.table.rows.len()).then_some(row)
}

fn handle(shared: &SharedHandle, widget: &mut Widget, state: &mut TableState, event: Event) -> bool {
    let (x, y) = app::event_coords();
    let visible = widget.h() - HEAD;
    let total = total_height(state);
    match event {
        Event::Focus | Event::Unfocus => {
            if event == Event::Focus && state.table.selected.is_none() {
                select(shared, state, 0);
            }
            widget.redraw();
            true
        }
        Event::Enter => true,
        Event::Move | Event::Leave => {
            let hovered = row_at(state, widget, y).filter(|_| event == Event::Move);
            if hovered != state.hovered {
                state.hovered = hovered;
                widget.redraw();
            }
            true
        }
        Event::Push => {
            let _ = widget.take_focus();
            state.drags = total > visible && x >= widget.x() + widget.w() - BAR - 6;
            if state.drags {
                return true;
            }
            if y < widget.y() + HEAD {
                let place = x - widget.x();
                let column = columns(&state.table, widget.w() - BAR)
                    .iter()
                    .position(|(left, w)| (*left..left + w).contains(&place));
                if let Some(sort) = column.and_then(|column| state.table.columns[column].sort.clone()) {
                    shared.act(sort);
                }
                return true;
            }
            if let Some(row) = row_at(state, widget, y) {
                select(shared, state, row);
                if app::event_clicks() {
                    shared.act(Act::OpenRow);
                }
            }
            true
        }
        Event::Drag if state.drags => {
            let share = f64::from(y - widget.y() - HEAD) / f64::from(visible.max(1));
            state.offset = (share * f64::from(total)) as i32 - visible / 2;
            clamp(state, widget.h());
            widget.redraw();
            true
        }
        Event::Released => {
            state.drags = false;
            true
        }
        Event::MouseWheel => {
            state.offset += app::event_dy_value() * mean_height(state);
            clamp(state, widget.h());
            widget.redraw();
            true
        }
        Event::KeyDown => press(shared, widget, state, visible),
        _ => false,
    }
}

fn press(shared: &SharedHandle, widget: &mut Widget, state: &mut TableState, visible: i32) -> bool {
    let count = state.table.rows.len();
    if count == 0 {
        return false;
    }
    if app::is_event_ctrl() {
        return sort_by_key(shared, widget, &state.table);
    }
    let page = (visible / mean_height(state)).max(1) as usize;
    let present = state.table.selected.unwrap_or(0);
    let row = match app::event_key() {
        Key::Up => present.saturating_sub(1),
        Key::Down if state.table.selected.is_none() => 0,
        Key::Down => present + 1,
        Key::PageUp => present.saturating_sub(page),
        Key::PageDown => present + page,
        Key::Home => 0,
        Key::End => count - 1,
        Key::Enter | Key::KPEnter => {
            shared.act(Act::OpenRow);
            return true;
        }
        _ => return false,
    };
    let row = row.min(count - 1);
    select(shared, state, row);
    // The next key may arrive before the model has shown this selection.
    state.table.selected = Some(row);
    reveal(state, widget.h());
    widget.redraw();
    true
}

/// Sorts by the column whose number was pressed, counted among the shown columns. Returns false for another key.
fn sort_by_key(shared: &SharedHandle, widget: &Widget, table: &Table) -> bool {
    let pressed = ('1'..='9').position(|digit| app::event_key() == Key::from_char(digit));
    let places = columns(table, widget.w() - BAR);
    let mut shown = table.columns.iter().zip(places).filter(|(_, (_, w))| *w > 0);
    let Some((column, _)) = pressed.and_then(|number| shown.nth(number)) else {
        return false;
    };
    if let Some(sort) = &column.sort {
        shared.act(sort.clone());
    }
    true
}

fn select(shared: &SharedHandle, state: &TableState, row: usize) {
    if let Some(row) = state.table.rows.get(row) {
        shared.act(Act::Select(row.key.clone()));
    }
}

fn draw_table(shared: &SharedHandle, widget: &Widget, state: &TableState) {
    let theme = shared.theme();
    let area = Area::new(widget.x(), widget.y(), widget.w(), widget.h());
    paint::fill(area, theme.back);
    paint::round(area, theme.card);
    let table = &state.table;
    let places = columns(table, area.w - BAR);
    for (column, (left, w)) in table.columns.iter().zip(&places).filter(|(_, (_, w))| *w > 0) {
        let arrow = match column.order {
            Some(true) => " ▲",
            Some(false) => " ▼",
            None => "",
        };
        let label = format!("{}{arrow}", column.label);
        let cell = Area::new(area.x + left + 14, area.y, w - 20, HEAD);
        let font = if column.order.is_some() {
            paint::BOLD
        } else {
            paint::REGULAR
        };
        paint::text(
            &label,
            cell,
            font,
            paint::SMALL,
            theme.dim,
            cell::align(column.is_number),
        );
    }
    draw::set_draw_color(colour(theme.soft));
    draw::draw_xyline(area.x + 1, area.y + HEAD - 1, area.x + area.w - 2);
    let body = Area::new(area.x + 1, area.y + HEAD, area.w - 2, area.h - HEAD - 1);
    draw::push_clip(body.x, body.y, body.w, body.h);
    let first = row_below(state, state.offset);
    for ((index, row), tops) in table.rows.iter().enumerate().zip(state.tops.windows(2)).skip(first) {
        let y = body.y + tops[0] - state.offset;
        let row_height = tops[1] - tops[0];
        if y >= body.y + body.h {
            break;
        }
        let line = Area::new(body.x, y, body.w, row_height);
        let is_selected = table.selected == Some(index);
        if is_selected {
            paint::fill(line, theme.selected);
        } else if state.hovered == Some(index) {
            paint::fill(line, theme.hover);
        }
        let cells = row.cells.iter().zip(&table.columns).zip(&places);
        for ((cell, column), (left, w)) in cells.filter(|(_, (_, w))| *w > 0) {
            let place = Area::new(area.x + left + 14, y, w - 20, row_height);
            match column.wraps {
                true => cell::draw_wrapped(&theme, cell, place, *left == 0),
                false => cell::draw(&theme, cell, place, column.is_number, *left == 0),
            }
        }
        draw::set_draw_color(colour(theme.soft));
        draw::draw_xyline(line.x, y + row_height - 1, line.x + line.w);
        if is_selected && widget.has_focus() {
            paint::edge(Area::new(line.x + 1, y, line.w - 2, row_height - 1), theme.accent, 2);
        }
    }
    draw::pop_clip();
    if table.rows.is_empty() {
        let place = Area::new(body.x, body.y + 16, body.w, 30);
        paint::text(
            &table.empty,
            place,
            paint::REGULAR,
            paint::BODY,
            theme.dim,
            Align::Center,
        );
    }
    let total = total_height(state);
    if total > body.h {
        let length = (body.h * body.h / total).max(24);
        let top = body.y + (body.h - length) * state.offset / (total - body.h).max(1);
        paint::thumb(
            Area::new(area.x + area.w - BAR - 2, top + 1, BAR - 2, length - 2),
            theme.edge,
        );
    }
    paint::edge(area, theme.soft, 1);
}
