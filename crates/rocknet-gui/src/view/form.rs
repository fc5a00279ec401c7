//! Form: fields with label, help and problem, checks with their repairs, and buttons. It scrolls if it does not fit.

use fltk::app;
use fltk::button;
use fltk::draw;
use fltk::enums::{Align, Event, FrameType, Key};
use fltk::group::{Group, Scroll, ScrollType};
use fltk::prelude::*;
use rocknet_gui::act::FieldId;
use rocknet_gui::screen::{Button, Check, Field, FieldInput, Form};

use super::button::{Ground, HEIGHT, PushButton};
use super::form_row::{FieldRow, LINE};
use super::paint::{self, Area};
use super::scrollbar;
use super::shared::{SharedHandle, colour};

/// Maximum width of the form.
const MAX_WIDTH: i32 = 640;

/// Height of a check.
const CHECK: i32 = 40;

/// Form view.
pub struct FormView {
    pub scroll: Scroll,
    rows: Vec<FieldRow>,
    checks: Vec<CheckRow>,
    buttons: Vec<PushButton>,
    /// Number of the row, check or button that has the focus. It is scrolled into view when it gets the focus.
    focused: Option<usize>,
    shared: SharedHandle,
}

/// Row of a check.
struct CheckRow {
    group: Group,
    shown: Check,
    fix: Option<PushButton>,
}

/// Where the user is in a form.
#[derive(Debug, Clone, Copy)]
pub struct FormPlace {
    field: Option<FieldId>,
    scrolled: i32,
}

impl FormView {
    /// Creates the view in the present group.
    pub fn new(shared: &SharedHandle) -> FormView {
        let mut scroll = Scroll::new(0, 0, 100, 100, None);
        scroll.end();
        scroll.set_type(ScrollType::Vertical);
        scroll.set_frame(FrameType::FlatBox);
        scroll.make_resizable(false);
        scroll.set_scrollbar_size(scrollbar::WIDTH);
        scroll.handle(turn_page);
        FormView {
            scroll,
            rows: Vec::new(),
            checks: Vec::new(),
            buttons: Vec::new(),
            focused: None,
            shared: SharedHandle::clone(shared),
        }
    }

    /// Shows a form. `choose`: label of the button that opens the chooser of folders.
    pub fn show(&mut self, form: &Form, choose: &str) {
        let theme = self.shared.theme();
        self.scroll.set_color(colour(theme.back));
        scrollbar::show(&mut self.scroll.scrollbar(), &theme, theme.back);
        let shape = |field: &Field| (field.id, field.input.clone(), field.label.clone());
        let had_focus = self.rows.iter().any(FieldRow::has_focus);
        let is_same = self.rows.len() == form.fields.len()
            && self
                .rows
                .iter()
                .zip(&form.fields)
                .all(|(row, field)| shape(&row.field.borrow()) == shape(field));
        // A form with fields and one without are different pages, so the new one starts at its top.
        if self.rows.is_empty() != form.fields.is_empty() {
            self.scroll.scroll_to(0, 0);
        }
        if !is_same {
            let focused = self
                .rows
                .iter()
                .find(|row| row.has_focus())
                .map(|row| row.field.borrow().id);
            for row in self.rows.drain(..) {
                self.scroll.remove(&row.group);
                fltk::app::delete_widget(row.group);
            }
            self.scroll.begin();
            let fields = form.fields.iter();
            self.rows = fields.map(|field| FieldRow::new(&self.shared, field, choose)).collect();
            self.scroll.end();
            let row = self.rows.iter_mut().find(|row| Some(row.field.borrow().id) == focused);
            if let Some(row) = row {
                row.take_focus();
            }
        }
        for (row, field) in self.rows.iter_mut().zip(&form.fields) {
            row.show(&self.shared, field);
            row.lock(&self.shared, form.is_locked);
        }
        let mut lost_focus = had_focus && form.fields.is_empty();
        if !self.checks.iter().map(|row| &row.shown).eq(&form.checks) {
            let focused = self.checks.iter().find(|row| row.has_focus());
            let focused = focused.and_then(|row| row.shown.fix.clone()).map(|fix| fix.act);
            for row in self.checks.drain(..) {
                self.scroll.remove(&row.group);
                fltk::app::delete_widget(row.group);
            }
            self.scroll.begin();
            self.checks = form
                .checks
                .iter()
                .map(|check| CheckRow::new(&self.shared, check))
                .collect();
            self.scroll.end();
            // Tab goes through the repairs before the buttons, as they are on the page.
            for button in &self.buttons {
                self.scroll.remove(&button.widget);
                self.scroll.add(&button.widget);
            }
            if let Some(act) = focused {
                let fixes = self.checks.iter_mut().filter_map(|row| row.fix.as_mut());
                let same = fixes.into_iter().find(|fix| fix.shown.act == act);
                lost_focus |= same.is_none_or(|fix| fix.widget.take_focus().is_err());
            }
        }
        let same = |button: &PushButton, wanted: &Button| {
            (&button.shown.label, &button.shown.act) == (&wanted.label, &wanted.act)
        };
        if self.buttons.len() == form.actions.len()
            && self
                .buttons
                .iter()
                .zip(&form.actions)
                .all(|(button, wanted)| same(button, wanted))
        {
            for (button, wanted) in self.buttons.iter_mut().zip(&form.actions) {
                if button.shown.enabled != wanted.enabled {
                    button.enable(wanted.enabled);
                }
            }
        } else {
            for old in self.buttons.drain(..) {
                lost_focus |= old.widget.has_focus();
                self.scroll.remove(&old.widget);
                fltk::app::delete_widget(old.widget);
            }
            self.scroll.begin();
            let new = form.actions.iter().cloned();
            self.buttons = new
                .map(|button| PushButton::new(&self.shared, button, Ground::Page))
                .collect();
            self.scroll.end();
        }
        if lost_focus {
            self.take_focus();
        }
        self.scroll.redraw();
    }

