//! Form: fields with label, help and problem, checks with their repairs, and buttons. It scrolls if it does not fit.

use std::cell::RefCell;
use std::rc::Rc;

use fltk::button;
use fltk::draw;
use fltk::enums::{Align, CallbackTrigger, Event, FrameType};
use fltk::group::{Group, Scroll, ScrollType};
use fltk::input::Input;
use fltk::menu::MenuButton;
use fltk::prelude::*;
use rocknet_gui::act::{Act, FieldId};
use rocknet_gui::screen::{Button, Check, Field, FieldInput, Form};

use super::button::{Ground, HEIGHT, PushButton};
use super::choice;
use super::paint::{self, Area};
use super::shared::{SharedHandle, colour};

/// Maximum width of the form.
const MAX_WIDTH: i32 = 640;

/// Height of a label above its field.
const LABEL: i32 = 24;

/// Height of a line of help or of a problem.
const LINE: i32 = 18;

/// Space below a field.
const GAP: i32 = 12;

/// Height of a check.
const CHECK: i32 = 40;

/// Form view.
pub struct FormView {
    pub scroll: Scroll,
    rows: Vec<FieldRow>,
    checks: Vec<CheckRow>,
    buttons: Vec<PushButton>,
    shared: SharedHandle,
}

/// Row of a field.
struct FieldRow {
    group: Group,
    field: Rc<RefCell<Field>>,
    input: RowInput,
    /// Button that opens the chooser of folders.
    choose: Option<PushButton>,
    fix: Option<PushButton>,
}

enum RowInput {
    Text(Input),
    Choice(MenuButton),
}

/// Row of a check.
struct CheckRow {
    group: Group,
    shown: Check,
    fix: Option<PushButton>,
}

impl FormView {
    /// Creates the view in the present group.
    pub fn new(shared: &SharedHandle) -> FormView {
        let mut scroll = Scroll::new(0, 0, 100, 100, None);
        scroll.end();
        scroll.set_type(ScrollType::Vertical);
        scroll.set_frame(FrameType::FlatBox);
        scroll.make_resizable(false);
        FormView {
            scroll,
            rows: Vec::new(),
            checks: Vec::new(),
            buttons: Vec::new(),
            shared: SharedHandle::clone(shared),
        }
    }

    /// Shows a form. `choose`: label of the button that opens the chooser of folders.
    pub fn show(&mut self, form: &Form, choose: &str) {
        let theme = self.shared.theme();
        self.scroll.set_color(colour(theme.back));
        let shape = |field: &Field| (field.id, field.input.clone(), field.label.clone());
        let had_focus = self.rows.iter().any(FieldRow::has_focus);
        let is_same = self.rows.len() == form.fields.len()
            && self
                .rows
                .iter()
                .zip(&form.fields)
                .all(|(row, field)| shape(&row.field.borrow()) == shape(field));
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
        }
        if !self.checks.iter().map(|row| &row.shown).eq(&form.checks) {
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
        if had_focus && self.rows.is_empty() {
            self.take_focus();
        }
        self.scroll.redraw();
    }

    /// Moves the focus to the first field or button.
    pub fn take_focus(&mut self) {
        if let Some(row) = self.rows.first_mut() {
            row.take_focus();
        } else if let Some(button) = self.buttons.first_mut() {
            let _ = button.widget.take_focus();
        }
    }

    /// Returns the buttons, for tests.
    #[allow(dead_code, reason = "the test of the window includes this file")]
    pub fn buttons(&self) -> Vec<button::Button> {
        // The chooser of folders is left out, because pressing it opens another window.
        let fixes = self.rows.iter().filter_map(|row| row.fix.as_ref());
        let checks = self.checks.iter().filter_map(|row| row.fix.as_ref());
        let all = self.buttons.iter().chain(fixes).chain(checks);
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
            row.layout(Area::new(x, y, w, CHECK));
            y += CHECK;
        }
        y += 10;
        let mut left = x;
        for button in &mut self.buttons {
            left = button.place(left, y) + 8;
        }
    }
}

