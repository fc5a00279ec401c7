//! Virtual hosts of other servers, and their assembly into sites: names, listeners, TLS, and redirects to HTTPS.
//!
//! nginx and Apache have one host for each port, but RockNet has one site for all ports of a name. A host that only
//! redirects to HTTPS becomes a part of the site that it redirects to.

use std::collections::{BTreeSet, HashMap};

use crate::directive::Directive;
use crate::document::{Document, Notes, Site};
use crate::note::{Note, NoteKind};
use crate::settings::Settings;
use crate::value::Value;

/// Message for hosts that only redirect to HTTPS.
const REDIRECTED: &str = "sites with TLS redirect from http:// by themselves (308): `tls.redirect`";

/// Second part of the message for two hosts that become one site.
const SERVED: &str = "`redirect = false` serves it without TLS too";

/// Listener of a host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HostListener {
    /// Address as `IP` or `[IPv6]`; empty for every address.
    pub address: String,
    /// Port, or 0 for a Unix socket, whose path is `address`.
    pub port: u16,
    pub tls: bool,
}

/// Redirect of every path to HTTPS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HttpsRedirect {
    /// Host of the target; empty for the host of the request.
    pub host: String,
    pub status: u64,
}

/// A virtual host before it becomes a site.
#[derive(Debug, Default)]
pub(crate) struct HostDraft {
    /// Settings, routes, rules and notes. Name, listeners and TLS are set by [`assemble`].
    pub site: Site,
    /// Text of the directive that begins the host, for notes.
    pub directive: String,
    /// Host names in lower case. The first one becomes the name of the site, the others become aliases.
    pub names: Vec<String>,
    pub listeners: BTreeSet<HostListener>,
    /// Settings of the key `tls`: `cert`, `key`, `min` and so on.
    pub tls: Vec<(String, Value)>,
    /// Value of `tls` if it has no settings: `auto` or `local`. `None` if certificates are expected in files.
    pub tls_word: Option<&'static str>,
    /// Redirect of all requests to HTTPS, with their path; `None` if not all requests are redirected.
    pub https_redirect: Option<HttpsRedirect>,
    /// True if the host is for certain names. If RockNet can express none of them, `names` stays empty, and the host is
    /// left out, because its site would serve every name.
    pub needs_name: bool,
    /// True if the host needs no site, because RockNet does the same by default. An example is a server of nginx
    /// without names that has `ssl_reject_handshake on`.
    pub is_needless: bool,
}

impl HostDraft {
    pub fn is_tls(&self) -> bool {
        self.listeners.iter().any(|listener| listener.tls)
    }

    fn note(&mut self, kind: NoteKind, message: String) {
        self.site.notes.push(Note {
            kind,
            file: String::new(),
            line: self.site.line,
            directive: self.directive.clone(),
            message,
        });
    }

    /// Returns true if another host can be served by the same site.
    fn is_same(&self, other: &HostDraft) -> bool {
        self.names == other.names && same(&self.site.settings, &other.site.settings) && {
            let routes = |host: &HostDraft| -> Vec<String> {
                let mut all: Vec<_> = host.site.routes.iter().map(|route| route.pattern.clone()).collect();
                all.sort();
                all
            };
            routes(self) == routes(other)
                && self.site.routes.iter().all(|route| {
                    let twin = other.site.routes.iter().find(|twin| twin.pattern == route.pattern);
                    twin.is_some_and(|twin| same(&route.settings, &twin.settings))
                })
                && self.site.rules.len() == other.site.rules.len()
                && self
                    .site
                    .rules
                    .iter()
                    .zip(&other.site.rules)
                    .all(|(a, b)| a.keys == b.keys)
        }
    }
}

/// Returns true if two tables have the same values. Logs may differ; the joined site has the log of the first host.
fn same(left: &Settings, right: &Settings) -> bool {
    let values = |settings: &Settings| -> Vec<(String, Value)> {
        let all = settings.in_order().into_iter().filter(|(key, _)| *key != "log");
        all.map(|(key, setting)| (key.to_owned(), setting.value.clone()))
            .collect()
    };
    values(left) == values(right)
}

