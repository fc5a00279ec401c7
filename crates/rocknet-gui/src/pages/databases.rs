//! Databases of this computer. The page needs no server.

use super::states;
use crate::act::{Act, ServiceSwitch};
use crate::job::{Database, DatabaseState};
use crate::model::{Fetched, Model};
use crate::screen::{Body, Button, Cell, Column, Mark, Message, Screen, Table, TableRow};

/// Returns the page.
pub fn screen(model: &Model) -> Screen {
    let words = model.words();
    let chosen = model.selected_database();
    let state = chosen.map(|database| model.services.state(database));
    let has_systemd = matches!(&model.services.databases, Fetched::Loaded(report) if report.has_systemd);
    let has_unit = chosen.is_some_and(|database| !database.unit.is_empty());
    let can_switch = has_systemd && has_unit && state != Some(DatabaseState::Changing);
    let (label, switch) = match state {
        Some(DatabaseState::Running | DatabaseState::Changing) => (words.database_stop, ServiceSwitch::StopDatabase),
        _ => (words.database_start, ServiceSwitch::StartDatabase),
    };
    Screen {
        subtitle: match has_systemd {
            true => words.databases_help,
            false => words.databases_help_without_systemd,
        }
        .to_owned(),
        actions: vec![
            Button::new(label, Act::SwitchService(switch)).only_if(can_switch),
            Button::new(words.copy_connection, Act::CopyService)
                .only_if(chosen.is_some_and(|database| database.connection().is_some())),
            Button::new(words.check_again, Act::Refresh),
        ],
        body: states::of_list(words, &model.services.databases, |report| match &report.databases[..] {
            [] => Body::Message(Message {
                title: words.no_databases_title.to_owned(),
                text: words.no_databases_text.to_owned(),
                ..Message::default()
            }),
            databases => Body::Table(Table {
                columns: vec![
                    Column::new(words.database, 7),
                    Column::new(words.state, 5),
                    Column::new(words.connection, 12),
                ],
                selected: chosen.and_then(|chosen| databases.iter().position(|database| database == chosen)),
                rows: databases.iter().map(|database| row(model, database)).collect(),
                empty: String::new(),
            }),
        }),
        ..Screen::default()
    }
}

fn row(model: &Model, database: &Database) -> TableRow {
    let words = model.words();
    let (mark, state) = match model.services.state(database) {
        DatabaseState::Running => (Mark::Good, words.running),
        DatabaseState::Changing => (Mark::Busy, words.changing),
        DatabaseState::Stopped => (Mark::Off, words.stopped),
        DatabaseState::Failed => (Mark::Bad, words.failed_unit),
    };
    let started_by = match database.unit.is_empty() {
        true => words.no_unit,
        false => &database.unit,
    };
    let socket = database.socket.as_ref();
    TableRow {
        key: database.key(),
        cells: vec![
            Cell::new(database.kind.name()).detail(started_by),
            Cell::new(state).mark(mark),
            Cell::new(database.connection().unwrap_or_else(|| "–".to_owned()))
                .detail(socket.map_or(String::new(), |socket| socket.to_string_lossy().into_owned())),
        ],
    }
}
