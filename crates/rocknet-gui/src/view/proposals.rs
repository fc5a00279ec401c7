//! List of proposals at the cursor of the editor.

use std::cell::RefCell;
use std::rc::Rc;

use fltk::app;
use fltk::draw;
use fltk::enums::{Align, Event, Key};
use fltk::prelude::*;
use fltk::text::TextEditor;
use fltk::widget::Widget;
use rocknet_gui::toml_text::{Completion, Proposal};

use super::paint::{self, Area};
use super::shared::SharedHandle;

/// Height of a proposal.
const ROW: i32 = 24;

/// Maximum number of proposals in view.
const ROWS: usize = 7;

/// Height of the documentation below the proposals: three lines.
const HELP: i32 = 3 * 17 + 10;

/// Width of the list.
const WIDTH: i32 = 380;

#[derive(Default)]
struct ProposalsState {
    completion: Option<Completion>,
    chosen: usize,
}

/// Proposals view.
#[derive(Clone)]
pub struct ProposalsView {
    widget: Widget,
    state: Rc<RefCell<ProposalsState>>,
}

impl ProposalsView {
    /// Creates the view in the present group, hidden.
    pub fn new(shared: &SharedHandle) -> ProposalsView {
        let mut widget = Widget::new(0, 0, WIDTH, ROW, None);
        widget.hide();
        let state: Rc<RefCell<ProposalsState>> = Rc::default();
        let (colours, drawn) = (SharedHandle::clone(shared), Rc::clone(&state));
        widget.draw(move |widget| draw_proposals(&colours, widget, &drawn.borrow()));
        ProposalsView { widget, state }
    }

    /// Shows proposals below a place in the editor, or above it if there is no room below. `None` hides the list.
    pub fn show(&mut self, completion: Option<&Completion>, place: (i32, i32), editor: &TextEditor) {
        let mut state = self.state.borrow_mut();
        if state.completion.as_ref() != completion {
            state.completion = completion.cloned();
            state.chosen = 0;
        }
        let Some(completion) = completion else {
            self.widget.hide();
            return;
        };
        let height = completion.proposals.len().min(ROWS) as i32 * ROW + HELP;
        let (x, y) = place;
        let bottom = self.widget.parent().map_or(0, |group| group.y() + group.h());
        let below = y + 20;
        let top = match below + height <= bottom {
            true => below,
            false => (y - height - 4).max(0),
        };
        let x = x.min(editor.x() + editor.w() - WIDTH).max(editor.x());
        self.widget.resize(x, top, WIDTH, height);
        self.widget.show();
        self.widget.redraw();
    }

    /// Calls a function when a proposal is clicked, after it was chosen. The wheel chooses others.
    pub fn on_click(&mut self, clicked: impl Fn() + 'static) {
        let list = self.clone();
        self.widget.handle(move |widget, event| match event {
            Event::Push => {
                let row = (app::event_y() - widget.y() - 2) / ROW;
                if list.choose_row(row) {
                    clicked();
                }
                true
            }
            Event::MouseWheel => {
                let is_down = app::event_dy_value() > 0;
                list.press(if is_down { Key::Down } else { Key::Up });
                true
            }
            _ => false,
        });
    }

    /// Chooses the proposal in a row of the list. Returns false if the row has none.
    fn choose_row(&self, row: i32) -> bool {
        let mut state = self.state.borrow_mut();
        let count = state.completion.as_ref().map_or(0, |list| list.proposals.len());
        let index = usize::try_from(row)
            .ok()
            .filter(|row| *row < ROWS)
            .map(|row| first(&state) + row);
        match index.filter(|index| *index < count) {
            Some(index) => state.chosen = index,
            None => return false,
        }
        true
    }

    /// Returns true if proposals are shown.
    pub fn is_shown(&self) -> bool {
        self.state.borrow().completion.is_some()
    }

    /// Chooses another proposal.
    pub fn press(&self, key: Key) {
        let mut state = self.state.borrow_mut();
        let count = state.completion.as_ref().map_or(0, |list| list.proposals.len());
        let last = count.saturating_sub(1);
        state.chosen = match key {
            Key::Up => state.chosen.checked_sub(1).unwrap_or(last),
            Key::PageUp => state.chosen.saturating_sub(ROWS),
            Key::PageDown => (state.chosen + ROWS).min(last),
            _ if state.chosen >= last => 0,
            _ => state.chosen + 1,
        };
        self.widget.clone().redraw();
    }

    /// Returns the chosen text, and the part of the text that it replaces.
    pub fn chosen(&self) -> Option<(usize, usize, String)> {
        let state = self.state.borrow();
        let list = state.completion.as_ref()?;
        let proposal = list.proposals.get(state.chosen)?;
        Some((list.start, list.end, proposal.text.clone()))
    }
}

/// Returns the index of the first proposal in view.
fn first(state: &ProposalsState) -> usize {
    (state.chosen + 1).saturating_sub(ROWS)
}

fn draw_proposals(shared: &SharedHandle, widget: &Widget, state: &ProposalsState) {
    let Some(list) = &state.completion else {
        return;
    };
    let theme = shared.theme();
    let area = Area::new(widget.x(), widget.y(), widget.w(), widget.h());
    paint::fill(area, theme.card);
    let left = Align::Left | Align::Inside;
    let shown = list.proposals.iter().enumerate().skip(first(state)).take(ROWS);
    for (row, (index, Proposal { label, .. })) in shown.enumerate() {
        let line = Area::new(area.x + 2, area.y + 2 + row as i32 * ROW, area.w - 4, ROW);
        if index == state.chosen {
            paint::fill(line, theme.selected);
        }
        let words = Area::new(line.x + 8, line.y, line.w - 16, ROW);
        paint::text(label, words, paint::MONO, paint::BODY, theme.text, left);
    }
    let top = area.y + area.h - HELP + 4;
    paint::fill(Area::new(area.x + 2, top, area.w - 4, 1), theme.soft);
    if let Some(Proposal { help, .. }) = list.proposals.get(state.chosen) {
        draw::set_font(paint::REGULAR, paint::SMALL);
        let lines = paint::wrapped(help, area.w - 20);
        for (index, line) in lines.iter().take(3).enumerate() {
            let place = Area::new(area.x + 10, top + 3 + index as i32 * 17, area.w - 20, 17);
            paint::text(line, place, paint::REGULAR, paint::SMALL, theme.dim, left);
        }
    }
    paint::edge(area, theme.accent, 1);
}