impl FieldRow {
    fn new(shared: &SharedHandle, field: &Field, choose: &str) -> FieldRow {
        let mut group = Group::new(0, 0, 100, 100, None);
        group.super_draw(false);
        group.make_resizable(false);
        let shown = Rc::new(RefCell::new(field.clone()));
        let input = match &field.input {
            FieldInput::Text | FieldInput::Folder => RowInput::Text(text_input(shared, field.id)),
            FieldInput::Choice(choices) => {
                let id = field.id;
                RowInput::Choice(choice::menu(shared, choices, move |value| Act::SetField(id, value)))
            }
        };
        let choose = (field.input == FieldInput::Folder)
            .then(|| PushButton::new(shared, Button::new(choose, Act::ChooseFolder), Ground::Page));
        group.end();
        let (colours, drawn) = (SharedHandle::clone(shared), Rc::clone(&shown));
        group.draw(move |group| {
            draw_field(&colours, group, &drawn.borrow());
            group.draw_children();
        });
        FieldRow {
            group,
            field: shown,
            input,
            choose,
            fix: None,
        }
    }

    fn show(&mut self, shared: &SharedHandle, field: &Field) {
        let theme = shared.theme();
        match &mut self.input {
            RowInput::Text(input) => {
                // Text that the user has just typed is in the model already, apart from spaces at its ends.
                if input.value().trim() != field.text.trim() {
                    input.set_value(&field.text);
                }
                input.set_color(colour(theme.card));
                input.set_text_color(colour(theme.text));
                input.set_cursor_color(colour(theme.text));
                input.set_selection_color(colour(theme.accent));
            }
            RowInput::Choice(menu) => {
                let FieldInput::Choice(choices) = &field.input else {
                    return;
                };
                choice::show(shared, menu, choices, &field.text);
            }
        }
        if self.fix.as_ref().map(|fix| &fix.shown) != field.fix.as_ref() {
            if let Some(old) = self.fix.take() {
                self.group.remove(&old.widget);
                fltk::app::delete_widget(old.widget);
            }
            self.group.begin();
            self.fix = field.fix.clone().map(|fix| PushButton::new(shared, fix, Ground::Page));
            self.group.end();
        }
        self.field.replace(field.clone());
    }

    fn has_focus(&self) -> bool {
        match &self.input {
            RowInput::Text(input) => input.has_focus(),
            RowInput::Choice(menu) => menu.has_focus(),
        }
    }

    fn take_focus(&mut self) {
        let _ = match &mut self.input {
            RowInput::Text(input) => input.take_focus(),
            RowInput::Choice(menu) => menu.take_focus(),
        };
    }

    /// Places the row, and returns its height.
    fn layout(&mut self, area: Area) -> i32 {
        let below = below(&self.field.borrow(), area.w).len() as i32 * LINE;
        let fix = if self.fix.is_some() { HEIGHT + 4 } else { 0 };
        let h = LABEL + HEIGHT + 6 + below + fix + GAP;
        self.group.resize(area.x, area.y, area.w, h);
        let room = self.choose.as_ref().map_or(0, |button| button.width + 8);
        let y = area.y + LABEL;
        match &mut self.input {
            RowInput::Text(input) => input.resize(area.x + 11, y + 3, area.w - room - 22, HEIGHT - 6),
            RowInput::Choice(menu) => menu.resize(area.x, y, area.w.min(320), HEIGHT),
        }
        if let Some(button) = &mut self.choose {
            button.place(area.x + area.w - button.width, y);
        }
        if let Some(fix) = &mut self.fix {
            fix.place(area.x, y + HEIGHT + 6 + below);
        }
        h
    }
}

