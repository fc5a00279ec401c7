//! Heading of a page with its buttons and its filter, and the banner below it.

use std::cell::RefCell;
use std::rc::Rc;

use fltk::button;
use fltk::draw;
use fltk::enums::{Align, CallbackTrigger, Event, FrameType};
use fltk::group::Group;
use fltk::input::Input;
use fltk::menu::MenuButton;
use fltk::prelude::*;
use rocknet_gui::act::Act;
use rocknet_gui::screen::{Banner, Button, Choice, ChoicePurpose, FilterBox, Screen};

use super::button::{Ground, HEIGHT, PushButton};
use super::choice;
use super::drops;
use super::keys;
use super::paint::{self, Area};
use super::shared::{SharedHandle, colour};

/// Space around the contents of the window.
pub const MARGIN: i32 = 24;

/// Height of title and subtitle.
const HEADING: i32 = 62;

/// Width of the filter.
const FILTER: i32 = 230;

/// Widths of the choices.
const SITE: i32 = 210;
const LEVEL: i32 = 150;

/// Height of the banner with one line, and of its second line.
const BANNER: i32 = 46;
const BANNER_LINE: i32 = 20;

/// Texts that the group draws.
#[derive(Default)]
struct Texts {
    title: String,
    subtitle: String,
    banner: Option<Banner>,
    /// Lines of the banner, at most two.
    banner_lines: Vec<String>,
    hint: String,
}

/// Heading of a page.
pub struct Header {
    pub group: Group,
    texts: Rc<RefCell<Texts>>,
    pub buttons: Vec<PushButton>,
    banner_button: Option<PushButton>,
    filter: Option<(Input, FilterBox)>,
    choices: Vec<(MenuButton, Choice)>,
    shared: SharedHandle,
}

impl Header {
    /// Creates the heading in the present group.
    pub fn new(shared: &SharedHandle) -> Header {
        let mut group = Group::new(0, 0, 100, 100, None);
        group.end();
        group.super_draw(false);
        group.make_resizable(false);
        let texts = Rc::new(RefCell::new(Texts::default()));
        let (colours, drawn) = (SharedHandle::clone(shared), Rc::clone(&texts));
        group.draw(move |group| {
            draw_heading(&colours, group, &drawn.borrow());
            group.draw_children();
            draw_hint(&colours, group, &drawn.borrow());
        });
        Header {
            group,
            texts,
            buttons: Vec::new(),
            banner_button: None,
            filter: None,
            choices: Vec::new(),
            shared: SharedHandle::clone(shared),
        }
    }

    /// Shows the heading of a screen.
    pub fn show(&mut self, screen: &Screen) {
        let same = |buttons: &[PushButton], wanted: &[Button]| {
            buttons.len() == wanted.len()
                && buttons.iter().zip(wanted).all(|(button, wanted)| {
                    let shown = &button.shown;
                    (&shown.label, &shown.act, shown.style) == (&wanted.label, &wanted.act, wanted.style)
                })
        };
        if same(&self.buttons, &screen.actions) {
            for (button, wanted) in self.buttons.iter_mut().zip(&screen.actions) {
                if button.shown.enabled != wanted.enabled {
                    button.enable(wanted.enabled);
                    button.widget.redraw();
                }
            }
        } else {
            let focused = self.buttons.iter().position(|button| button.widget.has_focus());
            for old in self.buttons.drain(..) {
                self.group.remove(&old.widget);
                fltk::app::delete_widget(old.widget);
            }
            self.group.begin();
            let new = screen.actions.iter().cloned();
            self.buttons = new
                .map(|button| PushButton::new(&self.shared, button, Ground::Page))
                .collect();
            self.group.end();
            if let Some(button) = focused.and_then(|index| self.buttons.get_mut(index)) {
                let _ = button.widget.take_focus();
            }
        }
        self.show_choices(&screen.choices);
        self.show_filter(screen.filter.as_ref());
        self.show_banner(screen.banner.as_ref());
        self.arrange_tab_order();
        let mut texts = self.texts.borrow_mut();
        texts.title.clone_from(&screen.title);
        texts.subtitle.clone_from(&screen.subtitle);
        texts.hint = screen
            .filter
            .as_ref()
            .map_or(String::new(), |filter| filter.hint.clone());
        drop(texts);
        self.group.redraw();
    }

    /// Lets Tab go through the widgets as they are placed: choice, buttons, filter, banner.
    fn arrange_tab_order(&mut self) {
        let mut place = 0;
        for (menu, _) in &self.choices {
            move_to(&mut self.group, menu, &mut place);
        }
        for button in &self.buttons {
            move_to(&mut self.group, &button.widget, &mut place);
        }
        if let Some((input, _)) = &self.filter {
            move_to(&mut self.group, input, &mut place);
        }
    }

