//! The form that edits a website or the server: the common keys in groups, as the server describes them.

use rocknet_control::site_form::content::ContentKind;
use rocknet_control::site_form::{FieldInput as KeyInput, SiteField};

use super::fields::field;
use super::states;
use crate::act::{Act, FieldId};
use crate::model::{Fetched, Model, SiteEdit};
use crate::screen::{Banner, Body, Button, Check, Field, FieldInput, Form, Mark, Screen, Style};
use crate::words::{Words, fill, first_sentence};

/// Returns the page.
pub fn screen(model: &Model) -> Screen {
    let words = model.words();
    let Fetched::Loaded(edit) = &model.site_edit else {
        return Screen {
            actions: vec![Button::new(words.cancel, Act::Cancel)],
            body: states::of_list(words, &model.site_edit, |_| Body::default()),
            ..Screen::default()
        };
    };
    let can_save = edit.has_changes() && !edit.is_saving && !edit.is_gone && model.link.is_online();
    let place = format!("{}:{}", edit.form.file.display(), edit.form.line);
    Screen {
        title: match edit.is_of_server() {
            true => words.edit_server.to_owned(),
            false => fill(words.edit_title, &[&edit.form.name]),
        },
        subtitle: match (edit.is_saving, edit.is_of_server()) {
            (true, _) => words.saving.to_owned(),
            (false, true) => fill(words.edit_server_subtitle, &[&edit.form.file.to_string_lossy()]),
            (false, false) => fill(words.edit_subtitle, &[&place]),
        },
        actions: vec![
            Button::new(words.save, Act::Submit)
                .style(Style::Primary)
                .only_if(can_save),
            Button::new(words.cancel, Act::Cancel).only_if(!edit.is_saving),
            Button::new(words.edit_as_text, Act::EditText).only_if(model.link.is_online()),
        ],
        body: Body::Form(Form {
            fields: fields(model, edit),
            is_locked: edit.is_saving,
            checks: checks(words, edit),
            actions: Vec::new(),
        }),
        banner: edit.trouble.as_ref().map(|trouble| Banner {
            mark: Mark::Bad,
            text: match edit.is_gone {
                true => fill(words.site_gone, &[&edit.form.name]),
                false => trouble.clone(),
            },
            action: Some(Button::new(words.close, Act::Cancel)).filter(|_| edit.is_gone),
        }),
        ..Screen::default()
    }
}

fn fields(model: &Model, edit: &SiteEdit) -> Vec<Field> {
    let words = model.words();
    let own = |id, label: &str, help: &str, input, text: &str| Field {
        problem: problem(words, edit, id),
        ..field(id, label, help, input, text)
    };
    let kinds = edit
        .kinds()
        .map(|(kind, word)| (word.to_owned(), kind_label(words, kind).to_owned()));
    let mut fields = match edit.is_of_server() {
        true => Vec::new(),
        false => vec![
            own(
                FieldId::SiteName,
                words.name,
                words.name_help,
                FieldInput::Text,
                &edit.name,
            ),
            own(
                FieldId::SiteKind,
                words.kind,
                "",
                FieldInput::Choice(kinds.collect()),
                edit.kind_word(),
            ),
        ],
    };
    let mut group = "";
    for (number, (id, field, text)) in edit.shown().enumerate() {
        if field.group != group {
            group = &field.group;
            let id = FieldId::Heading(u8::try_from(number).unwrap_or(u8::MAX));
            fields.push(own(id, group, "", FieldInput::Heading, ""));
        }
        fields.push(match &field.other {
            Some(other) => Field {
                fix: Some(Button::new(words.edit_as_text, Act::EditText)),
                ..own(id, &field.label, words.edited_as_text, FieldInput::Fixed, other)
            },
            None => {
                let input = match input(words, field) {
                    // The chooser shows folders of this computer.
                    FieldInput::Folder if model.is_elsewhere() => FieldInput::Text,
                    input => input,
                };
                own(id, &field.label, &help(words, field, text), input, text)
            }
        });
    }
    fields
}

fn kind_label(words: &Words, kind: ContentKind) -> &'static str {
    match kind {
        ContentKind::Files => words.kind_files,
        ContentKind::Php => words.kind_php,
        ContentKind::Proxy => words.kind_proxy,
        ContentKind::Redirects => words.kind_redirect,
        ContentKind::Other => words.kind_other,
    }
}

/// Returns the input of a field.
fn input(words: &Words, field: &SiteField) -> FieldInput {
    match field.input {
        KeyInput::Switch => FieldInput::Switch,
        KeyInput::List | KeyInput::Map => FieldInput::Lines,
        KeyInput::Text if field.name == "root" => FieldInput::Folder,
        KeyInput::Text => FieldInput::Text,
        KeyInput::Choice => {
            let usual = match field.default.is_empty() {
                true => words.as_usual.to_owned(),
                false => format!("{} ({})", words.as_usual, field.default),
            };
            let own = field.words.iter().map(|word| {
                let label = match word.help.is_empty() {
                    true => word.text.clone(),
                    false => format!("{}: {}", word.text, word.help),
                };
                (word.text.clone(), label)
            });
            FieldInput::Choice([(String::new(), usual)].into_iter().chain(own).collect())
        }
    }
}

/// Returns the help of a field: the summary of the documentation, the form of the lines, the words that stand for other
/// values, and the default or an example while the field is empty.
fn help(words: &Words, field: &SiteField, text: &str) -> String {
    let mut help = first_sentence(&field.help).replace('`', "");
    let mut add = |more: &str| {
        help.push(' ');
        help.push_str(more);
    };
    match field.input {
        KeyInput::List => add(words.one_on_each_line),
        KeyInput::Map => add(words.pairs_on_each_line),
        _ => {}
    }
    if field.input != KeyInput::Choice && !field.words.is_empty() {
        let proposed: Vec<&str> = field.words.iter().map(|word| word.text.as_str()).collect();
        add(&fill(words.or_words, &[&proposed.join(", ")]));
    }
    let one_line = |text: &str| text.lines().collect::<Vec<_>>().join(", ");
    match field.input {
        KeyInput::Switch | KeyInput::Choice => {}
        _ if !text.trim().is_empty() => {}
        _ if !field.default.is_empty() => add(&fill(words.default_is, &[&one_line(&field.default)])),
        _ if !field.example.is_empty() => add(&fill(words.for_example, &[&one_line(&field.example)])),
        _ => {}
    }
    help
}

fn problem(words: &Words, edit: &SiteEdit, id: FieldId) -> String {
    if edit.lacks(id) {
        return words.fill_in.to_owned();
    }
    edit.problems(id).join("\n").replace('`', "")
}

/// Returns the problems that are beside no field.
fn checks(words: &Words, edit: &SiteEdit) -> Vec<Check> {
    let problems = edit.others.iter().map(|(is_error, text)| Check {
        mark: if *is_error { Mark::Bad } else { Mark::Fair },
        text: text.clone(),
        fix: None,
    });
    let mut checks: Vec<Check> = problems.collect();
    if edit.checking.is_some() {
        checks.push(Check {
            mark: Mark::Busy,
            text: words.check_config_busy.to_owned(),
            fix: None,
        });
    }
    checks
}
