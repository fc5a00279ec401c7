//! Parser of structured fields (RFC 9651), as far as targeted fields such as `CDN-Cache-Control` (RFC 9213) use them.
//!
//! The functions that parse a part of the text also return the bytes after it. They return `None` if it is malformed.

/// Value of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    Boolean(bool),
    Integer(i64),
    /// A value of another type.
    Other,
}

/// Parses a dictionary; `None` if it is malformed. Parameters are checked and dropped.
pub fn dictionary(value: &[u8]) -> Option<Vec<(&[u8], Item)>> {
    let mut rest = trim_spaces(value);
    let mut members = Vec::new();
    while !rest.is_empty() {
        let (name, after) = key(rest)?;
        let (item, after) = match after.strip_prefix(b"=") {
            Some(after) => member(after)?,
            None => (Item::Boolean(true), after),
        };
        members.push((name, item));
        rest = skip_whitespace(parameters(after)?);
        if rest.is_empty() {
            break;
        }
        rest = skip_whitespace(rest.strip_prefix(b",")?);
        if rest.is_empty() {
            // A comma at the end.
            return None;
        }
    }
    Some(members)
}

fn trim_spaces(mut value: &[u8]) -> &[u8] {
    while let Some(rest) = value.strip_prefix(b" ") {
        value = rest;
    }
    while let Some(rest) = value.strip_suffix(b" ") {
        value = rest;
    }
    value
}

fn skip_whitespace(value: &[u8]) -> &[u8] {
    let start = value.iter().position(|byte| !matches!(byte, b' ' | b'\t'));
    &value[start.unwrap_or(value.len())..]
}

fn key(value: &[u8]) -> Option<(&[u8], &[u8])> {
    value
        .first()
        .filter(|first| first.is_ascii_lowercase() || **first == b'*')?;
    let is_part = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(byte);
    Some(value.split_at(value.iter().position(|byte| !is_part(byte)).unwrap_or(value.len())))
}

fn member(value: &[u8]) -> Option<(Item, &[u8])> {
    let Some(mut rest) = value.strip_prefix(b"(") else {
        return item(value);
    };
    // An inner list: its items are checked and dropped.
    loop {
        let trimmed = trim_start(rest);
        if let Some(after) = trimmed.strip_prefix(b")") {
            return Some((Item::Other, after));
        }
        let (_, after) = item(trimmed)?;
        rest = parameters(after)?;
        if !rest.starts_with(b" ") && !rest.starts_with(b")") {
            return None;
        }
    }
}

fn trim_start(mut value: &[u8]) -> &[u8] {
    while let Some(rest) = value.strip_prefix(b" ") {
        value = rest;
    }
    value
}

fn parameters(mut value: &[u8]) -> Option<&[u8]> {
    while let Some(rest) = value.strip_prefix(b";") {
        let (_, after) = key(trim_start(rest))?;
        value = match after.strip_prefix(b"=") {
            Some(after) => item(after)?.1,
            None => after,
        };
    }
    Some(value)
}

/// Parses an item without its parameters.
fn item(value: &[u8]) -> Option<(Item, &[u8])> {
    let (&first, rest) = value.split_first()?;
    match first {
        b'?' => match rest.split_first()? {
            (b'0', after) => Some((Item::Boolean(false), after)),
            (b'1', after) => Some((Item::Boolean(true), after)),
            _ => None,
        },
        b'"' => string(rest).map(|after| (Item::Other, after)),
        b':' => {
            let end = rest.iter().position(|&byte| byte == b':')?;
            let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
            rest[..end]
                .iter()
                .all(is_base64)
                .then(|| (Item::Other, &rest[end + 1..]))
        }
        b'-' | b'0'..=b'9' => number(value),
        b'*' | b'a'..=b'z' | b'A'..=b'Z' => {
            let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(byte);
            let end = value.iter().position(|byte| !is_part(byte)).unwrap_or(value.len());
            Some((Item::Other, &value[end..]))
        }
        _ => None,
    }
}

fn string(value: &[u8]) -> Option<&[u8]> {
    let mut bytes = value.iter().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => return Some(&value[at + 1..]),
            b'\\' => {
                bytes.next().filter(|(_, escaped)| matches!(escaped, b'"' | b'\\'))?;
            }
            b' '..=b'~' => {}
            _ => return None,
        }
    }
    None
}

fn number(value: &[u8]) -> Option<(Item, &[u8])> {
    let (sign, digits) = match value.strip_prefix(b"-") {
        Some(digits) => (-1, digits),
        None => (1, value),
    };
    let end = digits
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(digits.len());
    // An integer has at most 15 digits, and the integer part of a decimal at most 12.
    if end == 0 || end > 15 {
        return None;
    }
    let after = &digits[end..];
    if let Some(fraction) = after.strip_prefix(b".") {
        let end_of_fraction = fraction.iter().position(|byte| !byte.is_ascii_digit());
        let end_of_fraction = end_of_fraction.unwrap_or(fraction.len());
        let is_valid = end <= 12 && (1..=3).contains(&end_of_fraction);
        return is_valid.then(|| (Item::Other, &fraction[end_of_fraction..]));
    }
    let number = digits[..end]
        .iter()
        .fold(0, |sum: i64, digit| sum * 10 + i64::from(digit - b'0'));
    Some((Item::Integer(sign * number), after))
}
