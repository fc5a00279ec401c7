//! Chooser of folders: the path, the switch for hidden folders, a line about them, and the list.

use std::cell::RefCell;
use std::rc::Rc;

use fltk::button::CheckButton;
use fltk::enums::Align;
use fltk::group::Group;
use fltk::input::Input;
use fltk::prelude::*;
use rocknet_gui::act::FieldId;
use rocknet_gui::screen::{Chooser, Mark};

use super::button::HEIGHT;
use super::inputs;
use super::paint::{self, Area};
use super::shared::SharedHandle;
use super::table::TableView;

/// Height of the label above the path.
const LABEL: i32 = 24;

/// Height of the line below the path.
const NOTE: i32 = 30;

/// Texts that the group draws.
#[derive(Default)]
struct Texts {
    label: String,
    note: (Mark, String),
}

/// Chooser view.
pub struct ChooserView {
    pub group: Group,
    input: Input,
    hidden: CheckButton,
    folders: TableView,
    texts: Rc<RefCell<Texts>>,
    /// Version of the path, and number of the focus, that are shown.
    shown: (u64, u64),
    shared: SharedHandle,
}

impl ChooserView {
    /// Creates the view in the present group.
    pub fn new(shared: &SharedHandle, chooser: &Chooser) -> ChooserView {
        let mut group = Group::new(0, 0, 100, 100, None);
        group.super_draw(false);
        group.make_resizable(false);
        let mut input = Input::new(0, 0, 100, HEIGHT, None);
        let hidden = inputs::switch_input(shared, FieldId::HiddenFolders, &chooser.hidden_label);
        let folders = TableView::new(shared);
        inputs::prepare_path(&mut input, shared, FieldId::ChooserPath, &folders.widget);
        group.end();
        let texts = Rc::new(RefCell::new(Texts::default()));
        let (colours, drawn) = (SharedHandle::clone(shared), Rc::clone(&texts));
        group.draw(move |group| {
            draw_around(&colours, group, &drawn.borrow());
            group.draw_children();
        });
        ChooserView {
            group,
            input,
            hidden,
            folders,
            texts,
            shown: (0, 0),
            shared: SharedHandle::clone(shared),
        }
    }

    /// Shows a chooser. While the user types, the path in the input is newer, and stays.
    pub fn show(&mut self, chooser: &Chooser) {
        inputs::show_colours(&mut self.input, &self.shared);
        if self.shown.0 != chooser.version {
            self.shown.0 = chooser.version;
            self.input.set_value(&chooser.path);
            let _ = self.input.set_position(self.input.value().len() as i32);
        }
        self.hidden.set_value(chooser.shows_hidden);
        self.hidden.set_label(&chooser.hidden_label);
        self.folders.show(&chooser.folders);
        *self.texts.borrow_mut() = Texts {
            label: chooser.label.clone(),
            note: chooser.note.clone(),
        };
        if self.shown.1 != chooser.focus {
            self.shown.1 = chooser.focus;
            self.take_focus();
        }
        self.group.redraw();
    }

    /// Moves the focus to the path.
    pub fn take_focus(&mut self) {
        let _ = self.input.take_focus();
    }

    /// Places everything.
    pub fn layout(&mut self, area: Area) {
        self.group.resize(area.x, area.y, area.w, area.h);
        let top = area.y + LABEL;
        self.input.resize(area.x + 11, top + 3, area.w - 22, HEIGHT - 6);
        let list = top + HEIGHT + NOTE;
        self.hidden.resize(area.x, list, area.w.min(320), HEIGHT);
        let list = list + HEIGHT + 4;
        let height = (area.y + area.h - list).max(60);
        self.folders.layout(Area::new(area.x, list, area.w, height));
    }
}

fn draw_around(shared: &SharedHandle, group: &Group, texts: &Texts) {
    let theme = shared.theme();
    let area = Area::new(group.x(), group.y(), group.w(), group.h());
    paint::fill(area, theme.back);
    let left = Align::Left | Align::Inside;
    let label = Area::new(area.x, area.y, area.w, LABEL - 2);
    paint::text(&texts.label, label, paint::BOLD, paint::BODY, theme.text, left);
    if let Some(input) = group.child(0) {
        let around = Area::new(input.x() - 11, input.y() - 3, input.w() + 22, HEIGHT);
        paint::round(around, theme.card);
        let (edge, width) = match input.has_focus() {
            true => (theme.accent, 2),
            false => (theme.edge, 1),
        };
        paint::edge(around, edge, width);
    }
    let (mark, note) = &texts.note;
    let top = area.y + LABEL + HEIGHT;
    paint::mark(&theme, *mark, area.x + 4, top + 10, 11);
    let rgb = if *mark == Mark::Bad { theme.bad } else { theme.dim };
    let words = Area::new(area.x + 24, top + 4, area.w - 24, NOTE - 6);
    paint::text(note, words, paint::REGULAR, paint::SMALL + 1, rgb, left);
}
