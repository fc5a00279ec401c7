//! Configured changes to requests before they are sent to an upstream.

use std::sync::Arc;

use rocknet_config::model::{self, Forwarded};

/// Configured changes to the requests of one proxy.
pub struct Rewrite {
    /// Fields that are set in requests. An empty value removes the field.
    pub headers: Arc<[(String, String)]>,
    /// Prefix that is removed from paths; `None` if no prefix is removed.
    pub strip: Option<String>,
    /// Selection of the fields that describe the client.
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
