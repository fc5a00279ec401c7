//! Configured changes to requests on their way to upstreams.

use std::sync::Arc;

use rocknet_config::model::{self, Forwarded};

/// Changes to requests on their way to an upstream.
pub struct Rewrite {
    /// Fields that requests get. An empty value removes a field.
    pub headers: Arc<[(String, String)]>,
    /// Prefix that is removed from paths.
    pub strip: Option<String>,
    /// Fields that describe the client.
    pub forwarded: Forwarded,
}

impl Rewrite {
    /// Returns the changes that a proxy configures.
    pub fn new(model: &model::Proxy) -> Rewrite {
        Rewrite {
            headers: model.headers.clone().into_iter().collect(),
            strip: model.strip.clone(),
            forwarded: model.forwarded,
        }
    }
}
