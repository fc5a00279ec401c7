//! Settings of the window.

use super::fields::field;
use super::place;
use crate::act::{Act, FieldId};
use crate::model::Model;
use crate::screen::{Body, Button, FieldInput, Form, Screen};
use crate::theme::ThemeChoice;
use crate::words::Language;

/// Returns the page.
pub fn screen(model: &Model) -> Screen {
    let words = model.words();
    let themes = [
        (ThemeChoice::Desktop, words.as_desktop),
        (ThemeChoice::Light, words.light),
        (ThemeChoice::Dark, words.dark),
    ];
    let themes = themes.map(|(theme, label)| (theme.name().to_owned(), label.to_owned()));
    let help = match (model.settings.theme, model.desktop) {
        (ThemeChoice::Desktop, None) => words.no_desktop_wish,
        _ => "",
    };
    let languages = Language::ALL.map(|language| (language.code().to_owned(), language.name().to_owned()));
    let mut form = Form {
        fields: vec![
            field(
                FieldId::Theme,
                words.appearance,
                help,
                FieldInput::Choice(themes.to_vec()),
                model.settings.theme.name(),
            ),
            field(
                FieldId::Language,
                words.language,
                "",
                FieldInput::Choice(languages.to_vec()),
                model.settings.language.code(),
            ),
        ],
        ..Form::default()
    };
    place::add(model, &mut form);
    Screen {
        title: words.settings.to_owned(),
        subtitle: words.settings_help.to_owned(),
        actions: vec![Button::new(words.show_keys, Act::Help)],
        body: Body::Form(form),
        ..Screen::default()
    }
}
