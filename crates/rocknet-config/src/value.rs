//! Parsers of the values of single keys. Each returns a part of the model, or reports an error. Values of the wrong
//! type are skipped, because module `check::keys` reports them.

pub(crate) mod access;
pub(crate) mod access_log;
pub(crate) mod address;
pub(crate) mod auth;
pub(crate) mod ban;
pub(crate) mod browse;
pub(crate) mod certificate_rule;
pub(crate) mod cgi;
pub(crate) mod condition;
pub(crate) mod controller;
pub(crate) mod cors;
pub(crate) mod field;
pub(crate) mod forward_auth;
pub(crate) mod host;
pub(crate) mod limit;
pub(crate) mod network;
pub(crate) mod oidc;
pub(crate) mod params;
pub(crate) mod path;
pub(crate) mod pattern;
pub(crate) mod php;
pub(crate) mod proxy;
pub(crate) mod regex;
pub(crate) mod response_cache;
pub(crate) mod settings;
pub(crate) mod signed_urls;
pub(crate) mod socket;
pub(crate) mod typed;
pub(crate) mod upstream_tls;
