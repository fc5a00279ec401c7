//! PHP that the server runs: its pools, the websites that use them, and versions that are missing.

use rocknet_control::{PhpPoolSummary, PhpState, text};

use super::{number, states};
use crate::act::{Act, ServiceSwitch};
use crate::job::PhpReport;
use crate::model::{Fetched, Model};
use crate::screen::{Banner, Body, Button, Cell, Column, Mark, Message, Screen, Style, Table, TableRow};
use crate::words::{Words, fill};

/// Returns the page.
pub fn screen(model: &Model) -> Screen {
    let words = model.words();
    let is_online = model.link.is_online();
    let selected = model.selected.get(&(model.page as u8));
    let report = match &model.services.php {
        Fetched::Loaded(report) => Some(report),
        _ => None,
    };
    let state = model.selected_pool().map(|pool| pool.state);
    let (label, switch) = match state {
        Some(PhpState::Failed | PhpState::Stopped) => (words.start_php, ServiceSwitch::StartPhp),
        _ => (words.restart_php, ServiceSwitch::RestartPhp),
    };
    Screen {
        subtitle: match report {
            Some(report) if !model.is_elsewhere() => installed(words, report),
            _ => String::new(),
        },
        banner: report.and_then(|report| missing(model, report)),
        actions: vec![
            Button::new(label, Act::SwitchService(switch)).only_if(is_online && state.is_some()),
            Button::new(words.stop_php, Act::StopService)
                .style(Style::Danger)
                .only_if(is_online && state.is_some_and(|state| state != PhpState::Stopped)),
            Button::new(words.check_again, Act::Refresh).only_if(is_online),
        ],
        body: states::of_list(words, &model.services.php, |report| match &report.pools[..] {
            [] => Body::Message(Message {
                title: words.no_php_title.to_owned(),
                text: words.no_php_text.to_owned(),
                actions: vec![Button::new(words.add_website, Act::AddSite).only_if(is_online)],
                ..Message::default()
            }),
            pools => Body::Table(Table {
                columns: vec![
                    Column::new(words.php, 4),
                    Column::new(words.state, 7),
                    Column::new(words.websites, 14),
                    Column::new(words.processes, 4).number(),
                    Column::new(words.restarts, 4).number(),
                ],
                selected: selected.and_then(|key| pools.iter().position(|pool| pool.name == *key)),
                rows: pools.iter().map(|pool| row(model, pools, pool)).collect(),
                empty: String::new(),
            }),
        }),
        ..Screen::default()
    }
}

fn installed(words: &Words, report: &PhpReport) -> String {
    match &report.installed[..] {
        [] => words.no_php_installed.to_owned(),
        versions => fill(words.php_installed, &[&versions.join(", ")]),
    }
}

/// Returns the notice about a version that a website needs and this computer lacks.
fn missing(model: &Model, report: &PhpReport) -> Option<Banner> {
    let finding = report.missing.as_ref()?.first()?;
    let copy = model
        .services
        .install_command()
        .map(|_| Button::new(model.words().copy_command, Act::CopyService));
    Some(Banner {
        mark: Mark::Bad,
        text: finding.replace('`', ""),
        action: copy,
    })
}

fn row(model: &Model, pools: &[PhpPoolSummary], pool: &PhpPoolSummary) -> TableRow {
    let words = model.words();
    let (mark, state) = match pool.state {
        PhpState::Ready => (Mark::Good, words.running),
        PhpState::Starting => (Mark::Busy, words.starting),
        PhpState::Failed => (Mark::Bad, words.php_failed),
        PhpState::Stopped => (Mark::Off, words.stopped),
        PhpState::Other => (Mark::Off, words.unknown),
    };
    let users = model.services.users_of_php(pool, pools);
    TableRow {
        key: pool.name.clone(),
        cells: vec![
            Cell::new(format!("PHP {}", text::sanitized(&pool.name, 60))),
            Cell::new(state).mark(mark).detail(
                pool.fault
                    .as_deref()
                    .map_or(String::new(), |fault| text::sanitized(fault, 200)),
            ),
            Cell::new(if users.is_empty() {
                "–".to_owned()
            } else {
                users.join(", ")
            }),
            Cell::new(number::count(words, pool.processes)),
            Cell::new(number::count(words, pool.restarts)),
        ],
    }
}
