//! Text for the terminal that contains names, paths or messages of other origins.

/// Replaces control characters by U+FFFD and newlines by spaces, so that the text can neither control the terminal nor
/// begin a line. Characters that change the direction of text are replaced, too.
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|letter| match letter {
            '\n' => ' ',
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => char::REPLACEMENT_CHARACTER,
            letter if letter.is_control() => char::REPLACEMENT_CHARACTER,
            letter => letter,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_control_the_terminal() {
        assert_eq!(
            printable("a \u{1b}[2J\r\n\u{9b}é\u{202e}"),
            "a \u{fffd}[2J\u{fffd} \u{fffd}é\u{fffd}"
        );
    }
}
