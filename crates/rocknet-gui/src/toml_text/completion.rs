//! Proposals for the place of the cursor, from the table of keys of the server.

use std::collections::BTreeSet;

use rocknet_config::edit::key_path;
use rocknet_config::keys::{self, Key, Kind, Section};

use super::lexer::{TokenKind, ends_within_value, tokens};
use crate::words::first_sentence;

/// Proposals for a part of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// Part of the text that a proposal replaces, in bytes.
    pub start: usize,
    pub end: usize,
    pub proposals: Vec<Proposal>,
}

/// Text that is proposed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// Name of the key, or the value.
    pub label: String,
    /// First sentence of the documentation.
    pub help: String,
    /// Text that is inserted.
    pub text: String,
}

/// Table that a path leads to, by the parts that can follow the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The keys of a section.
    Keys(Section),
    /// Names that the operator chooses. The table of each name has the keys of the section.
    Names(Section),
}

/// Returns proposals for the place after the byte `cursor`; `None` if no key or value fits.
pub fn complete(text: &str, cursor: usize) -> Option<Completion> {
    let cursor = (0..=cursor.min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at))?;
    let line_start = text[..cursor].rfind('\n').map_or(0, |at| at + 1);
    let line = &text[line_start..cursor];
    if ends_within_value(&text[..line_start]) {
        return None;
    }
    let of_line = tokens(line);
    if of_line.last().is_some_and(|token| token.kind == TokenKind::Comment) {
        return None;
    }
    let rest = text[cursor..].lines().next().unwrap_or_default();
    if line.trim_start().starts_with('[') {
        return header(line, cursor, rest);
    }
    let mut path = header_path(text, line_start);
    let at_top = path.is_empty();
    // `open`: length of the path before each inline table that is open.
    let (mut open, mut key, mut is_value) = (Vec::new(), String::new(), false);
    let mut start = cursor;
    for token in &of_line {
        let word = &line[token.start..token.end];
        match (token.kind, word) {
            (TokenKind::Key, word) => {
                if key.is_empty() {
                    start = line_start + token.start;
                }
                key.push_str(word);
            }
            (TokenKind::Mark, "=") => is_value = true,
            (TokenKind::Mark, "{") => {
                open.push(path.len());
                path.extend(key_path(&key).ok()?);
                (key, is_value) = (String::new(), false);
            }
            (TokenKind::Mark, "}") => path.truncate(open.pop()?),
            (TokenKind::Mark, ",") if !open.is_empty() => (key, is_value) = (String::new(), false),
            _ => {}
        }
    }
    if is_value {
        path.extend(key_path(&key).ok()?);
        let last = of_line.last()?;
        let begins = match last.kind {
            TokenKind::Mark => cursor,
            _ if last.end == line.len() => line_start + last.start,
            _ => return None,
        };
        return found(begins, cursor, values(&path, &text[begins..cursor]));
    }
    // A key that is complete has a space after it.
    if key.is_empty() {
        start = cursor;
    } else if line.ends_with([' ', '\t']) {
        return None;
    }
    let typed = match key.rfind('.') {
        Some(dot) => {
            path.extend(key_path(&key[..dot]).ok()?);
            start += dot + 1;
            &key[dot + 1..]
        }
        None => &*key,
    };
    let present = present(text, line_start, cursor, &path);
    let shows_header = at_top && open.is_empty() && !key.contains('.') && line.trim() == typed;
    let proposals = names(&path, typed, |key| !present.contains(key.name))?
        .map(|key| Proposal {
            text: inserted(key, shows_header, !rest.trim().is_empty()),
            ..proposal(key)
        })
        .collect();
    found(start, cursor, proposals)
}

fn found(start: usize, end: usize, proposals: Vec<Proposal>) -> Option<Completion> {
    (!proposals.is_empty()).then_some(Completion { start, end, proposals })
}

/// Returns the keys at a path that begin with the letters that were typed.
fn names<'t>(
    path: &[String],
    typed: &'t str,
    is_free: impl Fn(&Key) -> bool + 't,
) -> Option<impl Iterator<Item = &'static Key> + 't> {
    let Place::Keys(section) = place(path)? else {
        return None;
    };
    Some(keys::within(section).filter(move |key| key.name.starts_with(typed) && is_free(key)))
}

fn proposal(key: &Key) -> Proposal {
    Proposal {
        label: key.name.to_owned(),
        help: first_sentence(key.doc).to_owned(),
        text: key.name.to_owned(),
    }
}