    /// Moves the focus to the first field or button.
    pub fn take_focus(&mut self) {
        if self.rows.iter_mut().any(FieldRow::take_focus) {
            return;
        }
        if let Some(button) = self.buttons.first_mut() {
            let _ = button.widget.take_focus();
        }
    }

    /// Moves the focus to the field with a folder, or to the first one.
    pub fn focus_folder(&mut self) {
        let is_folder = |row: &&mut FieldRow| row.field.borrow().input == FieldInput::Folder;
        if !self.rows.iter_mut().find(is_folder).is_some_and(FieldRow::take_focus) {
            self.take_focus();
        }
    }

    /// Returns the buttons, for tests.
    #[allow(dead_code, reason = "the test of the window includes this file")]
    pub fn buttons(&self) -> Vec<button::Button> {
        let choosers = self.rows.iter().filter_map(|row| row.choose.as_ref());
        let fixes = self.rows.iter().filter_map(|row| row.fix.as_ref());
        let checks = self.checks.iter().filter_map(|row| row.fix.as_ref());
        let all = self.buttons.iter().chain(choosers).chain(fixes).chain(checks);
        all.map(|button| button.widget.clone()).collect()
    }

    /// Places everything.
    pub fn layout(&mut self, area: Area) {
        self.scroll.resize(area.x, area.y, area.w, area.h);
        let w = area.w.min(MAX_WIDTH) - 16;
        let x = area.x + 1;
        let mut y = area.y - self.scroll.yposition();
        for row in &mut self.rows {
            y += row.layout(Area::new(x, y, w, 0));
        }
        for row in &mut self.checks {
            y += row.layout(Area::new(x, y, w, CHECK));
        }
        y += 10;
        // The edge that is seen is two pixels inside of a button, which must not leave the scrolled area.
        let mut left = x - 1;
        for button in &mut self.buttons {
            left = button.place(left, y) + 8;
        }
        if !self.buttons.is_empty() {
            y += HEIGHT;
        }
        // A form that has become shorter is not left scrolled past its end.
        let past_end = (area.y + area.h - y).clamp(0, self.scroll.yposition().max(0));
        if past_end > 0 {
            self.scroll.scroll_to(0, self.scroll.yposition() - past_end);
        }
        let rows = self.rows.iter().map(FieldRow::contains_focus);
        let checks = self.checks.iter().map(CheckRow::has_focus);
        let buttons = self.buttons.iter().map(|button| button.widget.has_focus());
        let focused = rows.chain(checks).chain(buttons).position(|has_focus| has_focus);
        if focused != self.focused {
            self.focused = focused;
            self.reveal(area);
        }
    }

    /// Returns where the user is in the form.
    pub fn place(&self) -> FormPlace {
        let row = self.rows.iter().find(|row| row.contains_focus());
        FormPlace {
            field: row.map(|row| row.field.borrow().id),
            scrolled: self.scroll.yposition(),
        }
    }