impl CheckRow {
    fn new(shared: &SharedHandle, check: &Check) -> CheckRow {
        let mut group = Group::new(0, 0, 100, CHECK, None);
        group.super_draw(false);
        group.make_resizable(false);
        let fix = check.fix.clone().map(|fix| PushButton::new(shared, fix, Ground::Page));
        group.end();
        let (colours, drawn) = (SharedHandle::clone(shared), check.clone());
        let room = fix.as_ref().map_or(0, |fix| fix.width + 10);
        group.draw(move |group| {
            let theme = colours.theme();
            let area = Area::new(group.x(), group.y(), group.w(), group.h());
            paint::fill(area, theme.back);
            paint::mark(&theme, drawn.mark, area.x + 4, area.y + area.h / 2 - 7, 14);
            let left = Align::Left | Align::Inside;
            let words = Area::new(area.x + 30, area.y, area.w - 30 - room, area.h);
            draw::set_font(paint::REGULAR, paint::BODY);
            let lines = paint::wrapped(&drawn.text, words.w);
            let top = words.y + (words.h - lines.len().min(2) as i32 * LINE) / 2;
            for (index, line) in lines.iter().take(2).enumerate() {
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

    fn layout(&mut self, area: Area) {
        self.group.resize(area.x, area.y, area.w, area.h);
        if let Some(fix) = &mut self.fix {
            fix.place(area.x + area.w - fix.width, area.y + (area.h - HEIGHT) / 2);
        }
    }
}

fn text_input(shared: &SharedHandle, id: FieldId) -> Input {
    let mut input = Input::new(0, 0, 100, HEIGHT, None);
    input.set_frame(FrameType::FlatBox);
    input.set_text_font(paint::REGULAR);
    input.set_text_size(paint::BODY);
    input.set_trigger(CallbackTrigger::Changed);
    let acts = SharedHandle::clone(shared);
    input.set_callback(move |input| acts.act(Act::SetField(id, input.value())));
    let acts = SharedHandle::clone(shared);
    input.handle(move |input, event| {
        match event {
            Event::Focus | Event::Unfocus => {
                if event == Event::Unfocus {
                    acts.act(Act::LeaveField(id));
                }
                if let Some(mut row) = input.parent() {
                    row.redraw();
                }
            }
            Event::KeyDown if fltk::app::event_key() == fltk::enums::Key::Enter => {
                acts.act(Act::Submit);
                return true;
            }
            _ => {}
        }
        false
    });
    input
}

/// Returns the lines below a field: its problem, else its help.
fn below(field: &Field, width: i32) -> Vec<String> {
    draw::set_font(paint::REGULAR, paint::SMALL);
    let words = if field.problem.is_empty() {
        &field.help
    } else {
        &field.problem
    };
    paint::wrapped(words, width - 22)
}

fn draw_field(shared: &SharedHandle, group: &Group, field: &Field) {
    let theme = shared.theme();
    let area = Area::new(group.x(), group.y(), group.w(), group.h());
    paint::fill(area, theme.back);
    let left = Align::Left | Align::Inside;
    let has_problem = !field.problem.is_empty();
    let label = Area::new(area.x, area.y, area.w, LABEL - 2);
    paint::text(&field.label, label, paint::BOLD, paint::BODY, theme.text, left);
    for index in 0..group.children() {
        let Some(input) = group.child(index).and_then(|child| Input::from_dyn_widget(&child)) else {
            continue;
        };
        if matches!(field.input, FieldInput::Choice(_)) || index > 0 {
            break;
        }
        let around = Area::new(input.x() - 11, input.y() - 3, input.w() + 22, HEIGHT);
        paint::round(around, theme.card);
        let (edge, width) = match input.has_focus() {
            true => (theme.accent, 2),
            false if has_problem => (theme.bad, 1),
            false => (theme.edge, 1),
        };
        paint::edge(around, edge, width);
    }
    let top = area.y + LABEL + HEIGHT + 6;
    if has_problem {
        paint::mark(&theme, rocknet_gui::screen::Mark::Bad, area.x + 2, top + 4, 10);
    }
    let indent = if has_problem { 18 } else { 0 };
    let rgb = if has_problem { theme.bad } else { theme.dim };
    for (index, line) in below(field, area.w).iter().enumerate() {
        let place = Area::new(area.x + indent, top + index as i32 * LINE, area.w - indent, LINE);
        paint::text(line, place, paint::REGULAR, paint::SMALL, rgb, left);
    }
}
