//! The configuration as text: the editor, and the list of findings.

use rocknet_control::config::Finding;

use super::states;
use crate::act::Act;
use crate::model::{Fetched, Model, TextEdit};
use crate::screen::{Banner, Body, Button, Cell, Column, Editor, EditorMark, Mark, Screen, Style, Table, TableRow};
use crate::words::{Words, fill};

/// Returns the page.
pub fn screen(model: &Model) -> Screen {
    let words = model.words();
    let Fetched::Loaded(edit) = &model.text_edit else {
        return Screen {
            actions: vec![Button::new(words.cancel, Act::Cancel)],
            body: states::of_list(words, &model.text_edit, |_| Body::default()),
            ..Screen::default()
        };
    };
    let can_save = edit.has_changes() && !edit.is_saving() && model.link.is_online();
    let errors = edit.findings.iter().filter(|finding| finding.is_error).count();
    Screen {
        subtitle: match (edit.is_saving(), edit.has_changes()) {
            (true, _) => words.saving.to_owned(),
            _ if errors > 0 => fill(words.errors_counted, &[&errors.to_string()]),
            (_, true) => words.text_unsaved.to_owned(),
            (_, false) if !edit.read.is_loaded => words.text_not_loaded.to_owned(),
            _ => edit.read.file.to_string_lossy().into_owned(),
        },
        actions: vec![
            Button::new(words.save, Act::Submit)
                .style(Style::Primary)
                .only_if(can_save),
            Button::new(words.cancel, Act::Cancel),
            // The file of a server elsewhere is not on this computer.
            Button::new(words.open_config, Act::OpenConfig).only_if(!model.is_elsewhere()),
        ],
        banner: edit.trouble.as_ref().map(|trouble| Banner {
            mark: Mark::Bad,
            text: trouble.clone(),
            action: None,
        }),
        body: Body::Editor(Box::new(editor(words, edit))),
        ..Screen::default()
    }
}

fn editor(words: &Words, edit: &TextEdit) -> Editor {
    let path = |file: &std::path::Path| file.to_string_lossy().into_owned();
    let files = edit.read.files.iter().map(|file| (path(file), edit.label(file)));
    Editor {
        file: path(&edit.read.file),
        files: files.collect(),
        text: edit.text.clone(),
        version: edit.version,
        place: edit.place,
        cursor: edit.cursor,
        marks: edit
            .marks()
            .map(|finding| EditorMark {
                line: finding.line,
                is_error: finding.is_error,
            })
            .collect(),
        findings: findings(words, edit),
        completion: edit.completion.clone(),
        hint: words.editor_hint.to_owned(),
    }
}

fn findings(words: &Words, edit: &TextEdit) -> Table {
    let mut rows: Vec<TableRow> = edit
        .findings
        .iter()
        .enumerate()
        .map(|(at, finding)| row(edit, at, finding))
        .collect();
    // The reason of a refusal has no line.
    if let Some(failure) = edit.failure.as_ref().filter(|_| rows.is_empty()) {
        rows.push(TableRow {
            key: "failure".to_owned(),
            cells: vec![Cell::default(), Cell::new(failure.clone()).mark(Mark::Bad)],
        });
    }
    Table {
        columns: vec![Column::new(words.line, 2), Column::new(words.problem, 9)],
        selected: edit.selected.filter(|at| *at < rows.len()),
        rows,
        empty: words.no_problems.to_owned(),
    }
}

fn row(edit: &TextEdit, at: usize, finding: &Finding) -> TableRow {
    let other = finding.file.as_deref().filter(|file| *file != edit.read.file);
    let place = match (finding.line, other) {
        (0, _) => String::new(),
        (line, Some(file)) => format!("{}:{line}", edit.label(file)),
        (line, None) => line.to_string(),
    };
    TableRow {
        key: at.to_string(),
        cells: vec![
            Cell::new(place),
            Cell::new(&*finding.message)
                .detail(finding.help.clone().unwrap_or_default())
                .mark(if finding.is_error { Mark::Bad } else { Mark::Fair }),
        ],
    }
}
