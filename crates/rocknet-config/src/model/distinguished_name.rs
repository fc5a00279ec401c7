//! Distinguished names of certificates (X.501), compared attribute by attribute.

use std::fmt;

/// Names of attribute types (RFC 4519, RFC 2985) with their object identifiers.
const ATTRIBUTES: [(&str, &str); 16] = [
    ("CN", "2.5.4.3"),
    ("SN", "2.5.4.4"),
    ("serialNumber", "2.5.4.5"),
    ("C", "2.5.4.6"),
    ("L", "2.5.4.7"),
    ("ST", "2.5.4.8"),
    ("STREET", "2.5.4.9"),
    ("O", "2.5.4.10"),
    ("OU", "2.5.4.11"),
    ("title", "2.5.4.12"),
    ("GN", "2.5.4.42"),
    ("emailAddress", "1.2.840.113549.1.9.1"),
    ("UID", "0.9.2342.19200300.100.1.1"),
    ("DC", "0.9.2342.19200300.100.1.25"),
    // Other spellings of the types above, which are only read.
    ("S", "2.5.4.8"),
    ("givenName", "2.5.4.42"),
];

/// Object identifier of the common name.
pub const COMMON_NAME: &str = "2.5.4.3";

/// Maximum length of a name in the configuration, in bytes. Names of real certificates are far shorter.
const MAX_TEXT: usize = 4096;

/// Distinguished name: a sequence of relative names, in the order of the certificate.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DistinguishedName(Vec<RelativeName>);

/// Relative distinguished name: one attribute, or several in sorted order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelativeName(Vec<NameAttribute>);

/// Attribute of a name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NameAttribute {
    /// Object identifier of the type, in dotted form.
    pub kind: Box<str>,
    /// Value.
    pub value: AttributeValue,
}

/// Value of an attribute of a name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum AttributeValue {
    /// Text without control characters.
    Text(Box<str>),
    /// BER encoding of a value that is not text, or that contains control characters. Rules never accept such a value.
    Encoded(Box<[u8]>),
}

impl AttributeValue {
    /// Returns the text; `None` for an encoded value.
    fn text(&self) -> Option<&str> {
        match self {
            AttributeValue::Text(text) => Some(text),
            AttributeValue::Encoded(_) => None,
        }
    }
}

impl RelativeName {
    /// Creates a relative name. The order of the attributes has no meaning (X.501 §9.3).
    pub fn new(mut attributes: Vec<NameAttribute>) -> RelativeName {
        attributes.sort_unstable();
        RelativeName(attributes)
    }

    /// Returns true if both names have the same attributes, and all values are text.
    fn is_same(&self, other: &RelativeName) -> bool {
        self == other && self.0.iter().all(|attribute| attribute.value.text().is_some())
    }
}

impl DistinguishedName {
    /// Creates a name from its parts, in the order of the certificate.
    pub fn new(parts: Vec<RelativeName>) -> DistinguishedName {
        DistinguishedName(parts)
    }

    /// Returns true if both names are the same and not empty, and all values are text. Tools write names in the order
    /// of the certificate (OpenSSL) or in its reverse (RFC 4514, nginx), so either order is accepted for the whole
    /// name.
    pub fn is_same(&self, other: &DistinguishedName) -> bool {
        let (own, other) = (&self.0, &other.0);
        let is_equal = |pairs: &mut dyn Iterator<Item = (&RelativeName, &RelativeName)>| {
            for (a, b) in pairs {
                if !a.is_same(b) {
                    return false;
                }
            }
            true
        };
        own.len() == other.len()
            && !own.is_empty()
            && (is_equal(&mut own.iter().zip(other)) || is_equal(&mut own.iter().zip(other.iter().rev())))
    }

    /// Returns the values of all attributes of a type; `None` for each value that is not text.
    pub fn values<'n>(&'n self, kind: &'n str) -> impl Iterator<Item = Option<&'n str>> {
        let attributes = self.0.iter().flat_map(|part| &part.0);
        let of_kind = attributes.filter(move |attribute| &*attribute.kind == kind);
        of_kind.map(|attribute| attribute.value.text())
    }

    /// Returns the value of the only attribute of a type; `None` if there is no such attribute, if there are several,
    /// or if its value is not text.
    pub fn only_value<'n>(&'n self, kind: &'n str) -> Option<&'n str> {
        let mut values = self.values(kind);
        let first = values.next()?;
        first.filter(|_| values.next().is_none())
    }

