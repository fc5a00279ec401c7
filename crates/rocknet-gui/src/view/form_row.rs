//! Row of a form: a field with label, input, help or problem, and repair.

use std::cell::RefCell;
use std::rc::Rc;

use fltk::button::CheckButton;
use fltk::draw;
use fltk::enums::Align;
use fltk::group::Group;
use fltk::input::{Input, MultilineInput};
use fltk::menu::MenuButton;
use fltk::prelude::*;
use rocknet_gui::act::Act;
use rocknet_gui::screen::{Button, Field, FieldInput, Mark};

use super::button::{Ground, HEIGHT, PushButton};
use super::paint::{self, Area};
use super::shared::SharedHandle;
use super::{choice, inputs};

/// Height of a label above its field.
const LABEL: i32 = 24;

/// Height of a line of help or of a problem.
pub const LINE: i32 = 18;

/// Space below a field.
const GAP: i32 = 12;

/// Height of a heading.
const HEADING: i32 = 44;

/// Minimum and maximum number of lines of an input of several lines.
const MIN_LINES: usize = 2;
const MAX_LINES: usize = 8;

/// Row of a field.
pub struct FieldRow {
    pub group: Group,
    pub field: Rc<RefCell<Field>>,
    input: RowInput,
    /// Button that opens the chooser of folders.
    pub choose: Option<PushButton>,
    /// Button that repairs the problem of the field.
    pub fix: Option<PushButton>,
}

enum RowInput {
    Text(Input),
    Lines(MultilineInput),
    Choice(MenuButton),
    Switch(CheckButton),
    None,
}