    fn show_choices(&mut self, wanted: &[Choice]) {
        let shape = |choice: &Choice| (choice.purpose, choice.options.clone());
        if !self
            .choices
            .iter()
            .map(|(_, shown)| shape(shown))
            .eq(wanted.iter().map(shape))
        {
            for (old, _) in self.choices.drain(..) {
                self.group.remove(&old);
                fltk::app::delete_widget(old);
            }
            self.group.begin();
            for choice in wanted {
                let purpose = choice.purpose;
                let menu = choice::menu(&self.shared, &choice.options, move |value| purpose.act(value));
                self.choices.push((menu, choice.clone()));
            }
            self.group.end();
        }
        for ((menu, shown), wanted) in self.choices.iter_mut().zip(wanted) {
            choice::show(&self.shared, menu, &wanted.options, &wanted.value);
            *shown = wanted.clone();
        }
    }

    fn show_filter(&mut self, wanted: Option<&FilterBox>) {
        let Some(wanted) = wanted else {
            if let Some((old, _)) = self.filter.take() {
                self.group.remove(&old);
                fltk::app::delete_widget(old);
            }
            return;
        };
        if self.filter.is_none() {
            self.group.begin();
            let input = filter_input(&self.shared);
            self.group.end();
            self.filter = Some((input, wanted.clone()));
        }
        if let Some((input, shown)) = &mut self.filter {
            // While the user types, the model takes its text from the input. A different hint is that of another page.
            if input.value() != wanted.text && (shown.hint != wanted.hint || !input.has_focus()) {
                input.set_value(&wanted.text);
            }
            *shown = wanted.clone();
            let theme = self.shared.theme();
            input.set_color(colour(theme.card));
            input.set_text_color(colour(theme.text));
            input.set_cursor_color(colour(theme.text));
            input.set_selection_color(colour(theme.accent));
        }
    }

    fn show_banner(&mut self, wanted: Option<&Banner>) {
        let action = wanted.and_then(|banner| banner.action.clone());
        if self.banner_button.as_ref().map(|button| &button.shown) != action.as_ref() {
            if let Some(old) = self.banner_button.take() {
                self.group.remove(&old.widget);
                fltk::app::delete_widget(old.widget);
            }
            self.group.begin();
            self.banner_button = action.map(|action| PushButton::new(&self.shared, action, Ground::Card));
            self.group.end();
        }
        self.texts.borrow_mut().banner = wanted.cloned();
    }

    /// Moves the focus to the filter, if the page has one.
    pub fn focus_filter(&mut self) {
        if let Some((input, _)) = &mut self.filter {
            let _ = input.take_focus();
        }
    }

    /// Returns the buttons, for tests.
    #[allow(dead_code, reason = "the test of the window includes this file")]
    pub fn buttons(&self) -> Vec<button::Button> {
        let all = self.buttons.iter().chain(&self.banner_button);
        all.map(|button| button.widget.clone()).collect()
    }

    /// Places everything, and returns the height.
    pub fn layout(&mut self, area: Area) -> i32 {
        let h = self.arrange(area);
        self.group.resize(area.x, area.y, area.w, h);
        // The group has moved its children along.
        self.arrange(area)
    }

    /// Places buttons in rows from the left below the heading, and returns the height of everything.
    fn arrange(&mut self, area: Area) -> i32 {
        let (left, right) = (area.x + MARGIN, area.x + area.w - MARGIN);
        let mut top = area.y + HEADING + 12;
        if let Some((input, _)) = &mut self.filter {
            input.resize(right - FILTER + 9, area.y + 30, FILTER - 18, HEIGHT - 6);
        }
        if !self.buttons.is_empty() {
            // The edge that is seen is two pixels inside of a button.
            let start = left - 2;
            let mut x = start;
            for (menu, choice) in &mut self.choices {
                let width = match choice.purpose {
                    ChoicePurpose::Site => SITE,
                    ChoicePurpose::Level => LEVEL,
                };
                menu.resize(x + 2, top + 2, width, HEIGHT - 4);
                x += width + 8;
            }
            for button in &mut self.buttons {
                let width = button.width;
                if x > start && x + width > right {
                    x = start;
                    top += HEIGHT + 6;
                }
                x = button.place(x, top) + 6;
            }
            top += HEIGHT;
        }
        let texts = &mut *self.texts.borrow_mut();
        if let Some(banner) = &texts.banner {
            top += 10;
            let button = self.banner_button.as_ref().map_or(0, |button| button.width + 8);
            texts.banner_lines = banner_lines(&banner.text, area.w - 2 * MARGIN - button - 50);
            let height = banner_height(texts);
            if let Some(button) = &mut self.banner_button {
                let width = button.width;
                button.place(right - width - 8, top + (height - HEIGHT) / 2);
            }
            top += height;
        }
        top + 12 - area.y
    }
}

