//! Parts of messages: truncated values, lists of alternatives, and the word that was probably meant.

/// Maximum number of characters of a value that a message quotes. A longer quote would hide the rest of the message.
const MAX_SHOWN_CHARS: usize = 60;

/// Joins alternatives: `a, b or c`.
pub(crate) fn alternatives(parts: impl Iterator<Item = String>) -> String {
    let parts: Vec<_> = parts.collect();
    match parts.split_last() {
        Some((last, first)) if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => parts.concat(),
    }
}

/// Returns a text in double quotes.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

/// Returns a value truncated to a length that fits in a message.
pub(crate) fn short(text: &str) -> String {
    if text.chars().count() <= MAX_SHOWN_CHARS {
        return text.to_owned();
    }
    text.chars().take(MAX_SHOWN_CHARS).chain(['…']).collect()
}

/// Returns the word that is nearest to a mistyped one; `None` if none is similar enough.
pub(crate) fn nearest<'w>(word: &str, words: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let lower = word.to_ascii_lowercase();
    // One typing error per three letters is allowed, at least one and at most three. A worse match would mislead more
    // than help.
    let allowed = (lower.chars().count() / 3).clamp(1, 3);
    words
        .map(|candidate| {
            (
                strsim::damerau_levenshtein(&lower, &candidate.to_ascii_lowercase()),
                candidate,
            )
        })
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
