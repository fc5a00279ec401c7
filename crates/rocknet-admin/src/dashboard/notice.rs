//! Report about an instruction, such as a purge of the cache. The next page of the session shows it.

use form_urlencoded::parse;
use rocknet_control::api::{ApiError, Done};

/// Maximum size in bytes of the text of a report, and also of its details. Each session keeps one report in memory.
const MAX_DETAILS: usize = 16 * 1024;

/// Maximum number of bytes of a refused form that a session keeps.
const MAX_FORM: usize = MAX_DETAILS;

/// Report about an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub kind: NoticeKind,
    pub text: String,
    /// Details of several lines, or empty.
    pub details: String,
    /// Form that was refused, whose fields the page fills in again; empty after a success. It is kept here and not in
    /// the query of the page, because a link on another site could contain such a query.
    form: Vec<u8>,
}

/// Result of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeKind {
    Good,
    /// Carried out, with warnings.
    Fair,
    /// Failed.
    Bad,
}

impl NoticeKind {
    /// Returns the CSS class.
    pub fn class(self) -> &'static str {
        match self {
            NoticeKind::Good => "good",
            NoticeKind::Fair => "fair",
            NoticeKind::Bad => "bad",
        }
    }

    /// Returns the symbol that is shown beside the text.
    pub fn sign(self) -> &'static str {
        match self {
            NoticeKind::Good => "●",
            NoticeKind::Fair => "▲",
            NoticeKind::Bad => "✖",
        }
    }
}

impl Notice {
    /// Creates the report about a success, without details.
    pub fn good(text: impl Into<String>) -> Notice {
        Notice {
            kind: NoticeKind::Good,
            text: text.into(),
            details: String::new(),
            form: Vec::new(),
        }
    }

    /// Creates the report about an instruction that has failed. `form`: body of the request, whose fields are filled in
    /// again. A form of more than 16 KiB is dropped and not cut. A field can be the path of a file, and a cut path
    /// could be that of another file.
    pub fn refused(error: ApiError, form: &[u8]) -> Notice {
        let form = if form.len() > MAX_FORM { &[] } else { form };
        Notice {
            form: form.to_vec(),
            ..Notice::from(error)
        }
    }

    /// Returns the text of a field in the refused form; empty if no form was refused or it lacks the field.
    pub fn input(&self, field: &str) -> String {
        let found = parse(&self.form).find(|(name, _)| name == field);
        found.map(|(_, text)| text.into_owned()).unwrap_or_default()
    }
}

impl From<Done> for Notice {
    fn from(done: Done) -> Notice {
        let warnings: Vec<String> = done.findings.iter().map(ToString::to_string).collect();
        let kind = match warnings.is_empty() {
            true => NoticeKind::Good,
            false => NoticeKind::Fair,
        };
        Notice {
            kind,
            text: shortened(done.message),
            details: shortened(warnings.join("\n")),
            form: Vec::new(),
        }
    }
}

impl From<ApiError> for Notice {
    fn from(error: ApiError) -> Notice {
        Notice {
            kind: NoticeKind::Bad,
            text: shortened(error.error),
            details: shortened(error.details.unwrap_or_default()),
            form: Vec::new(),
        }
    }
}

fn shortened(mut text: String) -> String {
    if text.len() > MAX_DETAILS {
        let end = (0..=MAX_DETAILS).rev().find(|&end| text.is_char_boundary(end));
        text.truncate(end.unwrap_or_default());
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use rocknet_control::config::Finding;

    use super::*;

    #[test]
    fn warnings_and_errors_are_reported() {
        let mut done = Done::new("done");
        assert_eq!(Notice::from(done.clone()), Notice::good("done"));
        done.findings = vec![Finding::warning("a", "one"), Finding::warning("b", "two")];
        let notice = Notice::from(done);
        assert_eq!((notice.kind, notice.details.as_str()), (NoticeKind::Fair, "one\ntwo"));
        let error = ApiError {
            details: Some("ä".repeat(MAX_DETAILS)),
            ..ApiError::new(422, "no")
        };
        let notice = Notice::from(error);
        assert_eq!((notice.kind, notice.text.as_str()), (NoticeKind::Bad, "no"));
        assert_eq!(notice.details.len(), MAX_DETAILS + "…".len());
    }

    #[test]
    fn a_refused_form_is_kept_up_to_a_bound() {
        let refused = |form: &str| Notice::refused(ApiError::new(400, "no"), form.as_bytes());
        let notice = refused("do=upgrade&binary=%2Fa+b&module=");
        assert_eq!(
            (notice.kind, notice.input("binary").as_str()),
            (NoticeKind::Bad, "/a b")
        );
        assert_eq!((notice.input("module"), notice.input("level")), Default::default());
        let longest = "x".repeat(MAX_FORM - "binary=".len());
        assert_eq!(refused(&format!("binary={longest}")).input("binary"), longest);
        assert_eq!(refused(&format!("binary={longest}x")).input("binary"), "");
        assert_eq!(Notice::good("done").input("binary"), "");
    }
}