/// Adds the sites of hosts to a document.
pub(crate) fn assemble(document: &mut Document, hosts: Vec<HostDraft>) {
    let mut kept: Vec<HostDraft> = Vec::new();
    let mut redirecting: Vec<HostDraft> = Vec::new();
    let mut by_name: HashMap<String, usize> = HashMap::new();
    for mut host in hosts {
        if host.is_needless {
            document.notes.append(&mut host.site.notes);
            continue;
        }
        if host.needs_name && host.names.is_empty() {
            let message =
                "the site is left out, because RockNet has no form for its names, and it would serve every name";
            host.note(NoteKind::NotTranslated, message.to_owned());
            document.notes.append(&mut host.site.notes);
            continue;
        }
        if host.https_redirect.is_some() && !host.is_tls() {
            redirecting.push(host);
            continue;
        }
        let first = host.names.first().and_then(|name| by_name.get(name).copied());
        match first {
            Some(at) if kept[at].is_same(&host) && kept[at].is_tls() != host.is_tls() => {
                let place = document.sources.place(host.site.line);
                join(&mut kept[at], host, &place);
            }
            _ => {
                for name in &host.names {
                    by_name.entry(name.clone()).or_insert(kept.len());
                }
                kept.push(host);
            }
        }
    }
    for host in redirecting {
        if let Some(left) = redirect(&mut kept, &by_name, host) {
            kept.push(left);
        }
    }
    let mut used: HashMap<String, usize> = HashMap::new();
    for host in kept {
        finish(document, host, &mut used);
    }
}

/// Joins a host with the same content on other ports: one of the two hosts uses TLS, and the other does not.
fn join(kept: &mut HostDraft, other: HostDraft, place: &str) {
    kept.note(
        NoteKind::Differs,
        format!("joined with the same host at {place}; {SERVED}"),
    );
    // The settings of the host with TLS apply. The other host may have some too, such as `hsts`.
    if other.is_tls() {
        kept.tls = other.tls;
        kept.tls_word = other.tls_word;
    }
    kept.listeners.extend(other.listeners);
    kept.tls.retain(|(key, _)| key != "redirect");
    kept.tls.push(("redirect".to_owned(), Value::Flag(false)));
    kept.site.notes.extend(other.site.notes);
}

/// Adds the listeners of a host that redirects to HTTPS to the sites that it redirects to. Returns the rest of the
/// host, with the names that have no such site; `None` if nothing is left.
fn redirect(kept: &mut [HostDraft], by_name: &HashMap<String, usize>, mut host: HostDraft) -> Option<HostDraft> {
    let Some(HttpsRedirect { host: target, status }) = host.https_redirect.clone() else {
        return Some(host);
    };
    if target.is_empty() && host.names.is_empty() && redirect_all(kept, &mut host) {
        return None;
    }
    let (mut left, mut joined) = (Vec::new(), None);
    for name in &host.names {
        let at = by_name.get(name).copied().filter(|at| kept[*at].is_tls());
        match at {
            Some(at) => {
                // `redirect = false` would serve the site without TLS too.
                serve_only_with_tls(&mut kept[at]);
                let listeners = host.listeners.iter().filter(|listener| !listener.tls);
                kept[at].listeners.extend(listeners.cloned());
                joined = Some(at);
                if !target.is_empty() && &target != name {
                    // The site with this name redirects to its own https:// address first.
                    let message = format!("{name} is redirected to https://{name}/, not to https://{target}/");
                    kept[at].note(NoteKind::Differs, message);
                }
            }
            None => left.push(name.clone()),
        }
    }
    if let Some(at) = joined {
        host.note(NoteKind::NotNeeded, REDIRECTED.to_owned());
        if left.is_empty() {
            note_rules(&mut host);
            let notes = std::mem::take(&mut host.site.notes);
            kept[at].site.notes.extend(notes);
            return None;
        }
    }
    let to = match (target.as_str(), left.first()) {
        ("", Some(name)) if !name.starts_with("*.") => name.clone(),
        // No name, or a wildcard, which cannot be the target of a redirect.
        ("", _) => {
            let message = "no site with TLS has the names that are redirected to HTTPS here, so every client is \
                 denied: add a site with TLS for each name, which then redirects by itself";
            host.note(NoteKind::NotTranslated, message.to_owned());
            // Without a redirect, the site must not serve its content without TLS.
            host.site
                .settings
                .set_default("deny", Value::text("all"), host.site.line);
            String::new()
        }
        (target, _) => target.to_owned(),
    };
    if !to.is_empty() {
        if left.len() > 1 && target.is_empty() {
            host.note(NoteKind::Differs, format!("all names are redirected to https://{to}/"));
        }
        host.site
            .redirect("/*", &format!("https://{to}/{{*}}"), status, host.site.line);
    }
    host.names = left;
    Some(host)
}

