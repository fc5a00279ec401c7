//! Checks every key against the table of keys, and every value against its kind.

use crate::check::unknown;
use crate::context::Check;
use crate::file::{Entry, Node, Table, Value};
use crate::finding::Code;
use crate::keys::{self, Key, Kind, Section, Word};
use crate::message::{alternatives, nearest, quoted, short};
use crate::units::{self, UnitError};

/// Checks the keys of all tables of a configuration.
pub(super) fn check(check: &mut Check<'_>, root: &Table) {
    table(check, Section::Top, Section::Top.header(), root);
}

/// Checks the keys of a table. `header`: name of the table in messages.
fn table(check: &mut Check<'_>, section: Section, header: &str, written: &Table) {
    for (name, entry) in written.in_order() {
        match keys::find(section, name) {
            Some(key) => value(check, key, &key.kind, &entry.node),
            // The parser has already reported the missing value, and most lines without a value are not keys at all.
            None if matches!(entry.node.value, Value::Broken) => {}
            None => unknown::report(check, section, header, name, entry),
        }
    }
}

/// Checks a value against its kind.
fn value(check: &mut Check<'_>, key: &Key, kind: &Kind, node: &Node) {
    match (kind, &node.value) {
        (_, Value::Broken) => {}
        (Kind::Boolean, Value::Boolean(_)) | (Kind::Text(_), Value::Text(_)) => {}
        (Kind::Integer { min, max }, Value::Integer(number)) => {
            if number < min || number > max {
                out_of_range(
                    check,
                    key,
                    node,
                    &number.to_string(),
                    &min.to_string(),
                    &max.to_string(),
                );
            }
        }
        (Kind::Duration { min_ms, max_ms }, Value::Text(text)) => match units::duration(&text.value) {
            Err(UnitError(help)) => bad_unit(check, key, node, "a duration", help),
            Ok(got) => {
                let ms = u64::try_from(got.as_millis()).unwrap_or(u64::MAX);
                if ms < *min_ms || ms > *max_ms {
                    let show =
                        |ms: u64| format!("\"{}\"", units::format_duration(std::time::Duration::from_millis(ms)));
                    out_of_range(check, key, node, &show(ms), &show(*min_ms), &show(*max_ms));
                }
            }
        },
        (Kind::Duration { .. }, Value::Integer(number)) => {
            let message = format!("`{}` needs a unit", key.name);
            check.error(
                Code::BadValue,
                node.span,
                message,
                format!("write \"{number}s\" for seconds"),
            );
        }
        (Kind::Size { min, max }, _) if is_measure(node) => {
            measure(check, key, node, (*min, *max), "a size", units::size, "");
        }
        (Kind::Rate { min, max }, _) if is_measure(node) => {
            measure(check, key, node, (*min, *max), "a rate", units::rate, "/s");
        }
        (Kind::Choice(words), Value::Text(text)) => choice(check, key, words, node, &text.value, text.as_written()),
        (Kind::List(inner), Value::List(items)) => items.iter().for_each(|item| value(check, key, inner, item)),
        (Kind::Several(inner), Value::List(items)) => items.iter().for_each(|item| value(check, key, inner, item)),
        (Kind::Several(inner), _) => value(check, key, inner, node),
        (Kind::Map { value: inner, .. }, Value::Table(entries)) => {
            entries
                .in_order()
                .iter()
                .for_each(|(_, entry)| value(check, key, inner, &entry.node));
        }
        (Kind::Table(section), Value::Table(entries)) => table(check, *section, section.header(), entries),
        (Kind::Tables { name, section }, Value::Table(entries)) => {
            for (written, entry) in entries.in_order() {
                match &entry.node.value {
                    Value::Table(inner) => table(check, *section, &named(*section, name, written), inner),
                    Value::Broken => {}
                    _ => unnamed(check, key, name, *section, written, entry),
                }
            }
        }
        (Kind::Either(kinds), _) => either(check, key, kind, kinds, node),
        _ => wrong_type(check, key, kind, node),
    }
}

/// Returns the name of a table for messages. `name`: description of the names, as in [`Kind::Tables`]. `written`: the
/// name that the operator chose.
fn named(section: Section, name: &str, written: &str) -> String {
    match section {
        Section::Site => format!("[site.\"{}\"]", short(written)),
        Section::Route => format!("route \"{}\"", short(written)),
        _ => format!("{} of {name} \"{}\"", section.header(), short(written)),
    }
}

/// Reports a value in place of a named table, such as `root = …` directly below `[site]`.
fn unnamed(check: &mut Check<'_>, key: &Key, name: &str, section: Section, written: &str, entry: &Entry) {
    let message = format!("`{}` takes a table for each {name}, not `{}`", key.name, short(written));
    check.error(
        Code::WrongType,
        entry.key,
        message,
        format!("write {} and the keys below it", section.header()),
    );
}

