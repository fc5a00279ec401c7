//! A cached route: its handler, its settings and the store.

use std::sync::Arc;

use rocknet_config::model::{ResponseCache, ResponseDisk};
use rocknet_handler::response::Response;
use rocknet_handler::route::Route;
use rocknet_handler::{ExchangeRef, Handler};
use rocknet_proto::request::Request;
use rocknet_routing::rules::RequestConditions;

use crate::counters::Counters;
use crate::disk::DiskStore;
use crate::fill::SiteFills;
use crate::key::KeyTemplate;
use crate::store::MemoryStore;
use crate::stored::StoredResponse;
use crate::url_changes::UrlChanges;
use crate::{Responses, litespeed};

/// A cached route.
pub(crate) struct CachedRoute {
    /// The handler of the route.
    pub inner: Arc<dyn Handler>,
    /// Settings of the cache.
    pub settings: ResponseCache,
    /// The route.
    pub route: Arc<Route>,
    /// Names in lower case of fields that the handler sets in requests. A response whose `Vary` names one of them is
    /// not stored, because the handler got another value than the client sent.
    pub replaced: Vec<String>,
    /// Stored responses of all routes.
    pub responses: Arc<Responses>,
    /// Counters of the site.
    pub counters: Arc<Counters>,
    /// Memory store of the site, or that of all sites without their own.
    pub memory: Arc<MemoryStore>,
    /// Share of the site in the limit on bodies that are being received.
    pub fills: Arc<SiteFills>,
    /// Conditions of requests that are not served from the cache, if there are some.
    pub bypass: Option<RequestConditions>,
    /// Template that makes the keys (`key` of the configuration), if the route has one.
    pub key: Option<KeyTemplate>,
    /// Number of the last change of each URL, by which responses that were requested before the change are recognized.
    /// `None` without a template: keys are then made from URLs, so the responses of a changed URL can be removed.
    pub url_changes: Option<Arc<UrlChanges>>,
    /// True if a stored response may be sent before [`Handler::handle`] is called. False if guards check the request
    /// only once its script has been found. Then [`ExchangeRef::admit_to_script`] has to admit the request.
    pub answers_now: bool,
}

impl CachedRoute {
    /// Returns true if a stored response may be sent to a request without a call of [`Handler::handle`]: no guard of a
    /// script has to check the request, or the caller can check it now. If `admit_to_script` is set, the caller must
    /// call it before the response is sent, and may send the response only if the result is true.
    pub fn may_answer(&self, exchange: &ExchangeRef<'_>) -> bool {
        self.answers_now || exchange.admit_to_script.is_some()
    }

    /// Returns the store on disk, if the route uses it.
    pub fn disk(&self) -> Option<Arc<DiskStore>> {
        match self.settings.disk {
            ResponseDisk::Off => None,
            ResponseDisk::Shared | ResponseDisk::Quota(_) => self.responses.disk(),
        }
    }

    /// Returns true if the URL of a stored response has changed since the response was requested, for example by a POST
    /// request. Without a template, returns false, because the responses of a changed URL are removed.
    pub fn is_changed(&self, stored: &StoredResponse) -> bool {
        let changes = self.url_changes.as_ref().zip(stored.url.as_deref());
        changes.is_some_and(|(changes, url)| changes.last(url) > stored.changes)
    }

    /// Carries out the purges that a response of the handler demands by fields such as `X-LiteSpeed-Purge`, and removes
    /// these fields. Must be called for each response of the handler. `is_secure`: true if the request came over TLS.
    pub fn apply_control_fields(&self, request: &Request<'_>, is_secure: bool, response: &mut Response) {
        if self.settings.litespeed {
            let purges = litespeed::purges(&response.fields, &self.route.label.site, request, is_secure);
            if !purges.is_empty() {
                self.responses.purge(&purges);
            }
            litespeed::split_off(&mut response.fields);
        }
    }
}
