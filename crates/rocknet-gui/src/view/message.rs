//! A message in the middle of the page, with its buttons.

use std::cell::RefCell;
use std::rc::Rc;

use fltk::button;
use fltk::draw;
use fltk::enums::{Align, Event};
use fltk::group::Group;
use fltk::prelude::*;
use fltk::widget::Widget;
use rocknet_gui::screen::{Mark, Message};

use super::button::{Ground, HEIGHT, PushButton};
use super::keys;
use super::paint::{self, Area};
use super::shared::SharedHandle;

/// Maximum width of the text.
const TEXT_WIDTH: i32 = 460;

/// Height of a line of the text.
const LINE: i32 = 22;

/// Height of a row of buttons with the space below it.
const BUTTON_ROW: i32 = HEIGHT + 8;

/// Message view.
pub struct MessageView {
    pub group: Group,
    /// Takes the focus of a message that appears by itself, so that a key that the user types presses no button.
    ground: Widget,
    shown: Rc<RefCell<Message>>,
    pub buttons: Vec<PushButton>,
    shared: SharedHandle,
}

impl MessageView {
    /// Creates the view in the present group.
    pub fn new(shared: &SharedHandle) -> MessageView {
        let mut group = Group::new(0, 0, 100, 100, None);
        let mut ground = Widget::new(0, 0, 100, 100, None);
        ground.super_draw(false);
        ground.handle(|ground, event| match event {
            Event::Focus | Event::Unfocus => {
                if let Some(mut group) = ground.parent() {
                    group.redraw();
                }
                true
            }
            // The toolkit would move the focus to the first button, which the next key would press.
            Event::KeyDown => keys::is_enter(),
            _ => false,
        });
        group.end();
        group.super_draw(false);
        group.make_resizable(false);
        let shown = Rc::new(RefCell::new(Message::default()));
        let (colours, drawn) = (SharedHandle::clone(shared), Rc::clone(&shown));
        group.draw(move |group| {
            draw_message(&colours, group, &drawn.borrow());
            group.draw_children();
        });
        MessageView {
            group,
            ground,
            shown,
            buttons: Vec::new(),
            shared: SharedHandle::clone(shared),
        }
    }

    /// Shows a message.
    pub fn show(&mut self, message: &Message) {
        if *self.shown.borrow() != *message {
            for old in self.buttons.drain(..) {
                self.group.remove(&old.widget);
                fltk::app::delete_widget(old.widget);
            }
            self.group.begin();
            let new = message.actions.iter().cloned();
            self.buttons = new
                .map(|button| PushButton::new(&self.shared, button, Ground::Page))
                .collect();
            self.group.end();
            self.shown.replace(message.clone());
        }
        self.group.redraw();
    }

    /// Moves the focus to the message. Tab leads from it to the buttons.
    pub fn take_focus(&mut self) {
        let _ = self.ground.take_focus();
    }

    /// Returns the buttons, for tests.
    #[allow(dead_code, reason = "the test of the window includes this file")]
    pub fn buttons(&self) -> Vec<button::Button> {
        self.buttons.iter().map(|button| button.widget.clone()).collect()
    }

    /// Places everything.
    pub fn layout(&mut self, area: Area) {
        self.group.resize(area.x, area.y, area.w, area.h);
        self.ground.resize(area.x, area.y, area.w, area.h);
        let widths: Vec<i32> = self.buttons.iter().map(|button| button.width).collect();
        let places = places(area, &self.shown.borrow(), &widths);
        let mut buttons = self.buttons.iter_mut();
        for (index, row) in button_rows(&widths, area.w).into_iter().enumerate() {
            let total = row.iter().map(|width| width + 8).sum::<i32>() - 8;
            let mut x = area.x + (area.w - total) / 2;
            for button in buttons.by_ref().take(row.len()) {
                x = button.place(x, places.buttons + index as i32 * BUTTON_ROW) + 8;
            }
        }
    }
}

/// Distributes buttons of these widths over rows that fit into an area.
fn button_rows(widths: &[i32], room: i32) -> Vec<Vec<i32>> {
    let mut rows: Vec<Vec<i32>> = Vec::new();
    for &width in widths {
        let fits = |row: &&mut Vec<i32>| row.iter().map(|other| other + 8).sum::<i32>() + width <= room - 8;
        match rows.last_mut().filter(fits) {
            Some(row) => row.push(width),
            None => rows.push(vec![width]),
        }
    }
    rows
}

