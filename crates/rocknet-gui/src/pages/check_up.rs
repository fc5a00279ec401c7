//! Checks of the machine and the configuration, each with its remedy.

use rocknet_control::doctor::{DoctorCheck, DoctorVerdict};

use super::{states, trust};
use crate::act::Act;
use crate::job::Trust;
use crate::model::{Fetched, Model};
use crate::screen::{Body, Button, Cell, Column, Mark, Message, Screen, Style, Table, TableRow};
use crate::words::{Words, fill};

/// Name of the checks in which the server reports the trust stores of its own account.
const LOCAL_CA: &str = "local CA";

/// Returns the page.
pub fn screen(model: &Model) -> Screen {
    let words = model.words();
    let selected = model.selected.get(&(model.page as u8));
    let is_online = model.link.is_online();
    let mut actions = vec![Button::new(words.check_again, Act::Refresh).only_if(is_online)];
    let mut subtitle = String::new();
    if let Fetched::Loaded(checks) = &model.checks {
        let lines = lines(model, checks);
        let count = |verdict| {
            let counted = lines.iter().filter(|line| line.verdict == verdict);
            counted.count().to_string()
        };
        subtitle = fill(
            words.check_up_counted,
            &[
                &lines.len().to_string(),
                &count(DoctorVerdict::Good),
                &count(DoctorVerdict::Fair),
                &count(DoctorVerdict::Bad),
            ],
        );
        if model.services.browsers_trust() == Some(false) {
            actions.push(trust::fix(words, model));
        }
    }
    if let Some(command) = &model.viewed_command {
        return Screen {
            body: Body::Message(Message {
                mark: Mark::Fair,
                title: words.command_title.to_owned(),
                text: words.command_text.to_owned(),
                lines: vec![command.clone()],
                actions: vec![
                    Button::new(words.copy_command, Act::CopyService).style(Style::Primary),
                    Button::new(words.cancel, Act::Cancel),
                ],
            }),
            ..Screen::default()
        };
    }
    if model.is_remedied_by_edit() {
        actions.push(Button::new(words.edit_as_text, Act::EditText).only_if(is_online));
    }
    if model.remedy().is_some() {
        actions.push(Button::new(words.copy_command, Act::CopyService));
    }
    Screen {
        subtitle,
        actions,
        body: states::of_list(words, &model.checks, |checks| {
            let rows: Vec<TableRow> = lines(model, checks).into_iter().map(|line| row(words, line)).collect();
            Body::Table(Table {
                columns: vec![
                    Column::new(words.check, 4),
                    Column::new(words.result, 5),
                    Column::new(words.found, 12).wrapped(),
                ],
                selected: selected.and_then(|key| rows.iter().position(|row| row.key == *key)),
                rows,
                empty: String::new(),
            })
        }),
        ..Screen::default()
    }
}

/// Check with its result.
struct Line {
    verdict: DoctorVerdict,
    check: String,
    found: String,
    /// Remedy; may be empty.
    remedy: String,
    /// Identifies the line.
    key: String,
}

/// Returns the checks of the server, and those of the trust stores of this account in place of those of the server's
/// account. Problems are first.
fn lines(model: &Model, checks: &[DoctorCheck]) -> Vec<Line> {
    let stores = match &model.services.trust {
        Fetched::Loaded(stores) => &stores[..],
        _ => &[],
    };
    let own = stores.iter().map(|store| Line {
        verdict: match store.trust {
            Trust::Trusted => DoctorVerdict::Good,
            Trust::NotYet | Trust::Unknown => DoctorVerdict::Fair,
        },
        check: LOCAL_CA.to_owned(),
        found: trust::check(model, store).text,
        remedy: String::new(),
        key: store.path.to_string_lossy().into_owned(),
    });
    let of_server = checks
        .iter()
        .filter(|check| stores.is_empty() || check.check != LOCAL_CA)
        .map(|check| {
            let (found, remedy) = match check.verdict {
                DoctorVerdict::Good => (&*check.found, ""),
                _ => finding_and_remedy(check),
            };
            Line {
                verdict: check.verdict,
                check: check.check.clone(),
                found: found.to_owned(),
                remedy: remedy.to_owned(),
                key: check.found.clone(),
            }
        });
    let mut lines: Vec<Line> = of_server.chain(own).collect();
    lines.sort_by_key(|line| match line.verdict {
        DoctorVerdict::Bad => 0,
        DoctorVerdict::Fair => 1,
        DoctorVerdict::Good | DoctorVerdict::Skipped | DoctorVerdict::Other => 2,
    });
    lines
}

/// Splits the text of a check. The server appends the reason and the remedy to the finding, which may begin with the
/// place and a colon: `shop.test: does not resolve (not found): add a record`.
fn finding_and_remedy(check: &DoctorCheck) -> (&str, &str) {
    let place = check.place.as_deref().filter(|place| check.found.starts_with(place));
    let start = place.map_or(0, str::len);
    let start = start + check.found[start..].strip_prefix(": ").map_or(0, |_| 2);
    match check.found[start..].find(": ") {
        Some(end) => (&check.found[..start + end], &check.found[start + end + 2..]),
        None => (&check.found, ""),
    }
}

/// Returns a text with a capital letter, as the first word of a cell has it.
fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

fn row(words: &Words, line: Line) -> TableRow {
    let (mark, verdict) = match line.verdict {
        DoctorVerdict::Good => (Mark::Good, words.good),
        DoctorVerdict::Fair => (Mark::Fair, words.fair),
        DoctorVerdict::Bad => (Mark::Bad, words.bad),
        DoctorVerdict::Skipped | DoctorVerdict::Other => (Mark::Off, "–"),
    };
    TableRow {
        cells: vec![
            Cell::new(capitalized(&line.check)),
            Cell::new(verdict).mark(mark),
            Cell::new(line.found).detail(line.remedy),
        ],
        key: line.key,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remedy_follows_the_finding_with_its_place() {
        for (place, text, expected) in [
            (None, "not trusted: type `x`", ("not trusted", "type `x`")),
            (
                Some("a.test"),
                "a.test: is unknown: add it",
                ("a.test: is unknown", "add it"),
            ),
            (
                Some("/srv: a"),
                "/srv: a: cannot be read",
                ("/srv: a: cannot be read", ""),
            ),
            (
                Some("[::]:80"),
                "[::]:80 is in use: stop it",
                ("[::]:80 is in use", "stop it"),
            ),
            (
                Some("b.test"),
                "that of b.test expires: renew it",
                ("that of b.test expires", "renew it"),
            ),
            (None, "no remedy", ("no remedy", "")),
        ] {
            let check = DoctorCheck {
                place: place.map(str::to_owned),
                found: text.to_owned(),
                ..DoctorCheck::default()
            };
            assert_eq!(finding_and_remedy(&check), expected, "{text}");
        }
    }
}