/// Returns the text of a key that begins a line. At the top of the file, tables get a header.
fn inserted(key: &Key, shows_header: bool, has_rest: bool) -> String {
    match target(&key.kind) {
        _ if has_rest => key.name.to_owned(),
        Some(Place::Keys(_)) if shows_header => format!("[{}]", key.name),
        Some(Place::Names(_)) if shows_header => format!("[{}.\"", key.name),
        Some(_) if is_table(&key.kind) => format!("{}.", key.name),
        _ => format!("{} = ", key.name),
    }
}

/// Proposes the next part of a header.
fn header(line: &str, cursor: usize, rest: &str) -> Option<Completion> {
    let inner = line.trim_start().trim_start_matches('[');
    if inner.contains(']') {
        return None;
    }
    let dot = last_dot(inner);
    let path = match dot {
        Some(dot) => key_path(&inner[..dot]).ok()?,
        None => Vec::new(),
    };
    let typed = &inner[dot.map_or(0, |dot| dot + 1)..];
    let proposals = names(&path, typed, |key| target(&key.kind).is_some())?
        .map(|key| Proposal {
            text: match target(&key.kind) {
                Some(Place::Names(_)) if rest.trim().is_empty() => format!("{}.\"", key.name),
                _ => key.name.to_owned(),
            },
            ..proposal(key)
        })
        .collect();
    found(cursor - typed.len(), cursor, proposals)
}

/// Returns the place of the last dot that is in no string.
fn last_dot(text: &str) -> Option<usize> {
    let (mut quote, mut dot) = (None, None);
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), letter) if open == letter => quote = None,
            (None, '"' | '\'') => quote = Some(letter),
            (None, '.') => dot = Some(at),
            _ => {}
        }
    }
    dot.filter(|_| quote.is_none())
}

/// Returns the path of the last header before a line.
fn header_path(text: &str, line_start: usize) -> Vec<String> {
    let before = &text[..line_start];
    let all = tokens(before);
    let last = all.iter().rev().find(|token| token.kind == TokenKind::Header);
    let name = last.map_or("", |token| before[token.start..token.end].trim_matches(['[', ']']));
    key_path(name).unwrap_or_default()
}

/// Returns the keys that the table at a path has already, apart from the keys on the line of the cursor.
fn present(text: &str, line_start: usize, cursor: usize, path: &[String]) -> BTreeSet<String> {
    let mut present = BTreeSet::new();
    let line_end = cursor + text[cursor..].find('\n').unwrap_or(text.len() - cursor);
    let (mut table, mut key) = (Vec::new(), String::new());
    for token in tokens(text) {
        let word = &text[token.start..token.end];
        let is_here = (line_start..line_end).contains(&token.start);
        match token.kind {
            TokenKind::Header => table = key_path(word.trim_matches(['[', ']'])).unwrap_or_default(),
            TokenKind::Key if !is_here => key.push_str(word),
            TokenKind::Mark if word == "=" => {
                let whole = [&table[..], &key_path(&key).unwrap_or_default()].concat();
                if whole.len() == path.len() + 1 && whole.starts_with(path) {
                    present.extend(whole.into_iter().next_back());
                }
                key.clear();
            }
            _ => {}
        }
    }
    present
}

/// Returns the values of the key at a path that continue what was typed.
fn values(path: &[String], typed: &str) -> Vec<Proposal> {
    let Some((name, parents)) = path.split_last() else {
        return Vec::new();
    };
    let Some(Place::Keys(section)) = place(parents) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    if let Some(key) = keys::find(section, name) {
        collect_values(&key.kind, &mut all);
    }
    let wanted = typed.trim_start_matches(['"', '\'']);
    all.retain(|value| value.label.starts_with(wanted));
    all
}

fn collect_values(kind: &Kind, into: &mut Vec<Proposal>) {
    match kind {
        Kind::Boolean => into.extend(["true", "false"].map(|word| Proposal {
            label: word.to_owned(),
            help: String::new(),
            text: word.to_owned(),
        })),
        Kind::Choice(words) => {
            // A word of a later version is not valid yet.
            into.extend(words.iter().filter(|word| word.later.is_none()).map(|word| Proposal {
                label: word.text.to_owned(),
                help: word.doc.to_owned(),
                text: format!("\"{}\"", word.text),
            }));
        }
        Kind::Several(kind) | Kind::List(kind) => collect_values(kind, into),
        Kind::Either(kinds) => kinds.iter().for_each(|kind| collect_values(kind, into)),
        _ => {}
    }
}

/// Returns the place that a path leads to; `None` if it leads to no table of the server.
fn place(path: &[String]) -> Option<Place> {
    let mut place = Place::Keys(Section::Top);
    for part in path {
        place = match place {
            Place::Keys(section) => target(&keys::find(section, part)?.kind)?,
            Place::Names(section) => Place::Keys(section),
        };
    }
    Some(place)
}

