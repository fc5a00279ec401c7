//! The window: navigation, heading, contents and notice, and the shortcuts.

use std::cell::Cell;

use fltk::app;
use fltk::enums::Event;
use fltk::frame::Frame;
use fltk::prelude::*;
use fltk::window::DoubleWindow;
use rocknet_gui::act::{Act, PageName};
use rocknet_gui::model::Model;
use rocknet_gui::pages;
use rocknet_gui::screen::{Body, Screen};
use rocknet_gui::theme::Theme;

use super::charts::ChartsView;
use super::chooser::ChooserView;
use super::drops;
use super::editor::EditorView;
use super::form::{FormPlace, FormView};
use super::header::{Header, MARGIN};
use super::icon;
use super::keys;
use super::lines::LinesView;
use super::message::MessageView;
use super::navigation::{self, Navigation};
use super::notice::NoticeView;
use super::paint::Area;
use super::scrollbar;
use super::shared::{Shared, SharedHandle, colour, show_defaults};
use super::table::TableView;

/// Width and height of the window at the start, and their minimum.
const SIZE: (i32, i32) = (1_100, 720);
const MIN_SIZE: (i32, i32) = (720, 480);

/// Contents of the page.
enum BodyView {
    Message(MessageView),
    Table(TableView),
    Charts(ChartsView),
    Lines(LinesView),
    Diff(LinesView),
    Form(FormView),
    Editor(Box<EditorView>),
    Chooser(Box<ChooserView>),
}

/// The window.
pub struct Window {
    pub window: DoubleWindow,
    shared: SharedHandle,
    pub drop_area: Frame,
    navigation: Navigation,
    header: Header,
    body: Option<BodyView>,
    notice: NoticeView,
    /// Screen, page and colours that are shown.
    shown: Option<(Screen, PageName, Theme)>,
    /// True from an instruction of the user until its outcome is shown. Starting the program is one too.
    is_awaited: Cell<bool>,
    /// True if newer contents are drawn in part, because a menu was open.
    is_partial: bool,
    /// True if the list of keys is shown.
    shows_keys: bool,
    /// Where the user was in the form of the page, when a question or the list of keys took its place.
    form_place: Option<(PageName, FormPlace)>,
}

impl Window {
    /// Creates the window, without showing it.
    pub fn new(theme: Theme) -> Window {
        let shared = Shared::new(theme);
        scrollbar::prepare();
        let mut window = DoubleWindow::new(0, 0, SIZE.0, SIZE.1, "RockNet");
        window.set_xclass("rocknet-gui");
        window.set_icon(icon::icon());
        // The area is behind all other widgets, so it gets the drops that no field takes.
        let drop_area = drops::area(&shared);
        let navigation = Navigation::new(&shared);
        let header = Header::new(&shared);
        let notice = NoticeView::new(&shared);
        window.end();
        window.make_resizable(true);
        window.size_range(MIN_SIZE.0, MIN_SIZE.1, 0, 0);
        let acts = SharedHandle::clone(&shared);
        window.set_callback(move |_| {
            if app::event() == Event::Close {
                acts.act(Act::Quit);
            }
        });
        let acts = SharedHandle::clone(&shared);
        window.handle(move |_, event| match event {
            Event::KeyDown | Event::Shortcut => keys::shortcut(app::event_key(), app::is_event_ctrl())
                .map(|act| acts.act(act))
                .is_some(),
            _ => false,
        });
        Window {
            window,
            shared,
            drop_area,
            navigation,
            header,
            body: None,
            notice,
            shown: None,
            is_awaited: Cell::new(true),
            is_partial: false,
            shows_keys: false,
            form_place: None,
        }
    }

    /// Returns the oldest act of the user that was not handled.
    pub fn next_act(&self) -> Option<Act> {
        let act = self.shared.next();
        if act.as_ref().is_some_and(|act| !act.is_input()) {
            self.is_awaited.set(true);
        }
        act
    }

    /// Moves the focus to the filter of the page.
    #[allow(dead_code, reason = "the test of the window does not use it")]
    pub fn focus_filter(&mut self) {
        self.header.focus_filter();
    }

    /// Presses every button that can be pressed, and returns their number. For tests.
    #[allow(dead_code, reason = "the test of the window includes this file")]
    pub fn press_all(&mut self) -> usize {
        let mut buttons = self.navigation.buttons();
        buttons.extend(self.header.buttons());
        buttons.extend(self.notice.buttons());
        match &self.body {
            Some(BodyView::Message(view)) => buttons.extend(view.buttons()),
            Some(BodyView::Form(view)) => buttons.extend(view.buttons()),
            _ => {}
        }
        buttons.retain(WidgetExt::active);
        buttons.iter_mut().for_each(WidgetExt::do_callback);
        buttons.len()
    }

