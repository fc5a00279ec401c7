//! Navigation at the left: the pages, and the state of the server.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use fltk::button;
use fltk::enums::{Align, Event, FrameType};
use fltk::group::Group;
use fltk::image::RgbImage;
use fltk::prelude::*;
use rocknet_gui::act::Act;
pub use rocknet_gui::navigation_layout::WIDTH;
use rocknet_gui::navigation_layout::{self, STATE};
use rocknet_gui::pages::{Entry, ServerState};
use rocknet_gui::theme::Rgb;

use super::button::{Ground, HEIGHT, PushButton};
use super::keys;
use super::paint::{self, Area};
use super::shared::SharedHandle;
use super::symbols;

/// Navigation of the window.
pub struct Navigation {
    pub group: Group,
    entries: Vec<button::Button>,
    shown: Vec<Entry>,
    state: Rc<RefCell<Option<ServerState>>>,
    action: Option<PushButton>,
    shared: SharedHandle,
}

impl Navigation {
    /// Creates the navigation in the present group.
    pub fn new(shared: &SharedHandle) -> Navigation {
        let mut group = Group::new(0, 0, WIDTH, 100, None);
        group.end();
        group.super_draw(false);
        group.make_resizable(false);
        let state = Rc::new(RefCell::new(None));
        let (colours, server) = (SharedHandle::clone(shared), Rc::clone(&state));
        group.draw(move |group| {
            draw_side(&colours, group, server.borrow().as_ref());
            group.draw_children();
        });
        Navigation {
            group,
            entries: Vec::new(),
            shown: Vec::new(),
            state,
            action: None,
            shared: SharedHandle::clone(shared),
        }
    }

    /// Shows entries and the state of the server.
    pub fn show(&mut self, entries: Vec<Entry>, state: ServerState) {
        if self.shown != entries {
            let pages = |entries: &[Entry]| {
                entries
                    .iter()
                    .map(|entry| (entry.page, entry.label))
                    .collect::<Vec<_>>()
            };
            let is_same = pages(&self.shown) == pages(&entries);
            self.shown = entries;
            if is_same {
                for (button, entry) in self.entries.iter_mut().zip(&self.shown) {
                    button.set_value(entry.is_chosen);
                    button.redraw();
                }
            } else {
                self.build();
            }
        }
        if self.action.as_ref().map(|action| &action.shown) != state.action.as_ref() {
            if let Some(old) = self.action.take() {
                self.group.remove(&old.widget);
                fltk::app::delete_widget(old.widget);
            }
            self.group.begin();
            self.action = state
                .action
                .clone()
                .map(|action| PushButton::new(&self.shared, action, Ground::Side));
            self.group.end();
        }
        if self.state.borrow().as_ref() != Some(&state) {
            *self.state.borrow_mut() = Some(state);
            self.group.redraw();
        }
        self.layout();
    }

    fn build(&mut self) {
        for old in self.entries.drain(..) {
            self.group.remove(&old);
            fltk::app::delete_widget(old);
        }
        self.group.begin();
        self.entries = self
            .shown
            .iter()
            .map(|entry| entry_button(&self.shared, entry))
            .collect();
        self.group.end();
        self.group.redraw();
    }

    /// Returns the buttons, for tests.
    #[allow(dead_code, reason = "the test of the window includes this file")]
    pub fn buttons(&self) -> Vec<button::Button> {
        let entries = self.entries.iter().cloned();
        entries
            .chain(self.action.iter().map(|action| action.widget.clone()))
            .collect()
    }

    /// Places everything for the height of the window.
    pub fn layout(&mut self) {
        let (x, y, h) = (self.group.x(), self.group.y(), self.group.h());
        let areas = navigation_layout::entries(h, self.entries.len());
        for (entry, area) in self.entries.iter_mut().zip(areas) {
            entry.resize(x + area.x, y + area.y, area.w, area.h);
        }
        if let Some(action) = &mut self.action {
            action.widget.resize(x + 14, y + h - HEIGHT - 14, WIDTH - 28, HEIGHT);
        }
    }
}

fn entry_button(shared: &SharedHandle, entry: &Entry) -> button::Button {
    let mut button = button::Button::new(0, 0, 10, 10, None);
    button.set_label(entry.label);
    button.set_value(entry.is_chosen);
    button.set_frame(FrameType::NoBox);
    button.super_draw(false);
    let hovered = Rc::new(Cell::new(false));
    let (colours, below) = (SharedHandle::clone(shared), Rc::clone(&hovered));
    let page = entry.page;
    let mut symbol: Option<(Rgb, RgbImage)> = None;
    button.draw(move |button| {
        let theme = colours.theme();
        let area = Area::new(button.x(), button.y(), button.w(), button.h());
        paint::fill(area, theme.side);
        let is_chosen = button.value();
        if is_chosen || below.get() {
            paint::round(area, if is_chosen { theme.selected } else { theme.hover });
        }
        if is_chosen {
            paint::fill(Area::new(area.x, area.y + 9, 3, area.h - 18), theme.accent);
        }
        if button.has_focus() {
            paint::edge(area.inset(1), theme.accent, 2);
        }
        let (font, line) = match is_chosen {
            true => (paint::BOLD, theme.accent),
            false => (paint::REGULAR, theme.dim),
        };
        if symbol.as_ref().is_none_or(|(rgb, _)| *rgb != line) {
            symbol = symbols::symbol(page, line).map(|image| (line, image));
        }
        if let Some((_, image)) = &mut symbol {
            let top = area.y + (area.h - symbols::SIZE) / 2;
            image.draw(area.x + 13, top, symbols::SIZE, symbols::SIZE);
        }
        let label = Area::new(area.x + 44, area.y, area.w - 50, area.h);
        paint::text(
            &button.label(),
            label,
            font,
            paint::BODY,
            theme.text,
            Align::Left | Align::Inside,
        );
    });
    button.handle(move |button, event| match event {
        Event::Enter | Event::Leave => {
            hovered.set(event == Event::Enter);
            button.redraw();
            true
        }
        Event::KeyDown if keys::is_enter() && button.has_focus() => {
            button.do_callback();
            true
        }
        _ => false,
    });
    let acts = SharedHandle::clone(shared);
    button.set_callback(move |_| acts.act(Act::Show(page)));
    button
}

fn draw_side(shared: &SharedHandle, group: &Group, state: Option<&ServerState>) {
    let theme = shared.theme();
    let area = Area::new(group.x(), group.y(), group.w(), group.h());
    paint::fill(area, theme.side);
    paint::sign(&theme, area.x + 20, area.y + 21, 24);
    let brand = Area::new(area.x + 54, area.y + 16, area.w - 60, 34);
    paint::text(
        "RockNet",
        brand,
        paint::BOLD,
        18,
        theme.text,
        Align::Left | Align::Inside,
    );
    if let Some(state) = state {
        let top = area.y + area.h - STATE;
        paint::mark(&theme, state.mark, area.x + 26, top + 17, 12);
        let label = Area::new(area.x + 54, top + 10, area.w - 60, 26);
        paint::text(
            state.label,
            label,
            paint::REGULAR,
            paint::BODY,
            theme.text,
            Align::Left | Align::Inside,
        );
    }
}
