//! Lines of a log. Only the lines in view are drawn.

use std::cell::RefCell;
use std::rc::Rc;

use fltk::app;
use fltk::draw;
use fltk::enums::{Align, Event, Key};
use fltk::prelude::*;
use fltk::widget::Widget;
use rocknet_gui::act::Act;
use rocknet_gui::reading_place::ReadingPlace;
use rocknet_gui::screen::{Lines, Mark};

use super::paint::{self, Area};
use super::shared::SharedHandle;
use super::state_widget::state_widget;

/// Height of a line.
const LINE: i32 = 19;

/// Space above the first line.
const PADDING: i32 = 8;

/// State of the view.
#[derive(Default)]
struct LinesState {
    lines: Lines,
    offset: i32,
    /// Distance in pixels that the lines are moved to the left.
    shift: i32,
    /// True if the lines are a diff, whose marks are shown as colours.
    is_diff: bool,
}

/// Log view.
pub struct LinesView {
    pub widget: Widget,
    state: Rc<RefCell<LinesState>>,
}

impl LinesView {
    /// Creates the view in the present group.
    pub fn new(shared: &SharedHandle) -> LinesView {
        let (widget, state) = state_widget(shared, draw_lines, handle);
        LinesView { widget, state }
    }

    /// Creates the view of a diff in the present group.
    pub fn of_diff(shared: &SharedHandle) -> LinesView {
        let view = LinesView::new(shared);
        view.state.borrow_mut().is_diff = true;
        view
    }

    /// Shows lines. While the user reads older lines, they stay in place though lines are removed at the beginning, or
    /// a filter chooses others.
    pub fn show(&mut self, lines: &Lines) {
        let mut state = self.state.borrow_mut();
        let hidden = state.offset % LINE;
        let first = usize::try_from(state.offset / LINE).unwrap_or_default();
        let place = ReadingPlace::of(&state.lines.lines, first);
        state.lines.clone_from(lines);
        if let Some(first) = place.and_then(|place| place.index_in(&lines.lines)) {
            state.offset = i32::try_from(first).unwrap_or_default().saturating_mul(LINE) + hidden;
        }
        settle(&mut state, self.widget.h());
        self.widget.redraw();
    }

    /// Places the view.
    pub fn layout(&mut self, area: Area) {
        self.widget.resize(area.x, area.y, area.w, area.h);
        settle(&mut self.state.borrow_mut(), area.h);
    }
}

fn last_offset(state: &LinesState, height: i32) -> i32 {
    let hidden = (state.lines.lines.len() as i32 * LINE + 2 * PADDING - height).max(0);
    // The first line in view is whole.
    (hidden + LINE - 1) / LINE * LINE
}

fn settle(state: &mut LinesState, height: i32) {
    let last = last_offset(state, height);
    state.offset = match state.lines.follows {
        true => last,
        false => state.offset.clamp(0, last),
    };
}

fn handle(shared: &SharedHandle, widget: &mut Widget, state: &mut LinesState, event: Event) -> bool {
    let page = widget.h() - LINE;
    let by = match event {
        Event::Focus | Event::Unfocus => {
            widget.redraw();
            return true;
        }
        Event::Push => {
            let _ = widget.take_focus();
            return true;
        }
        Event::MouseWheel => app::event_dy_value() * 3 * LINE,
        Event::KeyDown => match app::event_key() {
            Key::Up => -LINE,
            Key::Down => LINE,
            Key::PageUp => -page,
            Key::PageDown => page,
            Key::Home => -state.offset,
            Key::End => last_offset(state, widget.h()) - state.offset,
            Key::Left | Key::Right => {
                let by = if app::event_key() == Key::Right { 80 } else { -80 };
                // More than the longest line of a log: 1,000 characters of about 7 pixels.
                state.shift = (state.shift + by).clamp(0, 8_000);
                widget.redraw();
                return true;
            }
            // The toolkit would move the focus to the next button, which the next key would press.
            Key::Enter | Key::KPEnter => return true,
            _ => return false,
        },
        _ => return false,
    };
    let last = last_offset(state, widget.h());
    state.offset = (state.offset + by).clamp(0, last);
    // Scrolling to the end follows the newest line again, as other log viewers do.
    let follows = state.offset == last;
    if follows != state.lines.follows && last > 0 {
        state.lines.follows = follows;
        shared.act(Act::FollowLog(follows));
    }
    widget.redraw();
    true
}

fn draw_lines(shared: &SharedHandle, widget: &Widget, state: &LinesState) {
    let theme = shared.theme();
    let area = Area::new(widget.x(), widget.y(), widget.w(), widget.h());
    paint::fill(area, theme.back);
    paint::round(area, theme.card);
    let body = Area::new(area.x + 2, area.y + PADDING, area.w - 4, area.h - PADDING - 2);
    draw::push_clip(body.x, body.y, body.w, body.h);
    let first = ((state.offset - PADDING) / LINE).max(0) as usize;
    for (index, line) in state.lines.lines.iter().enumerate().skip(first) {
        let y = area.y + PADDING + index as i32 * LINE - state.offset;
        if y >= area.y + area.h {
            break;
        }
        let rgb = match line.mark {
            Mark::Good | Mark::Busy if state.is_diff => paint::mark_colour(&theme, line.mark),
            // A line that stands for lines left out.
            Mark::Busy => theme.dim,
            Mark::Bad => theme.bad,
            Mark::Fair => theme.fair,
            _ => theme.text,
        };
        draw::set_font(paint::MONO, paint::SMALL);
        draw::set_draw_color(super::shared::colour(rgb));
        draw::draw_text(&line.text, area.x + 12 - state.shift, y + 14);
    }
    draw::pop_clip();
    if state.lines.lines.is_empty() {
        let place = Area::new(body.x, body.y + 24, body.w, 30);
        paint::text(
            &state.lines.empty,
            place,
            paint::REGULAR,
            paint::BODY,
            theme.dim,
            Align::Center,
        );
    }
    let total = state.lines.lines.len() as i32 * LINE + 2 * PADDING;
    if total > area.h {
        let length = (area.h * area.h / total).max(24);
        let top = area.y + (area.h - length) * state.offset / last_offset(state, area.h).max(1);
        paint::thumb(Area::new(area.x + area.w - 9, top + 2, 6, length - 4), theme.edge);
    }
    match widget.has_focus() {
        true => paint::edge(area.inset(1), theme.accent, 2),
        false => paint::edge(area, theme.soft, 1),
    }
}
