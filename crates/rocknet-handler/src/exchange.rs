//! One request and what is needed to answer it, free of any HTTP version.

use std::rc::Rc;
use std::sync::Arc;

use rocknet_proto::request::OwnedRequest;

use crate::interim::Interim;
use crate::route::Route;
use crate::services::Services;

pub use crate::client::Client;
pub use crate::content::{ContentError, Pipe, RequestContent, Witness};
pub use crate::secure::{ClientCertificate, Secure};

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
    pub content: RequestContent,
    /// Sends interim responses.
    pub interim: Interim,
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
    pub secure: Option<Rc<Secure>>,
    /// The user whose password the server has verified (`auth`).
    pub user: Option<Arc<str>>,
}