    /// Shows the state of the model. Only what differs is drawn.
    pub fn show(&mut self, model: &Model) {
        let focused = app::focus().map(|widget| widget.as_widget_ptr());
        let theme = model.theme();
        let screen = pages::screen(model);
        let words = model.words();
        self.shared.set_theme(theme);
        let state = pages::server_state(model);
        self.show_title(&screen.title, state.label);
        self.navigation.show(pages::navigation(model), state);
        let has_lost_focus = self.notice.show(model.notice.as_ref(), words);
        let shown = (screen, model.page, theme);
        if self.shown.as_ref() == Some(&shown) && !std::mem::take(&mut self.is_partial) {
            self.layout();
            if has_lost_focus {
                self.focus_body(false);
            }
            self.end_wait();
            return;
        }
        let before = self.shown.as_ref().map(|(_, page, theme)| (*page, *theme));
        // The button of a message is the next step, so it gets the focus, unless the message appears by itself: it
        // would be pressed by the next key that the user types.
        let is_new_message = matches!(&shown.0.body, Body::Message(message) if !message.actions.is_empty())
            && self
                .shown
                .as_ref()
                .is_none_or(|(before, ..)| before.body != shown.0.body);
        let (screen, page, _) = self.shown.insert(shown);
        let (page, is_new_page) = (*page, before.is_none_or(|(page, _)| page != model.page));
        // The list of keys counts as a page of its own.
        let shows_keys = model.shown_keys.is_some();
        let is_new_page = std::mem::replace(&mut self.shows_keys, shows_keys) != shows_keys || is_new_page;
        self.header.show(screen);
        let is_other = !matches!(
            (&self.body, &screen.body),
            (Some(BodyView::Message(_)), Body::Message(_))
                | (Some(BodyView::Table(_)), Body::Table(_))
                | (Some(BodyView::Charts(_)), Body::Charts(_))
                | (Some(BodyView::Lines(_)), Body::Lines(_))
                | (Some(BodyView::Diff(_)), Body::Diff(_))
                | (Some(BodyView::Form(_)), Body::Form(_))
                | (Some(BodyView::Editor(_)), Body::Editor(_))
                | (Some(BodyView::Chooser(_)), Body::Chooser(_))
        );
        let had_chooser = matches!(self.body, Some(BodyView::Chooser(_)));
        if is_other || is_new_page {
            if let Some(old) = self.body.take() {
                if let (BodyView::Form(form), Some((before, _))) = (&old, before) {
                    self.form_place = Some((before, form.place()));
                }
                old.delete(&mut self.window);
            }
            self.window.begin();
            self.body = Some(BodyView::new(&self.shared, &screen.body));
            self.window.end();
            // The notice is above the contents.
            self.window.remove(&self.notice.group);
            self.window.add(&self.notice.group);
        }
        if let Some(body) = &mut self.body {
            body.show(&screen.body, words.choose_folder);
        }
        self.layout();
        let takes_focus = shows_keys
            || matches!(
                page,
                PageName::Websites
                    | PageName::AddWebsite
                    | PageName::EditWebsite
                    | PageName::EditText
                    | PageName::History
            );
        if is_new_message && !self.is_awaited.get() {
            // The focus moves only if the widget that had it is gone.
            if app::focus().map(|widget| widget.as_widget_ptr()) != focused
                && let Some(BodyView::Message(message)) = &mut self.body
            {
                message.take_focus();
            }
        } else if is_new_message || (is_other || is_new_page) && takes_focus {
            self.focus_body(had_chooser);
        } else if has_lost_focus {
            self.focus_body(false);
        }
        self.return_to_form(page, is_other, had_chooser);
        self.end_wait();
        if before.is_none_or(|(_, before)| before != theme) {
            show_defaults(&theme);
            self.window.set_color(colour(theme.back));
            self.window.redraw();
        }
    }

    fn show_title(&mut self, page: &str, state: &str) {
        let title = format!("{page} – RockNet – {state}");
        if self.window.label() != title {
            self.window.set_label(&title);
        }
    }

    /// Shows what has changed while a menu is open: the state of the server, the notice, and contents without a menu.
    /// The heading and forms stay, because the menu belongs to one of their widgets.
    #[allow(dead_code, reason = "the test of the window does not use it")]
    pub fn show_beside_menu(&mut self, model: &Model) {
        let screen = pages::screen(model);
        let state = pages::server_state(model);
        self.show_title(&screen.title, state.label);
        self.navigation.show(pages::navigation(model), state);
        let has_lost_focus = self.notice.show(model.notice.as_ref(), model.words());
        match (&mut self.body, &screen.body) {
            _ if self.shown.as_ref().is_none_or(|(_, page, _)| *page != model.page) => {}
            (Some(BodyView::Charts(view)), Body::Charts(charts)) => view.show(charts),
            (Some(BodyView::Lines(view)), Body::Lines(lines)) => view.show(lines),
            (Some(BodyView::Table(view)), Body::Table(table)) => view.show(table),
            _ => {}
        }
        self.is_partial = true;
        self.layout();
        if has_lost_focus {
            self.focus_body(false);
        }
    }

    /// Ends the wait for the outcome of an instruction, unless the page is a message without buttons: such a message
    /// stands for an instruction in progress.
    fn end_wait(&self) {
        let waits = |screen: &Screen| matches!(&screen.body, Body::Message(message) if message.actions.is_empty());
        if !self.shown.as_ref().is_some_and(|(screen, ..)| waits(screen)) {
            self.is_awaited.set(false);
        }
    }

