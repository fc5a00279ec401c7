//! Following the logs of a running server: the selection of lines, and the events that carry them.

use form_urlencoded::Serializer;
use serde::{Deserialize, Serialize};

use crate::level::Level;
use crate::query;

/// Maximum length in bytes of the text that lines have to contain, and of the name of a site.
const MAX_TEXT: usize = 256;

/// Kind of log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum LogKind {
    /// Error log.
    Error,
    /// Access logs of all sites.
    Access,
}

/// Selection of lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogFilter {
    /// True to go on with new lines after the recent ones.
    pub follow: bool,
    /// Only lines of this kind of log.
    pub kind: Option<LogKind>,
    /// Minimum severity of lines of the error log. Lines of access logs have no severity, and are selected as well.
    pub level: Option<Level>,
    /// Only lines of this site: requests to it, and messages that name it.
    pub site: Option<String>,
    /// Only lines that contain this text.
    pub contains: Option<String>,
}

/// Event of the stream of log lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogEvent {
    /// Log of the line.
    pub kind: LogKind,
    /// The line, without its newline. Bytes that are not UTF-8 are replaced.
    pub line: String,
    /// Name of the site that served the request, or that the message names; `None` for other messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// Number of lines that were lost before this one, because the client was slow.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl LogFilter {
    /// Parses a query such as `follow=true&kind=error&level=warn&contains=upstream`.
    ///
    /// # Errors
    ///
    /// Returns the reason if a name or value is not known.
    pub fn from_query(query: &[u8]) -> Result<LogFilter, String> {
        let mut filter = LogFilter::default();
        for (name, value) in form_urlencoded::parse(query) {
            let invalid = || query::invalid(&name);
            match &*name {
                "follow" => filter.follow = value.parse().map_err(|_| invalid())?,
                "kind" => {
                    filter.kind = Some(match &*value {
                        "error" => LogKind::Error,
                        "access" => LogKind::Access,
                        _ => return Err(invalid()),
                    });
                }
                "level" => filter.level = Some(Level::from_name(&value).ok_or_else(invalid)?),
                "site" if value.len() <= MAX_TEXT => filter.site = Some(value.into_owned()),
                "contains" if value.len() <= MAX_TEXT => filter.contains = Some(value.into_owned()),
                _ => return Err(invalid()),
            }
        }
        Ok(filter)
    }

    /// Returns the query of the filter.
    pub fn query(&self) -> String {
        let mut query = Serializer::new(String::new());
        query.append_pair("follow", if self.follow { "true" } else { "false" });
        if let Some(kind) = self.kind {
            let kind = match kind {
                LogKind::Error => "error",
                LogKind::Access => "access",
            };
            query.append_pair("kind", kind);
        }
        if let Some(level) = self.level {
            query.append_pair("level", level.name());
        }
        if let Some(site) = &self.site {
            query.append_pair("site", site);
        }
        if let Some(contains) = &self.contains {
            query.append_pair("contains", contains);
        }
        query.finish()
    }

    /// Returns true if a line of a site is selected. A line of the error log without a level, such as the second line
    /// of a message, is selected at every level. `site`: the site of the line, if it has one.
    pub fn selects(&self, kind: LogKind, site: Option<&str>, line: &str) -> bool {
        self.kind.is_none_or(|selected| selected == kind)
            && self.site.as_ref().is_none_or(|selected| site == Some(selected))
            && self.contains.as_ref().is_none_or(|text| line.contains(text.as_str()))
            && self
                .level
                .is_none_or(|level| kind == LogKind::Access || level_of(line).is_none_or(|own| own <= level))
    }
}

/// Returns the level of a line of the error log: the second word, after the time. `None` if that word is not a level.
fn level_of(line: &str) -> Option<Level> {
    let word = line.split_whitespace().nth(1)?;
    Level::from_name(&word.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_survive_their_query() {
        for filter in [
            LogFilter::default(),
            LogFilter {
                follow: true,
                kind: Some(LogKind::Access),
                level: Some(Level::Warn),
                site: Some(":8080".into()),
                contains: Some("a b&c=ü%".into()),
            },
        ] {
            assert_eq!(LogFilter::from_query(filter.query().as_bytes()), Ok(filter));
        }
        for query in [
            "follow=yes",
            "kind=x",
            "level=loud",
            "since=1",
            &format!("contains={}", "x".repeat(MAX_TEXT + 1)),
        ] {
            assert!(LogFilter::from_query(query.as_bytes()).is_err(), "{query}");
        }
    }

    #[test]
    fn lines_are_selected_by_log_level_and_text() {
        let filter = LogFilter::from_query(b"level=warn&contains=up").unwrap();
        for (kind, line, expected) in [
            (LogKind::Error, "2026-11-28T00:00:00+00:00 WARN  up 1", true),
            (LogKind::Error, "2026-11-28T00:00:00+00:00 ERROR up 1", true),
            (LogKind::Error, "2026-11-28T00:00:00+00:00 INFO  up 1", false),
            (LogKind::Error, "2026-11-28T00:00:00+00:00 ERROR down", false),
            (LogKind::Access, "GET /up", true),
        ] {
            assert_eq!(filter.selects(kind, None, line), expected, "{line}");
        }
        let of_site = LogFilter::from_query(b"site=a.test").unwrap();
        for (site, expected) in [(Some("a.test"), true), (Some("b.test"), false), (None, false)] {
            assert_eq!(of_site.selects(LogKind::Access, site, "GET /"), expected, "{site:?}");
        }
        let access = LogFilter::from_query(b"kind=access").unwrap();
        assert!(!access.selects(LogKind::Error, None, "x"));
    }
}
