//! Translates Caddyfiles: global options, snippets and sites.

mod action;
mod block;
mod cache;
mod forward_auth;
mod includes;
mod limit;
mod matcher;
mod options;
mod place;
mod proxy;
mod reader;
mod setting;
mod site;
mod snippet;
mod tls;

pub(crate) use includes::CaddyIncludes;
pub(crate) use reader::read;

use std::collections::HashMap;

use crate::directive::Directive;
use crate::document::{Document, Notes};
use crate::hosts;
use crate::note::MAY_RESTRICT_ACCESS;
use crate::source::SourceMap;
use options::CaddyOptions;

/// Differences between the defaults of Caddy and RockNet, written at the top of the result.
const REMARKS: [&str; 4] = [
    "Defaults that differ from Caddy: paths distinguish upper and lower case, and request bodies are limited to 100 MiB.",
    "Over HTTPS, Strict-Transport-Security is sent for 30 days: hsts = \"0s\" in [tls] turns it off.",
    "Names that begin with a dot are never served, except /.well-known.",
    "Of several upstreams, RockNet selects the less loaded of two random ones, where Caddy selects any at random.",
];

/// Translates a Caddyfile.
pub(crate) fn translate(tree: &[Directive], sources: &SourceMap) -> Document {
    let mut document = Document::new(&REMARKS, sources);
    let mut options = CaddyOptions::default();
    let mut snippets: HashMap<&str, &[Directive]> = HashMap::new();
    let mut sites: Vec<Directive> = Vec::new();
    for (at, directive) in tree.iter().enumerate() {
        let name = directive.name.as_str();
        // The block of the global options has no name.
        if name.is_empty() {
            options.read(directive, &mut document);
        } else if let Some(name) = name.strip_prefix('(').and_then(|name| name.strip_suffix(')')) {
            snippets.insert(name, directive.children());
        } else if name.starts_with("&(") {
            // A named route, which `invoke` inserts.
            snippets.insert(name, directive.children());
        } else if name == "import" {
            document.skip(directive, &format!("{MAY_RESTRICT_ACCESS}: the file was not read"));
        } else if directive.block.is_some() {
            sites.push(directive.clone());
        } else {
            // A file with a single site needs no braces.
            let mut only = directive.clone();
            only.block = Some(tree[at + 1..].to_vec());
            sites.push(only);
            break;
        }
    }
    // Number of directives read or inserted so far, which `snippet::insert` limits.
    let mut count = 0;
    for site in &mut sites {
        let children = site.block.take().unwrap_or_default();
        site.block = Some(snippet::insert(children, &snippets, 0, &mut count));
    }
    let mut drafts = Vec::new();
    for site in &sites {
        drafts.extend(site::translate(site, &options, &mut document));
    }
    hosts::assemble(&mut document, drafts);
    document
}
