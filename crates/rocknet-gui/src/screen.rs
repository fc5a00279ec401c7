//! Contents of the window as plain values: titles, buttons, tables, charts and forms, without any toolkit.
//!
//! Each page of [`pages`](crate::pages) makes a [`Screen`] of the model. The window draws it, and returns the
//! [`Act`] that the user has chosen.

mod chart;

use rocknet_control::api::Level;

use crate::act::{Act, FieldId};
use crate::model::TextPlace;
use crate::toml_text::Completion;

pub use chart::{Chart, Series};

/// Contents of the window beside the navigation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Screen {
    /// Heading.
    pub title: String,
    /// Line below the heading; may be empty.
    pub subtitle: String,
    /// Buttons beside the heading.
    pub actions: Vec<Button>,
    /// Text of the filter, with the words shown while it is empty; `None` if the page has no filter.
    pub filter: Option<FilterBox>,
    /// Choices beside the buttons.
    pub choices: Vec<Choice>,
    /// Notice above the contents, such as the loss of the server while old figures are shown.
    pub banner: Option<Banner>,
    /// Contents.
    pub body: Body,
}

/// Contents below the heading.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// A message in the middle: empty, loading, error, offline and no-permission states.
    Message(Message),
    /// Rows to choose from.
    Table(Table),
    /// Charts over time.
    Charts(Vec<Chart>),
    /// Lines of a log.
    Lines(Lines),
    /// Lines of a diff, coloured by their marks.
    Diff(Lines),
    /// Fields to fill in.
    Form(Form),
    /// Text to edit.
    Editor(Box<Editor>),
    /// Folder to choose.
    Chooser(Box<Chooser>),
}

impl Default for Body {
    fn default() -> Body {
        Body::Message(Message::default())
    }
}

/// Importance of a button.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Style {
    /// The usual next step of a page.
    Primary,
    #[default]
    Plain,
    /// Removes or stops something.
    Danger,
    /// An alternative that is chosen at present.
    Chosen,
}

/// Button that the user can press.
#[derive(Debug, Clone, PartialEq)]
pub struct Button {
    pub label: String,
    pub act: Act,
    pub style: Style,
    /// False if the button cannot be pressed now, such as without a selected row.
    pub enabled: bool,
}

impl Button {
    /// Creates a plain button that can be pressed.
    pub fn new(label: impl Into<String>, act: Act) -> Button {
        Button {
            label: label.into(),
            act,
            style: Style::Plain,
            enabled: true,
        }
    }

    /// Gives the button another style.
    pub fn style(self, style: Style) -> Button {
        Button { style, ..self }
    }

    /// Lets the button be pressed only if `enabled` is true.
    pub fn only_if(self, enabled: bool) -> Button {
        Button { enabled, ..self }
    }
}

/// Filter of the rows or lines of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterBox {
    pub hint: String,
    pub text: String,
}

/// Choice of what a page shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Value that is chosen.
    pub value: String,
    /// Values and their labels.
    pub options: Vec<(String, String)>,
    pub purpose: ChoicePurpose,
}

/// Purpose of a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChoicePurpose {
    /// Website whose lines are shown, by its name.
    Site,
    /// Level of the error log, by its name.
    Level,
}

impl ChoicePurpose {
    /// Returns the act of choosing a value.
    pub fn act(self, value: String) -> Act {
        match (self, Level::from_name(&value)) {
            (ChoicePurpose::Level, Some(level)) => Act::SetLevel(level),
            _ => Act::Choose(value),
        }
    }
}

/// State of a thing. It is shown by a colour, a shape and a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mark {
    Good,
    Fair,
    Bad,
    /// Switched off, or not known.
    #[default]
    Off,
    /// In progress.
    Busy,
}

/// Notice above the contents.
#[derive(Debug, Clone, PartialEq)]
pub struct Banner {
    pub mark: Mark,
    pub text: String,
    pub action: Option<Button>,
}

/// Message in place of contents.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Message {
    pub mark: Mark,
    pub title: String,
    pub text: String,
    /// Last lines of the output of a program that has failed.
    pub lines: Vec<String>,
    pub actions: Vec<Button>,
}

/// Rows to choose from.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    pub columns: Vec<Column>,
    pub rows: Vec<TableRow>,
    /// Index of the selected row.
    pub selected: Option<usize>,
    /// Text in place of rows.
    pub empty: String,
}

/// Column of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    pub label: String,
    /// Share of the width that the columns divide among them.
    pub share: u32,
    /// Width of the table in pixels below which the column is left out; 0 for a column that is always shown.
    pub from: i32,
    /// True if texts and second lines that are too long take more lines, up to a few.
    pub wraps: bool,
    /// True for numbers, which are aligned to the right.
    pub is_number: bool,
    /// Act of pressing the heading; `None` if the rows cannot be sorted by the column.
    pub sort: Option<Act>,
    /// Present order by this column: true for ascending.
    pub order: Option<bool>,
}

