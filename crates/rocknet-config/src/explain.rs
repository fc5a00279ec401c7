//! Which settings hold for a URL, and in which file and line each was written: what `rocknet explain` shows.

use std::collections::BTreeMap;

use crate::choice::Choice;
use crate::keys::binding::{Model, Shown, list, quoted};
use crate::keys::log::log_target;
use crate::keys::rule::Scheme;
use crate::keys::tls::Encryption;
use crate::keys::{self, Key, Scope};
use crate::model::{CertificateSource, Config, HostPattern, Listen, Pattern, Place, Route, Rule, RuleAction, Settings};
use crate::model::{Site, SiteTls, Weighted};

/// A part of an explanation, in the order in which a request meets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Names and addresses of the site, its encryption and its log.
    Site,
    /// Redirects and rules.
    Rules,
    /// The handler that answers, with the keys of its table.
    Handler,
    /// The threads and processes of controllers.
    Controller,
    /// The lookup of files.
    Files,
    /// Changes of answers.
    Filters,
    /// Limits and priority.
    Limits,
}

/// One setting as it applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// `root`, `headers.X-Frame-Options`, `redirects./old`
    pub key: String,
    /// As it would be written.
    pub value: String,
    /// Where it was written; `None` for a default.
    pub place: Option<Place>,
    pub group: Group,
}

/// The site and route that answer, and all that holds there.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation<'c> {
    pub site: &'c Site,
    pub route: Option<&'c Route>,
    pub settings: Vec<Applied>,
}

/// What holds for a host name, a port and a decoded path. The port narrows the sites to those that listen there.
pub fn explain<'c>(config: &'c Config, host: &str, port: Option<u16>, path: &str) -> Option<Explanation<'c>> {
    let site = site(config, host, port)?;
    let route = route(site, path);
    let mut settings = applied(site, route);
    settings.extend(rules(site, path));
    settings.sort_by_key(|applied| applied.group);
    Some(Explanation { site, route, settings })
}

/// The site for a name: the name itself, then the longest wildcard, then the site that answers to every name.
pub fn site<'c>(config: &'c Config, host: &str, port: Option<u16>) -> Option<&'c Site> {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let address = host.trim_matches(['[', ']']).parse().ok();
    let listens = |listen: &Listen| match listen {
        Listen::Tcp { port: own, .. } => port.is_none_or(|port| port == *own),
        Listen::Unix(_) => port.is_none(),
    };
    let rank = |site: &Site| {
        let named = site.names.iter().filter_map(|name| match name {
            HostPattern::Exact(name) if *name == host => Some(usize::MAX),
            HostPattern::Wildcard(name) => {
                let below = host.strip_suffix(name.as_str())?;
                (below.len() > 1 && below.ends_with('.')).then_some(name.len() + 2)
            }
            HostPattern::Exact(_) => None,
        });
        // Among those that answer to every name, one that listens at the very address comes first.
        let own = |listen: &Listen| matches!(listen, Listen::Tcp { address: Some(own), .. } if Some(*own) == address);
        let unnamed = site.names.is_empty().then(|| usize::from(site.listen.iter().any(own)));
        named.max().or(unnamed)
    };
    let candidates = config.sites.iter().filter(|site| site.listen.iter().any(listens));
    candidates
        .filter_map(|site| Some((rank(site)?, site)))
        .max_by_key(|(rank, _)| *rank)
        .map(|(_, site)| site)
}

/// The most specific route that holds a path: exact, then the longest prefix, then the glob with the most letters.
pub fn route<'c>(site: &'c Site, path: &str) -> Option<&'c Route> {
    let rank = |pattern: &Pattern| match pattern {
        Pattern::Exact(_) => (3, 0),
        Pattern::Prefix(prefix) => (2, prefix.len()),
        Pattern::Glob(glob) => (1, glob.chars().filter(|c| *c != '*').count()),
    };
    let holds = site.routes.iter().filter(|route| route.pattern.matches(path));
    // Routes are sorted by pattern, and among equals the first text wins: hence the reverse.
    holds.rev().max_by_key(|route| rank(&route.pattern))
}

