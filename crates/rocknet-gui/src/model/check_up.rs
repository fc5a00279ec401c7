//! Remedies of the check-up: the command of a finding, and what the window can do itself.

use rocknet_control::doctor::{DoctorCheck, DoctorVerdict};

use super::{Effect, Fetched, Model};
use crate::act::PageName;
use crate::words::fill;

/// Maximum length of a command that is offered. One line of a terminal shows it whole.
const MAX_COMMAND: usize = 200;

impl Model {
    /// Returns the selected check.
    pub fn selected_check(&self) -> Option<&DoctorCheck> {
        let key = self.selected.get(&(PageName::CheckUp as u8))?;
        let Fetched::Loaded(checks) = &self.checks else {
            return None;
        };
        checks.iter().find(|check| check.found == *key)
    }

    /// Returns the command that the server has marked as the remedy of the selected check.
    pub fn remedy(&self) -> Option<&str> {
        let check = self.selected_check()?;
        let command = check.command.as_deref()?;
        // The user pastes it into a terminal, where other characters could hide a part of it or run it at once.
        let is_shown = |letter: char| letter == ' ' || letter.is_ascii_graphic();
        (!command.is_empty() && command.len() <= MAX_COMMAND && command.chars().all(is_shown)).then_some(command)
    }

    /// Returns true if an edit of the configuration removes the cause of the selected check.
    pub fn is_remedied_by_edit(&self) -> bool {
        let by_edit = |check: &DoctorCheck| {
            matches!(&*check.check, "configuration" | "site" | "port" | "state" | "sandbox")
                && matches!(check.verdict, DoctorVerdict::Fair | DoctorVerdict::Bad)
        };
        self.selected_check().is_some_and(by_edit)
    }

    /// Puts the command of the selected check on the clipboard. That of a server elsewhere is shown first.
    pub(super) fn copy_remedy(&mut self) -> Vec<Effect> {
        let Some(command) = self.remedy().map(str::to_owned) else {
            return Vec::new();
        };
        if self.is_elsewhere() && self.viewed_command.as_ref() != Some(&command) {
            self.viewed_command = Some(command);
            return Vec::new();
        }
        self.viewed_command = None;
        self.tell(fill(self.words().copied, &[&command]), false);
        vec![Effect::Copy(command)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::act::Act;
    use crate::elsewhere::{Elsewhere, ServerPlace};
    use crate::job::Report;
    use crate::model::Settings;
    use crate::pages;
    use crate::screen::Body;

    fn check(check: &str, command: Option<&str>) -> DoctorCheck {
        DoctorCheck {
            check: check.to_owned(),
            verdict: DoctorVerdict::Bad,
            found: format!("{check} is wrong"),
            command: command.map(str::to_owned),
            ..DoctorCheck::default()
        }
    }

    /// Returns a model that shows a check, which is selected.
    fn showing(found: DoctorCheck, place: Option<Elsewhere>) -> Model {
        let mut model = Model::new(Settings::default());
        model.report(Report::Place(place.unwrap_or_default()));
        model.report(Report::Connected("/run/s".into()));
        model.report(Report::Polled(Box::default()));
        model.act(Act::Show(PageName::CheckUp));
        let key = found.found.clone();
        model.report(Report::Doctor(Ok(vec![found])));
        model.act(Act::Select(key));
        model
    }

    fn enabled(model: &Model, act: &Act) -> bool {
        let actions = pages::screen(model).actions;
        actions.iter().any(|button| button.act == *act && button.enabled)
    }

    fn copied(effects: &[Effect]) -> Option<&str> {
        effects.iter().find_map(|effect| match effect {
            Effect::Copy(text) => Some(text.as_str()),
            _ => None,
        })
    }

    #[test]
    fn only_commands_that_the_server_has_marked_are_copied() {
        let mut model = showing(check("PHP", Some("apt install php8.2-fpm")), None);
        assert!(enabled(&model, &Act::CopyService) && !enabled(&model, &Act::EditText));
        let effects = model.act(Act::CopyService);
        assert_eq!(copied(&effects), Some("apt install php8.2-fpm"));
        let long = "x".repeat(MAX_COMMAND + 1);
        for command in [
            None,
            Some(""),
            Some("a\nb"),
            Some("a\u{202e}b"),
            Some("a\u{1b}[2K"),
            Some(&*long),
        ] {
            let mut model = showing(check("PHP", command), None);
            assert!(!enabled(&model, &Act::CopyService), "{command:?}");
            assert_eq!(copied(&model.act(Act::CopyService)), None, "{command:?}");
        }
    }

    #[test]
    fn the_command_of_another_server_is_shown_first() {
        let elsewhere = Elsewhere {
            place: ServerPlace::Socket,
            socket: "/run/other.sock".to_owned(),
            ..Elsewhere::default()
        };
        let command = "rocknet check --config /etc/rocknet/rocknet.toml";
        let mut model = showing(check("configuration", Some(command)), Some(elsewhere));
        assert!(model.is_elsewhere());
        assert_eq!(copied(&model.act(Act::CopyService)), None);
        let Body::Message(view) = pages::screen(&model).body else {
            panic!("no view")
        };
        assert_eq!(view.lines, [command]);
        assert_eq!(view.actions[0].act, Act::CopyService);
        model.act(Act::Cancel);
        assert!(matches!(pages::screen(&model).body, Body::Table(_)));
        model.act(Act::CopyService);
        assert_eq!(copied(&model.act(Act::CopyService)), Some(command));
        assert!(matches!(pages::screen(&model).body, Body::Table(_)));
    }

    #[test]
    fn findings_about_the_configuration_open_its_text() {
        for (subject, expected) in [
            ("configuration", true),
            ("site", true),
            ("port", true),
            ("open files", false),
        ] {
            let model = showing(check(subject, None), None);
            assert_eq!(enabled(&model, &Act::EditText), expected, "{subject}");
        }
        let mut good = check("configuration", None);
        good.verdict = DoctorVerdict::Good;
        assert!(!enabled(&showing(good, None), &Act::EditText));
    }
}
