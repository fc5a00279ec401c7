//! Applies the rules of a site to an explained URL, using the code that serves requests.

use std::net::IpAddr;

use rocknet::routing::{FileRules, LookupError, RequestFacts, RuleOutcome, Rules};
use rocknet_config::explain;
use rocknet_config::model::{Existence, Listen, Site};
use rocknet_proto::request::{OwnedRequest, Version};
use rocknet_proto::status::Status;

use super::super::Failure;
use super::target::{self, status};
use super::url::Url;
use super::values::ExplainedValues;

/// Applies the rules of a site to a GET for the URL by a client.
pub(super) fn apply_rules(site: &Site, url: &Url<'_>, client: IpAddr) -> Result<RuleOutcome, Failure> {
    let Some(rules) = Rules::new(&site.rules).map_err(|error| Failure::Failed(error.to_string()))? else {
        return Ok(RuleOutcome::Untouched);
    };
    let facts = Facts::of(site, url, client);
    Ok(rules.apply(&request(url).view(), &facts, &ExplainedValues(url)))
}

/// Describes the response of a rule that applies to the file of the site to which the URL leads; `None` if no rule
/// applies to it.
pub(super) fn response_for_file(site: &Site, url: &Url<'_>, client: IpAddr, file: &str) -> Option<String> {
    let rules = FileRules::new(&site.rules).ok()??;
    match rules.apply(&request(url).view(), file, &Facts::of(site, url, client)) {
        RuleOutcome::Respond { status: code, .. } => {
            Some(format!("{}, by a rule for the file {file}", responded(code)))
        }
        _ => None,
    }
}

/// Returns the code and the reason phrase of the status of a rule.
pub(super) fn responded(code: u16) -> String {
    Status::new(code).map_or(code.to_string(), status)
}

/// Returns a GET for the URL.
fn request(url: &Url<'_>) -> OwnedRequest {
    let target = url
        .query
        .map_or_else(|| url.path.to_owned(), |query| format!("{}?{query}", url.path));
    OwnedRequest::synthetic_get(Version::default(), url.host.as_bytes(), target.as_bytes(), &[])
}

/// Data of the request that rules need.
struct Facts<'a> {
    site: &'a Site,
    client: IpAddr,
    is_secure: bool,
}

impl<'a> Facts<'a> {
    fn of(site: &'a Site, url: &Url<'_>, client: IpAddr) -> Facts<'a> {
        let is_requested =
            |listen: &&Listen| matches!(listen, Listen::Tcp { port, .. } if url.port.is_none_or(|own| own == *port));
        let requested = site.listen.iter().find(is_requested);
        Facts {
            site,
            client,
            is_secure: requested.is_some_and(|listen| site.secure.contains(listen)),
        }
    }
}

impl RequestFacts for Facts<'_> {
    fn is_secure(&self) -> bool {
        self.is_secure
    }

    fn client(&self) -> Option<IpAddr> {
        Some(self.client)
    }

    fn existence(&self, path: &str) -> Result<Existence, LookupError> {
        let route = explain::route(self.site, path);
        target::existence(route.map_or(&self.site.settings, |route| &route.settings), path)
    }
}
