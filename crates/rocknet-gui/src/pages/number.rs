//! Numbers in the form of the language: 1,234.5 in English, and 1.234,5 in German.

use rocknet_control::text;

use crate::words::Words;

/// Formats a number of things.
pub fn count(words: &Words, number: u64) -> String {
    localized(words, &text::count(number))
}

/// Formats a number of bytes with its unit.
pub fn bytes(words: &Words, number: u64) -> String {
    localized(words, &text::bytes(number))
}

/// Formats a duration in microseconds, with its unit.
pub fn duration(words: &Words, microseconds: u64) -> String {
    localized(words, &text::short_duration(microseconds))
}

/// Formats a share in percent.
pub fn share(words: &Words, part: u64, whole: u64) -> String {
    localized(words, &text::share(part, whole))
}

/// Formats a number with one decimal.
pub fn tenths(words: &Words, number: f64) -> String {
    localized(words, &format!("{number:.1}"))
}

/// Replaces the separators of English. The text has no other point or comma.
fn localized(words: &Words, english: &str) -> String {
    let separator = |letter| match letter {
        '.' => words.decimal_separator,
        ',' => words.thousands_separator,
        _ => "",
    };
    let mut localized = String::with_capacity(english.len());
    for letter in english.chars() {
        match separator(letter) {
            "" => localized.push(letter),
            separator => localized.push_str(separator),
        }
    }
    localized
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::Language;

    #[test]
    fn separators_are_those_of_the_language() {
        let shown = |language: Language| {
            let words = language.words();
            [
                count(words, 1_234_567),
                bytes(words, 1_572_864),
                duration(words, 15_893),
                share(words, 1, 8),
                share(words, 0, 0),
                tenths(words, 58.74),
            ]
        };
        assert_eq!(
            shown(Language::English),
            ["1,234,567", "1.5 MiB", "15.8 ms", "12.5 %", "–", "58.7"]
        );
        assert_eq!(
            shown(Language::German),
            ["1.234.567", "1,5 MiB", "15,8 ms", "12,5 %", "–", "58,7"]
        );
    }
}