    /// Parses a name as RFC 4514 and OpenSSL write it: `CN=bob,O=Example`, `C = DE, O = "Example, Inc."`.
    ///
    /// # Errors
    /// Returns the reason why the text is no name.
    pub fn parse(text: &str) -> Result<DistinguishedName, &'static str> {
        if text.len() > MAX_TEXT {
            return Err("is too long");
        }
        if text.starts_with('/') {
            return Err("is written in an old form that is ambiguous");
        }
        let mut rest = text;
        let (mut parts, mut attributes) = (Vec::new(), Vec::new());
        loop {
            let (kind, after) = rest.split_once('=').ok_or("has a part without `=`")?;
            let kind = attribute_kind(kind.trim_matches(' ')).ok_or("has an unknown attribute")?;
            let (value, separator, after) = value(after)?;
            if value.is_empty() || value.contains(char::is_control) {
                return Err("has an attribute with an empty value, or with a control character");
            }
            attributes.push(NameAttribute {
                kind: kind.into(),
                value: AttributeValue::Text(value.into()),
            });
            if separator != Some('+') {
                parts.push(RelativeName::new(std::mem::take(&mut attributes)));
            }
            match separator {
                None => return Ok(DistinguishedName(parts)),
                Some(_) => rest = after,
            }
        }
    }
}

/// Returns the object identifier of an attribute type. `name`: a name of `ATTRIBUTES` in any case, or an object
/// identifier, which is returned as it is. `None`: it is neither.
pub fn attribute_kind(name: &str) -> Option<String> {
    let mut known = ATTRIBUTES.iter();
    if let Some((_, kind)) = known.find(|(known, _)| known.eq_ignore_ascii_case(name)) {
        return Some((*kind).to_owned());
    }
    let is_number = |arc: &str| {
        !arc.is_empty() && arc.bytes().all(|byte| byte.is_ascii_digit()) && (arc == "0" || !arc.starts_with('0'))
    };
    // Real identifiers are far shorter than 128 characters.
    (name.len() <= 128 && name.contains('.') && name.split('.').all(is_number)).then(|| name.to_owned())
}

/// Returns the name of an attribute type, or its object identifier.
pub fn attribute_name(kind: &str) -> &str {
    let known = ATTRIBUTES.iter().find(|(_, known)| *known == kind);
    known.map_or(kind, |(name, _)| name)
}

/// Reads a value up to the next separator. Returns the value, the separator, and the text after it.
fn value(text: &str) -> Result<(String, Option<char>, &str), &'static str> {
    let text = text.trim_start_matches(' ');
    if text.starts_with('#') {
        return Err("has a value in hexadecimal form");
    }
    let (is_quoted, text) = match text.strip_prefix('"') {
        Some(text) => (true, text),
        None => (false, text),
    };
    let mut bytes: Vec<u8> = Vec::new();
    // Length of the value without spaces at its end, which count only if they are escaped.
    let mut kept = 0;
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => {
                let (_, escaped) = chars.next().ok_or("ends with `\\`")?;
                if let Some(high) = escaped.to_digit(16) {
                    let low = chars.next().and_then(|(_, low)| low.to_digit(16));
                    bytes.push((high * 16 + low.ok_or("has `\\` before one hexadecimal digit")?) as u8);
                } else if " \"#+,;<=>\\".contains(escaped) {
                    bytes.push(escaped as u8);
                } else {
                    return Err("has `\\` before a character that needs none");
                }
                kept = bytes.len();
            }
            '"' if is_quoted => {
                let after = text[at + 1..].trim_start_matches(' ');
                let mut rest = after.chars();
                return match rest.next() {
                    None => Ok((utf8(bytes)?, None, "")),
                    Some(separator @ (',' | '+')) => Ok((utf8(bytes)?, Some(separator), rest.as_str())),
                    Some(_) => Err("has text after a quoted value"),
                };
            }
            ',' | '+' if !is_quoted => {
                bytes.truncate(kept);
                return Ok((utf8(bytes)?, Some(c), &text[at + 1..]));
            }
            '"' | ';' | '<' | '>' if !is_quoted => {
                return Err("has one of the characters `\";<>` without `\\` before it");
            }
            c => {
                bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                if c != ' ' || is_quoted {
                    kept = bytes.len();
                }
            }
        }
    }
    if is_quoted {
        return Err("has a quotation mark that is not closed");
    }
    bytes.truncate(kept);
    Ok((utf8(bytes)?, None, ""))
}

fn utf8(bytes: Vec<u8>) -> Result<String, &'static str> {
    String::from_utf8(bytes).map_err(|_| "is not UTF-8")
}