impl Column {
    /// Creates a column of texts that cannot be sorted.
    pub fn new(label: impl Into<String>, share: u32) -> Column {
        Column {
            label: label.into(),
            share,
            from: 0,
            wraps: false,
            is_number: false,
            sort: None,
            order: None,
        }
    }

    /// Leaves the column out of tables that are narrower than `from` pixels.
    pub fn from(self, from: i32) -> Column {
        Column { from, ..self }
    }

    /// Lets long texts take several lines.
    pub fn wrapped(self) -> Column {
        Column { wraps: true, ..self }
    }

    /// Aligns the column to the right.
    pub fn number(self) -> Column {
        Column {
            is_number: true,
            ..self
        }
    }
}

/// Row of a table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TableRow {
    /// Identifies the row when the rows change.
    pub key: String,
    pub cells: Vec<Cell>,
}

/// Cell of a table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cell {
    pub text: String,
    /// Second line in a smaller size; may be empty.
    pub detail: String,
    pub mark: Option<Mark>,
}

impl Cell {
    /// Creates a cell with one line.
    pub fn new(text: impl Into<String>) -> Cell {
        Cell {
            text: text.into(),
            ..Cell::default()
        }
    }

    /// Adds a second line.
    pub fn detail(self, detail: impl Into<String>) -> Cell {
        Cell {
            detail: detail.into(),
            ..self
        }
    }

    /// Adds a mark before the text.
    pub fn mark(self, mark: Mark) -> Cell {
        Cell {
            mark: Some(mark),
            ..self
        }
    }
}

/// Lines of a log.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Lines {
    pub lines: Vec<LogLine>,
    /// True if the newest line stays in view.
    pub follows: bool,
    /// Text in place of lines.
    pub empty: String,
}

/// Line of a log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogLine {
    /// Number of the line in its log, by which the view stays at a line; 0 if the lines do not change.
    pub number: u64,
    pub mark: Mark,
    pub text: String,
}

/// Fields to fill in.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Form {
    pub fields: Vec<Field>,
    /// True while the fields take no input, because they are being saved.
    pub is_locked: bool,
    pub checks: Vec<Check>,
    pub actions: Vec<Button>,
}

/// Field of a form.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    pub id: FieldId,
    pub label: String,
    pub help: String,
    pub input: FieldInput,
    pub text: String,
    /// Error that the field causes; may be empty.
    pub problem: String,
    /// Repair of the problem.
    pub fix: Option<Button>,
}

/// Input of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldInput {
    Text,
    /// Text with a button that opens the chooser of folders.
    Folder,
    /// One of these options. Each is a value and its label.
    Choice(Vec<(String, String)>),
    /// Text that is shown as dots.
    Secret,
    /// `true` or `false`. The label is beside it.
    Switch,
    /// Text of several lines.
    Lines,
    /// Text that cannot be changed here.
    Fixed,
    /// No input: the heading of the fields below it.
    Heading,
}

/// Folder to choose: a path, and a list of folders.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Chooser {
    pub label: String,
    pub path: String,
    /// Number of times that the path was replaced. The window replaces its text only when the number has changed.
    pub version: u64,
    /// Number of times that the path was given the focus.
    pub focus: u64,
    pub hidden_label: String,
    /// True if hidden folders are shown.
    pub shows_hidden: bool,
    /// State of the path and the list.
    pub note: (Mark, String),
    pub folders: Table,
}

/// Text to edit, with its findings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Editor {
    /// Path of the file.
    pub file: String,
    /// Files to choose from, each with its path and its label. A single file needs no choice.
    pub files: Vec<(String, String)>,
    pub text: String,
    /// Number of times that the text was replaced. The window replaces its text only when the number has changed.
    pub version: u64,
    /// Place to show.
    pub place: TextPlace,
    /// Byte of the cursor, if it is known. A window that was hidden by a question continues there.
    pub cursor: Option<usize>,
    /// Lines that are marked.
    pub marks: Vec<EditorMark>,
    /// Findings, below the text.
    pub findings: Table,
    /// Proposals at the cursor.
    pub completion: Option<Completion>,
    /// Words about the keys of the editor.
    pub hint: String,
}

/// Mark of a line in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EditorMark {
    /// Line, counted from 1.
    pub line: usize,
    /// True for an error, false for a warning.
    pub is_error: bool,
}

/// Check with its result, and a repair if it has failed.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    pub mark: Mark,
    pub text: String,
    pub fix: Option<Button>,
}
