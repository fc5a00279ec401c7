//! The page after a website was added: checks with ticks, each failure with a repair.

use std::path::Path;

use super::trust;
use crate::act::{Act, Fix};
use crate::job::Trust;
use crate::model::{CertificateTrust, Draft, Fetched, Model, trouble_text};
use crate::screen::{Body, Button, Check, Form, Mark, Screen, Style};
use crate::words::{Words, fill};

/// Returns the page. `file`: configuration file with the website.
pub fn screen(model: &Model, draft: &Draft, file: &Path) -> Screen {
    let words = model.words();
    // The server has accepted the website, so its configuration is valid.
    let mut checks = vec![Check {
        mark: Mark::Good,
        text: words.check_config.to_owned(),
        fix: None,
    }];
    // The checks are those of this computer.
    if !model.is_elsewhere() {
        checks.extend(reply(words, draft));
        checks.extend(php(model, draft));
        checks.extend(name(model, draft));
        checks.extend(certificate(model, draft));
    }
    let has_url = model
        .websites
        .find(&draft.name)
        .is_some_and(|website| website.url().is_some());
    Screen {
        title: fill(words.added_title, &[&draft.name]),
        subtitle: fill(words.added_subtitle, &[&file.to_string_lossy()]),
        body: Body::Form(Form {
            checks,
            actions: vec![
                Button::new(words.open_in_browser, Act::OpenSite)
                    .style(Style::Primary)
                    .only_if(has_url && model.link.is_online()),
                Button::new(words.check_again, Act::Refresh)
                    .only_if(!model.is_elsewhere() && draft.visit.is_some() && model.link.is_online()),
                Button::new(words.done, Act::Cancel),
            ],
            ..Form::default()
        }),
        ..Screen::default()
    }
}

fn reply(words: &Words, draft: &Draft) -> Option<Check> {
    let Some(visit) = &draft.visit else {
        return Some(Check {
            mark: Mark::Busy,
            text: words.check_reply_busy.to_owned(),
            fix: None,
        });
    };
    // The kind of the error does not show whether a start page is missing, but the folder does.
    let is_without_start = draft.lacks_start_page();
    Some(match &visit.reply {
        Ok(status) if *status < 400 && !is_without_start => Check {
            mark: Mark::Good,
            text: match (300..400).contains(status) {
                true => words.check_redirect.to_owned(),
                false => words.check_reply.to_owned(),
            },
            fix: None,
        },
        Ok(_) if is_without_start => Check {
            mark: Mark::Fair,
            text: words.check_no_start.to_owned(),
            fix: Some(Button::new(words.create_start, Act::Repair(Fix::CreateStartPage))),
        },
        reply => Check {
            mark: Mark::Bad,
            text: fill(
                words.check_no_reply,
                &[&reply
                    .as_ref()
                    .map_or_else(|trouble| trouble_text(words, trouble), u16::to_string)],
            ),
            fix: None,
        },
    })
}

/// Returns the check of PHP, if a version is missing that a website needs.
fn php(model: &Model, draft: &Draft) -> Option<Check> {
    let words = model.words();
    let Fetched::Loaded(php) = &model.services.php else {
        return None;
    };
    let missing = php.missing.as_ref()?.first().filter(|_| draft.kind.has_php())?;
    let copy = model.services.install_command();
    Some(Check {
        mark: Mark::Bad,
        text: fill(words.check_php_missing, &[missing]),
        fix: copy.map(|_| Button::new(words.copy_command, Act::CopyService)),
    })
}

/// Returns the check of the lookup of the name; `None` for a website without a host, such as `:8080`.
fn name(model: &Model, draft: &Draft) -> Option<Check> {
    let words = model.words();
    let visit = draft.visit.as_ref().filter(|_| !draft.name.starts_with(':'))?;
    let (mark, text) = match visit.name_resolves {
        true => (Mark::Good, words.check_resolves),
        false if draft.name.ends_with(".localhost") => (Mark::Fair, words.check_resolves_browser),
        false => (Mark::Bad, words.check_resolves_not),
    };
    let line = model.hosts_line().filter(|_| mark == Mark::Bad);
    Some(Check {
        mark,
        text: match &line {
            Some(line) => fill(words.check_hosts, &[line]),
            None => text.to_owned(),
        },
        fix: line.map(|_| Button::new(words.copy_line, Act::Repair(Fix::CopyHostsLine))),
    })
}

/// Returns the checks of the certificate: one, or one for each browser of this account that does not trust it. The list
/// is empty for a website without HTTPS, or while the state is not known.
fn certificate(model: &Model, draft: &Draft) -> Vec<Check> {
    let words = model.words();
    let line = |mark, text: String, fix| vec![Check { mark, text, fix }];
    let trust = model
        .websites
        .find(&draft.name)
        .map_or(CertificateTrust::None, |website| website.facts.trust);
    match (trust, &model.services.trust) {
        (CertificateTrust::Trusted, _) => line(Mark::Good, words.check_trust.to_owned(), None),
        (CertificateTrust::NotYet, Fetched::Loaded(stores)) => stores
            .iter()
            .filter(|store| !store.is_of_system() && store.trust != Trust::Trusted)
            .map(|store| trust::check(model, store))
            .collect(),
        (CertificateTrust::Local, Fetched::Loaded(_)) => line(
            Mark::Fair,
            words.no_stores_title.to_owned(),
            Some(trust::fix(words, model)),
        ),
        (CertificateTrust::Local, Fetched::Failed(error)) => line(
            Mark::Fair,
            fill(words.check_trust_failed, &[error]),
            Some(Button::new(words.check_again, Act::Refresh)),
        ),
        (CertificateTrust::Fault, _) => line(Mark::Busy, words.check_certificate.to_owned(), None),
        _ => Vec::new(),
    }
}