    /// Returns to a place in the form. Called after the layout, before which the form has no height.
    pub fn return_to(&mut self, place: FormPlace) {
        self.scroll.scroll_to(0, place.scrolled);
        let row = self
            .rows
            .iter_mut()
            .find(|row| Some(row.field.borrow().id) == place.field);
        if !row.is_some_and(FieldRow::take_focus) {
            self.take_focus();
        }
    }

    /// Scrolls until the row, check or button with the focus is in view.
    fn reveal(&mut self, area: Area) {
        let rows = self.rows.iter().map(|row| row.group.as_base_widget());
        let checks = self.checks.iter().map(|check| check.group.as_base_widget());
        let buttons = self.buttons.iter().map(|button| button.widget.as_base_widget());
        let mut places = rows.chain(checks).chain(buttons).map(|widget| (widget.y(), widget.h()));
        let Some((top, height)) = self.focused.and_then(|at| places.nth(at)) else {
            return;
        };
        let present = self.scroll.yposition();
        let below = top + height - (area.y + area.h);
        let by = match area.y - top {
            above if above > 0 => -above,
            _ => below.clamp(0, (top - area.y).max(0)),
        };
        if by != 0 {
            self.scroll.scroll_to(self.scroll.xposition(), present + by);
        }
    }
}

/// Scrolls by a page for Page Up and Page Down if no widget has handled the key. This also works without the focus,
/// which a form without fields may not have.
fn turn_page(scroll: &mut Scroll, event: Event) -> bool {
    if !matches!(event, Event::KeyDown | Event::Shortcut) {
        return false;
    }
    let page = (scroll.h() - 40).max(20);
    let by = match app::event_key() {
        Key::PageDown => page,
        Key::PageUp => -page,
        _ => return false,
    };
    let children = (0..scroll.children()).filter_map(|index| scroll.child(index));
    let bottom = children.map(|child| child.y() + child.h()).max().unwrap_or(0);
    let present = scroll.yposition();
    let last = (present + bottom - scroll.y() - scroll.h()).max(0);
    scroll.scroll_to(scroll.xposition(), (present + by).clamp(0, last));
    true
}

/// Returns the width that the repair of a check takes from its text.
fn room_of(fix: Option<&PushButton>) -> i32 {
    fix.map_or(0, |fix| fix.width + 10)
}

impl CheckRow {
    fn new(shared: &SharedHandle, check: &Check) -> CheckRow {
        let mut group = Group::new(0, 0, 100, CHECK, None);
        group.super_draw(false);
        group.make_resizable(false);
        let fix = check.fix.clone().map(|fix| PushButton::new(shared, fix, Ground::Page));
        group.end();
        let (colours, drawn) = (SharedHandle::clone(shared), check.clone());
        let room = room_of(fix.as_ref());
        group.draw(move |group| {
            let theme = colours.theme();
            let area = Area::new(group.x(), group.y(), group.w(), group.h());
            paint::fill(area, theme.back);
            paint::mark(&theme, drawn.mark, area.x + 4, area.y + area.h / 2 - 7, 14);
            let left = Align::Left | Align::Inside;
            let words = Area::new(area.x + 30, area.y, area.w - 30 - room, area.h);
            draw::set_font(paint::REGULAR, paint::BODY);
            let lines = paint::wrapped(&drawn.text, words.w);
            let top = words.y + (words.h - lines.len() as i32 * LINE) / 2;
            for (index, line) in lines.iter().enumerate() {
                let place = Area::new(words.x, top + index as i32 * LINE, words.w, LINE);
                paint::text(line, place, paint::REGULAR, paint::BODY, theme.text, left);
            }
            group.draw_children();
        });
        CheckRow {
            group,
            shown: check.clone(),
            fix,
        }
    }

    /// Returns true if the repair has the focus.
    fn has_focus(&self) -> bool {
        self.fix.as_ref().is_some_and(|fix| fix.widget.has_focus())
    }

    /// Places the row, and returns its height: that of the area, or more for a long text.
    fn layout(&mut self, area: Area) -> i32 {
        draw::set_font(paint::REGULAR, paint::BODY);
        let lines = paint::wrapped(&self.shown.text, area.w - 30 - room_of(self.fix.as_ref())).len() as i32;
        let area = Area {
            h: area.h.max(lines * LINE + 8),
            ..area
        };
        self.group.resize(area.x, area.y, area.w, area.h);
        if let Some(fix) = &mut self.fix {
            fix.place(area.x + area.w - fix.width, area.y + (area.h - HEIGHT) / 2);
        }
        area.h
    }
}
