//! Fields of the settings for the place of the server.

use super::fields;
use crate::act::{Act, FieldId};
use crate::elsewhere::{PlaceProblem, ServerPlace};
use crate::job::Absence;
use crate::model::{Link, Model};
use crate::screen::{Button, Check, Field, FieldInput, Form, Mark, Style};
use crate::words::fill;

/// Adds the fields, the state of the connection, and the button that connects.
pub fn add(model: &Model, form: &mut Form) {
    let (words, elsewhere) = (model.words(), &model.elsewhere);
    let problem = elsewhere.server().err();
    let field = |id, label: &str, help: &str, input, text: &str, problem: &str| Field {
        problem: problem.to_owned(),
        ..fields::field(id, label, help, input, text)
    };
    let label = |place| match place {
        ServerPlace::Here => words.place_here,
        ServerPlace::Socket => words.place_socket,
        ServerPlace::Address => words.place_address,
    };
    let places = ServerPlace::ALL.map(|place| (place.name().to_owned(), label(place).to_owned()));
    form.fields.push(field(
        FieldId::ServerPlace,
        words.server_place,
        words.server_place_help,
        FieldInput::Choice(places.to_vec()),
        elsewhere.place.name(),
        "",
    ));
    // A problem is shown once there is a text that has it.
    let of = |text: &str, wrong: PlaceProblem, words: &'static str| match problem == Some(wrong) && !text.is_empty() {
        true => words,
        false => "",
    };
    match elsewhere.place {
        ServerPlace::Here => {}
        ServerPlace::Socket => form.fields.push(field(
            FieldId::ServerSocket,
            words.server_socket,
            words.server_socket_help,
            FieldInput::Text,
            &elsewhere.socket,
            of(&elsewhere.socket, PlaceProblem::Socket, words.not_a_path),
        )),
        ServerPlace::Address => {
            let not_local = of(&elsewhere.address, PlaceProblem::NotLocal, words.not_local);
            let not_address = of(&elsewhere.address, PlaceProblem::Address, words.not_an_address);
            form.fields.push(field(
                FieldId::ServerAddress,
                words.address,
                words.server_address_help,
                FieldInput::Text,
                &elsewhere.address,
                if not_local.is_empty() { not_address } else { not_local },
            ));
            form.fields.push(field(
                FieldId::ServerToken,
                words.server_token,
                words.server_token_help,
                FieldInput::Secret,
                &elsewhere.token,
                of(&elsewhere.token, PlaceProblem::Token, words.not_a_token),
            ));
        }
    }
    if elsewhere.is_elsewhere() && !model.has_new_place() {
        form.checks.push(state(model));
    }
    if model.has_new_place() {
        let can_connect = problem.is_none();
        form.actions.push(
            Button::new(words.connect, Act::Submit)
                .style(Style::Primary)
                .only_if(can_connect),
        );
    }
}

/// Returns the state of the connection to the server elsewhere.
fn state(model: &Model) -> Check {
    let words = model.words();
    let again = || Some(Button::new(words.try_again, Act::ConnectAgain));
    let (mark, text, fix) = match &model.link {
        Link::Connecting | Link::Starting | Link::Stopping => (Mark::Busy, words.connecting.to_owned(), None),
        Link::Online(server) => {
            let text = fill(words.connected_to, &[&server.to_string_lossy()]);
            (Mark::Good, text, None)
        }
        Link::Absent(Absence::WrongToken(_)) => (Mark::Bad, words.wrong_token_title.to_owned(), again()),
        Link::Absent(Absence::Foreign(server)) => (Mark::Bad, fill(words.foreign_title, &[server]), again()),
        Link::Absent(Absence::Unreachable(server)) => (Mark::Bad, fill(words.unreachable_title, &[server]), again()),
        Link::Absent(Absence::NoAccess(_)) => (Mark::Bad, words.no_access_title.to_owned(), again()),
        Link::Absent(Absence::NoReply(_)) => (Mark::Bad, words.no_reply_title.to_owned(), again()),
        Link::Absent(Absence::Failed(error)) => (Mark::Bad, error.clone(), again()),
        Link::Absent(Absence::Stopped(_)) | Link::StartFailed(_) => (Mark::Off, words.stopped.to_owned(), again()),
    };
    Check { mark, text, fix }
}
