//! Inputs of forms. Each sends the act of its field.

use fltk::app;
use fltk::button::CheckButton;
use fltk::enums::{Align, CallbackTrigger, Event, FrameType, Key};
use fltk::input::{Input, InputType, MultilineInput};
use fltk::menu::MenuButton;
use fltk::prelude::*;
use fltk::widget::Widget;
use rocknet_gui::act::{Act, FieldId};
use rocknet_gui::screen::Mark;

use super::button::HEIGHT;
use super::choice;
use super::drops;
use super::keys;
use super::paint::{self, Area};
use super::shared::{SharedHandle, colour};

/// Side of the box of a switch.
const BOX: i32 = 20;

/// Creates an input of one line. Enter submits the form.
pub fn text_input(shared: &SharedHandle, id: FieldId) -> Input {
    let mut input = Input::new(0, 0, 100, HEIGHT, None);
    prepare(&mut input, shared, id);
    let acts = SharedHandle::clone(shared);
    input.handle(move |input, event| match event {
        Event::KeyDown if keys::is_enter() => {
            acts.act(Act::Submit);
            true
        }
        _ => keys::press_in_field(&acts, event) || drops::handle(&acts, event) || focus(&acts, input, event, id),
    });
    input
}

/// Creates an input of one line that shows dots. Enter submits the form.
pub fn secret_input(shared: &SharedHandle, id: FieldId) -> Input {
    let mut input = text_input(shared, id);
    input.set_type(InputType::Secret);
    input
}

/// Prepares the input of a path above a list of folders. Down goes to the list, and Ctrl+Space completes the path.
pub fn prepare_path(input: &mut Input, shared: &SharedHandle, id: FieldId, list: &Widget) {
    prepare(input, shared, id);
    let (acts, list) = (SharedHandle::clone(shared), list.clone());
    input.handle(move |input, event| match event {
        Event::KeyDown if keys::is_enter() => {
            acts.act(Act::Submit);
            true
        }
        Event::KeyDown if app::event_key() == Key::Down => list.clone().take_focus().is_ok(),
        Event::KeyDown if app::is_event_ctrl() && app::event_key() == Key::from_char(' ') => {
            acts.act(Act::CompletePath);
            true
        }
        _ => keys::press_in_field(&acts, event) || drops::handle(&acts, event) || focus(&acts, input, event, id),
    });
}

/// Creates an input of several lines. Tab goes to the next field, as in other inputs.
pub fn lines_input(shared: &SharedHandle, id: FieldId) -> MultilineInput {
    let mut input = MultilineInput::new(0, 0, 100, HEIGHT, None);
    prepare(&mut input, shared, id);
    input.set_tab_nav(true);
    let acts = SharedHandle::clone(shared);
    input.handle(move |input, event| {
        keys::press_in_field(&acts, event) || drops::handle(&acts, event) || focus(&acts, input, event, id)
    });
    input
}

fn prepare<I: InputExt + WidgetExt + WidgetBase>(input: &mut I, shared: &SharedHandle, id: FieldId) {
    input.set_frame(FrameType::FlatBox);
    input.set_text_font(paint::REGULAR);
    input.set_text_size(paint::BODY);
    input.set_trigger(CallbackTrigger::Changed);
    // The shortcuts of the window come before the keys of the field.
    input.super_handle_first(false);
    let acts = SharedHandle::clone(shared);
    input.set_callback(move |input| acts.act(Act::SetField(id, input.value())));
}

/// Draws the edge around an input when its focus changes, and reports that the field was left. Returns false, because
/// the toolkit has to handle the event too.
fn focus<W: WidgetExt>(shared: &SharedHandle, widget: &W, event: Event, id: FieldId) -> bool {
    if matches!(event, Event::Focus | Event::Unfocus) {
        if event == Event::Unfocus {
            shared.act(Act::LeaveField(id));
        }
        if let Some(mut row) = widget.parent() {
            row.redraw();
        }
    }
    false
}

/// Creates a switch with its label beside it. Space and Enter turn it.
pub fn switch_input(shared: &SharedHandle, id: FieldId, label: &str) -> CheckButton {
    let mut switch = CheckButton::new(0, 0, 100, HEIGHT, None);
    switch.set_label(label);
    switch.super_draw(false);
    let colours = SharedHandle::clone(shared);
    switch.draw(move |switch| {
        let theme = colours.theme();
        let area = Area::new(switch.x(), switch.y(), switch.w(), switch.h());
        paint::fill(area, theme.back);
        let square = Area::new(area.x + 4, area.y + (area.h - BOX) / 2, BOX, BOX);
        let (ground, edge) = match switch.value() {
            true => (theme.accent, theme.accent),
            false => (theme.card, theme.edge),
        };
        paint::round(square, ground);
        paint::edge(square, edge, 1);
        if switch.value() {
            paint::mark_in(theme.on_accent, Mark::Good, square.x + 4, square.y + 4, BOX - 8);
        }
        if switch.has_focus() {
            paint::edge(Area::new(square.x - 3, square.y - 3, BOX + 6, BOX + 6), theme.accent, 2);
        }
        let words = Area::new(square.x + BOX + 10, area.y, area.w - BOX - 12, area.h);
        paint::text(
            &switch.label(),
            words,
            paint::BOLD,
            paint::BODY,
            if switch.active_r() { theme.text } else { theme.dim },
            Align::Left | Align::Inside,
        );
    });
    let acts = SharedHandle::clone(shared);
    switch.set_callback(move |switch| acts.act(Act::SetField(id, switch.value().to_string())));
    let acts = SharedHandle::clone(shared);
    switch.handle(move |switch, event| match event {
        Event::KeyDown if keys::is_enter() => {
            let value = !switch.value();
            switch.set_value(value);
            switch.do_callback();
            true
        }
        _ => focus(&acts, switch, event, id),
    });
    switch
}

/// Creates a choice of values, each with its label.
pub fn choice_input(shared: &SharedHandle, id: FieldId, choices: &[(String, String)]) -> MenuButton {
    let mut menu = choice::menu(shared, choices, move |value| Act::SetField(id, value));
    let acts = SharedHandle::clone(shared);
    menu.handle(move |menu, event| match event {
        Event::KeyDown if keys::is_enter() => {
            menu.popup();
            true
        }
        _ => focus(&acts, menu, event, id),
    });
    menu
}

/// Lets an input take no text while it is locked, and shows that by its colour.
pub fn lock_text<I: InputExt>(input: &mut I, shared: &SharedHandle, is_locked: bool) {
    let theme = shared.theme();
    input.set_readonly(is_locked);
    input.set_text_color(colour(if is_locked { theme.dim } else { theme.text }));
}

/// Gives an input the colours of the theme, and its text if it differs from what was typed.
pub fn show_text<I: InputExt>(input: &mut I, shared: &SharedHandle, text: &str) {
    // Text that the user has just typed is in the model already, apart from spaces at its ends.
    if input.value().trim() != text.trim() {
        input.set_value(text);
    }
    show_colours(input, shared);
}

/// Gives an input the colours of the theme.
pub fn show_colours<I: InputExt>(input: &mut I, shared: &SharedHandle) {
    let theme = shared.theme();
    input.set_color(colour(theme.card));
    input.set_text_color(colour(theme.text));
    input.set_cursor_color(colour(theme.text));
    input.set_selection_color(colour(theme.accent));
}