/// Writes the name in the order of the certificate. Characters that separate attributes are escaped as in RFC 4514, so
/// that no value can imitate another attribute. A value that is not text is written as `#` with the hexadecimal digits
/// of its encoding (RFC 4514 §2.4). Different names therefore have different texts. This is necessary because the text
/// becomes the name of the user if the configuration has `user = "subject"`.
impl fmt::Display for DistinguishedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.0.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { ", " })?;
            for (at, attribute) in part.0.iter().enumerate() {
                f.write_str(if at == 0 { "" } else { " + " })?;
                write!(f, "{}=", attribute_name(&attribute.kind))?;
                match &attribute.value {
                    AttributeValue::Text(text) => write_value(f, text)?,
                    AttributeValue::Encoded(bytes) => {
                        f.write_str("#")?;
                        bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn write_value(f: &mut fmt::Formatter<'_>, value: &str) -> fmt::Result {
    let last = value.len() - value.chars().next_back().map_or(0, char::len_utf8);
    for (at, c) in value.char_indices() {
        match c {
            '"' | '+' | ',' | ';' | '<' | '>' | '\\' => write!(f, "\\{c}")?,
            '#' if at == 0 => write!(f, "\\{c}")?,
            ' ' if at == 0 || at == last => write!(f, "\\{c}")?,
            c => write!(f, "{c}")?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> DistinguishedName {
        DistinguishedName::parse(text).unwrap_or_else(|reason| panic!("{text} {reason}"))
    }

    #[test]
    fn tools_write_the_same_name_in_several_ways() {
        let name = parsed("C=DE,O=Example\\, Inc.,CN=bob");
        for same in [
            "C = DE, O = \"Example, Inc.\", CN = bob",
            "CN=bob,O=Example\\2C Inc.,C=DE",
            "cn=bob, o=Example\\, Inc. , 2.5.4.6=DE",
        ] {
            assert!(name.is_same(&parsed(same)), "{same}");
        }
        assert_eq!(name.to_string(), "C=DE, O=Example\\, Inc., CN=bob");
        assert!(name.is_same(&parsed(&name.to_string())));
    }

    #[test]
    fn similar_names_are_different() {
        let name = parsed("O=Example,CN=bob");
        for other in [
            "CN=bob",
            "O=Example,CN=bob,CN=bob",
            "O=Example,CN=Bob",
            "O=Example+CN=bob",
            "CN=bob\\,O=Example",
            "O=Example\\,CN=bob",
            "O=Example,CN=bobby",
            "O=Example,CN=bob\\ ",
            "O=Example,OU=bob",
        ] {
            assert!(!name.is_same(&parsed(other)), "{other}");
        }
        // Three parts in an order that is neither the one nor its reverse.
        assert!(!parsed("C=DE,O=a,CN=b").is_same(&parsed("O=a,C=DE,CN=b")));
        // Attributes of one relative name have no order.
        assert!(parsed("CN=a+UID=b,O=c").is_same(&parsed("UID=b+CN=a,O=c")));
        let unreadable = DistinguishedName::new(vec![RelativeName::new(vec![NameAttribute {
            kind: COMMON_NAME.into(),
            value: AttributeValue::Encoded([0x0c, 1, 0].into()),
        }])]);
        assert!(!unreadable.is_same(&unreadable.clone()));
        assert!(!DistinguishedName::default().is_same(&DistinguishedName::default()));
    }

    #[test]
    fn a_value_cannot_imitate_an_attribute() {
        let attribute = |value: &str| NameAttribute {
            kind: COMMON_NAME.into(),
            value: AttributeValue::Text(value.into()),
        };
        for value in ["bob, O=Admin", "bob + O=Admin", " #a ", "a\\", "\"q\"", "a;b<c>d"] {
            let name = DistinguishedName::new(vec![RelativeName::new(vec![attribute(value)])]);
            assert!(parsed(&name.to_string()).is_same(&name), "{name}");
        }
    }

    #[test]
    fn different_values_that_are_not_text_are_written_differently() {
        let name = |value: AttributeValue| {
            let kind = COMMON_NAME.into();
            DistinguishedName::new(vec![RelativeName::new(vec![NameAttribute { kind, value }])]).to_string()
        };
        for (value, expected) in [
            (AttributeValue::Encoded([0x0c, 1, 0].into()), "CN=#0c0100"),
            (AttributeValue::Encoded([0x0c, 1, 0x1f].into()), "CN=#0c011f"),
            (AttributeValue::Text("#0c0100".into()), "CN=\\#0c0100"),
            (AttributeValue::Text("?".into()), "CN=?"),
        ] {
            assert_eq!(name(value), expected);
        }
    }

    #[test]
    fn malformed_names_are_refused() {
        for text in [
            "",
            "bob",
            "CN",
            "CN=",
            "CN=a,",
            "CN=a+",
            "XX=a",
            "/CN=bob",
            "CN=\"a",
            "CN=\"a\"b",
            "CN=a\\",
            "CN=a\\1",
            "CN=#0402",
            "CN=a;O=b",
            "CN=a\\00",
            "CN=a\u{1}",
            "=a",
            "1..2=a",
            "CN=\\ff",
        ] {
            assert!(DistinguishedName::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn an_ambiguous_attribute_has_no_only_value() {
        assert_eq!(parsed("CN=a,O=b").only_value(COMMON_NAME), Some("a"));
        assert_eq!(parsed("CN=a,CN=b").only_value(COMMON_NAME), None);
        assert_eq!(parsed("O=b").only_value(COMMON_NAME), None);
    }
}
