//! Questions in place of a page: about unsaved input, and about edits by other programs.

use crate::act::{Act, PageName};
use crate::model::{Model, Question};
use crate::screen::{Body, Button, Mark, Message, Screen, Style};

/// Returns the page.
pub fn screen(model: &Model, question: &Question) -> Screen {
    let words = model.words();
    let is_text = model.page == PageName::EditText;
    let message = match question {
        Question::Leave => Message {
            mark: Mark::Fair,
            title: words.unsaved_title.to_owned(),
            text: words.unsaved_text.to_owned(),
            actions: vec![
                Button::new(words.keep_editing, Act::Stay).style(Style::Primary),
                Button::new(words.discard, Act::Discard).style(Style::Danger),
            ],
            ..Message::default()
        },
        Question::Conflict => Message {
            mark: Mark::Fair,
            title: words.conflict_title.to_owned(),
            text: match is_text {
                true => words.conflict_text_file,
                false => words.conflict_text_form,
            }
            .to_owned(),
            actions: vec![
                Button::new(words.keep_input, Act::KeepInput).style(Style::Primary),
                Button::new(words.take_other, Act::TakeOther).style(Style::Danger),
            ],
            ..Message::default()
        },
    };
    Screen {
        body: Body::Message(message),
        ..Screen::default()
    }
}