/// The rules that a path may meet: what else they ask of a request is told with each.
pub fn rules(site: &Site, path: &str) -> impl Iterator<Item = Applied> {
    let numbered = site.rules.iter().zip(1..);
    let met = numbered.filter(move |(rule, _)| {
        let paths = &rule.when.paths;
        paths.is_empty() || paths.iter().any(|pattern| pattern.matches(path))
    });
    met.map(|(rule, number)| Applied {
        key: format!("rule {number}"),
        value: told(rule),
        place: Some(rule.place.clone()),
        group: Group::Rules,
    })
}

/// The conditions of a rule and what it does, as they would be written.
fn told(rule: &Rule) -> String {
    let mut words = Vec::new();
    match &rule.when.paths[..] {
        [] => {}
        [one] => words.push(format!("path = {}", quoted(&pattern(one)))),
        several => {
            let paths = several.iter().map(|path| quoted(&pattern(path)));
            words.push(format!("path = {}", list(paths)));
        }
    }
    match &rule.action {
        RuleAction::Pass => {}
        RuleAction::Rewrite(to) => words.push(format!("rewrite = {}", quoted(to))),
        RuleAction::Redirect { to, status } => {
            words.extend([format!("redirect = {}", quoted(to)), format!("status = {status}")]);
        }
        RuleAction::Respond { status, body } => {
            words.push(format!("respond = {status}"));
            words.extend(body.iter().map(|body| format!("body = {}", quoted(&beginning(body)))));
        }
    }
    if rule.last {
        words.push("last = true".to_owned());
    }
    let when = &rule.when;
    let texts = |all: &[String]| list(all.iter().map(|text| quoted(text)));
    if !when.hosts.is_empty() {
        words.push(format!("host = {}", list(when.hosts.iter().map(host))));
    }
    if !when.methods.is_empty() {
        words.push(format!("method = {}", texts(&when.methods)));
    }
    for (key, patterns) in [("header", &when.headers), ("query", &when.query)] {
        let pairs: Vec<_> = (patterns.iter())
            .map(|(name, pattern)| format!("{} = {}", quoted(name), quoted(pattern)))
            .collect();
        if !pairs.is_empty() {
            words.push(format!("{key} = {{ {} }}", pairs.join(", ")));
        }
    }
    if let Some(secure) = when.secure {
        let scheme = if secure { Scheme::Https } else { Scheme::Http };
        words.push(format!("scheme = {}", quoted(scheme.word())));
    }
    format!("{{ {} }}", words.join(", "))
}

/// The first characters of a text, with a mark where it goes on.
fn beginning(text: &str) -> String {
    match text.char_indices().nth(MAX_BODY_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Longest part of an answer's text that is shown: it may be a page.
const MAX_BODY_CHARS: usize = 60;

/// Returns every setting of a site, or of one of its routes, that was written or is not at its default, and the defaults
/// of what is in use there. The table of keys says what there is.
pub fn applied(site: &Site, route: Option<&Route>) -> Vec<Applied> {
    let settings = route.map_or(&site.settings, |route| &route.settings);
    let bare = Settings::default();
    let mut rows = Rows {
        places: &settings.places,
        prefix: String::new(),
        group: Group::Site,
        in_use: true,
        all: Vec::new(),
    };
    for key in keys::within(Scope::Site) {
        let Some(group) = key.group else { continue };
        rows.group = group;
        rows.in_use = match group {
            Group::Site | Group::Filters | Group::Limits => true,
            Group::Rules | Group::Handler => false,
            Group::Controller => settings.controller.is_some(),
            Group::Files => settings.root.is_some(),
        };
        rows.key(key, site, None);
        rows.key(key, settings, Some(&bare));
    }
    rows.all.sort_by_key(|applied| applied.group);
    rows.all
}

/// The settings of an explanation while they are collected.
#[derive(Debug)]
pub(crate) struct Rows<'p> {
    places: &'p BTreeMap<String, Place>,
    /// The tables around the key, each with a dot.
    prefix: String,
    group: Group,
    /// Whether defaults are shown too.
    in_use: bool,
    all: Vec<Applied>,
}

impl Rows<'_> {
    /// Adds the keys of a table.
    pub fn of<T: Model>(&mut self, scope: Scope, name: &str, value: &T) {
        let outer = self.prefix.len();
        self.prefix.push_str(name);
        self.prefix.push('.');
        let bare = T::bare();
        for key in keys::within(scope) {
            self.key(key, value, bare.as_ref());
        }
        self.prefix.truncate(outer);
    }

    fn key<T: Model>(&mut self, key: &Key, value: &T, bare: Option<&T>) {
        let Some(binding) = T::binding(key) else { return };
        let shown = (binding.show)(value, &key.kind);
        let is_default = bare.is_some_and(|bare| (binding.show)(bare, &key.kind) == shown);
        let name = format!("{}{}", self.prefix, key.name);
        match shown {
            Shown::Entries(entries) if self.prefix.is_empty() => {
                for (entry, value) in entries {
                    self.push(format!("{name}.{entry}"), value);
                }
            }
            shown => {
                if let Some(value) = shown.line()
                    && (self.in_use || !is_default || self.places.contains_key(&name))
                {
                    self.push(name, value);
                }
            }
        }
        if let Some(inside) = binding.inside {
            inside(value, self);
        }
    }

    fn push(&mut self, key: String, value: String) {
        self.all.push(Applied {
            place: self.places.get(&key).cloned(),
            key,
            value,
            group: self.group,
        });
    }
}