/// Moves a child of a group to a place among the children, and counts to the next place.
fn move_to<W: WidgetExt>(group: &mut Group, widget: &W, place: &mut i32) {
    if group.find(widget) != *place {
        group.insert(widget, *place);
    }
    *place += 1;
}

fn filter_input(shared: &SharedHandle) -> Input {
    let mut input = Input::new(0, 0, FILTER, HEIGHT, None);
    input.set_frame(FrameType::FlatBox);
    input.set_text_font(paint::REGULAR);
    input.set_text_size(paint::BODY);
    input.set_trigger(CallbackTrigger::Changed);
    let acts = SharedHandle::clone(shared);
    input.set_callback(move |input| acts.act(Act::Filter(input.value())));
    input.super_handle_first(false);
    let acts = SharedHandle::clone(shared);
    input.handle(move |input, event| {
        if matches!(event, Event::Focus | Event::Unfocus)
            && let Some(mut parent) = input.parent()
        {
            // The group draws the edge.
            parent.redraw();
        }
        keys::press_in_field(&acts, event) || drops::handle(&acts, event)
    });
    input
}

fn draw_heading(shared: &SharedHandle, group: &Group, texts: &Texts) {
    let theme = shared.theme();
    let area = Area::new(group.x(), group.y(), group.w(), group.h());
    paint::fill(area, theme.back);
    let (x, w) = (area.x + MARGIN, area.w - 2 * MARGIN);
    let left = Align::Left | Align::Inside;
    let room = if texts.hint.is_empty() { w } else { w - FILTER - 12 };
    let title = Area::new(x, area.y + 18, room, 30);
    paint::text(&texts.title, title, paint::BOLD, paint::TITLE, theme.text, left);
    let below = Area::new(x, area.y + 48, room, 20);
    paint::text(
        &texts.subtitle,
        below,
        paint::REGULAR,
        paint::SMALL + 1,
        theme.dim,
        left,
    );
    for input in inputs(group) {
        let around = Area::new(input.x() - 9, input.y() - 1, input.w() + 18, input.h() + 2);
        paint::round(around, theme.card);
        let (edge, width) = if input.has_focus() {
            (theme.accent, 2)
        } else {
            (theme.edge, 1)
        };
        paint::edge(around, edge, width);
    }
    if let Some(banner) = &texts.banner {
        let height = banner_height(texts);
        let around = Area::new(x, area.y + area.h - 12 - height, w, height);
        paint::round(around, theme.card);
        paint::edge(around, paint::mark_colour(&theme, banner.mark), 1);
        paint::mark(&theme, banner.mark, x + 14, around.y + height / 2 - 6, 12);
        for (index, line) in texts.banner_lines.iter().enumerate() {
            let top = around.y + (BANNER - BANNER_LINE) / 2 + index as i32 * BANNER_LINE;
            let place = Area::new(x + 38, top, w - 46, BANNER_LINE);
            paint::text(line, place, paint::REGULAR, paint::BODY, theme.text, left);
        }
    }
}

fn banner_height(texts: &Texts) -> i32 {
    let more = texts.banner_lines.len().saturating_sub(1) as i32;
    BANNER + more * BANNER_LINE
}

/// Splits the text of a banner into at most two lines. The second one is cut if there is still more.
fn banner_lines(text: &str, width: i32) -> Vec<String> {
    draw::set_font(paint::REGULAR, paint::BODY);
    let mut lines = paint::wrapped(text, width);
    if lines.len() > 2 {
        let rest = lines.split_off(1).join(" ");
        lines.push(paint::fitted(&rest, width));
    }
    lines
}

fn inputs(group: &Group) -> Vec<Input> {
    let children = (0..group.children()).filter_map(|index| group.child(index));
    children.filter_map(|child| Input::from_dyn_widget(&child)).collect()
}

/// Draws the words of an empty filter, which the input itself would cover.
fn draw_hint(shared: &SharedHandle, group: &Group, texts: &Texts) {
    let theme = shared.theme();
    for input in inputs(group)
        .iter()
        .filter(|input| input.value().is_empty() && !input.has_focus())
    {
        let place = Area::new(input.x() + 3, input.y(), input.w() - 3, input.h());
        paint::text(
            &texts.hint,
            place,
            paint::REGULAR,
            paint::SMALL + 1,
            theme.dim,
            Align::Left | Align::Inside,
        );
    }
}