impl FieldRow {
    /// Creates a row in the present group. `choose`: label of the button that opens the chooser of folders.
    pub fn new(shared: &SharedHandle, field: &Field, choose: &str) -> FieldRow {
        let mut group = Group::new(0, 0, 100, 100, None);
        group.super_draw(false);
        group.make_resizable(false);
        let shown = Rc::new(RefCell::new(field.clone()));
        let input = match &field.input {
            FieldInput::Text | FieldInput::Folder => RowInput::Text(inputs::text_input(shared, field.id)),
            FieldInput::Secret => RowInput::Text(inputs::secret_input(shared, field.id)),
            FieldInput::Lines => RowInput::Lines(inputs::lines_input(shared, field.id)),
            FieldInput::Choice(choices) => RowInput::Choice(inputs::choice_input(shared, field.id, choices)),
            FieldInput::Switch => RowInput::Switch(inputs::switch_input(shared, field.id, &field.label)),
            FieldInput::Fixed | FieldInput::Heading => RowInput::None,
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

    /// Shows a field of the same kind.
    pub fn show(&mut self, shared: &SharedHandle, field: &Field) {
        match &mut self.input {
            RowInput::Text(input) => inputs::show_text(input, shared, &field.text),
            RowInput::Lines(input) => inputs::show_text(input, shared, &field.text),
            RowInput::Choice(menu) => {
                if let FieldInput::Choice(choices) = &field.input {
                    choice::show(shared, menu, choices, &field.text);
                }
            }
            RowInput::Switch(switch) => switch.set_value(field.text == "true"),
            RowInput::None => {}
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

    /// Locks the row while its form is being saved, or unlocks it. A text keeps the focus, so that the user can
    /// continue.
    pub fn lock(&mut self, shared: &SharedHandle, is_locked: bool) {
        match &mut self.input {
            RowInput::Text(input) => inputs::lock_text(input, shared, is_locked),
            RowInput::Lines(input) => inputs::lock_text(input, shared, is_locked),
            RowInput::Choice(menu) => enable(menu, !is_locked),
            RowInput::Switch(switch) => enable(switch, !is_locked),
            RowInput::None => {}
        }
        let buttons = self.choose.iter_mut().chain(&mut self.fix);
        buttons.for_each(|button| button.lock(is_locked));
    }

    /// Returns true if the input or a button of the row has the focus.
    pub fn contains_focus(&self) -> bool {
        let mut buttons = self.choose.iter().chain(&self.fix);
        self.has_focus() || buttons.any(|button| button.widget.has_focus())
    }

    /// Returns true if the input has the focus.
    pub fn has_focus(&self) -> bool {
        match &self.input {
            RowInput::Text(input) => input.has_focus(),
            RowInput::Lines(input) => input.has_focus(),
            RowInput::Choice(menu) => menu.has_focus(),
            RowInput::Switch(switch) => switch.has_focus(),
            RowInput::None => false,
        }
    }

    /// Moves the focus to the input. Returns false if the row has none.
    pub fn take_focus(&mut self) -> bool {
        match &mut self.input {
            RowInput::Text(input) => input.take_focus(),
            RowInput::Lines(input) => input.take_focus(),
            RowInput::Choice(menu) => menu.take_focus(),
            RowInput::Switch(switch) => switch.take_focus(),
            RowInput::None => return false,
        }
        .is_ok()
    }

    /// Places the row, and returns its height.
    pub fn layout(&mut self, area: Area) -> i32 {
        let field = self.field.borrow();
        if field.input == FieldInput::Heading {
            let h = HEADING + below(&field, area.w).len() as i32 * LINE;
            drop(field);
            self.group.resize(area.x, area.y, area.w, h);
            return h;
        }
        let (label, height) = (label_height(&field), input_height(&field));
        let below = below(&field, area.w).len() as i32 * LINE;
        drop(field);
        let fix = if self.fix.is_some() { HEIGHT + 4 } else { 0 };
        let h = label + height + 6 + below + fix + GAP;
        self.group.resize(area.x, area.y, area.w, h);
        let room = self.choose.as_ref().map_or(0, |button| button.width + 8);
        let y = area.y + label;
        match &mut self.input {
            RowInput::Text(input) => input.resize(area.x + 11, y + 3, area.w - room - 22, height - 6),
            RowInput::Lines(input) => input.resize(area.x + 11, y + 3, area.w - 22, height - 6),
            RowInput::Choice(menu) => menu.resize(area.x, y, area.w.min(440), height),
            RowInput::Switch(switch) => switch.resize(area.x, y, area.w, height),
            RowInput::None => {}
        }
        if let Some(button) = &mut self.choose {
            button.place(area.x + area.w - button.width, y);
        }
        if let Some(fix) = &mut self.fix {
            fix.place(area.x, y + height + 6 + below);
        }
        h
    }
}

/// Lets a widget be changed, or not. The toolkit would move the focus away from a widget that is not active, so one
/// with the focus stays as it is: the model ignores its input.
fn enable<W: WidgetExt>(widget: &mut W, is_enabled: bool) {
    if is_enabled {
        widget.activate();
    } else if !widget.has_focus() {
        widget.deactivate();
    }
}

/// Returns the height of the label above the input. The label of a switch is beside it.
fn label_height(field: &Field) -> i32 {
    if field.input == FieldInput::Switch { 0 } else { LABEL }
}

fn input_height(field: &Field) -> i32 {
    let lines = field.text.split('\n').count();
    match field.input {
        // One empty line more, for the next entry.
        FieldInput::Lines => (lines + 1).clamp(MIN_LINES, MAX_LINES) as i32 * LINE + 10,
        FieldInput::Fixed => lines.min(MAX_LINES) as i32 * LINE + 10,
        _ => HEIGHT,
    }
}

/// Returns the lines below a field: its problem, else its help.
fn below(field: &Field, width: i32) -> Vec<String> {
    draw::set_font(paint::REGULAR, paint::SMALL);
    let words = if field.problem.is_empty() {
        &field.help
    } else {
        &field.problem
    };
    match words.is_empty() {
        true => Vec::new(),
        false => paint::wrapped(words, width - 22),
    }
}

fn draw_field(shared: &SharedHandle, group: &Group, field: &Field) {
    let theme = shared.theme();
    let area = Area::new(group.x(), group.y(), group.w(), group.h());
    paint::fill(area, theme.back);
    let left = Align::Left | Align::Inside;
    if field.input == FieldInput::Heading {
        let label = Area::new(area.x, area.y + 14, area.w, 22);
        paint::text(&field.label, label, paint::BOLD, paint::BODY + 2, theme.text, left);
        paint::fill(Area::new(area.x, area.y + HEADING - 6, area.w, 1), theme.soft);
        for (index, line) in below(field, area.w).iter().enumerate() {
            let place = Area::new(area.x, area.y + HEADING + index as i32 * LINE, area.w, LINE);
            paint::text(line, place, paint::REGULAR, paint::SMALL, theme.dim, left);
        }
        return;
    }
    let has_problem = !field.problem.is_empty();
    let (label, height) = (label_height(field), input_height(field));
    if label > 0 {
        let place = Area::new(area.x, area.y, area.w, label - 2);
        paint::text(&field.label, place, paint::BOLD, paint::BODY, theme.text, left);
    }
    if matches!(
        field.input,
        FieldInput::Text | FieldInput::Secret | FieldInput::Folder | FieldInput::Lines
    ) && let Some(input) = group.child(0)
    {
        let around = Area::new(input.x() - 11, input.y() - 3, input.w() + 22, height);
        paint::round(around, theme.card);
        let (edge, width) = match input.has_focus() {
            true => (theme.accent, 2),
            false if has_problem => (theme.bad, 1),
            false => (theme.edge, 1),
        };
        paint::edge(around, edge, width);
    }
    if field.input == FieldInput::Fixed {
        for (index, line) in field.text.split('\n').take(MAX_LINES).enumerate() {
            let y = area.y + label + 5 + index as i32 * LINE;
            let place = Area::new(area.x, y, area.w, LINE);
            paint::text(line, place, paint::MONO, paint::SMALL, theme.dim, left);
        }
    }
    let top = area.y + label + height + 6;
    if has_problem {
        paint::mark(&theme, Mark::Bad, area.x + 2, top + 4, 10);
    }
    let indent = if has_problem { 18 } else { 0 };
    let rgb = if has_problem { theme.bad } else { theme.dim };
    for (index, line) in below(field, area.w).iter().enumerate() {
        let place = Area::new(area.x + indent, top + index as i32 * LINE, area.w - indent, LINE);
        paint::text(line, place, paint::REGULAR, paint::SMALL, rgb, left);
    }
}
