//! The chooser of folders, in place of the form that needs one.

use crate::act::Act;
use crate::job::FolderTrouble;
use crate::model::{FolderChooser, Model, PARENT, folder_trouble_text};
use crate::screen::{Body, Button, Cell, Chooser, Column, Mark, Screen, Style, Table, TableRow};
use crate::words::{Words, fill};

/// Returns the page.
pub fn screen(model: &Model, chooser: &FolderChooser) -> Screen {
    let words = model.words();
    let create = if chooser.is_new() {
        words.create_folder
    } else {
        words.new_folder
    };
    Screen {
        title: words.chooser_title.to_owned(),
        subtitle: words.chooser_hint.to_owned(),
        actions: vec![
            Button::new(words.use_folder, Act::UseFolder)
                .style(Style::Primary)
                .only_if(chooser.chosen().is_some()),
            Button::new(create, Act::NewFolder).only_if(chooser.is_new() || chooser.chosen().is_some()),
            Button::new(words.cancel, Act::Cancel),
        ],
        body: Body::Chooser(Box::new(Chooser {
            label: words.folder.to_owned(),
            path: chooser.path.clone(),
            version: chooser.version,
            focus: chooser.focus,
            hidden_label: words.hidden_folders.to_owned(),
            shows_hidden: chooser.shows_hidden,
            note: note(words, chooser),
            folders: folders(words, chooser),
        })),
        ..Screen::default()
    }
}

fn folders(words: &Words, chooser: &FolderChooser) -> Table {
    let row = |key: &str, text: &str| TableRow {
        key: key.to_owned(),
        cells: vec![Cell::new(text)],
    };
    let mut rows = Vec::new();
    if chooser.listed.is_some() && chooser.path.len() > 1 && chooser.beginning().is_empty() {
        rows.push(row(PARENT, words.parent_folder));
    }
    rows.extend(chooser.shown().0.into_iter().map(|name| row(name, name)));
    Table {
        columns: vec![Column::new(words.folders, 1)],
        selected: rows.iter().position(|row| Some(&row.key) == chooser.selected.as_ref()),
        rows,
        empty: String::new(),
    }
}

/// Returns the line below the path: an error, the state of the list, or the folder that is chosen.
fn note(words: &Words, chooser: &FolderChooser) -> (Mark, String) {
    let trouble = |trouble: &FolderTrouble| {
        let mark = match trouble {
            FolderTrouble::Waiting => Mark::Busy,
            _ => Mark::Bad,
        };
        (mark, folder_trouble_text(words, trouble))
    };
    if let Some(failure) = &chooser.failure {
        return trouble(failure);
    }
    let (shown, left_out) = chooser.shown();
    match (&chooser.listed, chooser.chosen()) {
        _ if !chooser.path.is_empty() && !chooser.path.starts_with('/') => (Mark::Bad, words.not_a_path.to_owned()),
        (None, _) => (Mark::Busy, words.loading.to_owned()),
        (Some(Err(failure)), _) => trouble(failure),
        (Some(Ok(_)), _) if left_out > 0 => (Mark::Fair, fill(words.folders_left_out, &[&left_out.to_string()])),
        (Some(Ok(_)), Some(folder)) if shown.is_empty() => (Mark::Good, fill(words.no_folders, &[&folder])),
        (Some(Ok(_)), Some(folder)) => (Mark::Good, fill(words.folder_chosen, &[&folder])),
        (Some(Ok(_)), None) if shown.is_empty() => (Mark::Off, fill(words.no_such_folder, &[chooser.beginning()])),
        (Some(Ok(_)), None) => (Mark::Off, fill(words.folders_begin, &[chooser.beginning()])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::act::FieldId;
    use crate::job::{Listing, Poll, Report};
    use crate::model::Settings;

    fn shown(model: &Model) -> (Chooser, Vec<bool>) {
        let screen = crate::pages::screen(model);
        let Body::Chooser(chooser) = screen.body else {
            panic!("{:?}", screen.body)
        };
        (*chooser, screen.actions.iter().map(|button| button.enabled).collect())
    }

    #[test]
    fn every_state_says_what_it_is() {
        let mut model = Model::new(Settings::default());
        model.report(Report::Connected("/run/control.sock".into()));
        model.report(Report::Polled(Box::<Poll>::default()));
        model.act(Act::AddSite);
        model.act(Act::SetField(FieldId::Folder, "/srv".to_owned()));
        model.act(Act::ChooseFolder);
        assert_eq!(
            (shown(&model).0.note.0, shown(&model).1),
            (Mark::Busy, vec![false, false, true])
        );
        let mut list = |result| drop(model.report(Report::Listed("/srv".into(), result)));
        list(Ok(Listing {
            path: "/srv".into(),
            folders: vec!["web".to_owned()],
            left_out: 0,
        }));
        let (chooser, enabled) = shown(&model);
        let keys: Vec<&str> = chooser.folders.rows.iter().map(|row| &*row.key).collect();
        assert_eq!(
            (chooser.note.0, enabled, keys),
            (Mark::Good, vec![true; 3], vec![PARENT, "web"])
        );
        let mut type_path = |path: &str| drop(model.act(Act::SetField(FieldId::ChooserPath, path.to_owned())));
        type_path("/srv/x");
        let (chooser, enabled) = shown(&model);
        assert_eq!((chooser.note.0, enabled), (Mark::Off, vec![false, true, true]));
        assert!(
            chooser.folders.rows.is_empty() && chooser.note.1.contains("\"x\""),
            "{}",
            chooser.note.1
        );
        model.act(Act::SetField(FieldId::ChooserPath, "/root/".to_owned()));
        model.report(Report::Listed("/root/".into(), Err(FolderTrouble::Denied)));
        let (chooser, enabled) = shown(&model);
        assert_eq!((chooser.note.0, enabled), (Mark::Bad, vec![false, false, true]));
        assert_eq!(chooser.note.1, model.words().folder_denied);
        // The folder above can be opened while this one does not reply.
        model.report(Report::Listed("/root/".into(), Err(FolderTrouble::Waiting)));
        let (chooser, enabled) = shown(&model);
        assert_eq!((chooser.note.0, enabled), (Mark::Busy, vec![false, false, true]));
        assert_eq!(chooser.note.1, model.words().folder_waits);
        assert_eq!(chooser.folders.rows.len(), 1);
    }
}
