//! The keys of the window and their effects.

use crate::act::Act;
use crate::model::Model;
use crate::screen::{Body, Button, Cell, Column, Screen, Table, TableRow};

/// Returns the page. `selected`: key of the selected row.
pub fn screen(model: &Model, selected: &str) -> Screen {
    let words = model.words();
    let texts = [
        words.key_add,
        words.key_edit,
        words.key_open,
        words.key_remove,
        words.key_log,
        words.key_filter,
        words.key_sort,
        words.key_refresh,
        words.key_save,
        words.key_undo,
        words.key_text,
        words.key_complete,
        words.key_findings,
        words.key_folder,
        words.key_settings,
        words.key_leave,
        words.key_parts,
        words.key_move,
        words.key_help,
        words.key_quit,
    ];
    let row = |(at, text): (usize, &str)| {
        let (key, effect) = text.split_once(": ").unwrap_or((text, ""));
        TableRow {
            key: at.to_string(),
            cells: vec![Cell::new(key), Cell::new(effect)],
        }
    };
    let rows: Vec<TableRow> = texts.into_iter().enumerate().map(row).collect();
    Screen {
        title: words.keys.to_owned(),
        subtitle: words.keys_help.to_owned(),
        actions: vec![Button::new(words.done, Act::Cancel)],
        body: Body::Table(Table {
            columns: vec![Column::new(words.key, 3), Column::new(words.key_effect, 7).wrapped()],
            selected: rows.iter().position(|row| row.key == selected),
            rows,
            empty: String::new(),
        }),
        ..Screen::default()
    }
}
