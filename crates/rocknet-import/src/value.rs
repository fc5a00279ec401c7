//! Values of settings, and their form in TOML.

use std::fmt::Write;

/// Value of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Text(String),
    Flag(bool),
    Number(u64),
    List(Vec<Value>),
    Table(Vec<(String, Value)>),
}

impl Value {
    pub fn text(text: impl Into<String>) -> Value {
        Value::Text(text.into())
    }

    /// Returns a list of strings; a single string needs no list.
    pub fn texts<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Value {
        Value::one_or_list(texts.into_iter().map(Value::text).collect())
    }

    /// Returns the only value of a list, or the list.
    pub fn one_or_list(mut values: Vec<Value>) -> Value {
        match values.len() {
            1 => values.remove(0),
            _ => Value::List(values),
        }
    }

    /// Returns a table for a key that also takes `true`. Without entries, returns `true`, which selects the defaults.
    pub fn enabled(entries: Vec<(String, Value)>) -> Value {
        match entries.is_empty() {
            true => Value::Flag(true),
            false => Value::Table(entries),
        }
    }

    /// Appends the value in TOML.
    pub fn write(&self, out: &mut String) {
        match self {
            Value::Text(text) => out.push_str(&quoted(text)),
            Value::Flag(flag) => out.push_str(if *flag { "true" } else { "false" }),
            Value::Number(number) => out.push_str(&number.to_string()),
            Value::List(values) => {
                out.push('[');
                for (at, value) in values.iter().enumerate() {
                    if at > 0 {
                        out.push_str(", ");
                    }
                    value.write(out);
                }
                out.push(']');
            }
            Value::Table(entries) => {
                out.push_str("{ ");
                for (at, (key, value)) in entries.iter().enumerate() {
                    if at > 0 {
                        out.push_str(", ");
                    }
                    out.push_str(&bare_or_quoted(key));
                    out.push_str(" = ");
                    value.write(out);
                }
                out.push_str(" }");
            }
        }
    }
}

/// Returns a TOML key: bare if its characters permit it.
pub(crate) fn bare_or_quoted(key: &str) -> String {
    let is_bare = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    if is_bare { key.to_owned() } else { quoted_key(key) }
}

/// Returns a TOML string. `${` is escaped, because RockNet would expand a variable.
pub(crate) fn quoted(text: &str) -> String {
    quoted_key(&text.replace("${", "$${"))
}

/// Returns a quoted TOML key. Variables are not expanded in keys.
pub(crate) fn quoted_key(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped() {
        for (text, expected) in [
            ("a", r#""a""#),
            ("a\"b\\c\n", r#""a\"b\\c\n""#),
            ("${HOME}", r#""$${HOME}""#),
            ("\u{7f}\u{85}", r#""\u007F\u0085""#),
        ] {
            assert_eq!(quoted(text), expected);
        }
    }
}
