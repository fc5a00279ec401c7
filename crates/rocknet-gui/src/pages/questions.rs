//! Questions in place of a page: about unsaved input, and about edits by other programs.

use crate::act::{Act, PageName};
use crate::difference::{DiffLine, Difference};
use crate::model::{Fetched, Model, Question};
use crate::screen::{Banner, Body, Button, Lines, LogLine, Mark, Message, Screen, Style};
use crate::words::{Words, fill};

/// Returns the page.
pub fn screen(model: &Model, question: &Question) -> Screen {
    match question {
        Question::Leave => leave(model.words()),
        Question::Conflict => conflict(model),
    }
}

fn leave(words: &Words) -> Screen {
    Screen {
        body: Body::Message(Message {
            mark: Mark::Fair,
            title: words.unsaved_title.to_owned(),
            text: words.unsaved_text.to_owned(),
            actions: vec![
                Button::new(words.keep_editing, Act::Stay).style(Style::Primary),
                Button::new(words.discard, Act::Discard).style(Style::Danger),
            ],
            ..Message::default()
        }),
        ..Screen::default()
    }
}

/// Returns the question about an edit by another program. It appears while the user types, so its buttons are beside
/// the heading, and the focus goes to its lines, on which typed letters have no effect.
fn conflict(model: &Model) -> Screen {
    let words = model.words();
    let text = match model.page {
        PageName::EditText => words.conflict_text_file,
        _ => words.conflict_text_form,
    };
    Screen {
        title: words.conflict_title.to_owned(),
        subtitle: words.conflict_legend.to_owned(),
        actions: vec![
            Button::new(words.keep_input, Act::KeepInput).style(Style::Primary),
            Button::new(words.take_other, Act::TakeOther).style(Style::Danger),
        ],
        banner: Some(Banner {
            mark: Mark::Fair,
            text: text.to_owned(),
            action: None,
        }),
        body: Body::Diff(Lines {
            lines: differences(model),
            empty: words.conflict_line_ends.to_owned(),
            ..Lines::default()
        }),
        ..Screen::default()
    }
}

/// Returns the differences between the file, whose lines are removed, and the input, whose lines are added.
fn differences(model: &Model) -> Vec<LogLine> {
    let mut lines = Vec::new();
    match (model.page, &model.text_edit, &model.site_edit) {
        (PageName::EditText, Fetched::Loaded(edit), _) => add(model.words(), &mut lines, None, &edit.difference),
        (PageName::EditWebsite, _, Fetched::Loaded(edit)) => {
            for (label, theirs, mine) in edit.contradictions() {
                add(model.words(), &mut lines, Some(label), &Difference::of(theirs, mine));
            }
        }
        _ => {}
    }
    lines
}

/// Adds the lines of a difference. `label`: heading in place of the numbers of lines.
fn add(words: &Words, lines: &mut Vec<LogLine>, label: Option<&str>, difference: &Difference) {
    let line = |mark, text: String| LogLine {
        number: 0,
        mark,
        text: text.replace('\t', "    "),
    };
    lines.extend(label.map(|label| line(Mark::Busy, label.to_owned())));
    lines.extend(difference.lines.iter().filter_map(|part| match part {
        DiffLine::Place(_) if label.is_some() => None,
        DiffLine::Place(number) => Some(line(Mark::Busy, fill(words.line_number, &[&number.to_string()]))),
        DiffLine::Same(text) => Some(line(Mark::Off, format!("  {text}"))),
        DiffLine::Removed(text) => Some(line(Mark::Bad, format!("− {text}"))),
        DiffLine::Added(text) => Some(line(Mark::Good, format!("+ {text}"))),
    }));
    if difference.left_out > 0 {
        let text = fill(words.lines_left_out, &[&difference.left_out.to_string()]);
        lines.push(line(Mark::Busy, text));
    }
}