/// Removes `redirect = false` from a host, and notes it if the host has listeners without TLS.
fn serve_only_with_tls(kept: &mut HostDraft) {
    let is_served = kept.tls.iter().any(|(key, _)| key == "redirect");
    kept.tls.retain(|(key, _)| key != "redirect");
    if is_served && kept.listeners.iter().any(|listener| !listener.tls) {
        // This note is no longer true.
        kept.site.notes.retain(|note| !note.message.ends_with(SERVED));
        let message = "requests without TLS are redirected to HTTPS on every port, also on those that served the site";
        kept.note(NoteKind::Differs, message.to_owned());
    }
}

/// Merges a host that redirects every name to HTTPS into the sites with TLS, by adding its listeners to each of these
/// sites. Skips sites that have a listener without TLS, and sites that share a name with a site without TLS. Returns
/// false if no site uses TLS.
fn redirect_all(kept: &mut [HostDraft], host: &mut HostDraft) -> bool {
    let clear: Vec<String> = kept
        .iter()
        .filter(|other| !other.is_tls())
        .flat_map(|other| other.names.clone())
        .collect();
    let Some(first) = kept.iter().position(HostDraft::is_tls) else {
        return false;
    };
    for other in kept.iter_mut().filter(|other| other.is_tls()) {
        let is_served =
            other.listeners.iter().any(|listener| !listener.tls) || other.names.iter().any(|name| clear.contains(name));
        if !is_served {
            other.listeners.extend(host.listeners.iter().cloned());
            other.tls.retain(|(key, _)| key != "redirect");
        }
    }
    host.note(NoteKind::NotNeeded, REDIRECTED.to_owned());
    note_rules(host);
    kept[first].site.notes.append(&mut host.site.notes);
    true
}

/// Notes the rules of a host that is merged into sites with TLS, which redirect before they apply rules.
fn note_rules(host: &mut HostDraft) {
    for rule in std::mem::take(&mut host.site.rules) {
        let directive = Directive::new(rule.directive, Vec::new(), rule.line);
        let message = "requests without TLS are redirected to HTTPS first; write the rule into the site with TLS";
        host.site.differs(&directive, message);
    }
}

/// Sets name, listeners and TLS of a site, and adds it to the document. `used`: lines of the sites by name.
fn finish(document: &mut Document, mut host: HostDraft, used: &mut HashMap<String, usize>) {
    if host.listeners.is_empty() {
        host.listeners.insert(HostListener {
            address: String::new(),
            port: 80,
            tls: false,
        });
    }
    let names = std::mem::take(&mut host.names);
    let (free, taken): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| !used.contains_key(name));
    for name in taken {
        let place = document.sources.place(used.get(&name).copied().unwrap_or_default());
        let message =
            format!("the site of {place} has the name {name} already; a name has one site for all ports: join them");
        host.note(NoteKind::NotTranslated, message);
        if free.is_empty() {
            document.notes.append(&mut host.site.notes);
            return;
        }
    }
    let line = host.site.line;
    let mut has_listen = true;
    let name = match free.split_first() {
        Some((first, aliases)) => {
            if !aliases.is_empty() {
                host.site.settings.set("aliases", Value::texts(aliases.to_vec()), line);
            }
            first.clone()
        }
        None => {
            let name = default_name(&host, used);
            // Any other name contains the listener, so `listen` is not needed.
            has_listen = name == "default";
            name
        }
    };
    if let Some(first) = used.get(&name) {
        let place = document.sources.place(*first);
        let message = format!("the site of {place} serves these listeners already");
        host.note(NoteKind::NotTranslated, message);
        document.notes.append(&mut host.site.notes);
        return;
    }
    for name in free.iter().chain([&name]) {
        used.insert(name.clone(), line);
    }
    set_tls(&mut host, name.as_str());
    if has_listen && let Some(listen) = listen(&host) {
        host.site.settings.set("listen", listen, line);
    }
    host.site.name = name;
    document.sites.push(host.site);
}

