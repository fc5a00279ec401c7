//! The list of websites.

use super::number;
use super::states::failed;
use crate::act::{Act, SortKey};
use crate::model::{CertificateTrust, Model, Website, WebsiteState, Websites, kind_label, trust_label};
use crate::screen::{Banner, Body, Button, Cell, Column, FilterBox, Mark, Message, Screen, Style, Table, TableRow};
use crate::words::{Words, fill};

/// Returns the page.
pub fn screen(model: &Model) -> Screen {
    let (words, websites) = (model.words(), &model.websites);
    let add = || Button::new(words.add_website, Act::AddSite).style(Style::Primary);
    let (all, served) = websites.count();
    let error = websites.list_error.as_ref();
    if let Some(error) = error.filter(|_| !websites.is_loaded) {
        return Screen {
            body: Body::Message(failed(words, error)),
            ..Screen::default()
        };
    }
    if all == 0 {
        let message = match websites.is_loaded {
            true => Message {
                title: words.no_websites_title.to_owned(),
                text: words.no_websites_text.to_owned(),
                actions: vec![add()],
                ..Message::default()
            },
            false => Message {
                mark: Mark::Busy,
                title: words.loading.to_owned(),
                ..Message::default()
            },
        };
        return Screen {
            body: Body::Message(message),
            ..Screen::default()
        };
    }
    let selected = websites.selected();
    let shown = websites.shown();
    Screen {
        subtitle: match all {
            1 => words.one_website.to_owned(),
            _ => fill(words.websites_counted, &[&all.to_string(), &served.to_string()]),
        },
        actions: actions(model, selected, add()),
        filter: Some(FilterBox {
            hint: words.filter_websites.to_owned(),
            text: websites.filter.clone(),
        }),
        body: Body::Table(Table {
            columns: columns(words, websites),
            selected: selected.and_then(|selected| {
                let name = &selected.summary.name;
                shown.iter().position(|website| website.summary.name == *name)
            }),
            rows: shown.into_iter().map(|website| row(words, website)).collect(),
            empty: fill(words.nothing_matches, &[websites.filter.trim()]),
        }),
        banner: partial_banner(words, websites),
        ..Screen::default()
    }
}

/// Returns the notice about a part that the server has refused to send.
fn partial_banner(words: &Words, websites: &Websites) -> Option<Banner> {
    let (text, error) = match (&websites.list_error, &websites.rates_error) {
        (Some(error), _) => (words.websites_outdated, error),
        (None, Some(error)) => (words.rates_failed, error),
        (None, None) => return None,
    };
    Some(Banner {
        mark: Mark::Fair,
        text: fill(text, &[error.lines().next().unwrap_or_default()]),
        action: None,
    })
}

fn actions(model: &Model, selected: Option<&Website>, add: Button) -> Vec<Button> {
    let words = model.words();
    let is_online = model.link.is_online();
    let can = is_online && selected.is_some();
    // The outcome of a change in progress is shown first.
    let can_change = can && selected.is_some_and(|website| !model.is_changing(&website.summary.name));
    let is_disabled = selected.is_some_and(|website| website.state() == WebsiteState::Disabled);
    let has_url = selected.is_some_and(|website| website.url().is_some());
    let has_folder = selected.is_some_and(|website| website.summary.root.is_some()) && !model.is_elsewhere();
    vec![
        add.only_if(is_online),
        Button::new(words.open, Act::OpenSite).only_if(can && has_url),
        Button::new(words.edit, Act::EditSite).only_if(can),
        Button::new(words.open_folder, Act::OpenFolder).only_if(has_folder),
        Button::new(words.open_editor, Act::OpenEditor).only_if(has_folder),
        Button::new(words.open_log, Act::ShowSiteLog).only_if(selected.is_some()),
        Button::new(if is_disabled { words.enable } else { words.disable }, Act::ToggleSite).only_if(can_change),
        Button::new(words.duplicate, Act::DuplicateSite).only_if(can_change),
        Button::new(words.remove, Act::RemoveSite)
            .style(Style::Danger)
            .only_if(can_change),
    ]
}

fn columns(words: &Words, websites: &Websites) -> Vec<Column> {
    let sorted = |column: Column, key: SortKey| Column {
        sort: Some(Act::Sort(key)),
        order: (websites.sort == key).then_some(!websites.descending),
        ..column
    };
    vec![
        sorted(Column::new(words.website, 16), SortKey::Name),
        sorted(Column::new(words.state, 11), SortKey::State),
        sorted(Column::new(words.shows, 13), SortKey::Kind),
        sorted(Column::new(words.address, 22).from(600), SortKey::Address),
        sorted(Column::new(words.php, 6).from(700), SortKey::Php),
        sorted(Column::new(words.protocol, 8).from(900), SortKey::Protocol),
        sorted(Column::new(words.certificate, 10).from(740), SortKey::Trust),
        sorted(Column::new(words.per_second, 9).number(), SortKey::Rate),
    ]
}

fn row(words: &Words, website: &Website) -> TableRow {
    let summary = &website.summary;
    let root = summary.root.as_ref();
    let (mark, state) = match website.state() {
        WebsiteState::Served => (Mark::Good, words.served),
        WebsiteState::Disabled => (Mark::Off, words.disabled),
        WebsiteState::NotLoaded => (Mark::Fair, words.not_loaded),
        WebsiteState::Fault => (Mark::Bad, words.fault),
    };
    let address = website.url().unwrap_or("–");
    let shown = address.trim_end_matches('/');
    TableRow {
        key: summary.name.clone(),
        cells: vec![
            Cell::new(&*summary.name).detail(match (&summary.fault, root) {
                (Some(fault), _) => fault.clone(),
                (None, Some(root)) => root.to_string_lossy().into_owned(),
                (None, None) => String::new(),
            }),
            Cell::new(state).mark(mark),
            Cell::new(if summary.disabled || website.state() == WebsiteState::NotLoaded {
                "–"
            } else {
                kind_label(words, summary.kind)
            }),
            Cell::new(shown),
            Cell::new(dash(&website.facts.php)),
            Cell::new(dash(website.facts.protocol)),
            trust_cell(words, website.facts.trust),
            Cell::new(website.rate.map_or("–".to_owned(), |rate| number::tenths(words, rate))),
        ],
    }
}

/// Returns the cell with the trust of browsers in the certificate.
fn trust_cell(words: &Words, trust: CertificateTrust) -> Cell {
    let cell = Cell::new(trust_label(words, trust));
    match trust {
        CertificateTrust::Fault => cell.mark(Mark::Bad),
        CertificateTrust::NotYet => cell.mark(Mark::Fair),
        CertificateTrust::Trusted => cell.mark(Mark::Good),
        CertificateTrust::Local | CertificateTrust::Files | CertificateTrust::None => cell,
    }
}

/// Returns a text, or a dash in place of none.
fn dash(text: &str) -> &str {
    if text.is_empty() { "–" } else { text }
}
