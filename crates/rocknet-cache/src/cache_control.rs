//! Parser of `Cache-Control` (RFC 9111 §5.2) and of targeted fields such as `CDN-Cache-Control` (RFC 9213).

/// Maximum number of directives that are read from one message. Real messages have fewer than ten.
const MAX_DIRECTIVES: usize = 64;

/// Largest number of seconds that is kept; larger ones count as this one (RFC 9111 §1.2.2).
pub const MAX_SECONDS: u64 = 1 << 31;

/// Directives of a request or response. A directive that is not listed here is ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Directives {
    /// `max-age` in seconds. A value that cannot be parsed counts as 0, so the response is stale (§4.2.1).
    pub max_age: Option<u64>,
    /// `s-maxage` in seconds.
    pub s_maxage: Option<u64>,
    /// `stale-while-revalidate` in seconds (RFC 5861 §3).
    pub stale_while_revalidate: Option<u64>,
    /// `stale-if-error` in seconds (RFC 5861 §4).
    pub stale_if_error: Option<u64>,
    /// `min-fresh` of a request, in seconds.
    pub min_fresh: Option<u64>,
    /// `max-stale` of a request, in seconds; the largest number if the directive has no value.
    pub max_stale: Option<u64>,
    /// `no-cache`, with or without field names: the qualified form is treated like the unqualified (§5.2.2.4).
    pub no_cache: bool,
    /// `no-store`.
    pub no_store: bool,
    /// `private`, with or without field names (§5.2.2.7).
    pub private: bool,
    /// `public`.
    pub public: bool,
    /// `must-revalidate`.
    pub must_revalidate: bool,
    /// `proxy-revalidate`.
    pub proxy_revalidate: bool,
    /// `must-understand`.
    pub must_understand: bool,
    /// `only-if-cached` of a request.
    pub only_if_cached: bool,
}

/// Value of a directive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Argument<'a> {
    /// The directive has no `=`.
    None,
    /// Token, or the content of a quoted string.
    Text(&'a [u8]),
    /// The value cannot be parsed.
    Malformed,
}

impl Directives {
    /// Parses the values of all `Cache-Control` lines of a message, in their order.
    pub fn parse<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Directives {
        let mut all = Directives::default();
        let mut left = MAX_DIRECTIVES;
        for value in values {
            let mut rest = value;
            while let Some((name, argument, after)) = next_directive(rest) {
                rest = after;
                if left == 0 {
                    // A message with this many directives is an attack or a fault. It is not stored.
                    all.no_store = true;
                    return all;
                }
                left -= 1;
                all.set(name, argument);
            }
        }
        all
    }

    /// Parses the value of a targeted field, such as `CDN-Cache-Control` (RFC 9213 §2.1): a dictionary of structured
    /// fields (RFC 9651 §3.2). Returns `None` for a field that must be ignored, because it is empty or malformed.
    pub fn parse_targeted<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Option<Directives> {
        let joined = values.into_iter().collect::<Vec<_>>().join(&b", "[..]);
        let members = structured::dictionary(&joined)?;
        if members.is_empty() || members.len() > MAX_DIRECTIVES {
            return None;
        }
        let mut all = Directives::default();
        // Of members with the same key, the last one counts (RFC 9651 §4.2.2).
        for (position, (key, value)) in members.iter().enumerate() {
            if !members[position + 1..].iter().any(|(other, _)| other == key) {
                all.set_targeted(key, value);
            }
        }
        Some(all)
    }

    /// Returns the field that holds the seconds of a directive; `None` if the directive has no seconds.
    fn seconds_of(&mut self, name: &[u8]) -> Option<&mut Option<u64>> {
        Some(match name {
            b"max-age" => &mut self.max_age,
            b"s-maxage" => &mut self.s_maxage,
            b"stale-while-revalidate" => &mut self.stale_while_revalidate,
            b"stale-if-error" => &mut self.stale_if_error,
            b"min-fresh" => &mut self.min_fresh,
            b"max-stale" => &mut self.max_stale,
            _ => return None,
        })
    }

    /// Returns the flag of a directive; `None` if the directive is not a flag.
    fn flag_of(&mut self, name: &[u8]) -> Option<&mut bool> {
        Some(match name {
            b"no-cache" => &mut self.no_cache,
            b"no-store" => &mut self.no_store,
            b"private" => &mut self.private,
            b"public" => &mut self.public,
            b"must-revalidate" => &mut self.must_revalidate,
            b"proxy-revalidate" => &mut self.proxy_revalidate,
            b"must-understand" => &mut self.must_understand,
            b"only-if-cached" => &mut self.only_if_cached,
            _ => return None,
        })
    }