    /// Moves the focus to the contents of the page. `had_chooser`: a folder was being chosen for the form.
    fn focus_body(&mut self, had_chooser: bool) {
        match &mut self.body {
            Some(BodyView::Form(form)) if had_chooser => form.focus_folder(),
            Some(BodyView::Form(form)) => form.take_focus(),
            Some(BodyView::Editor(editor)) => editor.take_focus(),
            Some(BodyView::Chooser(chooser)) => chooser.take_focus(),
            Some(BodyView::Diff(lines)) => drop(lines.widget.take_focus()),
            Some(BodyView::Table(table)) => drop(table.widget.take_focus()),
            Some(BodyView::Message(message)) => {
                if let Some(button) = message.buttons.first_mut() {
                    let _ = button.widget.take_focus();
                }
            }
            _ => {}
        }
    }

    /// Returns to the place in the form of a page that the user had before a question or the list of keys. `is_other`:
    /// the contents before were of another kind than the present ones.
    fn return_to_form(&mut self, page: PageName, is_other: bool, had_chooser: bool) {
        let of_page = self.form_place.filter(|(of, _)| *of == page);
        match (&mut self.body, of_page) {
            (_, None) => self.form_place = None,
            (Some(BodyView::Form(form)), Some((_, place))) if is_other => {
                self.form_place = None;
                if !had_chooser {
                    form.return_to(place);
                }
            }
            _ => {}
        }
    }

    /// Places everything for the size of the window.
    pub fn layout(&mut self) {
        let (w, h) = (self.window.w(), self.window.h());
        self.drop_area.resize(0, 0, w, h);
        self.navigation.group.resize(0, 0, navigation::WIDTH, h);
        self.navigation.layout();
        let content = Area::new(navigation::WIDTH, 0, w - navigation::WIDTH, h);
        let top = self.header.layout(content);
        let room = Area::new(
            content.x + MARGIN,
            top,
            content.w - 2 * MARGIN,
            (h - top - MARGIN).max(40),
        );
        let notice = self.notice.layout(room);
        let body = match self.notice.is_shown() {
            true => Area {
                h: (room.h - notice - 10).max(40),
                ..room
            },
            false => room,
        };
        match &mut self.body {
            Some(BodyView::Message(view)) => view.layout(body),
            Some(BodyView::Table(view)) => view.layout(body),
            Some(BodyView::Charts(view)) => view.layout(body),
            Some(BodyView::Lines(view)) => view.layout(body),
            Some(BodyView::Diff(view)) => view.layout(body),
            Some(BodyView::Form(view)) => view.layout(body),
            Some(BodyView::Editor(view)) => view.layout(body),
            Some(BodyView::Chooser(view)) => view.layout(body),
            None => {}
        }
    }
}

impl BodyView {
    fn new(shared: &SharedHandle, body: &Body) -> BodyView {
        match body {
            Body::Message(_) => BodyView::Message(MessageView::new(shared)),
            Body::Table(_) => BodyView::Table(TableView::new(shared)),
            Body::Charts(_) => BodyView::Charts(ChartsView::new(shared)),
            Body::Lines(_) => BodyView::Lines(LinesView::new(shared)),
            Body::Diff(_) => BodyView::Diff(LinesView::of_diff(shared)),
            Body::Form(_) => BodyView::Form(FormView::new(shared)),
            Body::Editor(_) => BodyView::Editor(Box::new(EditorView::new(shared))),
            Body::Chooser(chooser) => BodyView::Chooser(Box::new(ChooserView::new(shared, chooser))),
        }
    }

    fn show(&mut self, body: &Body, choose: &str) {
        match (self, body) {
            (BodyView::Message(view), Body::Message(message)) => view.show(message),
            (BodyView::Table(view), Body::Table(table)) => view.show(table),
            (BodyView::Charts(view), Body::Charts(charts)) => view.show(charts),
            (BodyView::Lines(view), Body::Lines(lines)) => view.show(lines),
            (BodyView::Diff(view), Body::Diff(lines)) => view.show(lines),
            (BodyView::Editor(view), Body::Editor(editor)) => view.show(editor),
            (BodyView::Chooser(view), Body::Chooser(chooser)) => view.show(chooser),
            (BodyView::Form(view), Body::Form(form)) => view.show(form, choose),
            _ => {}
        }
    }

    fn delete(self, window: &mut DoubleWindow) {
        match self {
            BodyView::Message(view) => remove(window, view.group),
            BodyView::Table(view) => remove(window, view.widget),
            BodyView::Charts(view) => remove(window, view.widget),
            BodyView::Lines(view) => remove(window, view.widget),
            BodyView::Diff(view) => remove(window, view.widget),
            BodyView::Form(view) => remove(window, view.scroll),
            BodyView::Chooser(view) => remove(window, view.group),
            BodyView::Editor(mut view) => {
                view.detach();
                remove(window, view.group);
            }
        }
        window.redraw();
    }
}

fn remove<W: WidgetExt + WidgetBase>(window: &mut DoubleWindow, widget: W) {
    window.remove(&widget);
    app::delete_widget(widget);
}
