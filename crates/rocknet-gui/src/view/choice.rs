//! Choice of one of several values, which opens as a menu.

use std::rc::Rc;

use fltk::draw;
use fltk::enums::{Align, FrameType, Shortcut};
use fltk::menu::{MenuButton, MenuFlag};
use fltk::prelude::*;
use rocknet_gui::act::Act;

use super::button::HEIGHT;
use super::paint::{self, Area};
use super::shared::{SharedHandle, colour};

/// Maximum length of a label in characters.
const MAX_LABEL: usize = 120;

/// Creates a choice in the present group. The widget shows the label of the chosen value. `act` returns the act of a
/// value.
pub fn menu(shared: &SharedHandle, choices: &[(String, String)], act: impl Fn(String) -> Act + 'static) -> MenuButton {
    let mut menu = MenuButton::new(0, 0, 100, HEIGHT, None);
    menu.set_frame(FrameType::FlatBox);
    menu.set_text_size(paint::BODY);
    menu.set_text_font(paint::REGULAR);
    let act = Rc::new(act);
    for (at, (value, label)) in choices.iter().enumerate() {
        let (acts, act, value) = (SharedHandle::clone(shared), Rc::clone(&act), value.clone());
        // An item with an equal label would replace the one before it. Spaces at the end are not seen.
        let equal = choices[..at].iter().filter(|(_, other)| other == label).count();
        let label = menu_label(label) + &" ".repeat(equal);
        // Each item has its value, so no position is counted.
        menu.add(&label, Shortcut::None, MenuFlag::Normal, move |_| {
            acts.act(act(value.clone()));
        });
    }
    menu.super_draw(false);
    let colours = SharedHandle::clone(shared);
    menu.draw(move |menu| {
        let theme = colours.theme();
        let area = Area::new(menu.x(), menu.y(), menu.w(), menu.h());
        paint::fill(area, theme.back);
        paint::round(area, theme.card);
        let (edge, width) = if menu.has_focus() {
            (theme.accent, 2)
        } else {
            (theme.edge, 1)
        };
        paint::edge(area, edge, width);
        let words = Area::new(area.x + 12, area.y, area.w - 44, area.h);
        paint::text(
            &menu.label(),
            words,
            paint::REGULAR,
            paint::BODY,
            if menu.active_r() { theme.text } else { theme.dim },
            Align::Left | Align::Inside,
        );
        let (x, y) = (area.x + area.w - 24, area.y + area.h / 2 - 3);
        draw::set_draw_color(colour(theme.dim));
        draw::draw_polygon(x, y, x + 10, y, x + 5, y + 6);
    });
    menu
}

/// Returns a label as the toolkit has to get it for an item: `/` would begin a submenu, `_` draw a line, `&` underline
/// a letter, and `@` draw a symbol. The toolkit copies labels to a buffer of 1,024 bytes, so long ones are cut.
pub fn menu_label(label: &str) -> String {
    let mut escaped = String::new();
    for (at, letter) in label.chars().enumerate() {
        match letter {
            _ if at >= MAX_LABEL => {
                escaped.push('…');
                break;
            }
            '/' | '\\' => escaped.extend(['\\', letter]),
            '_' if at == 0 => escaped.push_str("\\_"),
            '&' | '@' => escaped.extend([letter, letter]),
            letter if letter.is_control() => escaped.push(' '),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// Shows the colours of the theme and the label of the chosen value.
pub fn show(shared: &SharedHandle, menu: &mut MenuButton, choices: &[(String, String)], chosen: &str) {
    let theme = shared.theme();
    menu.set_color(colour(theme.card));
    menu.set_text_color(colour(theme.text));
    menu.set_selection_color(colour(theme.accent));
    let label = choices.iter().find(|(value, _)| value == chosen);
    menu.set_label(label.map_or("", |(_, label)| label));
}
