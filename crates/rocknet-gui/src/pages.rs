//! Pages: the contents of the window for a state of the model. Each page has a file.

mod activity;
mod add_website;
mod added;
mod certificates;
mod check_up;
mod chooser;
mod config_state;
mod databases;
mod edit_text;
mod edit_website;
mod fields;
mod history;
mod keys;
mod logs;
mod number;
mod offline;
mod permission;
mod php;
mod place;
mod questions;
mod server;
mod settings;
mod states;
mod traffic;
mod traffic_forms;
mod trust;
mod upstreams;
mod websites;

use crate::act::{Act, PageName};
use crate::job::Absence;
use crate::model::{Link, Model, Question};
use crate::screen::{Banner, Body, Button, Mark, Screen};
use crate::words::{Words, fill};

/// Entry of the navigation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub page: PageName,
    pub label: &'static str,
    pub is_chosen: bool,
}

/// State of the server in the navigation: mark, word and button.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerState {
    pub mark: Mark,
    pub label: &'static str,
    pub action: Option<Button>,
}

/// Returns the heading of a page.
pub fn label(words: &'static Words, page: PageName) -> &'static str {
    match page {
        PageName::Websites => words.websites,
        PageName::AddWebsite => words.add_website,
        PageName::EditWebsite => words.edit_website,
        PageName::EditText => words.config_file,
        PageName::Activity => words.activity,
        PageName::Logs => words.logs,
        PageName::Server => words.server,
        PageName::Upstreams => words.upstreams,
        PageName::Traffic => words.traffic,
        PageName::AddBan => words.ban_address,
        PageName::DropResponses => words.drop_responses,
        PageName::Php => words.php,
        PageName::Databases => words.databases,
        PageName::Certificates => words.certificates,
        PageName::CheckUp => words.check_up,
        PageName::History => words.history,
        PageName::Settings => words.settings,
    }
}

/// Returns the entries of the navigation.
pub fn navigation(model: &Model) -> Vec<Entry> {
    let chosen = match model.edits_server() {
        true => PageName::Server,
        false => model.page.entry(),
    };
    let entry = |page| Entry {
        page,
        label: label(model.words(), page),
        is_chosen: chosen == page,
    };
    PageName::NAVIGATION.into_iter().map(entry).collect()
}

/// Returns the state of the server.
pub fn server_state(model: &Model) -> ServerState {
    let words = model.words();
    let start = || Some(Button::new(words.start_server, Act::StartServer));
    let restart = || {
        model
            .can_restart()
            .then(|| Button::new(words.restart_server, Act::RestartServer))
    };
    let (mark, label, action) = match &model.link {
        Link::Connecting => (Mark::Busy, words.connecting, None),
        Link::Online(_) => (
            Mark::Good,
            words.running,
            Some(Button::new(words.stop_server, Act::StopServer)),
        ),
        Link::Starting => (Mark::Busy, words.starting, None),
        Link::Stopping => (Mark::Busy, words.stopping, None),
        Link::Absent(Absence::Stopped(_)) => (Mark::Off, words.stopped, start()),
        Link::Absent(Absence::NoAccess(_) | Absence::WrongToken(_) | Absence::Foreign(_)) => {
            (Mark::Bad, words.no_access, None)
        }
        Link::Absent(Absence::Unreachable(_)) => (Mark::Bad, words.not_reachable, None),
        Link::Absent(Absence::NoReply(_)) => (Mark::Bad, words.no_reply, restart()),
        Link::Absent(Absence::Failed(_)) => (Mark::Bad, words.no_reply, None),
        Link::StartFailed(_) => (Mark::Bad, words.failed, start()),
    };
    let is_permitted = |button: &Button| model.permits(&button.act);
    let action = action.map(|button| Button {
        enabled: is_permitted(&button),
        ..button
    });
    ServerState { mark, label, action }
}

/// Returns the contents of the window for the present state.
pub fn screen(model: &Model) -> Screen {
    permission::restricted(model, contents(model))
}

fn contents(model: &Model) -> Screen {
    if let Some(selected) = &model.shown_keys {
        return keys::screen(model, selected);
    }
    let screen = match model.page {
        // The question comes before the states without a server, because the page cannot be left without an answer.
        _ if model.question() == Some(Question::Leave) => questions::screen(model, &Question::Leave),
        PageName::Settings => return settings::screen(model),
        PageName::Databases => databases::screen(model),
        PageName::Websites if model.shows_file_config && model.stopped_config().is_some() => offline::screen(model),
        _ if !shows_contents(model) => Screen {
            body: Body::Message(states::without_server(model)),
            ..Screen::default()
        },
        PageName::AddWebsite | PageName::EditWebsite if model.chooser.is_some() => match &model.chooser {
            Some(chooser) => chooser::screen(model, chooser),
            None => Screen::default(),
        },
        _ if model.question() == Some(Question::Conflict) => questions::screen(model, &Question::Conflict),
        PageName::EditWebsite => edit_website::screen(model),
        PageName::EditText => edit_text::screen(model),
        PageName::Websites => websites::screen(model),
        PageName::AddWebsite => match &model.draft {
            Some(draft) => add_website::screen(model, draft),
            None => websites::screen(model),
        },
        PageName::Activity => activity::screen(model),
        PageName::Logs => logs::screen(model),
        PageName::Server => server::screen(model),
        PageName::Upstreams => upstreams::screen(model),
        PageName::Traffic => traffic::screen(model),
        PageName::AddBan => traffic_forms::add_ban(model),
        PageName::DropResponses => traffic_forms::drop_responses(model),
        PageName::Php => php::screen(model),
        PageName::Certificates => certificates::screen(model),
        PageName::CheckUp => check_up::screen(model),
        PageName::History => history::screen(model),
    };
    let screen = with_copy(model, screen);
    let title = match screen.title.is_empty() {
        true => label(model.words(), model.page).to_owned(),
        false => screen.title,
    };
    let banner = banner(model).or(screen.banner);
    Screen {
        title,
        banner,
        ..screen
    }
}

/// Returns the screen with a button that copies its message, if that is about an error.
fn with_copy(model: &Model, mut screen: Screen) -> Screen {
    if let Body::Message(message) = &mut screen.body
        && message.mark == Mark::Bad
        && !message.actions.iter().any(|button| button.act == Act::CopyReason)
    {
        let parts = [&message.title, &message.text].into_iter().chain(&message.lines);
        let text: Vec<&str> = parts.filter(|part| !part.is_empty()).map(String::as_str).collect();
        let act = Act::CopyText(text.join("\n"));
        message.actions.push(Button::new(model.words().copy, act));
    }
    screen
}

/// Returns true if the page shows its contents: the server replies, or it failed to reply a moment ago.
fn shows_contents(model: &Model) -> bool {
    match &model.link {
        Link::Online(_) => model.status.is_some(),
        Link::Absent(Absence::NoReply(_) | Absence::Failed(_)) => model.status.is_some(),
        _ => false,
    }
}

/// Returns the notice above the contents of all pages.
fn banner(model: &Model) -> Option<Banner> {
    let words = model.words();
    if let Link::Absent(Absence::NoReply(_) | Absence::Failed(_)) = &model.link {
        let restart = Button::new(words.restart_server, Act::RestartServer);
        return Some(Banner {
            mark: Mark::Bad,
            text: words.disconnected.to_owned(),
            action: Some(restart).filter(|_| model.can_restart()),
        });
    }
    if !model.link.is_online() {
        return None;
    }
    let Some(error) = model.status.as_ref()?.last_reload_error.as_ref() else {
        return config_state::banner(model);
    };
    let first = error.lines().next().unwrap_or_default();
    Some(Banner {
        mark: Mark::Bad,
        text: fill(words.reload_failed, &[first]),
        action: Some(Button::new(words.edit_as_text, Act::EditText)).filter(|_| model.page != PageName::EditText),
    })
}

#[cfg(test)]
mod tests;