    fn set(&mut self, name: &[u8], argument: Argument<'_>) {
        let lower = name.to_ascii_lowercase();
        if let Some(flag) = self.flag_of(&lower) {
            *flag = true;
            return;
        }
        let is_max_stale = lower == b"max-stale";
        if let Some(slot) = self.seconds_of(&lower) {
            let seconds = match argument {
                Argument::Text(text) => seconds(text).unwrap_or(0),
                Argument::None if is_max_stale => MAX_SECONDS,
                Argument::None | Argument::Malformed => 0,
            };
            // Of contradictory values the smaller is used, so that the response is not fresh for too long.
            *slot = Some(slot.map_or(seconds, |before| before.min(seconds)));
        }
    }

    /// Sets a directive of a targeted field. A value of the wrong type is ignored (RFC 9213 §2.1).
    fn set_targeted(&mut self, name: &[u8], value: &structured::Item) {
        match value {
            structured::Item::Boolean(is_set) => {
                if let Some(flag) = self.flag_of(name) {
                    *flag = *is_set;
                }
            }
            structured::Item::Integer(number) => {
                if let Some(slot) = self.seconds_of(name) {
                    *slot = Some(u64::try_from(*number).unwrap_or(0).min(MAX_SECONDS));
                }
            }
            // `private="name"` and `no-cache="name"` limit the directive to fields. They are treated as unqualified.
            structured::Item::Other => {
                if matches!(name, b"private" | b"no-cache")
                    && let Some(flag) = self.flag_of(name)
                {
                    *flag = true;
                }
            }
        }
    }
}

/// Parses a number of seconds; `None` if it has other bytes than digits.
pub(crate) fn seconds(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = text.iter().fold(0u64, |sum, digit| {
        sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
    });
    Some(number.min(MAX_SECONDS))
}

/// Returns the name and argument of the first directive, and the rest of the value; `None` at the end.
fn next_directive(value: &[u8]) -> Option<(&[u8], Argument<'_>, &[u8])> {
    let start = value.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b','))?;
    let value = &value[start..];
    let name_length = value
        .iter()
        .position(|byte| matches!(byte, b'=' | b','))
        .unwrap_or(value.len());
    let (name, rest) = value.split_at(name_length);
    let Some(after_equals) = rest.strip_prefix(b"=") else {
        return Some((name.trim_ascii_end(), Argument::None, rest));
    };
    if let Some(quoted) = after_equals.strip_prefix(b"\"") {
        let Some((text, after)) = quoted_string(quoted) else {
            return Some((name.trim_ascii_end(), Argument::Malformed, &[]));
        };
        let end = after.iter().position(|&byte| byte == b',').unwrap_or(after.len());
        let is_clean = after[..end].trim_ascii().is_empty() && !text.contains(&b'\\');
        let argument = if is_clean {
            Argument::Text(text)
        } else {
            Argument::Malformed
        };
        return Some((name.trim_ascii_end(), checked(name, argument), &after[end..]));
    }
    let end = after_equals
        .iter()
        .position(|&byte| byte == b',')
        .unwrap_or(after_equals.len());
    let (argument, after) = after_equals.split_at(end);
    let argument = Argument::Text(argument.trim_ascii_end());
    Some((name.trim_ascii_end(), checked(name, argument), after))
}

/// Returns the argument, or [`Argument::Malformed`] if there is whitespace before the `=`.
fn checked<'a>(name: &[u8], argument: Argument<'a>) -> Argument<'a> {
    if name.ends_with(b" ") || name.ends_with(b"\t") {
        Argument::Malformed
    } else {
        argument
    }
}

/// Splits the content of a quoted string from the bytes after its closing quote. Escapes are left in the content.
/// Returns `None` for a string without an end.
fn quoted_string(quoted: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut is_escaped = false;
    for (at, &byte) in quoted.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return Some((&quoted[..at], &quoted[at + 1..])),
            _ => {}
        }
    }
    None
}

/// The part of structured fields (RFC 9651) that targeted fields use.
mod structured {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(value: &str) -> Directives {
        Directives::parse([value.as_bytes()])
    }

