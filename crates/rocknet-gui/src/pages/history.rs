//! Changes of the configuration by the control API.

use rocknet_control::config::Change;
use rocknet_control::text;

use super::states;
use crate::act::Act;
use crate::model::{Fetched, Model};
use crate::screen::{Body, Button, Cell, Column, Message, Screen, Table, TableRow};

/// Returns the page.
pub fn screen(model: &Model) -> Screen {
    let words = model.words();
    let selected = model.selected.get(&(model.page as u8));
    let has_changes = matches!(&model.history, Fetched::Loaded(changes) if !changes.is_empty());
    let can_undo = has_changes && model.link.is_online();
    Screen {
        actions: vec![Button::new(words.undo_last, Act::UndoNewest).only_if(can_undo)],
        body: states::of_list(words, &model.history, |changes| match &changes[..] {
            [] => Body::Message(Message {
                title: words.no_changes_title.to_owned(),
                text: words.no_changes_text.to_owned(),
                ..Message::default()
            }),
            changes => Body::Table(Table {
                columns: vec![
                    Column::new(words.change, 8),
                    Column::new(words.lines_changed, 2),
                    Column::new(words.time, 6),
                ],
                selected: selected.and_then(|key| changes.iter().position(|change| change.id.to_string() == *key)),
                rows: changes.iter().map(row).collect(),
                empty: String::new(),
            }),
        }),
        ..Screen::default()
    }
}

fn row(change: &Change) -> TableRow {
    let lines = |sign: char| {
        let header = String::from(sign).repeat(3);
        let changed = change
            .diff
            .lines()
            .filter(|line| line.starts_with(sign) && !line.starts_with(&header));
        changed.count()
    };
    TableRow {
        key: change.id.to_string(),
        cells: vec![
            Cell::new(text::sanitized(&change.what, 120)).detail(change.file.to_string_lossy()),
            Cell::new(format!("+{} −{}", lines('+'), lines('-'))),
            Cell::new(text::http_date(change.unix_time)),
        ],
    }
}
