//! The form that adds a website: a folder, what it shows, and a name.

use std::path::Path;

use rocknet_control::Mode;
use rocknet_control::config::Finding;

use super::added;
use super::fields::field;
use crate::act::{Act, FieldId, Fix, PageName};
use crate::model::{Draft, DraftStage, Model, WebsiteKind};
use crate::screen::{Body, Button, Check, Field, FieldInput, Form, Mark, Screen, Style};
use crate::words::{Words, fill};

/// Returns the page.
pub fn screen(model: &Model, draft: &Draft) -> Screen {
    let words = model.words();
    if let DraftStage::Saved(file) = &draft.stage {
        return added::screen(model, draft, file);
    }
    let mut fields = match draft.kind {
        WebsiteKind::Proxy => vec![kind(words, draft), address(words, draft)],
        _ => vec![folder(words, draft), kind(words, draft)],
    };
    fields.push(name(model, draft));
    fields.push(https(model, draft));
    let is_saving = draft.stage == DraftStage::Saving;
    let can_save = draft.is_complete(&model.websites) && !has_errors(draft) && !is_saving && model.link.is_online();
    Screen {
        title: words.add_website.to_owned(),
        subtitle: match draft.is_elsewhere {
            _ if is_saving => words.saving.to_owned(),
            true => words.add_elsewhere_subtitle.to_owned(),
            false => words.add_subtitle.to_owned(),
        },
        body: Body::Form(Form {
            fields,
            is_locked: is_saving,
            checks: checks(model, draft),
            actions: vec![
                Button::new(words.add_website, Act::Submit)
                    .style(Style::Primary)
                    .only_if(can_save),
                Button::new(words.cancel, Act::Cancel).only_if(!is_saving),
            ],
        }),
        ..Screen::default()
    }
}

fn has_errors(draft: &Draft) -> bool {
    matches!(&draft.checked, Some(Ok(checked)) if !checked.is_valid)
}

fn folder(words: &Words, draft: &Draft) -> Field {
    let problem = match draft.inspection {
        _ if draft.folder.trim().is_empty() => words.fill_in.to_owned(),
        _ if draft.is_elsewhere && !draft.folder.trim().starts_with('/') => words.not_a_path.to_owned(),
        _ if draft.folder.contains('\u{fffd}') => words.folder_not_utf8.to_owned(),
        Some(inspection) if inspection.is_slow => words.folder_not_tried.to_owned(),
        Some(inspection) if inspection.has_crashed => words.folder_crashed.to_owned(),
        Some(inspection) if inspection.is_file => words.is_a_file.to_owned(),
        Some(inspection) if !inspection.exists && draft.folder.ends_with(' ') => words.folder_ends_in_space.to_owned(),
        Some(inspection) if !inspection.exists => words.not_a_folder.to_owned(),
        Some(inspection) if !inspection.readable => words.not_readable.to_owned(),
        _ => found(draft, FieldId::Folder),
    };
    let (help, input) = match draft.is_elsewhere {
        true => (words.folder_elsewhere_help, FieldInput::Text),
        false => (words.folder_help, FieldInput::Folder),
    };
    let of_file = draft.inspection.filter(|inspection| inspection.is_file);
    let parent = of_file.and_then(|_| Path::new(draft.folder.trim()).parent());
    Field {
        problem: shown(draft, FieldId::Folder, problem),
        fix: parent.map(|parent| {
            let parent = parent.to_string_lossy().into_owned();
            Button::new(fill(words.use_this, &[&parent]), Act::Repair(Fix::UseFolder(parent)))
        }),
        ..field(FieldId::Folder, words.folder, help, input, &draft.folder)
    }
}

fn kind(words: &Words, draft: &Draft) -> Field {
    let label = |kind| match kind {
        WebsiteKind::Files => words.kind_files,
        WebsiteKind::Php => words.kind_php,
        WebsiteKind::WordPress => words.kind_wordpress,
        WebsiteKind::Laravel => words.kind_laravel,
        WebsiteKind::Proxy => words.kind_proxy,
    };
    let detected = draft
        .inspection
        .filter(|inspection| inspection.exists)
        .map(|inspection| fill(words.kind_found, &[label(WebsiteKind::of_folder(&inspection))]));
    let choices = WebsiteKind::ALL
        .into_iter()
        .map(|kind| (kind.value().to_owned(), label(kind).to_owned()));
    Field {
        problem: shown(draft, FieldId::Kind, found(draft, FieldId::Kind)),
        ..field(
            FieldId::Kind,
            words.kind,
            match draft.is_elsewhere {
                true => "",
                false => detected.as_deref().unwrap_or(words.kind_help),
            },
            FieldInput::Choice(choices.collect()),
            draft.kind.value(),
        )
    }
}

fn address(words: &Words, draft: &Draft) -> Field {
    let problem = match draft.address.is_empty() {
        true => words.fill_in.to_owned(),
        false => found(draft, FieldId::Address),
    };
    let help = match &draft.servers[..] {
        _ if draft.is_elsewhere => words.proxy_elsewhere_help.to_owned(),
        [] => words.proxy_help.to_owned(),
        servers => fill(words.proxy_found, &[&servers.join(", ")]),
    };
    Field {
        problem: shown(draft, FieldId::Address, problem),
        ..field(
            FieldId::Address,
            words.proxy_address,
            &help,
            FieldInput::Text,
            &draft.address,
        )
    }
}

