//! Banned clients, and the clients with the most offences.

use rocknet_control::ban::{BanSummary, OffenderSummary};
use rocknet_control::text;

use super::history::short_time;
use super::{number, states};
use crate::act::{Act, PageName, ServiceSwitch};
use crate::job::BanReport;
use crate::model::Model;
use crate::screen::{Body, Button, Cell, Column, Mark, Message, Screen, Style, Table, TableRow};
use crate::words::{Words, fill};

/// Maximum number of characters of an address or a reason that are shown.
const MAX_SHOWN: usize = 200;

/// Returns the page.
pub fn screen(model: &Model) -> Screen {
    let words = model.words();
    let selected = model.selected.get(&(model.page as u8));
    let is_banned = selected.and_then(|key| model.is_banned(key));
    let is_online = model.link.is_online();
    let (label, switch) = match is_banned {
        Some(true) => (words.lift_ban, ServiceSwitch::LiftBan),
        _ => (words.ban, ServiceSwitch::Ban),
    };
    let open = |label, page| Button::new(label, Act::Show(page)).only_if(is_online && model.may_change());
    Screen {
        subtitle: words.traffic_help.to_owned(),
        actions: vec![
            Button::new(label, Act::SwitchService(switch)).only_if(is_online && is_banned.is_some()),
            open(words.ban_address, PageName::AddBan).style(Style::Primary),
            open(words.drop_responses, PageName::DropResponses),
            Button::new(words.check_again, Act::Refresh).only_if(is_online),
        ],
        body: states::of_list(words, &model.services.bans, |report| match rows(words, report) {
            rows if rows.is_empty() => Body::Message(Message {
                title: words.no_bans_title.to_owned(),
                text: words.no_bans_text.to_owned(),
                ..Message::default()
            }),
            rows => Body::Table(Table {
                columns: vec![
                    Column::new(words.client, 6),
                    Column::new(words.state, 4),
                    Column::new(words.reason, 9).wrapped(),
                    Column::new(words.until, 6),
                ],
                selected: selected.and_then(|key| rows.iter().position(|row| row.key == *key)),
                rows,
                empty: String::new(),
            }),
        }),
        ..Screen::default()
    }
}

/// Returns the bans, the latest first, then the other clients, the worst first. A last row counts the bans that are
/// not shown.
fn rows(words: &Words, report: &BanReport) -> Vec<TableRow> {
    let mut rows: Vec<TableRow> = report.bans.iter().map(|ban| banned(words, ban)).collect();
    let more = report.total.saturating_sub(report.bans.len() as u64);
    if more > 0 {
        rows.push(TableRow {
            key: String::new(),
            cells: vec![
                Cell::new(fill(words.more_bans, &[&number::count(words, more)])),
                Cell::default(),
                Cell::default(),
                Cell::default(),
            ],
        });
    }
    rows.extend(report.offenders.iter().map(|client| offender(words, client)));
    rows
}

fn banned(words: &Words, ban: &BanSummary) -> TableRow {
    let until = ban.until.map_or(words.until_lifted.to_owned(), short_time);
    TableRow {
        key: ban.address.clone(),
        cells: vec![
            Cell::new(text::sanitized(&ban.address, MAX_SHOWN)),
            Cell::new(words.banned).mark(Mark::Bad),
            Cell::new(text::sanitized(&ban.reason, MAX_SHOWN)),
            Cell::new(until),
        ],
    }
}

fn offender(words: &Words, client: &OffenderSummary) -> TableRow {
    let offences = [
        (words.failed_logins, client.logins),
        (words.missing_files, client.not_found),
        (words.refused_requests, client.refused),
        (words.failed_handshakes, client.handshakes),
    ];
    let offences: Vec<String> = offences
        .into_iter()
        .filter(|(_, number)| *number > 0)
        .map(|(label, number)| fill(label, &[&number::count(words, number)]))
        .collect();
    TableRow {
        key: client.address.clone(),
        cells: vec![
            Cell::new(text::sanitized(&client.address, MAX_SHOWN)),
            Cell::new(words.not_banned).mark(Mark::Off),
            Cell::new(offences.join(", ")),
            Cell::new("–"),
        ],
    }
}
