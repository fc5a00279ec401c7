//! Configured changes to requests before they are sent to an upstream.

use std::collections::BTreeMap;
use std::sync::Arc;

use rocknet_config::model::{self, Forwarded};
use rocknet_config::template::{Scope, Template, Values};
use rocknet_handler::values::field_value;
use rocknet_proto::semantics::escape;

/// Names and values of fields that are set in requests. An empty value removes the field.
pub type ProxyHeaders = Arc<[(String, String)]>;

/// Configured changes to the requests of one proxy.
pub struct Rewrite {
    headers: Headers,
    /// Prefix that is removed from paths; `None` if no prefix is removed.
    pub strip: Option<String>,
    /// The same prefix as it is written in URLs and header fields, percent-encoded.
    pub encoded_strip: Option<String>,
    /// Selection of the fields that describe the client.
    pub forwarded: Forwarded,
}

/// Fields that are set in requests.
enum Headers {
    /// The same values for all requests.
    Constant(ProxyHeaders),
    /// Values with placeholders.
    Templates(Box<[(String, Template)]>),
}

impl Rewrite {
    /// Returns the changes that a proxy configures.
    pub fn new(model: &model::Proxy) -> Rewrite {
        Rewrite {
            headers: Headers::new(&model.headers),
            strip: model.strip.clone(),
            encoded_strip: model.strip.as_deref().map(percent_encoded),
            forwarded: model.forwarded,
        }
    }

    /// Returns the fields that are set in a request.
    pub fn headers(&self, values: &dyn Values) -> ProxyHeaders {
        match &self.headers {
            Headers::Constant(headers) => Arc::clone(headers),
            Headers::Templates(templates) => templates
                .iter()
                .map(|(name, template)| (name.clone(), field_value(template, values)))
                .collect(),
        }
    }
}

impl Headers {
    fn new(model: &BTreeMap<String, String>) -> Headers {
        // The check of the configuration has refused invalid templates. A configuration that was built in memory may
        // have one, which is then sent as it is.
        let template =
            |text: &String| Template::parse(text, Scope::Request).unwrap_or_else(|_| Template::constant(text));
        let templates: Box<[_]> = model
            .iter()
            .map(|(name, text)| (name.clone(), template(text)))
            .collect();
        let constant = templates
            .iter()
            .map(|(name, template)| Some((name.clone(), template.as_constant()?.to_owned())));
        match constant.collect::<Option<ProxyHeaders>>() {
            Some(headers) => Headers::Constant(headers),
            None => Headers::Templates(templates),
        }
    }
}

/// Returns a decoded path as it is written in a URL.
fn percent_encoded(path: &str) -> String {
    let mut encoded = Vec::with_capacity(path.len());
    escape::path(path.as_bytes(), &mut encoded);
    String::from_utf8_lossy(&encoded).into_owned()
}