/// Returns the place in the table that a kind accepts; `None` if it accepts no table.
fn target(kind: &Kind) -> Option<Place> {
    match kind {
        Kind::Table(section) => Some(Place::Keys(*section)),
        Kind::Tables { section, .. } => Some(Place::Names(*section)),
        Kind::List(kind) | Kind::Several(kind) => target(kind),
        Kind::Map { value, .. } => match target(value)? {
            Place::Keys(section) => Some(Place::Names(section)),
            Place::Names(_) => None,
        },
        Kind::Either(kinds) => kinds.iter().find_map(target),
        _ => None,
    }
}

/// Returns true if a kind accepts nothing but a table.
fn is_table(kind: &Kind) -> bool {
    matches!(kind, Kind::Table(_) | Kind::Tables { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Completes at `|`, and returns the text after the first proposal with this label was chosen.
    fn chosen(text: &str, label: &str) -> Option<String> {
        let cursor = text.find('|').unwrap();
        let text = text.replacen('|', "", 1);
        let completion = complete(&text, cursor)?;
        let proposal = completion
            .proposals
            .into_iter()
            .find(|proposal| proposal.label == label)?;
        Some(format!(
            "{}{}{}",
            &text[..completion.start],
            proposal.text,
            &text[completion.end..]
        ))
    }

    #[test]
    fn keys_of_the_table_are_proposed() {
        for (text, label, expected) in [
            ("[server]\nwor|", "workers", "[server]\nworkers = "),
            ("[server]\n|\n", "mode", "[server]\nmode = \n"),
            ("[site.\"a.test\"]\nro|", "root", "[site.\"a.test\"]\nroot = "),
            (
                "[site.\"a.test\"]\n  bro| = true",
                "browse",
                "[site.\"a.test\"]\n  browse = true",
            ),
            (
                "[site.\"a.test\"]\nlimits.bo|",
                "body_size",
                "[site.\"a.test\"]\nlimits.body_size = ",
            ),
            (
                "[site.a]\nlimits = { bo| }",
                "body_size",
                "[site.a]\nlimits = { body_size }",
            ),
            ("[[site.a.rule]]\nrew|", "rewrite", "[[site.a.rule]]\nrewrite = "),
            ("ser|", "server", "[server]"),
            ("si|", "site", "[site.\""),
            ("[ser|", "server", "[server"),
            ("[si|]", "site", "[site]"),
            ("[site.\"a.b\".ro|", "route", "[site.\"a.b\".route.\""),
        ] {
            assert_eq!(chosen(text, label).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn values_are_proposed() {
        for (text, label, expected) in [
            ("[server]\nmode = |", "dev", "[server]\nmode = \"dev\""),
            ("[server]\nmode = \"pr|", "prod", "[server]\nmode = \"prod\""),
            ("[site.a]\nbrowse = t|", "true", "[site.a]\nbrowse = true"),
            ("[site.a]\ntls = \"o|", "off", "[site.a]\ntls = \"off\""),
        ] {
            assert_eq!(chosen(text, label).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn nothing_is_proposed_elsewhere() {
        for text in [
            "# wor|",
            "[server] # wor|",
            "[nothing]\nwor|",
            "[server]\nworkers |",
            "[server]\nx = [\nwor|\n]",
            "[site.|",
            "[server]|",
            "[site.a]\nroot = \"t|",
        ] {
            let cursor = text.find('|').unwrap();
            assert_eq!(complete(&text.replacen('|', "", 1), cursor), None, "{text}");
        }
        // A key that the table has is not proposed again.
        assert_eq!(chosen("[server]\nworkers = 2\nwor|", "workers"), None);
        assert!(chosen("[server]\nworkers = 2\n[site.a]\nbro|", "browse").is_some());
        for cursor in 0..40 {
            let _ = complete("[ä\nü = \"ö\"\n[site.\"é\"]\nr", cursor);
        }
    }

    #[test]
    fn every_section_is_reached_by_a_path() {
        let path = |text: &str| key_path(text).unwrap();
        for (text, section) in [
            ("server", Section::Server),
            ("site.a", Section::Site),
            ("site.a.route.b", Section::Route),
            ("site.a.proxy.health", Section::Health),
            ("site.a.redirects.x", Section::Redirect),
            ("log.rotate", Section::Rotate),
        ] {
            assert_eq!(place(&path(text)), Some(Place::Keys(section)), "{text}");
        }
    }
}
