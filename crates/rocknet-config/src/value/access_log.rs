//! Parses the format of the lines of an access log.

use crate::choice::Choice;
use crate::context::Check;
use crate::file::Node;
use crate::message::{nearest, short};
use crate::model::AccessFormat;
use crate::template::{Scope, Template, TemplateError};

/// Maximum length of a line's template, in bytes. A longer one is surely a mistake.
const MAX_BYTES: usize = 4 * 1024;

/// Reads `format` of a log: a word, or a text with placeholders.
pub(crate) fn format(check: &mut Check<'_>, node: &Node) -> Option<AccessFormat> {
    let written = node.written()?;
    let text = written.value.as_str();
    if let Some(format) = AccessFormat::of(text) {
        return Some(format);
    }
    let error = if text.len() > MAX_BYTES {
        Some((
            format!("the text is longer than {MAX_BYTES} bytes"),
            "shorten it".to_owned(),
        ))
    } else if text.contains(|c: char| !(' '..='~').contains(&c)) {
        let help = "write one line of ASCII; the end of the line is added".to_owned();
        Some((
            "the text has a control character, or one outside ASCII".to_owned(),
            help,
        ))
    } else {
        match Template::parse(text, Scope::Log) {
            Ok(template) if template.as_constant().is_some() => {
                let word = nearest(text, AccessFormat::WORDS.iter().map(|word| word.text));
                let help = match word {
                    Some(word) => format!("write \"{word}\""),
                    None => {
                        "write \"combined\", or a line such as \"{client.ip} {method} {target} {status}\"".to_owned()
                    }
                };
                Some((format!("\"{}\" has no placeholder", short(text)), help))
            }
            Ok(_) => None,
            Err(TemplateError { message, help }) => Some((message, help)),
        }
    };
    match error {
        None => Some(AccessFormat::Custom(text.to_owned())),
        Some((message, help)) => {
            check.bad_text(written, node.span, format!("`format`: {message}"), help);
            None
        }
    }
}
