//! One request and what is needed to answer it, free of any HTTP version.

use std::rc::Rc;
use std::sync::Arc;

use rocknet_proto::request::OwnedRequest;

use crate::interim::InterimSender;
use crate::route::Route;
use crate::services::Services;

pub use crate::client::Client;
pub use crate::request_body::{BodyChannel, BodyError, BodyTee, RequestBody};
pub use crate::tls_info::{ClientCertificate, TlsInfo};

/// Names a site of one configuration in the worker cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheKey {
    /// Number of the site, perhaps with the flag of the cache for paths that rules have been applied to.
    pub site: u32,
    /// Number of the configuration that the site is counted in.
    pub generation: u64,
}

/// A request that a handler answers.
pub struct Exchange {
    /// What the worker lends to handlers.
    pub services: Rc<Services>,
    pub request: Rc<OwnedRequest>,
    pub body: RequestBody,
    /// Sends interim responses.
    pub interim: InterimSender,
    /// Decoded and normalised.
    pub path: Box<str>,
    /// True if a file can have this path.
    pub is_file_path: bool,
    pub route: Arc<Route>,
    /// Where the worker cache remembers the path of the request.
    pub cache_key: CacheKey,
    /// Who asks: whom trusted proxies name, where one has passed it on.
    pub client: Client,
    /// The other end of the connection.
    pub peer: Client,
    /// `None`: it came in the clear.
    pub tls: Option<Rc<TlsInfo>>,
    /// The user whose password the server has verified (`auth`).
    pub user: Option<Arc<str>>,
}
