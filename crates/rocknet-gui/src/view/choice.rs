//! Choice of one of several values, which opens as a menu.

use fltk::draw;
use fltk::enums::{Align, FrameType};
use fltk::menu::MenuButton;
use fltk::prelude::*;
use rocknet_gui::act::Act;

use super::button::HEIGHT;
use super::paint::{self, Area};
use super::shared::{SharedHandle, colour};

/// Creates a choice in the present group. The widget shows the label of the chosen value. `act` returns the act of a
/// value.
pub fn menu(shared: &SharedHandle, choices: &[(String, String)], act: impl Fn(String) -> Act + 'static) -> MenuButton {
    let mut menu = MenuButton::new(0, 0, 100, HEIGHT, None);
    menu.set_frame(FrameType::FlatBox);
    menu.set_text_size(paint::BODY);
    menu.set_text_font(paint::REGULAR);
    for (_, label) in choices {
        menu.add_choice(&label.replace('/', "\\/"));
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
    let (acts, values) = (SharedHandle::clone(shared), choices.to_vec());
    menu.set_callback(move |menu| {
        if let Some((value, _)) = usize::try_from(menu.value()).ok().and_then(|at| values.get(at)) {
            acts.act(act(value.clone()));
        }
    });
    menu
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
