//! Editor of a text with colours, marked lines, proposals at the cursor, and the list of findings below it.

use std::cell::RefCell;
use std::rc::Rc;

use fltk::app;
use fltk::enums::{Align, CallbackTrigger, Color, Event, Font, FrameType, Key};
use fltk::group::Group;
use fltk::menu::MenuButton;
use fltk::prelude::*;
use fltk::text::{Cursor, StyleTableEntryExt, TextAttr, TextBuffer, TextEditor};
use fltk::valuator::Scrollbar;
use rocknet_gui::act::{Act, FieldId};
use rocknet_gui::screen::Editor;
use rocknet_gui::theme::{Rgb, Theme};
use rocknet_gui::toml_text::{self, KINDS, MARKS, TokenKind};

use super::button::HEIGHT;
use super::choice;
use super::inputs;
use super::paint::{self, Area};
use super::proposals::ProposalsView;
use super::scrollbar;
use super::shared::{SharedHandle, colour};
use super::table::TableView;

/// Height of the words below the text.
const HINT: i32 = 22;

/// Least and largest height of the list of findings.
const FINDINGS: (i32, i32) = (88, 190);

/// Marked lines: the line, and true for an error.
type Marks = Rc<RefCell<Vec<(usize, bool)>>>;

/// Editor view.
pub struct EditorView {
    pub group: Group,
    editor: TextEditor,
    buffer: TextBuffer,
    styles: TextBuffer,
    marks: Marks,
    files: Option<(MenuButton, Vec<(String, String)>)>,
    findings: TableView,
    proposals: ProposalsView,
    hint: Rc<RefCell<String>>,
    /// File that is shown.
    file: String,
    /// Version of its text (0 before the first), number of the last place that was shown, and colours.
    shown: (u64, u64, Option<Theme>),
    shared: SharedHandle,
}

impl EditorView {
    /// Creates the view in the present group.
    pub fn new(shared: &SharedHandle) -> EditorView {
        let mut group = Group::new(0, 0, 100, 100, None);
        group.super_draw(false);
        group.make_resizable(false);
        let (buffer, styles) = (TextBuffer::default(), TextBuffer::default());
        let mut editor = TextEditor::new(0, 0, 100, 100, None);
        editor.set_buffer(buffer.clone());
        editor.set_frame(FrameType::FlatBox);
        editor.set_text_font(paint::MONO);
        editor.set_text_size(paint::BODY);
        editor.set_scrollbar_size(scrollbar::WIDTH);
        editor.set_linenumber_width(44);
        editor.set_linenumber_font(paint::MONO);
        editor.set_linenumber_size(paint::SMALL);
        editor.set_cursor_style(Cursor::Simple);
        editor.set_trigger(CallbackTrigger::Changed);
        // Tab leaves the text, as other fields.
        editor.set_tab_nav(true);
        let findings = TableView::new(shared);
        let mut proposals = ProposalsView::new(shared);
        group.end();
        let marks: Marks = Rc::default();
        let hint: Rc<RefCell<String>> = Rc::default();
        let (colours, drawn) = (SharedHandle::clone(shared), Rc::clone(&hint));
        group.draw(move |group| {
            draw_around(&colours, group, &drawn.borrow());
            group.draw_children();
        });
        let typed = Typed {
            buffer: buffer.clone(),
            styles: styles.clone(),
            marks: Rc::clone(&marks),
            shared: SharedHandle::clone(shared),
        };
        let on_change = typed.clone();
        editor.set_callback(move |editor| on_change.send(editor));
        let (on_click, list, text) = (typed.clone(), proposals.clone(), editor.clone());
        proposals.on_click(move || {
            on_click.accept(&list, &mut text.clone());
        });
        // The list of proposals gets its keys before the text.
        editor.super_handle_first(false);
        let (popup, below) = (proposals.clone(), findings.widget.clone());
        editor.handle(move |editor, event| handle(&typed, &popup, &below, editor, event));
        EditorView {
            group,
            editor,
            buffer,
            styles,
            marks,
            files: None,
            findings,
            proposals,
            hint,
            file: String::new(),
            shown: (0, 0, None),
            shared: SharedHandle::clone(shared),
        }
    }

