//! Forms that ban a client, and that drop stored responses.

use super::fields::field;
use crate::act::{Act, FieldId};
use crate::model::{BAN_TIMES, DropSelection, Model};
use crate::screen::{Body, Button, Field, FieldInput, Form, Screen, Style};
use crate::words::Words;

/// Returns the page with the form that bans a client.
pub fn add_ban(model: &Model) -> Screen {
    let (words, form) = (model.words(), &model.ban_form);
    let times = BAN_TIMES.map(|time| (time.to_owned(), time_label(words, time).to_owned()));
    let fields = vec![
        field(
            FieldId::BanAddress,
            words.ban_address_label,
            words.ban_address_help,
            FieldInput::Text,
            &form.address,
        ),
        field(
            FieldId::BanTime,
            words.ban_time,
            words.ban_time_help,
            FieldInput::Choice(times.to_vec()),
            &form.time,
        ),
        field(
            FieldId::BanReason,
            words.reason,
            words.ban_reason_help,
            FieldInput::Text,
            &form.reason,
        ),
    ];
    let can_send = model.link.is_online() && form.request().is_some();
    page(words, words.traffic_help, fields, words.ban, can_send)
}

/// Returns the page with the form that drops stored responses.
pub fn drop_responses(model: &Model) -> Screen {
    let (words, form) = (model.words(), &model.drop_form);
    let selections = DropSelection::ALL.map(|one| (one.word().to_owned(), selection_label(words, one).to_owned()));
    let mut fields = vec![field(
        FieldId::DropSelection,
        words.drop_selection,
        "",
        FieldInput::Choice(selections.to_vec()),
        form.selection.word(),
    )];
    let text = match form.selection {
        DropSelection::Url | DropSelection::Prefix => Some(("URL", words.drop_url_help)),
        DropSelection::Tag => Some((words.drop_tag, words.drop_tag_help)),
        DropSelection::All => None,
    };
    if let Some((label, help)) = text {
        fields.push(field(FieldId::DropText, label, help, FieldInput::Text, &form.text));
    }
    fields.push(field(
        FieldId::DropSite,
        words.website,
        words.drop_site_help,
        FieldInput::Text,
        &form.site,
    ));
    let can_send = model.link.is_online() && form.request().is_some();
    page(words, words.drop_help, fields, words.drop_now, can_send)
}

fn page(words: &Words, subtitle: &str, fields: Vec<Field>, label: &str, can_send: bool) -> Screen {
    Screen {
        subtitle: subtitle.to_owned(),
        body: Body::Form(Form {
            fields,
            actions: vec![
                Button::new(label, Act::Submit).style(Style::Primary).only_if(can_send),
                Button::new(words.cancel, Act::Cancel),
            ],
            ..Form::default()
        }),
        ..Screen::default()
    }
}

/// Returns the label of one of [`BAN_TIMES`].
fn time_label(words: &'static Words, time: &str) -> &'static str {
    match time {
        "30m" => words.half_an_hour,
        "1h" => words.last_hour,
        "1d" => words.one_day,
        "7d" => words.one_week,
        "30d" => words.thirty_days,
        "forever" => words.until_lifted,
        _ => words.as_configured,
    }
}

fn selection_label(words: &'static Words, selection: DropSelection) -> &'static str {
    match selection {
        DropSelection::Url => words.drop_url,
        DropSelection::Prefix => words.drop_prefix,
        DropSelection::Tag => words.drop_by_tag,
        DropSelection::All => words.drop_all,
    }
}
