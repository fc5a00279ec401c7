//! Notice about an edit of the configuration by another program that is not loaded yet.

use std::path::Path;

use rocknet_control::config::ConfigState;

use crate::act::{Act, PageName};
use crate::model::Model;
use crate::screen::{Banner, Button, Mark};
use crate::words::fill;

/// Returns the notice, on the pages that show the configuration; `None` if everything is loaded.
pub fn banner(model: &Model) -> Option<Banner> {
    // The form and the text follow the file themselves.
    if !matches!(model.page, PageName::Websites | PageName::Server | PageName::History) {
        return None;
    }
    let state = model.unloaded_config()?;
    let words = model.words();
    if let Some(error) = &state.unreadable {
        return Some(Banner {
            mark: Mark::Bad,
            text: fill(words.edited_unreadable, &[&state.file.to_string_lossy(), error]),
            action: None,
        });
    }
    if let Some(error) = state.errors.first() {
        let file = name(&error.file);
        return Some(Banner {
            mark: Mark::Bad,
            text: match error.line {
                0 => fill(words.edited_unusable, &[&file]),
                line => fill(words.edited_broken, &[&file, &line.to_string()]),
            },
            action: Some(Button::new(words.edit_as_text, Act::EditText)),
        });
    }
    Some(Banner {
        mark: Mark::Fair,
        text: difference(model, state),
        action: Some(Button::new(words.reload_now, Act::ReloadServer)),
    })
}

/// Returns the words about the websites that differ, or about the file if none does.
fn difference(model: &Model, state: &ConfigState) -> String {
    let words = model.words();
    match (&state.added[..], &state.removed[..]) {
        ([added], _) => fill(words.edited_one, &[added]),
        ([_, _, ..], _) => fill(words.edited_added, &[&state.added.len().to_string()]),
        ([], []) => {
            let file = state.not_loaded.first().unwrap_or(&state.file);
            fill(words.edited_file, &[&name(file)])
        }
        ([], removed) => fill(words.edited_removed, &[&removed.join(", ")]),
    }
}

/// Returns the name of a file without its folder.
fn name(file: &Path) -> String {
    file.file_name()
        .unwrap_or(file.as_os_str())
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use rocknet_control::Status;
    use rocknet_control::explanation::ConfigPosition;

    use super::*;
    use crate::job::{Poll, Report};
    use crate::model::Settings;
    use crate::pages::screen;

    /// Returns the text and the act of the notice for a state of the files.
    fn shown(state: ConfigState) -> Option<(String, Option<Act>)> {
        let mut model = Model::new(Settings::default());
        model.report(Report::Connected("/run/s".into()));
        model.report(Report::Polled(Box::new(Poll {
            status: Status::default(),
            sites: Some(Vec::new()),
            config: Some(ConfigState {
                file: "/etc/rocknet.toml".into(),
                ..state
            }),
            ..Poll::default()
        })));
        let banner = screen(&model).banner?;
        model.act(Act::Show(PageName::Activity));
        assert!(screen(&model).banner.is_none());
        Some((banner.text, banner.action.map(|button| button.act)))
    }

    #[test]
    fn edits_by_hand_are_named() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let loaded = ConfigState {
            is_loaded: true,
            ..ConfigState::default()
        };
        assert_eq!(shown(loaded), None);
        for (state, expected, act) in [
            (
                ConfigState {
                    added: names(&["a.test"]),
                    removed: names(&["b.test"]),
                    ..ConfigState::default()
                },
                "a.test is not loaded",
                Some(Act::ReloadServer),
            ),
            (
                ConfigState {
                    added: names(&["a.test", "b.test"]),
                    ..ConfigState::default()
                },
                "2 websites",
                Some(Act::ReloadServer),
            ),
            (
                ConfigState {
                    removed: names(&["a.test", "b.test"]),
                    ..ConfigState::default()
                },
                "no longer has a.test, b.test",
                Some(Act::ReloadServer),
            ),
            (
                ConfigState {
                    not_loaded: vec!["/etc/sites/shop.toml".into()],
                    ..ConfigState::default()
                },
                "shop.toml was edited",
                Some(Act::ReloadServer),
            ),
            (
                ConfigState {
                    added: names(&["a.test"]),
                    errors: vec![ConfigPosition {
                        file: "/etc/sites/shop.toml".into(),
                        line: 7,
                    }],
                    ..ConfigState::default()
                },
                "shop.toml was edited, and has an error in line 7",
                Some(Act::EditText),
            ),
            (
                ConfigState {
                    unreadable: Some("No such file".to_owned()),
                    ..ConfigState::default()
                },
                "cannot read /etc/rocknet.toml: No such file",
                None,
            ),
        ] {
            let (text, action) = shown(state).expect("a notice");
            assert!(text.contains(expected), "{text}");
            assert_eq!(action, act, "{text}");
        }
    }
}
