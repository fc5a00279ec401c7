//! Settings of the window, and their file: one `key = "value"` per line.

use crate::theme::ThemeChoice;
use crate::words::Language;

/// Settings of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settings {
    pub theme: ThemeChoice,
    pub language: Language,
}

impl Settings {
    /// Parses the text of the file. Unknown lines are ignored, and a missing key keeps its value in `defaults`.
    pub fn parse(text: &str, defaults: Settings) -> Settings {
        let mut settings = defaults;
        for line in text.lines() {
            let Some((key, value)) = line.split_once('=') else {
                continue;
            };
            settings.set(key.trim(), value.trim().trim_matches('"'));
        }
        settings
    }

    /// Sets a key to the text of a value. An unknown key or value changes nothing.
    pub fn set(&mut self, key: &str, value: &str) {
        match key {
            "theme" => {
                if let Some(theme) = ThemeChoice::ALL.into_iter().find(|theme| theme.name() == value) {
                    self.theme = theme;
                }
            }
            "language" => {
                if let Some(language) = Language::ALL.into_iter().find(|language| language.code() == value) {
                    self.language = language;
                }
            }
            _ => {}
        }
    }

    /// Returns the text of the file.
    pub fn text(self) -> String {
        format!(
            "# Settings of the RockNet window.\ntheme = \"{}\"\nlanguage = \"{}\"\n",
            self.theme.name(),
            self.language.code()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_survive_their_file() {
        let settings = Settings {
            theme: ThemeChoice::Dark,
            language: Language::German,
        };
        assert_eq!(Settings::parse(&settings.text(), Settings::default()), settings);
        for text in ["", "theme", "theme = \"pink\"\nlanguage = \"xx\"\nmoons = 2", "\u{0}"] {
            assert_eq!(Settings::parse(text, settings), settings, "{text:?}");
        }
    }
}