fn name(model: &Model, draft: &Draft) -> Field {
    let words = model.words();
    let input = field(
        FieldId::Name,
        words.name,
        match draft.is_elsewhere {
            true => words.name_elsewhere_help,
            false => words.name_help,
        },
        FieldInput::Text,
        &draft.name,
    );
    if draft.name.is_empty() {
        return Field {
            problem: shown(draft, FieldId::Name, words.fill_in.to_owned()),
            ..input
        };
    }
    // A name that is taken is a problem at once, because the list is known.
    if model.websites.find(&draft.name).is_some() && draft.stage == DraftStage::Filling {
        let free = model.websites.copy_name(&draft.name);
        return Field {
            problem: words.name_taken.to_owned(),
            fix: Some(Button::new(
                fill(words.use_this, &[&free]),
                Act::Repair(Fix::UseName(free)),
            )),
            ..input
        };
    }
    Field {
        problem: shown(draft, FieldId::Name, found(draft, FieldId::Name)),
        ..input
    }
}

/// Returns the switch of HTTPS, with the origin of the certificate.
fn https(model: &Model, draft: &Draft) -> Field {
    let words = model.words();
    let is_dev = model.status.as_ref().is_some_and(|status| status.mode == Mode::Dev);
    let host = draft.name.split(':').next().unwrap_or_default();
    let help = match draft.is_plain {
        true => words.https_off,
        false if is_dev || rocknet_config::is_local_name(&host.to_lowercase()) => words.https_local,
        false => words.https_public,
    };
    let problem = found(draft, FieldId::Https);
    let value = if draft.is_plain { "false" } else { "true" };
    Field {
        problem,
        ..field(FieldId::Https, words.https, help, FieldInput::Switch, value)
    }
}

/// Returns the problem of a field that the user has left; empty for others, and for a problem that a check has found,
/// which is shown at once.
fn shown(draft: &Draft, field: FieldId, problem: String) -> String {
    let is_found = !draft.findings(field).is_empty();
    if draft.is_left(field) || is_found {
        problem
    } else {
        String::new()
    }
}

fn found(draft: &Draft, field: FieldId) -> String {
    draft
        .findings(field)
        .into_iter()
        .map(sentence)
        .collect::<Vec<_>>()
        .join("\n")
}

fn sentence(finding: &Finding) -> String {
    match &finding.help {
        Some(help) => format!("{}: {help}", finding.message),
        None => finding.message.clone(),
    }
}

fn checks(model: &Model, draft: &Draft) -> Vec<Check> {
    let words = model.words();
    let mut checks = Vec::new();
    let mut check = |mark, text: String, fix| checks.push(Check { mark, text, fix });
    if draft.kind != WebsiteKind::Proxy
        && let Some(inspection) = draft.inspection
        && inspection.exists
        && inspection.readable
    {
        check(Mark::Good, words.check_folder.to_owned(), None);
        if draft.lacks_start_page() {
            let fix = Button::new(words.create_start, Act::Repair(Fix::CreateStartPage));
            check(Mark::Fair, words.check_no_start.to_owned(), Some(fix));
        } else {
            check(Mark::Good, words.check_start.to_owned(), None);
        }
    }
    let is_path = draft.folder.trim().starts_with('/');
    if draft.kind != WebsiteKind::Proxy && !draft.is_elsewhere && is_path && draft.inspection.is_none() {
        check(Mark::Busy, words.check_folder_busy.to_owned(), None);
    }
    if !draft.name.is_empty() && model.websites.find(&draft.name).is_none() {
        check(Mark::Good, words.check_name.to_owned(), None);
    }
    match &draft.checked {
        _ if draft.checking.is_some() => check(Mark::Busy, words.check_config_busy.to_owned(), None),
        Some(Ok(checked)) if checked.is_valid => check(Mark::Good, words.check_config.to_owned(), None),
        Some(Ok(checked)) => {
            // Errors of fields are beside their fields.
            let others = checked
                .findings
                .iter()
                .filter(|finding| finding.is_error && finding.key.get(1) != Some(&draft.name));
            others.for_each(|finding| check(Mark::Bad, sentence(finding), None));
        }
        Some(Err(error)) if error.status == 403 => {
            let text = format!("{}. {}", words.denied_title, words.denied_change);
            check(
                Mark::Bad,
                text,
                Some(Button::new(words.settings, Act::Show(PageName::Settings))),
            );
        }
        Some(Err(error)) => check(Mark::Bad, error.error.clone(), None),
        None => {}
    }
    if let Some(failure) = &draft.failure {
        let fix = draft.free_port.map(|(taken, free)| {
            let label = fill(words.use_port, &[&free.to_string()]);
            Button::new(label, Act::Repair(Fix::UsePort(taken, free)))
        });
        check(Mark::Bad, failure.clone(), fix);
    }
    checks
}
