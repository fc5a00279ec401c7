//! Words of messages: what a kind of value takes, and values cut to a length that can be read.

use crate::keys::Kind;

/// Longest value repeated in a message.
const MAX_SHOWN_CHARS: usize = 60;

/// What a kind takes, as a message says it.
pub(super) fn kind_words(kind: &Kind) -> String {
    match kind {
        Kind::Any => "any value".to_owned(),
        Kind::Boolean => "true or false".to_owned(),
        Kind::Integer { min, max } => format!("a whole number from {min} to {max}"),
        Kind::Duration { .. } => "a duration such as \"10s\"".to_owned(),
        Kind::Size { .. } => "a size such as \"50KiB\"".to_owned(),
        Kind::Rate { .. } => "a rate such as \"500B/s\"".to_owned(),
        Kind::Choice(words) => or(words.iter().filter(|w| w.later.is_none()).map(|word| quoted(word.text))),
        Kind::Text(what) => format!("a string ({what})"),
        Kind::List(inner) => format!("a list, each element {}", kind_words(inner)),
        Kind::Several(inner) => format!("{}, or a list", kind_words(inner)),
        Kind::Map { name, .. } => format!("a table, {{ \"{name}\" = … }}"),
        Kind::Table(_) => "a table".to_owned(),
        Kind::Tables { name, .. } => format!("a table for each {name}"),
        Kind::Either(kinds) => or(kinds.iter().map(kind_words)),
    }
}

/// Joins alternatives: `a, b or c`.
pub(super) fn or(parts: impl Iterator<Item = String>) -> String {
    let parts: Vec<_> = parts.collect();
    match parts.split_last() {
        Some((last, first)) if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => parts.concat(),
    }
}

pub(super) fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

/// A value as a message repeats it: never longer than a line.
pub(super) fn short(text: &str) -> String {
    if text.chars().count() <= MAX_SHOWN_CHARS {
        return text.to_owned();
    }
    text.chars().take(MAX_SHOWN_CHARS).chain(['…']).collect()
}