    /// Shows a text. While the user types, the text in the editor is newer, and stays.
    pub fn show(&mut self, shown: &Editor) {
        let theme = self.shared.theme();
        let marks: Vec<(usize, bool)> = shown.marks.iter().map(|mark| (mark.line, mark.is_error)).collect();
        if self.file != shown.file {
            self.file.clone_from(&shown.file);
            (self.shown.0, self.shown.1) = (0, 0);
        }
        let is_new_text = self.shown.0 != shown.version;
        if is_new_text {
            let mut cursor = self.editor.insert_position();
            // A view that was created again continues at the cursor of the one before it, not at the last place.
            if let Some(last) = shown.cursor.filter(|_| self.shown.0 == 0) {
                cursor = i32::try_from(last).unwrap_or(0);
                self.shown.1 = shown.place.number;
            }
            self.shown.0 = shown.version;
            self.buffer.set_text(&shown.text);
            self.editor.set_insert_position(cursor.min(self.buffer.length()));
            self.editor.show_insert_position();
        }
        if self.shown.2 != Some(theme) {
            self.shown.2 = Some(theme);
            self.set_colours(&theme);
        }
        if is_new_text || *self.marks.borrow() != marks {
            self.marks.replace(marks);
            restyle(&self.buffer, &mut self.styles, &self.marks);
            self.editor.redraw();
        }
        if self.shown.1 != shown.place.number {
            self.shown.1 = shown.place.number;
            let at = toml_text::place(&self.buffer.text(), shown.place.line, shown.place.column);
            self.editor.set_insert_position(i32::try_from(at).unwrap_or(0));
            self.editor.show_insert_position();
            if shown.place.takes_focus {
                let _ = self.editor.take_focus();
            }
        }
        self.show_files(shown);
        self.findings.show(&shown.findings);
        self.hint.borrow_mut().clone_from(&shown.hint);
        let at = shown.completion.as_ref().map_or(0, |completion| completion.start);
        let place = self.editor.position_to_xy(i32::try_from(at).unwrap_or(0));
        self.proposals.show(shown.completion.as_ref(), place, &self.editor);
        self.group.redraw();
    }

    fn show_files(&mut self, shown: &Editor) {
        let is_same = self.files.as_ref().is_some_and(|(_, files)| *files == shown.files);
        if !is_same {
            if let Some((old, _)) = self.files.take() {
                self.group.remove(&old);
                app::delete_widget(old);
            }
            if shown.files.len() > 1 {
                self.group.begin();
                let menu = inputs::choice_input(&self.shared, FieldId::File, &shown.files);
                self.group.end();
                self.files = Some((menu, shown.files.clone()));
            }
        }
        if let Some((menu, files)) = &mut self.files {
            choice::show(&self.shared, menu, files, &shown.file);
        }
    }

    fn set_colours(&mut self, theme: &Theme) {
        self.editor.set_color(colour(theme.card));
        self.editor.set_text_color(colour(theme.text));
        self.editor.set_cursor_color(colour(theme.text));
        self.editor.set_selection_color(colour(theme.selected));
        // Underlines of the marked lines: that of spelling for a warning, that of grammar for an error.
        self.editor.set_spelling_underline_color(colour(theme.fair));
        self.editor.set_grammar_underline_color(colour(theme.bad));
        let bars = self.editor.as_group();
        for index in 0..bars.as_ref().map_or(0, GroupExt::children) {
            let child = bars.as_ref().and_then(|bars| bars.child(index));
            if let Some(mut bar) = child.and_then(|child| Scrollbar::from_dyn_widget(&child)) {
                scrollbar::show(&mut bar, theme, theme.card);
            }
        }
        self.editor.set_linenumber_fgcolor(colour(theme.dim));
        self.editor.set_linenumber_bgcolor(colour(theme.card));
        let styles = self.styles.clone();
        self.editor.set_highlight_data_ext(styles, entries(theme));
        self.editor.redraw();
    }

    /// Moves the focus to the text.
    pub fn take_focus(&mut self) {
        let _ = self.editor.take_focus();
    }

    /// Places everything.
    pub fn layout(&mut self, area: Area) {
        self.group.resize(area.x, area.y, area.w, area.h);
        let mut top = area.y;
        if let Some((menu, _)) = &mut self.files {
            menu.resize(area.x, top, area.w.min(360), HEIGHT);
            top += HEIGHT + 8;
        }
        let findings = (area.h / 3).clamp(FINDINGS.0, FINDINGS.1);
        let height = (area.y + area.h - findings - HINT - top).max(60);
        self.editor.resize(area.x + 3, top + 3, area.w - 6, height - 6);
        self.findings
            .layout(Area::new(area.x, top + height + HINT, area.w, findings));
    }

    /// Detaches the buffer of the text, which is freed before the widget and would be used by its destructor.
    pub fn detach(&mut self) {
        self.editor.set_buffer(None);
    }
}

/// Parts of the editor that its callbacks use to send the text.
#[derive(Clone)]
struct Typed {
    buffer: TextBuffer,
    styles: TextBuffer,
    marks: Marks,
    shared: SharedHandle,
}

impl Typed {
    fn send(&self, editor: &mut TextEditor) {
        restyle(&self.buffer, &mut self.styles.clone(), &self.marks);
        editor.redraw();
        let cursor = usize::try_from(editor.insert_position()).unwrap_or(0);
        self.shared.act(Act::SetText(self.buffer.text(), cursor));
    }

