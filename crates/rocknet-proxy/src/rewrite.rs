//! The part of a configuration that says how requests are rewritten for upstreams.

use std::sync::Arc;

use rocknet_config::model::{self, Forwarded};

/// Changes to requests on their way to an upstream.
pub struct Rewrite {
    /// Fields that requests get; an empty value removes one.
    pub headers: Arc<[(String, String)]>,
    /// The beginning of paths that is not passed on.
    pub strip: Option<String>,
    /// The fields that name the client.
    pub forwarded: Forwarded,
}

impl Rewrite {
    pub fn new(model: &model::Proxy) -> Rewrite {
        Rewrite {
            headers: model.headers.clone().into_iter().collect(),
            strip: model.strip.clone(),
            forwarded: model.forwarded,
        }
    }
}