/// Checks a value against the first alternative that fits it. `kinds` lists words before other kinds of strings,
/// so that words take precedence. `whole`: the [`Kind::Either`] of the alternatives `kinds`.
fn either(check: &mut Check<'_>, key: &Key, whole: &Kind, kinds: &'static [Kind], node: &Node) {
    let fits = |kind: &&Kind| match (kind, &node.value) {
        (Kind::Choice(words), Value::Text(text)) => words.iter().any(|word| word.text == text.value),
        (Kind::Text(_) | Kind::Duration { .. }, Value::Text(_)) => true,
        (Kind::Size { .. } | Kind::Rate { .. }, _) => is_measure(node),
        (Kind::Integer { .. }, Value::Integer(_)) => true,
        (Kind::Boolean, Value::Boolean(_)) => true,
        (Kind::List(_), Value::List(_)) => true,
        // If the short form is a map, as in `auth = { bob = "…" }`, a table is the long form only if it has a key of
        // the section, as in `auth = { users = { bob = "…" } }`.
        (Kind::Table(section), Value::Table(table)) => {
            let has_short_form = kinds.iter().any(|kind| matches!(kind, Kind::Map { .. }));
            !has_short_form || table.entries.keys().any(|name| keys::find(*section, name).is_some())
        }
        (Kind::Map { .. }, Value::Table(_)) => true,
        _ => false,
    };
    if let Some(kind) = kinds.iter().find(fits) {
        return value(check, key, kind, node);
    }
    // For a string that is not one of the words, the help proposes the nearest word.
    let words = kinds.iter().find_map(|kind| match (kind, &node.value) {
        (Kind::Choice(words), Value::Text(text)) => Some((*words, text)),
        _ => None,
    });
    match words {
        Some((words, text)) => choice(check, key, words, node, &text.value, text.as_written()),
        None if matches!(node.value, Value::Broken) => {}
        None => wrong_type(check, key, whole, node),
    }
}

/// Checks a string against the words of a choice. `written` is the string. `shown` is its form in messages, in which
/// variables are not expanded.
fn choice(check: &mut Check<'_>, key: &Key, words: &[Word], node: &Node, written: &str, shown: &str) {
    match words.iter().find(|word| word.text == written) {
        Some(Word { later: None, .. }) => {}
        Some(Word {
            text,
            later: Some(feature),
            ..
        }) => {
            let usable: Vec<_> = words
                .iter()
                .filter(|word| word.later.is_none())
                .map(|word| quoted(word.text))
                .collect();
            let help = format!("until then write {}", usable.join(" or "));
            check.not_available(&format!("{} = {}", key.name, quoted(text)), feature, node.span, &help);
        }
        None => {
            let message = format!("`{}` cannot be {}", key.name, quoted(&short(shown)));
            let help = match (
                nearest(written, words.iter().map(|word| word.text)),
                meant(&key.kind, node),
            ) {
                (_, Some(meant)) => format!("write {} = {meant}", key.name),
                (Some(near), None) => format!("did you mean {}?", quoted(near)),
                (None, None) => format!("write {}", kind_words(&key.kind)),
            };
            check.error(Code::BadValue, node.span, message, help);
        }
    }
}

/// Returns true if a value has a type in which sizes and rates are written: a number or a string.
fn is_measure(node: &Node) -> bool {
    matches!(node.value, Value::Integer(_) | Value::Text(_))
}

/// Checks a size or rate. `noun` names the value in messages. `per` follows the number of bytes in messages: `/s` for
/// a rate, and empty for a size.
fn measure(
    check: &mut Check<'_>,
    key: &Key,
    node: &Node,
    (min, max): (u64, u64),
    noun: &str,
    parse: fn(&str) -> Result<u64, UnitError>,
    per: &str,
) {
    let got = match &node.value {
        Value::Text(text) => match parse(&text.value) {
            Ok(got) => got,
            Err(UnitError(help)) => return bad_unit(check, key, node, noun, help),
        },
        Value::Integer(number) => match u64::try_from(*number) {
            Ok(got) => got,
            Err(_) => return bad_unit(check, key, node, noun, "write a number of at least 0".to_owned()),
        },
        _ => return,
    };
    if got < min || got > max {
        let show = |bytes: u64| format!("\"{}{per}\"", units::format_size(bytes));
        out_of_range(check, key, node, &show(got), &show(min), &show(max));
    }
}

/// Reports a duration, size or rate that cannot be parsed. `noun`: the kind of the value, such as `a size`.
fn bad_unit(check: &mut Check<'_>, key: &Key, node: &Node, noun: &str, help: String) {
    let written = match &node.value {
        Value::Text(text) => quoted(&short(text.as_written())),
        _ => short(check.sources.slice(node.span)),
    };
    check.error(
        Code::BadValue,
        node.span,
        format!("`{}` takes {noun}, and {written} is not one", key.name),
        help,
    );
}

