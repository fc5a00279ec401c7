//! Messages in place of a page: no server, no access, a failed start, and lists that are loading or have failed.

use crate::act::{Act, PageName};
use crate::job::{Absence, FileConfig, StartFailure};
use crate::model::{Fetched, Link, Model, cause_text, trouble_text};
use crate::screen::{Body, Button, Mark, Message, Style};
use crate::ways::{Starter, UnitKind};
use crate::words::{Words, fill};

/// Maximum number of lines below the message of a stopped server.
const MAX_LINES: usize = 5;

/// Maximum number of errors among these lines.
const MAX_ERRORS: usize = 3;

/// Returns the first errors and websites of the configuration, as lines below the message of a stopped server.
fn config_lines(config: &FileConfig) -> Vec<String> {
    let errors = config.findings.iter().filter(|finding| finding.is_error);
    let errors = errors
        .take(MAX_ERRORS)
        .map(|error| format!("{}: {}", error.place, error.message));
    let sites = config.sites.iter().map(|site| match &site.root {
        Some(root) => format!("{}  {}", site.name, root.display()),
        None => site.name.clone(),
    });
    errors.chain(sites).take(MAX_LINES).collect()
}

/// Returns the message of every page that needs a server, while the server is absent.
pub fn without_server(model: &Model) -> Message {
    let words = model.words();
    let busy = |title: &str| Message {
        mark: Mark::Busy,
        title: title.to_owned(),
        text: if model.may_ask() { words.may_ask } else { "" }.to_owned(),
        ..Message::default()
    };
    let listed = model.stopped_config().filter(|_| model.page == PageName::Websites);
    match &model.link {
        Link::Connecting | Link::Online(_) => busy(words.connecting_title),
        Link::Starting => busy(words.starting_title),
        Link::Stopping => busy(words.stopping_title),
        Link::Absent(Absence::Stopped(_)) if model.ways.closed_server().is_some() => {
            let (account, group) = model.ways.closed_server().unwrap_or_default();
            let command = format!("sudo usermod -aG {group} {account}");
            let mut actions = start_buttons(model, starter_label(words, model.starter()));
            actions.push(Button::new(words.copy_command, Act::CopyText(command.clone())));
            Message {
                mark: Mark::Fair,
                title: words.closed_title.to_owned(),
                text: fill(words.closed_text, &[group]),
                lines: vec![command],
                actions,
            }
        }
        Link::Absent(Absence::Stopped(_)) if model.ending.is_some() => ended(model),
        Link::Absent(Absence::Stopped(has_config)) => Message {
            mark: Mark::Off,
            title: if *has_config {
                words.offline_title
            } else {
                words.welcome_title
            }
            .to_owned(),
            text: {
                let text = match (*has_config, model.starter()) {
                    (false, Starter::Program) => words.welcome_text,
                    _ => words.offline_text,
                };
                let service = match model.starter() {
                    Starter::Unit(UnitKind::System) => words.start_by_system,
                    Starter::Unit(UnitKind::User) => words.start_by_user,
                    Starter::Program if model.ways.starters().len() > 1 => words.start_by_program,
                    Starter::Program => "",
                };
                format!("{text} {service}").trim_end().to_owned()
            },
            lines: listed.map_or(Vec::new(), config_lines),
            actions: {
                let mut actions = start_buttons(model, words.start_server);
                actions.extend(listed.map(|config| {
                    let count = config.sites.len().to_string();
                    Button::new(fill(words.show_websites, &[&count]), Act::ShowFileConfig)
                }));
                actions
            },
        },
        Link::Absent(Absence::NoAccess(socket)) => Message {
            mark: Mark::Bad,
            title: words.no_access_title.to_owned(),
            text: fill(words.no_access_text, &[&socket.to_string_lossy()]),
            ..Message::default()
        },
        Link::Absent(Absence::Unreachable(server)) => Message {
            mark: Mark::Bad,
            title: fill(words.unreachable_title, &[server]),
            text: words.unreachable_text.to_owned(),
            actions: elsewhere_buttons(words),
            ..Message::default()
        },
        Link::Absent(Absence::WrongToken(server)) => Message {
            mark: Mark::Bad,
            title: words.wrong_token_title.to_owned(),
            text: fill(words.wrong_token_text, &[server]),
            actions: elsewhere_buttons(words),
            ..Message::default()
        },
        Link::Absent(Absence::Foreign(server)) => Message {
            mark: Mark::Bad,
            title: fill(words.foreign_title, &[server]),
            text: words.foreign_text.to_owned(),
            actions: elsewhere_buttons(words),
            ..Message::default()
        },
        Link::Absent(Absence::NoReply(server)) => Message {
            mark: Mark::Bad,
            title: words.no_reply_title.to_owned(),
            text: fill(words.no_reply_text, &[&server.to_string_lossy()]),
            actions: no_reply_buttons(model),
            ..Message::default()
        },
        Link::Absent(Absence::Failed(error)) if model.is_elsewhere() => Message {
            actions: elsewhere_buttons(words),
            ..failed(words, error)
        },
        Link::Absent(Absence::Failed(error)) => failed(words, error),
        Link::StartFailed(StartFailure { reason, lines, port }) => Message {
            mark: Mark::Bad,
            title: words.start_failed_title.to_owned(),
            text: trouble_text(words, reason),
            lines: lines.clone(),
            actions: with_copy(words, with_port(model, *port)),
        },
    }
}

