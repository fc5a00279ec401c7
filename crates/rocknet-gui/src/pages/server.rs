//! Properties of the server, and the instructions to it.

use rocknet_control::status::ResponseCache;
use rocknet_control::text;
use rocknet_control::{Mode, Status};

use super::number;
use crate::act::Act;
use crate::model::{Link, Model};
use crate::screen::{Body, Button, Cell, Column, Mark, Screen, Style, Table, TableRow};
use crate::ways::{NoRestart, UnitKind};
use crate::words::{Words, fill};

/// Returns the page.
pub fn screen(model: &Model) -> Screen {
    let words = model.words();
    let is_online = model.link.is_online();
    let button = |label, act| Button::new(label, act).only_if(is_online);
    let Some(status) = &model.status else {
        return Screen::default();
    };
    let rows = rows(words, status, model);
    let selected = model.selected.get(&(model.page as u8));
    Screen {
        subtitle: match model.is_upgrading {
            true => words.upgrading.to_owned(),
            false => fill(words.version_up, &[&status.version, &text::duration(status.uptime_s)]),
        },
        actions: vec![
            button(words.reload, Act::ReloadServer),
            button(words.change_server, Act::EditServer).only_if(is_online && status.config_file.is_some()),
            button(words.edit_as_text, Act::EditText).only_if(is_online && status.config_file.is_some()),
            button(words.upgrade, Act::UpgradeServer).only_if(is_online && !model.is_upgrading),
            button(words.restart_server, Act::RestartServer).only_if(model.can_restart()),
            button(words.stop_server, Act::StopServer).style(Style::Danger),
        ],
        body: Body::Table(Table {
            columns: vec![Column::new(words.property, 3), Column::new(words.value, 7)],
            selected: selected.and_then(|key| rows.iter().position(|row| row.key == *key)),
            rows,
            empty: String::new(),
        }),
        ..Screen::default()
    }
}

fn rows(words: &Words, status: &Status, model: &Model) -> Vec<TableRow> {
    let mut rows = Vec::new();
    let mut row = |label: &str, value: Cell| {
        rows.push(TableRow {
            key: label.to_owned(),
            cells: vec![Cell::new(label), value],
        });
    };
    let open = |open: u64, total: u64| {
        Cell::new(fill(
            words.in_all,
            &[&number::count(words, open), &number::count(words, total)],
        ))
    };
    let (state, mark) = match model.link.is_online() {
        true => (words.running, Mark::Good),
        false => (words.no_reply, Mark::Bad),
    };
    row(words.state, Cell::new(state).mark(mark));
    row(words.process, Cell::new(status.pid.to_string()));
    let starter = match model.ways.running_unit {
        Some(UnitKind::System) => words.by_system,
        Some(UnitKind::User) => words.by_user,
        None => words.by_program,
    };
    row(words.started_by, Cell::new(starter));
    if let Some(reason) = model.ways.no_restart() {
        let reason = match reason {
            NoRestart::NoPolkit => words.no_polkit,
            NoRestart::OtherConfig => words.other_config,
        };
        row(words.restart_server, Cell::new(reason).mark(Mark::Fair));
    }
    let mode = match status.mode {
        Mode::Dev => words.mode_dev,
        Mode::Prod => words.mode_prod,
    };
    row(words.mode, Cell::new(mode));
    row(words.listening, Cell::new(status.listeners.join(", ")));
    row(words.workers, Cell::new(status.workers.to_string()));
    if !status.backend.is_empty() {
        row(words.backend, Cell::new(&*status.backend));
    }
    row(words.memory, Cell::new(number::bytes(words, status.memory_bytes)));
    row(
        words.connections,
        open(status.connections_open, status.connections_total),
    );
    let protocols = [
        ("HTTP/1", status.protocols.http1),
        ("HTTP/2", status.protocols.http2),
        ("HTTP/3", status.protocols.http3),
    ];
    for (name, connections) in protocols.into_iter().filter(|(_, connections)| connections.total > 0) {
        row(name, open(connections.open, connections.total));
    }
    row(words.requests_in_all, Cell::new(number::count(words, status.requests)));
    row(words.sent, Cell::new(number::bytes(words, status.bytes_sent)));
    let (stored, served) = stored_responses(words, &status.response_cache);
    row(words.stored_responses, Cell::new(stored));
    row(words.served_stored, Cell::new(served));
    let limited = [status.limited.refused, status.limited.delayed].map(|requests| number::count(words, requests));
    let limited = fill(words.limited_value, &[&limited[0], &limited[1]]);
    row(words.limited, Cell::new(limited));
    row(words.banned_clients, Cell::new(number::count(words, status.bans)));
    let cache = &status.cache;
    let share = number::share(words, cache.hits, cache.hits.saturating_add(cache.misses));
    row(
        words.file_cache,
        Cell::new(fill(
            words.cache_value,
            &[
                &number::count(words, cache.entries),
                &number::bytes(words, cache.bytes),
                &share,
            ],
        )),
    );
    row(words.sandbox, Cell::new(&*status.sandbox));
    if let Some(file) = &status.config_file {
        row(words.config_file, Cell::new(file.to_string_lossy()));
    }
    if let Link::Online(socket) = &model.link {
        row(words.control_socket, Cell::new(socket.to_string_lossy()));
    }
    rows
}

/// Returns the sizes of the response cache, and the part of its requests that were not forwarded.
fn stored_responses(words: &Words, cache: &ResponseCache) -> (String, String) {
    let memory = number::bytes(words, cache.bytes);
    let stored = match cache.disk {
        Some(disk) => fill(words.stored_on_disk, &[&memory, &number::bytes(words, disk.bytes)]),
        None => fill(words.stored_in_memory, &[&memory]),
    };
    let requests = cache.requests();
    let served = match requests {
        0 => "–".to_owned(),
        _ => fill(
            words.share_of_requests,
            &[
                &number::share(words, cache.served(), requests),
                &number::count(words, requests),
            ],
        ),
    };
    (stored, served)
}