/// Reports a value that is less than `min` or greater than `max`. `got`: the value as messages show it.
fn out_of_range(check: &mut Check<'_>, key: &Key, node: &Node, got: &str, min: &str, max: &str) {
    let message = format!("`{}` cannot be {got}", key.name);
    check.error(
        Code::BadValue,
        node.span,
        message,
        format!("write a value from {min} to {max}"),
    );
}

/// Returns the most likely meaning of a misspelled switch as TOML: `true` for `1`, `"auto"` for `"on"`. Returns
/// `None` if the value is not a form of yes or no, or if the kind has no switch.
fn meant(kind: &Kind, node: &Node) -> Option<String> {
    let is_on = match &node.value {
        Value::Boolean(value) => *value,
        Value::Integer(0) => false,
        Value::Integer(1) => true,
        Value::Text(text) => match text.value.to_ascii_lowercase().as_str() {
            "on" | "yes" | "true" | "1" | "enabled" => true,
            "off" | "no" | "false" | "0" | "none" | "disabled" => false,
            _ => return None,
        },
        _ => return None,
    };
    match kind {
        Kind::Boolean => Some(is_on.to_string()),
        Kind::Either(kinds) => {
            let words = kinds.iter().find_map(|kind| match kind {
                Kind::Choice(words) => Some(*words),
                _ => None,
            })?;
            let word = if is_on { "auto" } else { "off" };
            words
                .iter()
                .find(|known| known.text == word)
                .map(|known| quoted(known.text))
        }
        _ => None,
    }
}

/// Reports a value of a type that the kind does not accept, with the most helpful correction.
fn wrong_type(check: &mut Check<'_>, key: &Key, kind: &Kind, node: &Node) {
    if let (Kind::Tables { section, .. }, Value::List(_)) = (kind, &node.value) {
        let message = format!("`{}` is a list, but needs a table with a name for each entry", key.name);
        return check.error(
            Code::WrongType,
            node.span,
            message,
            format!("write {} for each", section.header()),
        );
    }
    let message = format!("`{}` takes {}, not {}", key.name, kind_words(kind), node.noun());
    let mut help = String::new();
    if let Some(meant) = meant(kind, node) {
        help = format!("write {} = {meant}", key.name);
    }
    if let (Kind::Boolean, Value::Integer(_)) = (kind, &node.value)
        && help.is_empty()
    {
        help = format!("write {0} = true or {0} = false", key.name);
    }
    if let Value::Text(text) = &node.value
        && matches!(kind, Kind::Integer { .. } | Kind::Either(_))
        // The value of a variable may be a secret, so the help does not show it.
        && text.template.is_none()
        && text.value.trim().parse::<i64>().is_ok()
    {
        help = format!("write it without quotes: {} = {}", key.name, text.value.trim());
    }
    if help.is_empty() && matches!(kind, Kind::Text(_)) && matches!(node.value, Value::Integer(_) | Value::Float) {
        help = format!("put quotes around it: \"{}\"", check.sources.slice(node.span));
    }
    if help.is_empty() {
        match kind {
            // If the key has an example, the example below is the help.
            Kind::Table(section) if key.example.is_empty() => {
                help = format!("write {} and its keys below it", section.header());
            }
            Kind::Tables { section, .. } => help = format!("write {} and its keys below it", section.header()),
            _ => {}
        }
    }
    if help.is_empty() {
        help = key
            .example
            .lines()
            .next()
            .map(|line| format!("for example: {line}"))
            .unwrap_or_default();
    }
    check.error(Code::WrongType, node.span, message, help);
}

/// Returns a noun phrase for the values of a kind, for messages.
fn kind_words(kind: &Kind) -> String {
    match kind {
        Kind::Boolean => "true or false".to_owned(),
        Kind::Integer { min, max } => format!("a whole number from {min} to {max}"),
        Kind::Duration { .. } => "a duration such as \"10s\"".to_owned(),
        Kind::Size { .. } => "a size such as \"50KiB\"".to_owned(),
        Kind::Rate { .. } => "a rate such as \"500B/s\"".to_owned(),
        Kind::Choice(words) => alternatives(
            words
                .iter()
                .filter(|word| word.later.is_none())
                .map(|word| quoted(word.text)),
        ),
        Kind::Text(what) => format!("a string ({what})"),
        Kind::List(inner) => format!("a list, each element {}", kind_words(inner)),
        Kind::Several(inner) => format!("{}, or a list", kind_words(inner)),
        Kind::Map { name, .. } => format!("a table, {{ \"{name}\" = … }}"),
        Kind::Table(_) => "a table".to_owned(),
        Kind::Tables { name, .. } => format!("a table for each {name}"),
        Kind::Either(kinds) => alternatives(kinds.iter().map(kind_words)),
    }
}
