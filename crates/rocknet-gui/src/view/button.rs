//! Push button in the style of the window.

use std::cell::Cell;
use std::rc::Rc;

use fltk::button;
use fltk::draw;
use fltk::enums::{Align, Event, FrameType};
use fltk::prelude::*;
use rocknet_gui::screen::{Button, Style};

use super::keys;
use super::paint::{self, Area};
use super::shared::SharedHandle;

/// Height of a button in pixels.
pub const HEIGHT: i32 = 34;

/// Space between a label and the edge of its button.
const PADDING: i32 = 14;

/// Surface below a button.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ground {
    Page,
    Side,
    Card,
}

/// Button that is shown.
pub struct PushButton {
    pub widget: button::Button,
    pub shown: Button,
    /// Width that fits the label.
    pub width: i32,
    /// False while the button cannot be pressed. A button with the focus remains an active widget then, because the
    /// toolkit would move the focus to the first widget of the window.
    can_press: Rc<Cell<bool>>,
}

impl PushButton {
    /// Creates a button in the present group, at the origin. Its width fits its label.
    pub fn new(shared: &SharedHandle, shown: Button, ground: Ground) -> PushButton {
        draw::set_font(paint::REGULAR, paint::BODY);
        let width = draw::width(&shown.label) as i32 + 2 * PADDING;
        let mut widget = button::Button::new(0, 0, width, HEIGHT, None);
        widget.set_label(&shown.label);
        widget.set_frame(FrameType::NoBox);
        widget.super_draw(false);
        let (style, act) = (shown.style, shown.act.clone());
        let hovered = Rc::new(Cell::new(false));
        let can_press = Rc::new(Cell::new(true));
        let (colours, below, drawn) = (SharedHandle::clone(shared), Rc::clone(&hovered), Rc::clone(&can_press));
        widget.draw(move |widget| {
            let look = Look {
                style,
                ground,
                is_hovered: below.get(),
                can_press: drawn.get(),
            };
            draw_button(&colours, widget, &look);
        });
        let pressable = Rc::clone(&can_press);
        widget.handle(move |widget, event| match event {
            // It kept the focus while it could not be pressed.
            Event::Unfocus if !pressable.get() => {
                widget.deactivate();
                true
            }
            Event::Enter | Event::Leave => {
                hovered.set(event == Event::Enter);
                widget.redraw();
                true
            }
            Event::KeyDown if keys::is_enter() && widget.has_focus() => {
                widget.do_callback();
                true
            }
            _ => false,
        });
        let (acts, pressed) = (SharedHandle::clone(shared), Rc::clone(&can_press));
        widget.set_callback(move |_| {
            if pressed.get() {
                acts.act(act.clone());
            }
        });
        let mut new = PushButton {
            widget,
            shown,
            width,
            can_press,
        };
        // Applies `shown.enabled`.
        new.lock(false);
        new
    }

    /// Lets the button be pressed, or not.
    pub fn enable(&mut self, enabled: bool) {
        self.shown.enabled = enabled;
        self.lock(false);
    }

    /// Locks or unlocks the button. It can be pressed if it is enabled and not locked.
    pub fn lock(&mut self, is_locked: bool) {
        let can_press = self.shown.enabled && !is_locked;
        self.can_press.set(can_press);
        if can_press {
            self.widget.activate();
        } else if self.widget.has_focus() {
            self.widget.redraw();
        } else {
            self.widget.deactivate();
        }
    }

    /// Moves the button, and returns its right edge.
    pub fn place(&mut self, x: i32, y: i32) -> i32 {
        self.widget.resize(x, y, self.width, HEIGHT);
        x + self.width
    }
}

/// Look of a button.
struct Look {
    style: Style,
    ground: Ground,
    is_hovered: bool,
    can_press: bool,
}

fn draw_button(shared: &SharedHandle, widget: &button::Button, look: &Look) {
    let (theme, style, hovered) = (shared.theme(), look.style, look.is_hovered);
    let area = Area::new(widget.x(), widget.y(), widget.w(), widget.h());
    let around = match look.ground {
        Ground::Page => theme.back,
        Ground::Side => theme.side,
        Ground::Card => theme.card,
    };
    paint::fill(area, around);
    let can_press = look.can_press && widget.active_r();
    let (ground, label, edge) = match style {
        _ if !can_press => (around, theme.edge, theme.soft),
        Style::Primary => (theme.accent, theme.on_accent, theme.accent),
        Style::Chosen => (theme.selected, theme.text, theme.accent),
        Style::Danger if hovered => (theme.hover, theme.bad, theme.edge),
        Style::Danger => (theme.card, theme.bad, theme.edge),
        Style::Plain if hovered => (theme.hover, theme.text, theme.edge),
        Style::Plain => (theme.card, theme.text, theme.edge),
    };
    let box_area = area.inset(2);
    paint::round(box_area, ground);
    paint::edge(box_area, edge, 1);
    if widget.has_focus() {
        paint::edge(area.inset(1), theme.accent, 2);
        if style == Style::Primary && can_press {
            paint::edge(box_area.inset(3), theme.on_accent, 1);
        }
    }
    paint::text(
        &widget.label(),
        box_area,
        paint::REGULAR,
        paint::BODY,
        label,
        Align::Center,
    );
}