/// Vertical places of the parts: the top of each, in pixels.
struct Places {
    /// Place of the mark; `None` if the area is too low for it.
    mark: Option<i32>,
    title: i32,
    text: i32,
    /// Lines of the text: as many as leave room for the buttons.
    text_lines: Vec<String>,
    buttons: i32,
    /// Top of the card with the lines of output.
    lines: i32,
    /// Number of these lines that there is room for.
    line_count: usize,
}

/// Places the parts of a message in an area. `widths`: widths of the buttons.
fn places(area: Area, message: &Message, widths: &[i32]) -> Places {
    draw::set_font(paint::REGULAR, paint::BODY);
    let rows = button_rows(widths, area.w).len() as i32;
    let buttons = if rows == 0 { 0 } else { rows * BUTTON_ROW + 12 };
    let room = area.h - 40 - buttons - 16;
    let text_lines = paint::wrapped_to(
        &message.text,
        TEXT_WIDTH.min(area.w - 48),
        (room / LINE).max(1) as usize,
    );
    let text = text_lines.len() as i32 * LINE;
    let room = area.h - 40 - text - 16 - buttons - 24;
    let line_count = message.lines.len().min((room / 18).max(0) as usize);
    let lines = line_count as i32 * 18 + if line_count == 0 { 0 } else { 36 };
    let total = 40 + 34 + text + buttons + lines;
    // A little above the middle looks like the middle.
    let top = area.y + ((area.h - total) * 2 / 5).max(8);
    let mark = (total <= area.h).then_some(top);
    let title = mark.map_or(area.y + 4, |mark| mark + 40);
    let text_top = title + 36;
    Places {
        mark,
        title,
        text: text_top,
        text_lines,
        buttons: text_top + text + 16,
        lines: text_top + text + buttons + 18,
        line_count,
    }
}

fn draw_message(shared: &SharedHandle, group: &Group, message: &Message) {
    let theme = shared.theme();
    let area = Area::new(group.x(), group.y(), group.w(), group.h());
    paint::fill(area, theme.back);
    if group.child(0).is_some_and(|ground| ground.has_focus()) {
        paint::edge(area.inset(1), theme.accent, 2);
    }
    // The first child is the ground, and the others are the buttons.
    let buttons = (1..group.children()).filter_map(|index| group.child(index));
    let widths: Vec<i32> = buttons.map(|button| button.w()).collect();
    let places = places(area, message, &widths);
    match (message.mark, places.mark) {
        (_, None) => {}
        // The sign of RockNet stands for `Off`, the mark of messages that report neither success nor trouble.
        (Mark::Off, Some(y)) => paint::sign(&theme, area.x + area.w / 2 - 15, y - 4, 30),
        (mark, Some(y)) => paint::mark(&theme, mark, area.x + area.w / 2 - 13, y, 26),
    }
    let title = Area::new(area.x + 16, places.title, area.w - 32, 30);
    paint::text(&message.title, title, paint::BOLD, 18, theme.text, Align::Center);
    draw::set_font(paint::REGULAR, paint::BODY);
    for (index, line) in places.text_lines.iter().enumerate() {
        let place = Area::new(area.x + 16, places.text + index as i32 * LINE, area.w - 32, LINE);
        paint::text(line, place, paint::REGULAR, paint::BODY, theme.dim, Align::Center);
    }
    if places.line_count == 0 {
        return;
    }
    let w = (area.w - 48).min(760);
    let card = Area::new(
        area.x + (area.w - w) / 2,
        places.lines,
        w,
        places.line_count as i32 * 18 + 20,
    );
    paint::round(card, theme.card);
    paint::edge(card, theme.soft, 1);
    for (index, line) in message.lines.iter().take(places.line_count).enumerate() {
        let place = Area::new(card.x + 12, card.y + 10 + index as i32 * 18, card.w - 24, 18);
        paint::text(
            line,
            place,
            paint::MONO,
            paint::SMALL,
            theme.text,
            Align::Left | Align::Inside,
        );
    }
}
