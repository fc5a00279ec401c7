//! Certificates of the websites.

use rocknet_control::CertificateSummary;

use super::{states, trust};
use crate::act::{Act, CertificateView};
use crate::model::Model;
use crate::screen::{Body, Button, Cell, Column, Mark, Message, Screen, Style, Table, TableRow};
use crate::words::{Words, fill};

/// Number of days before the end of the validity at which a certificate needs attention.
const SOON: i64 = 7;

/// Returns the page.
pub fn screen(model: &Model) -> Screen {
    let words = model.words();
    let selected = model.selected.get(&(model.page as u8));
    let view = |label, view| {
        let style = match model.certificate_view == view {
            true => Style::Chosen,
            false => Style::Plain,
        };
        Button::new(label, Act::ShowCertificates(view)).style(style)
    };
    let actions = vec![
        view(words.websites, CertificateView::Websites),
        view(words.browsers, CertificateView::Browsers),
        Button::new(words.check_again, Act::Refresh).only_if(model.link.is_online()),
    ];
    if model.certificate_view == CertificateView::Browsers {
        return Screen {
            subtitle: words.browsers_help.to_owned(),
            actions,
            body: trust::body(model),
            ..Screen::default()
        };
    }
    Screen {
        subtitle: words.certificates_help.to_owned(),
        actions,
        banner: trust::banner(model),
        body: states::of_list(words, &model.certificates, |certificates| match &certificates[..] {
            [] => Body::Message(Message {
                title: words.no_certificates_title.to_owned(),
                text: words.no_certificates_text.to_owned(),
                ..Message::default()
            }),
            certificates => Body::Table(Table {
                columns: vec![
                    Column::new(words.website, 5),
                    Column::new(words.valid, 4),
                    Column::new(words.renewal, 5),
                    Column::new(words.issuer, 5),
                ],
                selected: selected.and_then(|key| certificates.iter().position(|one| key_of(one) == *key)),
                rows: certificates.iter().map(|certificate| row(words, certificate)).collect(),
                empty: String::new(),
            }),
        }),
        ..Screen::default()
    }
}

fn key_of(certificate: &CertificateSummary) -> String {
    format!("{} {}", certificate.site, certificate.names.join(","))
}

fn row(words: &Words, certificate: &CertificateSummary) -> TableRow {
    let days = certificate.days_left;
    let (mark, valid) = match certificate.names.is_empty() {
        true => (Mark::Bad, words.no_certificate.to_owned()),
        false if days < 0 => (Mark::Bad, words.expired.to_owned()),
        // A certificate that is renewed by itself needs attention only if its renewal has failed.
        false if days < SOON && (certificate.source == "files" || certificate.fault.is_some()) => {
            (Mark::Fair, days_left(words, days))
        }
        false => (Mark::Good, days_left(words, days)),
    };
    TableRow {
        key: key_of(certificate),
        cells: vec![
            Cell::new(&*certificate.site).detail(other_names(certificate)),
            Cell::new(valid).mark(mark),
            renewal(words, certificate),
            Cell::new(common_name(&certificate.issuer)),
        ],
    }
}

fn days_left(words: &Words, days: i64) -> String {
    match days {
        1 => words.one_day_left.to_owned(),
        _ => fill(words.days_left, &[&days.to_string()]),
    }
}

/// Returns the names of a certificate, unless its only one is that of the website.
fn other_names(certificate: &CertificateSummary) -> String {
    match &certificate.names[..] {
        [only] if *only == certificate.site => String::new(),
        names => names.join(", "),
    }
}

/// Returns the common name of an issuer such as `O=RockNet, CN=Local CA`; all of it without one.
fn common_name(issuer: &str) -> &str {
    let mut parts = issuer.split(", ");
    parts.find_map(|part| part.strip_prefix("CN=")).unwrap_or(issuer)
}

/// Returns the cell with the way in which a certificate is renewed, or with the reason why it is not.
fn renewal(words: &Words, certificate: &CertificateSummary) -> Cell {
    let way = match certificate.source.as_str() {
        "files" => words.renewed_by_you,
        _ => words.renewed_by_itself,
    };
    match &certificate.fault {
        Some(fault) => Cell::new(words.not_renewed).mark(Mark::Bad).detail(&**fault),
        None => Cell::new(way),
    }
}
