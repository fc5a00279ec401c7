//! All texts of the window, in every language.
//!
//! A row of the table has the name of a text and its form in each language. The compiler finds a missing form, and a
//! test finds a placeholder that a language lacks. Texts of the server, such as findings, are shown unchanged.

#[macro_use]
mod adding;
#[macro_use]
mod editing;
#[macro_use]
mod navigation;
#[macro_use]
mod reports;
#[macro_use]
mod server;
#[macro_use]
mod services;
#[macro_use]
mod settings;
#[macro_use]
mod websites;
#[macro_use]
mod traffic;
mod table;

pub use table::Words;

/// Language of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Language {
    #[default]
    English,
    German,
}

impl Language {
    /// All languages.
    pub const ALL: [Language; 2] = [Language::English, Language::German];

    /// Returns the texts.
    pub fn words(self) -> &'static Words {
        match self {
            Language::English => &table::ENGLISH,
            Language::German => &table::GERMAN,
        }
    }

    /// Returns the code of ISO 639, as in the file of settings.
    pub fn code(self) -> &'static str {
        match self {
            Language::English => "en",
            Language::German => "de",
        }
    }

    /// Returns the name that speakers of the language use.
    pub fn name(self) -> &'static str {
        match self {
            Language::English => "English",
            Language::German => "Deutsch",
        }
    }

    /// Returns the language of a locale such as `de_DE.UTF-8`; English for a language that the window lacks.
    pub fn of_locale(locale: &str) -> Language {
        let code = locale.split(['_', '.', '-', '@']).next().unwrap_or_default();
        Language::ALL
            .into_iter()
            .find(|language| language.code() == code)
            .unwrap_or_default()
    }
}

/// Fills the placeholders `{0}`, `{1}` and so on of a text.
pub fn fill(text: &str, values: &[&str]) -> String {
    let mut filled = text.to_owned();
    for (index, value) in values.iter().enumerate() {
        filled = filled.replace(&format!("{{{index}}}"), value);
    }
    filled
}

/// Returns the first sentence of a documentation text, which is its summary.
pub fn first_sentence(text: &str) -> &str {
    let mut is_code = false;
    for (at, letter) in text.char_indices() {
        is_code ^= letter == '`';
        if letter == '.' && !is_code && text[at + 1..].starts_with(' ') {
            return &text[..=at];
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_have_the_same_placeholders() {
        let placeholders = |text: &str| {
            let mut found: Vec<_> = (0..9).filter(|index| text.contains(&format!("{{{index}}}"))).collect();
            found.sort_unstable();
            found
        };
        for (name, english, german) in table::ROWS {
            assert_eq!(placeholders(english), placeholders(german), "{name}");
            assert!(!english.trim().is_empty() && !german.trim().is_empty(), "{name}");
        }
    }

    /// Adds the text of each source file in a folder, but not the rows of the table.
    fn add_sources(folder: &std::path::Path, sources: &mut String) {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() && !path.ends_with("words") {
                add_sources(&path, sources);
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                sources.push_str(&std::fs::read_to_string(&path).unwrap());
            }
        }
    }

    #[test]
    fn every_text_is_used() {
        let mut sources = String::new();
        add_sources(
            &std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
            &mut sources,
        );
        let is_used = |name: &str| {
            let member = format!(".{name}");
            let mut rest = sources
                .match_indices(&member)
                .map(|(at, _)| &sources[at + member.len()..]);
            // A call is that of a method with the same name.
            rest.any(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_' || next == '('))
        };
        let names = table::ROWS.iter().map(|(name, ..)| *name);
        let unused: Vec<&str> = names.filter(|name| !is_used(name)).collect();
        assert!(
            unused.is_empty(),
            "remove these texts from the table, or show them: {unused:?}"
        );
        assert!(!is_used("a_text_that_no_page_shows"));
    }

    #[test]
    fn locales_select_a_language() {
        for (locale, expected) in [
            ("de_DE.UTF-8", Language::German),
            ("de", Language::German),
            ("en_GB", Language::English),
            ("fr_FR", Language::English),
            ("C", Language::English),
            ("", Language::English),
        ] {
            assert_eq!(Language::of_locale(locale), expected, "{locale}");
        }
    }

    #[test]
    fn documentation_begins_with_a_sentence() {
        assert_eq!(first_sentence("Runs `a. b`. More of it."), "Runs `a. b`.");
        assert_eq!(first_sentence("One."), "One.");
    }

    #[test]
    fn placeholders_are_filled() {
        assert_eq!(fill("{0} of {1}", &["a", "b"]), "a of b");
        assert_eq!(fill("none", &["a"]), "none");
    }
}
