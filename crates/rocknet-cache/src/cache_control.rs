//! Parser of `Cache-Control` (RFC 9111 §5.2) and of targeted fields such as `CDN-Cache-Control` (RFC 9213).

use crate::structured;

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
    /// fields (RFC 9651 §3.2). Returns `None` for a field that is ignored: it is empty, malformed, or has too
    /// many members.
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

/// Parses a number of seconds; `None` if it is empty or has other bytes than digits.
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

#[cfg(test)]
#[path = "cache_control_tests.rs"]
mod tests;