/// Returns the message about a server that has ended without being stopped by this program.
fn ended(model: &Model) -> Message {
    let words = model.words();
    let ending = model.ending.clone().unwrap_or_default();
    let mut actions = with_copy(words, start_buttons(model, words.start_server));
    actions.push(Button::new(words.close, Act::CloseReason));
    Message {
        mark: Mark::Bad,
        title: words.ended_title.to_owned(),
        text: match (cause_text(words, &ending.cause), ending.lines.is_empty()) {
            (cause, true) => cause,
            (cause, false) => format!("{cause} {}", words.last_lines),
        },
        lines: ending.lines,
        actions,
    }
}

/// Returns the buttons after a failed start. `port`: port that another program holds, and a free one.
fn with_port(model: &Model, port: Option<(u16, u16)>) -> Vec<Button> {
    let words = model.words();
    let mut others = start_buttons(model, words.try_again);
    let Some((taken, free)) = port else {
        return others;
    };
    others.iter_mut().for_each(|button| button.style = Style::Plain);
    let label = fill(words.use_port, &[&free.to_string()]);
    let mut buttons = vec![Button::new(&label, Act::StartAt(taken, free)).style(Style::Primary)];
    buttons.append(&mut others);
    buttons
}

/// Adds the button that copies the reason and the lines of a failed start or an ended server.
fn with_copy(words: &Words, mut actions: Vec<Button>) -> Vec<Button> {
    actions.push(Button::new(words.copy, Act::CopyReason));
    actions
}

/// Returns the buttons for a server elsewhere that cannot be used.
fn elsewhere_buttons(words: &Words) -> Vec<Button> {
    vec![
        Button::new(words.try_again, Act::ConnectAgain).style(Style::Primary),
        Button::new(words.settings, Act::Show(PageName::Settings)),
    ]
}

/// Returns the buttons for a server that does not reply.
fn no_reply_buttons(model: &Model) -> Vec<Button> {
    let words = model.words();
    if model.is_elsewhere() {
        return elsewhere_buttons(words);
    }
    let restart = Button::new(words.restart_server, Act::RestartServer).style(Style::Primary);
    let again = Button::new(words.try_again, Act::ConnectAgain);
    let restart = Some(restart).filter(|_| model.can_restart());
    restart.into_iter().chain([again]).collect()
}

/// Returns the buttons that start a server: in the usual way, with the label `usual`, and in the others.
pub fn start_buttons(model: &Model, usual: &str) -> Vec<Button> {
    let mut buttons = vec![Button::new(usual, Act::StartServer).style(Style::Primary)];
    let others = model
        .ways
        .starters()
        .into_iter()
        .filter(|other| *other != model.starter());
    buttons.extend(others.map(|other| Button::new(starter_label(model.words(), other), Act::StartBy(other))));
    buttons
}

fn starter_label(words: &Words, starter: Starter) -> &'static str {
    match starter {
        Starter::Program => words.start_own,
        Starter::Unit(_) => words.start_service,
    }
}

/// Returns the contents of a page with a list: `loaded` makes them of the list, once it is there.
pub fn of_list<T>(words: &Words, list: &Fetched<T>, loaded: impl FnOnce(&T) -> Body) -> Body {
    match list {
        Fetched::Missing | Fetched::Loading => Body::Message(Message {
            mark: Mark::Busy,
            title: words.loading.to_owned(),
            ..Message::default()
        }),
        Fetched::Loaded(list) => loaded(list),
        Fetched::Failed(error) => Body::Message(failed(words, error)),
        Fetched::Denied => Body::Message(denied(words)),
    }
}

/// Returns the message in place of contents that the token of this program does not permit to read.
pub fn denied(words: &Words) -> Message {
    Message {
        mark: Mark::Bad,
        title: words.denied_title.to_owned(),
        text: words.denied_text.to_owned(),
        actions: vec![Button::new(words.settings, Act::Show(PageName::Settings))],
        ..Message::default()
    }
}

/// Returns the message in place of contents that could not be queried.
pub fn failed(words: &Words, error: &str) -> Message {
    Message {
        mark: Mark::Bad,
        title: words.query_failed.to_owned(),
        text: error.to_owned(),
        actions: vec![Button::new(words.try_again, Act::Refresh)],
        ..Message::default()
    }
}