/// Writes the servers of a proxy, each with the keys of its table that are not at their defaults.
pub(crate) fn servers(all: &[Weighted]) -> Shown {
    let server = |server: &Weighted| {
        let url = quoted(&server.upstream.to_string());
        let places = BTreeMap::new();
        let mut rows = Rows {
            places: &places,
            prefix: String::new(),
            group: Group::Handler,
            in_use: false,
            all: Vec::new(),
        };
        let bare = Weighted::bare();
        keys::within(Scope::Upstream).for_each(|key| rows.key(key, server, bare.as_ref()));
        if rows.all.is_empty() {
            return url;
        }
        let more = rows.all.iter().map(|row| format!("{} = {}", row.key, row.value));
        format!("{{ url = {url}, {} }}", more.collect::<Vec<_>>().join(", "))
    };
    Shown::Value(list(all.iter().map(server)))
}

/// Writes where the certificate of a site comes from, in the short form where there is one.
pub(crate) fn tls(tls: Option<&SiteTls>) -> Shown {
    let Some(tls) = tls else {
        return Shown::text(Encryption::Off.word());
    };
    let file = |path: &std::path::Path| quoted(&path.to_string_lossy());
    match &tls.source {
        CertificateSource::Auto => Shown::text(Encryption::Auto.word()),
        CertificateSource::Local => Shown::text(Encryption::Local.word()),
        CertificateSource::Files(all) => {
            let (certs, keys) = (
                all.iter().map(|one| file(&one.cert)),
                all.iter().map(|one| file(&one.key)),
            );
            Shown::Value(format!("{{ cert = {}, key = {} }}", list(certs), list(keys)))
        }
    }
}

/// A pattern as it is written.
pub fn pattern(pattern: &Pattern) -> String {
    match pattern {
        Pattern::Exact(text) | Pattern::Glob(text) => text.clone(),
        Pattern::Prefix(prefix) => format!("{prefix}*"),
    }
}

/// Writes the access log of a site, with what it has from `[log]`.
pub(crate) fn access_log(site: &Site) -> Shown {
    let target = log_target(&site.access.target).line().unwrap_or_default();
    let format = quoted(site.access.format.word());
    Shown::Value(format!("{{ access = {target}, format = {format} }}"))
}

pub(crate) fn listen(listen: &Listen) -> String {
    match listen {
        Listen::Tcp { address: None, port } => port.to_string(),
        Listen::Tcp {
            address: Some(address),
            port,
        } => quoted(&std::net::SocketAddr::new(*address, *port).to_string()),
        Listen::Unix(path) => quoted(&format!("unix:{}", path.display())),
    }
}

pub(crate) fn host(name: &HostPattern) -> String {
    match name {
        HostPattern::Exact(name) => quoted(name),
        HostPattern::Wildcard(name) => quoted(&format!("*.{name}")),
    }
}

#[cfg(test)]
mod tests;
