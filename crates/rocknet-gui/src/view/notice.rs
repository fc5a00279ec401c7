//! Notice at the lower edge of the window.

use std::cell::RefCell;
use std::rc::Rc;

use fltk::button;
use fltk::draw;
use fltk::enums::Align;
use fltk::group::Group;
use fltk::prelude::*;
use rocknet_gui::act::Act;
use rocknet_gui::model::Notice;
use rocknet_gui::screen::{Button, Mark};
use rocknet_gui::words::Words;

use super::button::{Ground, HEIGHT, PushButton};
use super::paint::{self, Area};
use super::shared::SharedHandle;

/// Height of a line of the text.
const LINE: i32 = 20;

/// Maximum number of lines.
const MAX_LINES: usize = 5;

/// Notice view.
pub struct NoticeView {
    pub group: Group,
    shown: Rc<RefCell<Option<Notice>>>,
    buttons: Vec<PushButton>,
    shared: SharedHandle,
}

impl NoticeView {
    /// Creates the view in the present group, hidden.
    pub fn new(shared: &SharedHandle) -> NoticeView {
        let mut group = Group::new(0, 0, 10, 10, None);
        group.end();
        group.super_draw(false);
        group.make_resizable(false);
        group.hide();
        let shown: Rc<RefCell<Option<Notice>>> = Rc::default();
        let (colours, drawn) = (SharedHandle::clone(shared), Rc::clone(&shown));
        group.draw(move |group| {
            if let Some(notice) = &*drawn.borrow() {
                draw_notice(&colours, group, notice);
            }
            group.draw_children();
        });
        NoticeView {
            group,
            shown,
            buttons: Vec::new(),
            shared: SharedHandle::clone(shared),
        }
    }

    /// Shows a notice, or hides it. Returns true if a button that was removed had the focus.
    #[must_use]
    pub fn show(&mut self, notice: Option<&Notice>, words: &Words) -> bool {
        if self.shown.borrow().as_ref() == notice {
            return false;
        }
        let had_focus = self.buttons.iter().any(|button| button.widget.has_focus());
        for old in self.buttons.drain(..) {
            self.group.remove(&old.widget);
            fltk::app::delete_widget(old.widget);
        }
        self.shown.replace(notice.cloned());
        let Some(notice) = notice else {
            self.group.hide();
            return had_focus;
        };
        self.group.begin();
        if notice.can_undo {
            self.buttons.push(PushButton::new(
                &self.shared,
                Button::new(words.undo, Act::Undo),
                Ground::Page,
            ));
        }
        if notice.is_failure {
            self.buttons.push(PushButton::new(
                &self.shared,
                Button::new(words.copy, Act::CopyText(notice.text.clone())),
                Ground::Page,
            ));
        }
        self.buttons.push(PushButton::new(
            &self.shared,
            Button::new("×", Act::DismissNotice),
            Ground::Page,
        ));
        self.group.end();
        self.group.show();
        self.group.redraw();
        had_focus
    }

    /// Returns true if a notice is shown.
    pub fn is_shown(&self) -> bool {
        self.shown.borrow().is_some()
    }

    /// Returns the buttons, for tests.
    #[allow(dead_code, reason = "the test of the window includes this file")]
    pub fn buttons(&self) -> Vec<button::Button> {
        self.buttons.iter().map(|button| button.widget.clone()).collect()
    }

    /// Places the notice at the lower edge of an area, and returns its height.
    pub fn layout(&mut self, area: Area) -> i32 {
        let Some(notice) = self.shown.borrow().clone() else {
            return 0;
        };
        let room: i32 = self.buttons.iter().map(|button| button.width + 6).sum();
        draw::set_font(paint::REGULAR, paint::BODY);
        let lines = paint::wrapped_to(&notice.text, area.w - room - 60, MAX_LINES).len() as i32;
        let h = (lines * LINE + 24).max(HEIGHT + 12);
        let y = area.y + area.h - h;
        self.group.resize(area.x, y, area.w, h);
        let mut right = area.x + area.w - 6;
        for button in self.buttons.iter_mut().rev() {
            let left = right - button.width;
            button.place(left, y + (h - HEIGHT) / 2);
            right = left - 6;
        }
        h
    }
}

fn draw_notice(shared: &SharedHandle, group: &Group, notice: &Notice) {
    let theme = shared.theme();
    let area = Area::new(group.x(), group.y(), group.w(), group.h());
    paint::fill(area, theme.back);
    paint::round(area, theme.back);
    let mark = if notice.is_failure { Mark::Bad } else { Mark::Good };
    paint::edge(area, paint::mark_colour(&theme, mark), 1);
    paint::mark(&theme, mark, area.x + 14, area.y + area.h / 2 - 6, 12);
    let mut room = 60;
    for index in 0..group.children() {
        room += group.child(index).map_or(0, |child| child.w() + 6);
    }
    draw::set_font(paint::REGULAR, paint::BODY);
    let lines = paint::wrapped_to(&notice.text, area.w - room, MAX_LINES);
    let count = lines.len() as i32;
    let top = area.y + (area.h - count * LINE) / 2;
    for (index, line) in lines.iter().enumerate() {
        let place = Area::new(area.x + 38, top + index as i32 * LINE, area.w - room, LINE);
        paint::text(
            line,
            place,
            paint::REGULAR,
            paint::BODY,
            theme.text,
            Align::Left | Align::Inside,
        );
    }
}