    #[test]
    fn directives_are_parsed() {
        let none = Directives::default();
        let max_age = |seconds| Directives {
            max_age: Some(seconds),
            ..none
        };
        for (value, expected) in [
            ("", none),
            (" , ,", none),
            ("max-age=60", max_age(60)),
            ("MAX-AGE=60 ,foo=bar", max_age(60)),
            ("max-age=\"60\"", max_age(60)),
            ("foo=\"a, max-age=1\", max-age=60", max_age(60)),
            ("foo=\"a\\\", max-age=1\", max-age=60", max_age(60)),
            // Values that cannot be parsed make the response stale.
            ("max-age", max_age(0)),
            ("max-age=", max_age(0)),
            ("max-age=-1", max_age(0)),
            ("max-age=1.5", max_age(0)),
            ("max-age=1x", max_age(0)),
            ("max-age =60", max_age(0)),
            ("max-age= 60", max_age(0)),
            ("max-age=\"60", max_age(0)),
            ("max-age=\"6\\0\"", max_age(0)),
            ("max-age=\"60\"x", max_age(0)),
            ("max-age='60'", max_age(0)),
            ("max-age=99999999999999999999999", max_age(MAX_SECONDS)),
            ("max-age=60, max-age=30", max_age(30)),
            ("max-age=30, max-age=60", max_age(30)),
            (
                "no-store, no-cache=\"Set-Cookie, X\", Private, public, must-revalidate",
                Directives {
                    no_store: true,
                    no_cache: true,
                    private: true,
                    public: true,
                    must_revalidate: true,
                    ..none
                },
            ),
            (
                "s-maxage=1, stale-while-revalidate=2, stale-if-error=3, proxy-revalidate, must-understand",
                Directives {
                    s_maxage: Some(1),
                    stale_while_revalidate: Some(2),
                    stale_if_error: Some(3),
                    proxy_revalidate: true,
                    must_understand: true,
                    ..none
                },
            ),
            (
                "max-stale, min-fresh=4, only-if-cached",
                Directives {
                    max_stale: Some(MAX_SECONDS),
                    min_fresh: Some(4),
                    only_if_cached: true,
                    ..none
                },
            ),
            (
                "max-stale=5",
                Directives {
                    max_stale: Some(5),
                    ..none
                },
            ),
            ("no-storex, xno-store, no_store", none),
        ] {
            assert_eq!(parse(value), expected, "{value:?}");
        }
        assert_eq!(
            Directives::parse([&b"max-age=60"[..], b"no-cache"]),
            Directives {
                no_cache: true,
                ..max_age(60)
            }
        );
    }

    #[test]
    fn a_message_with_too_many_directives_is_not_stored() {
        assert!(!parse(&"a,".repeat(MAX_DIRECTIVES)).no_store);
        assert!(parse(&"a,".repeat(MAX_DIRECTIVES + 1)).no_store);
    }

    #[test]
    fn targeted_fields_are_structured() {
        let none = Directives::default();
        let max_age = |seconds| Directives {
            max_age: Some(seconds),
            ..none
        };
        let parse = |value: &str| Directives::parse_targeted([value.as_bytes()]);
        for (value, expected) in [
            ("max-age=60", Some(max_age(60))),
            (" max-age=60 ", Some(max_age(60))),
            ("max-age=60;a=b;c, x=\"y, z\", q=(1 \"b\";c d);e", Some(max_age(60))),
            ("max-age=60,max-age=70", Some(max_age(70))),
            ("max-age=-60", Some(max_age(0))),
            ("max-age=999999999999999", Some(max_age(MAX_SECONDS))),
            // Values of the wrong type are ignored.
            ("max-age=60.5", Some(none)),
            ("max-age=\"60\"", Some(none)),
            ("max-age=abc", Some(none)),
            ("max-age", Some(none)),
            ("no-store=?0, no-cache=?1", Some(Directives { no_cache: true, ..none })),
            ("private=\"x\"", Some(Directives { private: true, ..none })),
            ("no-store, x=:aGk=:", Some(Directives { no_store: true, ..none })),
            // Malformed or empty fields are ignored as a whole.
            ("", None),
            ("max-age=60,", None),
            ("max-age=60 max-age=70", None),
            ("MAX-AGE=60", None),
            ("max-age=", None),
            ("max-age =60", None),
            ("max-age=1000000000000000", None),
            ("max-age=1.", None),
            ("x=\"a", None),
            ("x=\"\\a\"", None),
            ("x=(1 2", None),
            ("x=(1\"b\")", None),
            ("x=?2", None),
            ("x=:a", None),
            ("x=@1", None),
            ("\u{e9}", None),
        ] {
            assert_eq!(parse(value), expected, "{value:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_parsed(value: Vec<u8>) {
            let _ = Directives::parse([&value[..]]);
            let _ = Directives::parse_targeted([&value[..]]);
        }
    }
}
