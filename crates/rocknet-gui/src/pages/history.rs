//! Changes of the configuration by the control API, and the differences of one of them.

use rocknet_control::config::Change;
use rocknet_control::text;

use super::states;
use crate::act::Act;
use crate::model::{Fetched, Model, RefusedUndo};
use crate::screen::{Body, Button, Cell, Column, Lines, LogLine, Mark, Message, Screen, Style, Table, TableRow};
use crate::words::{Words, fill};

/// Returns the page.
pub fn screen(model: &Model) -> Screen {
    let words = model.words();
    let selected = model.selected.get(&(model.page as u8));
    let changes = match &model.history {
        Fetched::Loaded(changes) => &changes[..],
        _ => &[],
    };
    if let Some(refused) = &model.refused_undo {
        return discard(model, refused);
    }
    let undo = |enabled: bool| {
        Button::new(words.undo_last, Act::UndoNewest).only_if(enabled && !changes.is_empty() && model.link.is_online())
    };
    let can_go_back = model.chosen_change().is_some() && model.link.is_online();
    let go_back = Button::new(words.go_back, Act::GoBack).only_if(can_go_back);
    if let Some(change) = changes.iter().find(|change| Some(change.id) == model.opened_change) {
        let is_newest = changes.first().is_some_and(|newest| newest.id == change.id);
        let undo = if is_newest { undo(true) } else { go_back };
        return opened(words, change, undo);
    }
    let is_selected = selected.is_some_and(|key| changes.iter().any(|change| change.id.to_string() == *key));
    Screen {
        subtitle: match changes {
            [] => String::new(),
            _ => words.no_changes_text.to_owned(),
        },
        actions: vec![
            Button::new(words.show_change, Act::OpenRow).only_if(is_selected),
            go_back,
            undo(true),
        ],
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

/// Returns the question before an undo that would discard edits by hand, with these edits.
fn discard(model: &Model, refused: &RefusedUndo) -> Screen {
    let words = model.words();
    Screen {
        title: words.discard_edits_title.to_owned(),
        subtitle: words.discard_edits_text.to_owned(),
        actions: vec![
            Button::new(words.keep_edits, Act::Cancel).style(Style::Primary),
            Button::new(words.discard_edits, Act::DiscardEdits)
                .style(Style::Danger)
                .only_if(model.link.is_online()),
        ],
        body: Body::Diff(Lines {
            lines: diff_lines(&refused.edits),
            empty: words.no_diff.to_owned(),
            ..Lines::default()
        }),
        ..Screen::default()
    }
}

/// Returns a time as `2026-11-29 07:26 UTC`. The zone of the user would cost a library of 0.3 MB.
pub(super) fn short_time(unix_time: u64) -> String {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let date = text::http_date(unix_time);
    let parts: Vec<&str> = date.split(' ').collect();
    let [_, day, month, year, time, _] = parts[..] else {
        return date;
    };
    let month = MONTHS.iter().position(|name| *name == month).unwrap_or(0) + 1;
    let minute = time.rsplit_once(':').map_or(time, |(minute, _)| minute);
    format!("{year}-{month:02}-{day} {minute} UTC")
}

fn row(change: &Change) -> TableRow {
    TableRow {
        key: change.id.to_string(),
        cells: vec![
            Cell::new(text::sanitized(&change.what, 120)).detail(change.file.to_string_lossy()),
            Cell::new(counted(change)),
            Cell::new(short_time(change.unix_time)),
        ],
    }
}

/// Returns the numbers of lines that were added and removed.
fn counted(change: &Change) -> String {
    let lines = diff_lines(&change.diff);
    let count = |mark| lines.iter().filter(|line| line.mark == mark).count();
    format!("+{} −{}", count(Mark::Good), count(Mark::Bad))
}

/// Returns the page with the differences of a change.
fn opened(words: &Words, change: &Change, undo: Button) -> Screen {
    let lines = diff_lines(&change.diff);
    let time = short_time(change.unix_time);
    Screen {
        title: text::sanitized(&change.what, 120),
        subtitle: fill(
            words.change_subtitle,
            &[&time, &change.file.to_string_lossy(), &counted(change)],
        ),
        actions: vec![Button::new(words.all_changes, Act::Cancel), undo],
        body: Body::Diff(Lines {
            lines,
            empty: words.no_diff.to_owned(),
            ..Lines::default()
        }),
        ..Screen::default()
    }
}

/// Returns the lines of a diff with their marks: good for an added line, bad for a removed one, busy for a place. Lines
/// before the first place are the header, which may have lines such as `--- a`.
fn diff_lines(diff: &str) -> Vec<LogLine> {
    let mut is_header = true;
    let line = |line: &str| {
        is_header &= !line.starts_with('@');
        LogLine {
            number: 0,
            mark: match line.as_bytes() {
                _ if is_header => Mark::Off,
                [b'@', ..] => Mark::Busy,
                [b'+', ..] => Mark::Good,
                [b'-', ..] => Mark::Bad,
                _ => Mark::Off,
            },
            text: line.replace('\t', "    "),
        }
    };
    diff.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_lines_may_begin_with_signs() {
        let change = Change {
            diff: "--- a\n+++ b\n@@ -1,2 +1,2 @@\n same\n--- old\n+++ new\n+x\n".to_owned(),
            ..change()
        };
        assert_eq!(counted(&change), "+2 −1");
        let marks: Vec<Mark> = diff_lines(&change.diff).iter().map(|line| line.mark).collect();
        let header = [Mark::Off, Mark::Off, Mark::Busy, Mark::Off];
        assert_eq!(marks[..4], header);
        assert_eq!(marks[4..], [Mark::Bad, Mark::Good, Mark::Good]);
    }

    fn change() -> Change {
        Change {
            id: 1,
            unix_time: 0,
            file: "/etc/rocknet.toml".into(),
            revision: String::new(),
            what: String::new(),
            diff: String::new(),
        }
    }
}
