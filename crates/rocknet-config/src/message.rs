//! Words of messages: values cut to a length that can be read, alternatives, and the word that was meant.

/// Longest value repeated in a message.
const MAX_SHOWN_CHARS: usize = 60;

/// Joins alternatives: `a, b or c`.
pub(crate) fn alternatives(parts: impl Iterator<Item = String>) -> String {
    let parts: Vec<_> = parts.collect();
    match parts.split_last() {
        Some((last, first)) if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => parts.concat(),
    }
}

pub(crate) fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

/// Returns a value as a message repeats it: never longer than a line.
pub(crate) fn short(text: &str) -> String {
    if text.chars().count() <= MAX_SHOWN_CHARS {
        return text.to_owned();
    }
    text.chars().take(MAX_SHOWN_CHARS).chain(['…']).collect()
}

/// Returns the nearest of some words to a mistyped one, if any is near enough to be meant.
pub(crate) fn nearest<'w>(word: &str, words: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let lower = word.to_ascii_lowercase();
    // One slip in three letters, three at most: beyond that a guess misleads more than it helps.
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