/// Returns the name of a catch-all site: `ADDRESS:PORT` or `:PORT` if that is its only listener, otherwise `default`. A
/// site with only `:80` is also called `default`, unless that name is taken.
fn default_name(host: &HostDraft, used: &HashMap<String, usize>) -> String {
    let only = match host.listeners.iter().collect::<Vec<_>>()[..] {
        [only] if only.port != 0 => Some(format!("{}:{}", only.address, only.port)),
        _ => None,
    };
    match only {
        Some(name) if name != ":80" || used.contains_key("default") => name,
        _ => "default".to_owned(),
    }
}

/// Sets `tls` of the site `name` by the listeners and TLS settings of its host.
fn set_tls(host: &mut HostDraft, name: &str) {
    let line = host.site.line;
    let has_name = name != "default" && !name.contains(':') && name.parse::<std::net::IpAddr>().is_err();
    if !host.is_tls() {
        // A site with a host name uses TLS by default.
        if has_name {
            host.site.settings.set("tls", Value::text("off"), line);
        }
        return;
    }
    let is_clear_too = host.listeners.iter().any(|listener| !listener.tls);
    let is_given = host.tls.iter().any(|(key, _)| key == "redirect");
    // If all listeners use TLS, `redirect` has no effect.
    if !is_clear_too && is_given {
        host.tls.retain(|(key, _)| key != "redirect");
    }
    let has_files = host.tls.iter().any(|(key, _)| key == "cert");
    // If `tls` is a table, `issuer` in it takes the place of the word.
    if let (Some("local"), false, false) = (host.tls_word, has_files, host.tls.is_empty()) {
        host.tls.insert(0, ("issuer".to_owned(), Value::text("local")));
    }
    if !has_files && host.tls_word.is_none() {
        host.note(
            NoteKind::Differs,
            "no certificate is named here: `tls` without `cert` requests one from a public authority".to_owned(),
        );
    }
    let tls = std::mem::take(&mut host.tls);
    let value = if tls.is_empty() {
        Value::text(host.tls_word.unwrap_or("auto"))
    } else {
        Value::Table(tls)
    };
    host.site.settings.set("tls", value, line);
}

/// Returns the value of `listen`; `None` if it is the default.
fn listen(host: &HostDraft) -> Option<Value> {
    let plain = |port, tls| HostListener {
        address: String::new(),
        port,
        tls,
    };
    let defaults: BTreeSet<_> = match host.is_tls() {
        true => [plain(80, false), plain(443, true)].into(),
        false => [plain(80, false)].into(),
    };
    if host.listeners == defaults {
        return None;
    }
    let values = host.listeners.iter().map(|listener| {
        // In a site with TLS, an address without a scheme means HTTPS, except on port 80 and on Unix sockets.
        let scheme = match (listener.tls, listener.port) {
            (true, 80 | 0) => "https://",
            (false, port) if host.is_tls() && port != 80 && port != 0 => "http://",
            _ => "",
        };
        match (listener.address.as_str(), listener.port) {
            ("", port) if scheme.is_empty() => Value::Number(port.into()),
            (path, 0) => Value::Text(format!("{scheme}unix:{path}")),
            (address, port) => Value::Text(format!("{scheme}{address}:{port}")),
        }
    });
    Some(Value::List(values.collect()))
}
