//! Routes of a running server: their counters, and their settings by site.

use std::fmt;

use form_urlencoded::Serializer;
use serde::{Deserialize, Serialize};

use crate::explanation::{ConfigPosition, ExplainedSetting};
use crate::query;
use crate::site::{RouteSummary, SiteSummary};
use crate::status::MAX_SHOWN;
use crate::text;

/// Maximum length of the name of a site in bytes.
const MAX_NAME: usize = 1024;

/// Counters of a route since the start of the server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RouteTraffic {
    /// Name of the site; `(other)` for requests to no site.
    pub site: String,
    /// Pattern as in the configuration; `/*` for paths without a route of their own.
    pub route: String,
    /// Number of responses.
    pub responses: u64,
    /// Number of responses with a status of 500 or above.
    pub server_errors: u64,
    /// Number of bytes of response bodies.
    pub sent_bytes: u64,
    /// Number of bytes of request bodies.
    pub received_bytes: u64,
    /// Number of responses by response time: the entry at index `i` counts the responses that took less than `8 << i`
    /// microseconds. The last one counts all but tunnels.
    pub duration_counts: Vec<u64>,
}

/// Site that a request queries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteName {
    /// Name as in the configuration.
    pub name: String,
}

impl SiteName {
    /// Parses the query of a request: `name=NAME`.
    ///
    /// # Errors
    ///
    /// Returns a message for the client if the query has another key, or no name of up to 1 KiB.
    pub fn from_query(query: &[u8]) -> Result<SiteName, String> {
        let mut found = None;
        for (key, value) in form_urlencoded::parse(query) {
            match &*key {
                "name" if found.is_none() && (1..=MAX_NAME).contains(&value.len()) => found = Some(value.into_owned()),
                _ => return Err(query::invalid(&key)),
            }
        }
        let name = found.ok_or("the query has no `name`")?;
        Ok(SiteName { name })
    }

    /// Returns the query of the request.
    pub fn query(&self) -> String {
        Serializer::new(String::new()).append_pair("name", &self.name).finish()
    }
}

/// A site with its routes, each with its effective settings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SiteDetail {
    /// Summary of the site.
    pub summary: SiteSummary,
    /// Position of the site in the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<ConfigPosition>,
    /// Problems with the certificates of the site.
    pub problems: Vec<String>,
    /// Rules, in the order in which they are applied.
    pub rules: Vec<ExplainedSetting>,
    /// Response to paths without a route of their own, such as `passed on to http://10.0.0.2`; `None` if it depends on
    /// the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leads_to: Option<String>,
    /// Effective settings of paths without a route of their own, in the order in which a request is processed.
    pub settings: Vec<ExplainedSetting>,
    /// Routes, at most 1000.
    pub routes: Vec<RouteDetail>,
}

/// A route with its effective settings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RouteDetail {
    /// Summary of the route.
    pub summary: RouteSummary,
    /// Response to paths of the route; `None` if it depends on the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leads_to: Option<String>,
    /// Settings that differ from those of the site, in the order in which a request is processed.
    pub settings: Vec<ExplainedSetting>,
}

/// Writes the site, its rules and its routes, with a line for each setting.
impl fmt::Display for SiteDetail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |words: &str| text::sanitized(words, MAX_SHOWN);
        writeln!(f, "{}{}", self.summary, at(self.position.as_ref()))?;
        for url in &self.summary.urls {
            writeln!(f, "  {}", shown(url))?;
        }
        for problem in &self.problems {
            writeln!(f, "  problem: {}", shown(problem))?;
        }
        if let Some(leads_to) = &self.leads_to {
            writeln!(f, "  leads to {}", shown(leads_to))?;
        }
        self.settings
            .iter()
            .chain(&self.rules)
            .try_for_each(|one| setting(f, one))?;
        for route in &self.routes {
            let RouteSummary {
                pattern,
                kind,
                position,
            } = &route.summary;
            let position = at(position.as_ref());
            writeln!(f, "\n{}  {}{position}", shown(pattern), kind.name())?;
            if let Some(leads_to) = &route.leads_to {
                writeln!(f, "  leads to {}", shown(leads_to))?;
            }
            route.settings.iter().try_for_each(|one| setting(f, one))?;
        }
        Ok(())
    }
}

/// Writes the line of a setting: its key, its value, and its position or the word `default`.
fn setting(f: &mut fmt::Formatter<'_>, setting: &ExplainedSetting) -> fmt::Result {
    let shown = |words: &str| text::sanitized(words, MAX_SHOWN);
    let position = match &setting.position {
        None => "  default".to_owned(),
        position => at(position.as_ref()),
    };
    writeln!(f, "  {} = {}{position}", shown(&setting.key), shown(&setting.value))
}

/// Returns a position after two spaces. Returns an empty text if there is no position, or for line 0, because a
/// configuration that was built in memory has no lines.
fn at(position: Option<&ConfigPosition>) -> String {
    match position {
        Some(ConfigPosition { file, line }) if *line > 0 => {
            format!("  {}:{line}", text::sanitized(&file.to_string_lossy(), MAX_SHOWN))
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::SiteKind;

    #[test]
    fn the_query_has_one_name() {
        let name = SiteName {
            name: ":8081 ü&".to_owned(),
        };
        assert_eq!(SiteName::from_query(name.query().as_bytes()), Ok(name));
        for query in [
            "",
            "name=",
            "name=a&name=b",
            "site=a",
            &format!("name={}", "a".repeat(MAX_NAME + 1)),
        ] {
            assert!(SiteName::from_query(query.as_bytes()).is_err(), "{query:.20}");
        }
    }

    #[test]
    fn a_site_is_shown_with_its_routes() {
        let position = |line| {
            Some(ConfigPosition {
                file: "/r.toml".into(),
                line,
            })
        };
        let setting = |key: &str, value: &str, line| ExplainedSetting {
            key: key.into(),
            value: value.into(),
            position: position(line).filter(|_| line > 0),
        };
        let detail = SiteDetail {
            summary: SiteSummary {
                name: "a.test".into(),
                urls: vec!["http://a.test/".into()],
                kind: SiteKind::Files,
                routes: 1,
                ..SiteSummary::default()
            },
            position: position(3),
            settings: vec![setting("root", "\"/w\"", 4), setting("index", "[]", 0)],
            routes: vec![RouteDetail {
                summary: RouteSummary {
                    pattern: "/api/*".into(),
                    kind: SiteKind::Proxy,
                    position: position(7),
                },
                leads_to: Some("passed on to http://b\u{1b}".into()),
                settings: vec![setting("proxy", "\"http://b\"", 8)],
            }],
            ..SiteDetail::default()
        };
        let expected = "\
a.test  files  http://a.test/  –  1 route  /r.toml:3
  http://a.test/
  root = \"/w\"  /r.toml:4
  index = []  default

/api/*  proxy  /r.toml:7
  leads to passed on to http://b?
  proxy = \"http://b\"  /r.toml:8
";
        assert_eq!(detail.to_string(), expected);
        let json = serde_json::to_string(&detail).unwrap();
        assert_eq!(serde_json::from_str::<SiteDetail>(&json).unwrap(), detail);
    }
}
