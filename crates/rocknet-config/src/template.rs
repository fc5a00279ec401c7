//! Templates: texts with placeholders such as `{client.ip}`, for which the server puts in values of a request.
//!
//! A placeholder is a name in braces. It begins with a lower-case letter and consists of letters, digits, `.`, `-` and
//! `_`, so braces of JSON or CSS are ordinary text. `{{name}}` stands for the text `{name}`. The variables of
//! nginx and Apache are refused, because they would be copied as text; `$$host` stands for the text `$host`.

use std::borrow::Cow;

mod error;
mod foreign;
mod names;
mod placeholder;

pub use error::TemplateError;
pub use foreign::{of_apache, of_caddy, of_nginx};
pub use names::{NAMES, Named};
pub use placeholder::{Placeholder, Scope};

/// Maximum number of placeholders in one template. Each value can be as long as a request head, so this bounds the text
/// that one short line of the configuration can produce.
const MAX_PLACEHOLDERS: usize = 32;

/// A text with placeholders.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Template {
    pieces: Box<[Piece]>,
}

/// A part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Text that is copied.
    Text(Box<str>),
    /// A value of the request. The caller of [`Template::render`] escapes it for its destination.
    Value(Placeholder),
}

/// Source of the values of one request.
pub trait Values {
    /// Returns the value of a placeholder, not escaped. Empty if the request has no such value.
    fn value(&self, placeholder: &Placeholder) -> Cow<'_, [u8]>;
}

/// Values of no request: all are empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoValues;

impl Values for NoValues {
    fn value(&self, _: &Placeholder) -> Cow<'_, [u8]> {
        Cow::Borrowed(b"")
    }
}

impl Template {
    /// Parses a text whose placeholders may have the values of `scope`.
    ///
    /// # Errors
    ///
    /// Fails for an unknown placeholder, one of a larger scope, a known variable of nginx or Apache, and more than 32
    /// placeholders.
    pub fn parse(text: &str, scope: Scope) -> Result<Template, TemplateError> {
        let text = foreign::unescaped(text)?;
        let (mut pieces, mut literal, mut rest) = (Vec::new(), String::new(), &*text);
        while let Some(brace) = rest.find('{') {
            literal.push_str(&rest[..brace]);
            rest = &rest[brace..];
            if let Some(name) = name_at(&rest[1..], "{", "}}") {
                // Of `{{name}}`, the part `{name}` is text.
                literal.push_str(&rest[1..name.len() + 3]);
                rest = &rest[name.len() + 4..];
            } else if let Some(name) = name_at(rest, "{", "}") {
                let placeholder = names::find(name, scope)?;
                if !literal.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut literal).into()));
                }
                pieces.push(Piece::Value(placeholder));
                rest = &rest[name.len() + 2..];
            } else {
                literal.push('{');
                rest = &rest[1..];
            }
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            pieces.push(Piece::Text(literal.into()));
        }
        let template = Template { pieces: pieces.into() };
        if template.placeholders().count() > MAX_PLACEHOLDERS {
            return Err(TemplateError {
                message: format!("the text has more than {MAX_PLACEHOLDERS} placeholders"),
                help: "write fewer".to_owned(),
            });
        }
        Ok(template)
    }

    /// Returns a template without placeholders.
    pub fn constant(text: &str) -> Template {
        Template {
            pieces: match text.is_empty() {
                true => Box::default(),
                false => Box::new([Piece::Text(text.into())]),
            },
        }
    }

    /// Returns the parts in their order. Two texts never follow each other.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Returns the text, if the template has no placeholders.
    pub fn as_constant(&self) -> Option<&str> {
        match &*self.pieces {
            [] => Some(""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Returns the placeholders, in their order.
    pub fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Value(placeholder) => Some(placeholder),
            Piece::Text(_) => None,
        })
    }

    /// Appends the text with the values of a request. `escape` appends one value as its destination requires.
    pub fn render(&self, values: &dyn Values, out: &mut Vec<u8>, escape: impl Fn(&[u8], &mut Vec<u8>)) {
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Value(placeholder) => escape(&values.value(placeholder), out),
            }
        }
    }
}

/// Returns the name between `before` and `after` at the beginning of a text.
fn name_at<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    let rest = text.strip_prefix(before)?;
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !['.', '-', '_'].contains(&c))?;
    let name = &rest[..end];
    (name.starts_with(|c: char| c.is_ascii_lowercase()) && rest[end..].starts_with(after)).then_some(name)
}

#[cfg(test)]
mod tests;
