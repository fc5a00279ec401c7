//! Explanation of a URL: its site, its route, its response, and its settings with their positions in the configuration.

use std::path::PathBuf;

use form_urlencoded::Serializer;
use serde::{Deserialize, Serialize};

use crate::query;

/// Maximum length of a URL in bytes.
const MAX_URL: usize = 16 * 1024;

/// URL whose explanation a request queries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainUrl {
    /// URL: `http://example.com:8080/path`, `example.com/path` for any port, or `/path` for the catch-all site.
    pub url: String,
}

impl ExplainUrl {
    /// Parses the query of a request: `url=URL`.
    ///
    /// # Errors
    ///
    /// Returns a message for the client if the query has another key, or no URL of up to 16 KiB.
    pub fn from_query(query: &[u8]) -> Result<ExplainUrl, String> {
        let mut url = None;
        for (name, value) in form_urlencoded::parse(query) {
            match &*name {
                "url" if url.is_none() && value.len() <= MAX_URL => url = Some(value.into_owned()),
                _ => return Err(query::invalid(&name)),
            }
        }
        let url = url
            .filter(|url: &String| !url.is_empty())
            .ok_or("the query has no `url`")?;
        Ok(ExplainUrl { url })
    }

    /// Returns the query of the request.
    pub fn query(&self) -> String {
        Serializer::new(String::new()).append_pair("url", &self.url).finish()
    }
}

/// Position in a configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ConfigPosition {
    /// File.
    pub file: PathBuf,
    /// Line, from 1.
    pub line: usize,
}

/// Explanation of a URL.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct UrlExplanation {
    /// Response to a client that the site admits, such as `the file /var/www/index.html`.
    pub leads_to: String,
    /// Name of the site.
    pub site: String,
    /// Position of the site in the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site_position: Option<ConfigPosition>,
    /// Pattern of the route; `None` if no route of the site matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// Position of the route in the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route_position: Option<ConfigPosition>,
    /// Problems with the certificates of the site.
    pub problems: Vec<String>,
    /// Effective settings, in the order in which a request is processed.
    pub settings: Vec<ExplainedSetting>,
}

/// Effective setting of a site or route.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ExplainedSetting {
    /// Path of the key, such as `headers.X-Frame-Options`.
    pub key: String,
    /// Value as TOML.
    pub value: String,
    /// Position of the key; `None` for a default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<ConfigPosition>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_has_one_url() {
        let url = ExplainUrl {
            url: "http://a.test/x?y=1&z=%20 ü".to_owned(),
        };
        assert_eq!(ExplainUrl::from_query(url.query().as_bytes()), Ok(url));
        for query in [
            "",
            "url=",
            "url=a&url=b",
            "uri=a",
            &format!("url={}", "a".repeat(MAX_URL + 1)),
        ] {
            assert!(ExplainUrl::from_query(query.as_bytes()).is_err(), "{query:.20}");
        }
    }
}
