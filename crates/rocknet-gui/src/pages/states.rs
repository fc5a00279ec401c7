//! Messages in place of a page: no server, no access, a failed start, and lists that are loading or have failed.

use crate::act::{Act, PageName};
use crate::job::{Absence, StartFailure};
use crate::model::{Fetched, Link, Model};
use crate::screen::{Body, Button, Mark, Message, Style};
use crate::words::{Words, fill};

/// Returns the message of every page that needs a server, while the server is absent.
pub fn without_server(model: &Model) -> Message {
    let words = model.words();
    let busy = |title: &str| Message {
        mark: Mark::Busy,
        title: title.to_owned(),
        ..Message::default()
    };
    let start = |label| Button::new(label, Act::StartServer).style(Style::Primary);
    match &model.link {
        Link::Connecting | Link::Online(_) => busy(words.connecting_title),
        Link::Starting => busy(words.starting_title),
        Link::Stopping => busy(words.stopping_title),
        Link::Absent(Absence::Stopped(has_config)) => Message {
            mark: Mark::Off,
            title: if *has_config {
                words.offline_title
            } else {
                words.welcome_title
            }
            .to_owned(),
            text: if *has_config {
                words.offline_text
            } else {
                words.welcome_text
            }
            .to_owned(),
            actions: vec![start(words.start_server)],
            ..Message::default()
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
        Link::Absent(Absence::Failed(error)) if model.is_elsewhere() => Message {
            actions: elsewhere_buttons(words),
            ..failed(words, error)
        },
        Link::Absent(Absence::Failed(error)) => failed(words, error),
        Link::StartFailed(StartFailure { reason, lines }) => Message {
            mark: Mark::Bad,
            title: words.start_failed_title.to_owned(),
            text: match reason.is_empty() {
                true => words.no_program_text.to_owned(),
                false => reason.clone(),
            },
            lines: lines.clone(),
            actions: vec![start(words.try_again)],
        },
    }
}

/// Returns the buttons for a server elsewhere that cannot be used.
fn elsewhere_buttons(words: &Words) -> Vec<Button> {
    vec![
        Button::new(words.try_again, Act::ConnectAgain).style(Style::Primary),
        Button::new(words.settings, Act::Show(PageName::Settings)),
    ]
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
