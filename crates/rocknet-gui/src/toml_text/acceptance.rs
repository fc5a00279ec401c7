//! Checks whether a proposal still fits the text, which may have changed since the list of proposals was made.

/// Returns the end of the word that a proposal replaces. The word begins at `start`, and ended at `end` when the list
/// was made. Letters typed since then have to continue the proposal. `None`: the proposal is out of date.
pub fn end_of_word(text: &str, (start, end): (usize, usize), cursor: usize, proposal: &str) -> Option<usize> {
    let typed = text.get(start..cursor)?;
    let fits = cursor == end || proposal.starts_with(typed);
    fits.then_some(cursor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_typed_meanwhile_belong_to_the_word() {
        let end = |text: &str, cursor| end_of_word(text, (2, 4), cursor, "browse");
        assert_eq!(end("a br", 4), Some(4));
        // "o" was typed, or the last letter was deleted, before the list was renewed.
        assert_eq!(end("a bro", 5), Some(5));
        assert_eq!(end("a b", 3), Some(3));
        for (text, cursor) in [("a brx", 5), ("a br ", 5), ("a", 1), ("a br", 9), ("a ä", 3)] {
            assert_eq!(end(text, cursor), None, "{text}");
        }
    }
}
