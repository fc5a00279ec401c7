//! Checks of the machine and the configuration, each with its remedy.

use rocknet_control::doctor::{DoctorCheck, DoctorVerdict};

use super::states;
use crate::act::{Act, Fix};
use crate::model::{Fetched, Model};
use crate::screen::{Body, Button, Cell, Column, Mark, Screen, Table, TableRow};
use crate::words::{Words, fill};

/// Returns the page.
pub fn screen(model: &Model) -> Screen {
    let words = model.words();
    let selected = model.selected.get(&(model.page as u8));
    let is_online = model.link.is_online();
    let mut actions = vec![Button::new(words.check_again, Act::Refresh).only_if(is_online)];
    let mut subtitle = String::new();
    if let Fetched::Loaded(checks) = &model.checks {
        let count = |verdict| {
            checks
                .iter()
                .filter(|check| check.verdict == verdict)
                .count()
                .to_string()
        };
        subtitle = fill(
            words.check_up_counted,
            &[
                &checks.len().to_string(),
                &count(DoctorVerdict::Good),
                &count(DoctorVerdict::Fair),
                &count(DoctorVerdict::Bad),
            ],
        );
        let is_untrusted = |check: &DoctorCheck| check.check == "local CA" && check.verdict != DoctorVerdict::Good;
        if checks.iter().any(is_untrusted) && !model.is_elsewhere() {
            let trust = Button::new(words.trust, Act::Repair(Fix::TrustCertificates));
            actions.push(trust.only_if(is_online));
        }
    }
    Screen {
        subtitle,
        actions,
        body: states::of_list(words, &model.checks, |checks| {
            // Problems are first.
            let mut sorted: Vec<&DoctorCheck> = checks.iter().collect();
            sorted.sort_by_key(|check| match check.verdict {
                DoctorVerdict::Bad => 0,
                DoctorVerdict::Fair => 1,
                DoctorVerdict::Good | DoctorVerdict::Other => 2,
            });
            let rows: Vec<TableRow> = sorted.into_iter().map(|check| row(words, check)).collect();
            Body::Table(Table {
                columns: vec![
                    Column::new(words.check, 4),
                    Column::new(words.result, 5),
                    Column::new(words.found, 12),
                ],
                selected: selected.and_then(|key| rows.iter().position(|row| row.key == *key)),
                rows,
                empty: String::new(),
            })
        }),
        ..Screen::default()
    }
}

/// Returns a text with a capital letter, as the first word of a cell has it.
fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

fn row(words: &Words, check: &DoctorCheck) -> TableRow {
    let (mark, verdict) = match check.verdict {
        DoctorVerdict::Good => (Mark::Good, words.good),
        DoctorVerdict::Fair => (Mark::Fair, words.fair),
        DoctorVerdict::Bad => (Mark::Bad, words.bad),
        DoctorVerdict::Other => (Mark::Off, "–"),
    };
    // The remedy is on a separate line.
    let (found, remedy) = match check.found.split_once(": ") {
        Some((found, remedy)) if check.verdict != DoctorVerdict::Good => (found, remedy),
        _ => (&*check.found, ""),
    };
    TableRow {
        key: check.found.clone(),
        cells: vec![
            Cell::new(capitalized(&check.check)),
            Cell::new(verdict).mark(mark),
            Cell::new(found).detail(remedy),
        ],
    }
}
