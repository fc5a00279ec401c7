//! Report about an instruction, which the next page of the session shows.

use rocknet_control::api::{ApiError, Done};

/// Maximum size in bytes of the details that a session stores.
const MAX_DETAILS: usize = 16 * 1024;

/// Report about an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub kind: NoticeKind,
    pub text: String,
    /// Details of several lines, or empty.
    pub details: String,
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
    /// Creates a report without details.
    pub fn good(text: impl Into<String>) -> Notice {
        Notice {
            kind: NoticeKind::Good,
            text: text.into(),
            details: String::new(),
        }
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
        }
    }
}

impl From<ApiError> for Notice {
    fn from(error: ApiError) -> Notice {
        Notice {
            kind: NoticeKind::Bad,
            text: shortened(error.error),
            details: shortened(error.details.unwrap_or_default()),
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
}