    /// Replaces the letters that were typed by the chosen proposal. Returns false if the text has changed so that the
    /// proposal does not fit any more: several keys can arrive before the list is renewed.
    fn accept(&self, popup: &ProposalsView, editor: &mut TextEditor) -> bool {
        let Some((start, end, text)) = popup.chosen() else {
            return false;
        };
        self.shared.act(Act::EndCompletion);
        let cursor = usize::try_from(editor.insert_position()).unwrap_or(0);
        let Some(end) = toml_text::end_of_word(&self.buffer.text(), (start, end), cursor, &text) else {
            return false;
        };
        let number = |at: usize| i32::try_from(at).unwrap_or(0);
        let mut buffer = self.buffer.clone();
        buffer.replace(number(start), number(end), &text);
        editor.set_insert_position(number(start + text.len()));
        editor.show_insert_position();
        self.send(editor);
        true
    }
}

fn restyle(buffer: &TextBuffer, styles: &mut TextBuffer, marks: &Marks) {
    styles.set_text(&toml_text::styles(&buffer.text(), &marks.borrow()));
}

fn handle(
    typed: &Typed,
    popup: &ProposalsView,
    findings: &fltk::widget::Widget,
    editor: &mut TextEditor,
    event: Event,
) -> bool {
    match event {
        Event::Focus | Event::Unfocus => {
            if let Some(mut group) = editor.parent() {
                group.redraw();
            }
            if event == Event::Unfocus && popup.is_shown() {
                typed.shared.act(Act::EndCompletion);
            }
            false
        }
        Event::Push if popup.is_shown() => {
            typed.shared.act(Act::EndCompletion);
            false
        }
        Event::KeyDown => press(typed, popup, findings, editor),
        _ => false,
    }
}

fn press(typed: &Typed, popup: &ProposalsView, findings: &fltk::widget::Widget, editor: &mut TextEditor) -> bool {
    let (key, with_ctrl) = (app::event_key(), app::is_event_ctrl());
    let cursor = || usize::try_from(editor.insert_position()).unwrap_or(0);
    match key {
        _ if with_ctrl && key == Key::from_char(' ') => typed.shared.act(Act::Complete(cursor())),
        _ if with_ctrl && key == Key::from_char('s') => typed.shared.act(Act::Submit),
        Key::F6 => return findings.clone().take_focus().is_ok(),
        Key::Escape if popup.is_shown() => typed.shared.act(Act::EndCompletion),
        Key::Up | Key::Down | Key::PageUp | Key::PageDown if popup.is_shown() => popup.press(key),
        Key::Enter | Key::KPEnter | Key::Tab if popup.is_shown() => return typed.accept(popup, editor),
        // The proposals complete the letters before the cursor, which these keys move.
        Key::Left | Key::Right | Key::Home | Key::End if popup.is_shown() => {
            typed.shared.act(Act::EndCompletion);
            return false;
        }
        _ => return false,
    }
    true
}

/// Returns the styles in the order of [`toml_text::styles`].
fn entries(theme: &Theme) -> Vec<StyleTableEntryExt> {
    let mut entries = Vec::new();
    for mark in 0..MARKS {
        for kind in KINDS {
            let (rgb, font) = look(theme, kind);
            let attr = match mark {
                0 => TextAttr::None,
                1 => TextAttr::Spelling,
                _ => TextAttr::Grammar,
            };
            entries.push(StyleTableEntryExt {
                color: colour(rgb),
                font,
                size: paint::BODY,
                attr,
                bgcolor: Color::Background2,
            });
        }
    }
    entries
}

fn look(theme: &Theme, kind: Option<TokenKind>) -> (Rgb, Font) {
    match kind {
        Some(TokenKind::Header) => (theme.accent, Font::CourierBold),
        Some(TokenKind::Key) | None => (theme.text, paint::MONO),
        Some(TokenKind::Text) => (theme.good, paint::MONO),
        Some(TokenKind::Number | TokenKind::Boolean) => (theme.second, paint::MONO),
        Some(TokenKind::Comment) => (theme.dim, Font::CourierItalic),
        Some(TokenKind::Mark) => (theme.dim, paint::MONO),
        Some(TokenKind::Other) => (theme.bad, paint::MONO),
    }
}

fn draw_around(shared: &SharedHandle, group: &Group, hint: &str) {
    let theme = shared.theme();
    let area = Area::new(group.x(), group.y(), group.w(), group.h());
    paint::fill(area, theme.back);
    let Some(editor) = group.child(0) else {
        return;
    };
    let around = Area::new(editor.x() - 3, editor.y() - 3, editor.w() + 6, editor.h() + 6);
    paint::round(around, theme.card);
    let (edge, width) = match editor.has_focus() {
        true => (theme.accent, 2),
        false => (theme.edge, 1),
    };
    paint::edge(around, edge, width);
    let words = Area::new(around.x, around.y + around.h, around.w, HINT);
    let left = Align::Left | Align::Inside;
    paint::text(hint, words, paint::REGULAR, paint::SMALL, theme.dim, left);
}
