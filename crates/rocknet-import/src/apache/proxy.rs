//! Translates `ProxyPass` and related directives to proxies of the site and of routes.

use crate::access::covers;
use crate::directive::Directive;
use crate::document::{Notes, Site};
use crate::proxy::{ProxyServer, ProxySettings, is_plain_url};
use crate::settings::Settings;
use crate::units;
use crate::value::Value;

use super::context::{ServerContext, server_url};
use super::forwarding::Forwarding;
use super::inherit;
use super::path::prefix;

const OWN_ADDRESS: &str = "RockNet rewrites the address of the upstream itself";

/// Directives of proxies of one host.
#[derive(Default)]
pub(super) struct ProxyDirectives {
    /// Each `ProxyPass`, and each `RewriteRule` with the flag `P`, with its path and URL.
    passes: Vec<(String, String, Directive)>,
    /// Other directives of proxies, such as `ProxyTimeout`.
    others: Vec<Directive>,
    preserves_host: bool,
    /// Patterns of `<Directory>` sections for a part of the site.
    pub folders: Vec<String>,
    /// Ways by which a request for a path such as `/.git/config` reaches an upstream, a script or a rewritten path
    /// instead of that file. RockNet never serves files whose names begin with a dot. Denials of them, such as in
    /// `<Files ".git*">`, are therefore translated only if there is such a way.
    pub forwarding: Forwarding,
}

impl ProxyDirectives {
    /// Reads a directive of a host. Returns false if it does not concern proxies.
    pub fn read(&mut self, directive: &Directive) -> bool {
        match directive.name.to_ascii_lowercase().as_str() {
            "proxypass" if directive.arguments.len() >= 2 => {
                let (path, url) = (directive.argument(0).to_owned(), directive.argument(1).to_owned());
                self.passes.push((path, url, directive.clone()));
            }
            "proxypreservehost" => self.preserves_host = directive.argument(0).eq_ignore_ascii_case("on"),
            "proxypassreverse"
            | "proxypassreversecookiepath"
            | "proxypassreversecookiedomain"
            | "proxytimeout"
            | "proxyrequests"
            | "proxyvia"
            | "requestheader"
            | "proxyaddheaders"
            | "proxybadheader" => {
                self.others.push(directive.clone());
            }
            _ => return false,
        }
        true
    }

    /// Reads a `ProxyPass` or `ProxyPassReverse` in a section such as `<Location /a>`, where it has only a URL. `path`:
    /// path of the section.
    pub fn read_in(&mut self, directive: &Directive, path: &str) {
        if directive.is("ProxyPassReverse") {
            let arguments = vec![path.to_owned(), directive.argument(0).to_owned()];
            let reverse = Directive::new(&directive.name, arguments, directive.line);
            return self.others.push(reverse);
        }
        self.passes
            .push((path.to_owned(), directive.argument(0).to_owned(), directive.clone()));
    }

    /// Adds a proxy for the paths below a prefix. A `RewriteRule` with the flag `P` forwards requests to it.
    pub fn add(&mut self, prefix: &str, url: &str, directive: &Directive) {
        self.passes.push((prefix.to_owned(), url.to_owned(), directive.clone()));
    }

    /// Translates the directives.
    pub fn finish(self, site: &mut Site, context: &ServerContext) {
        let common = common(&self.others, site);
        for (path, url, directive) in &self.passes {
            let patterns = prefix(path);
            // `ProxyPass /static !` excepts a path from the proxy of a shorter path.
            if url == "!" {
                self.add_routes(&patterns, Value::Flag(false), directive, site);
                continue;
            }
            let Some((mut proxy, url_path)) = target(url, context) else {
                for pattern in patterns {
                    site.route(&pattern, directive.line).close(directive.line);
                }
                let message = "the address has no known form, so `deny = \"all\"` denies every client here, because \
                     the files could be requested otherwise: write `proxy`, `fastcgi` or `uwsgi`";
                site.skip(directive, message);
                continue;
            };
            for (key, value) in &common.keys {
                proxy.set(key, value.clone());
            }
            proxy.headers.extend(common.headers.clone());
            parameters(directive, &mut proxy, site);
            strip(path, &url_path, directive, &mut proxy, site);
            self.reverse(path, &mut proxy, site);
            self.host(directive, &mut proxy, site);
            self.add_routes(&patterns, proxy.value(), directive, site);
        }
        self.note_other_reverses(site);
    }

    /// Sets `proxy` in the routes of these patterns. A new route gets the access control of the section around it.
    fn add_routes(&self, patterns: &[String], proxy: Value, directive: &Directive, site: &mut Site) {
        let mut settings = Settings::default();
        settings.set("proxy", proxy, directive.line);
        let mut is_of_folder = false;
        for pattern in patterns {
            inherit::add(site, pattern, directive.line, &settings, false);
            let mut folders = self.folders.iter();
            is_of_folder |= pattern != "/*"
                && folders.any(|folder| folder == pattern || covers(folder, pattern))
                && site.route(pattern, directive.line).restricts();
        }
        if is_of_folder {
            let message = "the access control of `<Directory>` applies here too, and Apache applies it to files only: \
                 write `allow`, `deny` or `auth` into the route for other access control";
            site.differs(directive, message);
        }
    }

    /// Notes each `ProxyPassReverse` whose path no proxy has.
    fn note_other_reverses(&self, site: &mut Site) {
        let is_same = |left: &str, right: &str| left.trim_end_matches('/') == right.trim_end_matches('/');
        for directive in self.others.iter().filter(|d| d.is("ProxyPassReverse")) {
            let (path, url) = (directive.argument(0), directive.argument(1));
            let is_known = |(known, target, _): &&(String, String, Directive)| is_same(known, path) && target != "!";
            if self.passes.iter().any(|pass| is_known(&pass)) {
                continue;
            }
            // `ProxyPass /a http://b/a` is often followed by `ProxyPassReverse / http://b/`.
            match self
                .passes
                .iter()
                .any(|(_, target, _)| server_url(target) == server_url(url))
            {
                true => site.unneeded(directive, OWN_ADDRESS),
                false => site.skip(directive, "no `ProxyPass` has this path: write `redirects` in `proxy`"),
            }
        }
    }

    /// Translates each `ProxyPassReverse` for the path of a proxy to an entry of `redirects`. RockNet replaces the
    /// address of the upstream itself without an entry.
    fn reverse(&self, path: &str, proxy: &mut ProxySettings, site: &mut Site) {
        let trimmed = path.trim_end_matches('/');
        for directive in self.others.iter().filter(|d| d.is("ProxyPassReverse")) {
            let (public, url) = (directive.argument(0), directive.argument(1));
            if public.trim_end_matches('/') != trimmed {
                continue;
            }
            let is_own = proxy.servers.iter().any(|server| server.url == server_url(url));
            // A group of servers is written as `balancer://name`.
            if is_own || !url.starts_with("http") {
                site.unneeded(directive, OWN_ADDRESS);
            } else if is_plain_url(url) {
                proxy.add_pair("redirects", url, public);
            } else {
                site.skip(
                    directive,
                    "only the beginning of an address can be replaced: docs/proxy.md",
                );
            }
        }
    }

    /// Sets `Host` to the host of the URL, as Apache does without `ProxyPreserveHost`, or notes the difference.
    fn host(&self, directive: &Directive, proxy: &mut ProxySettings, site: &mut Site) {
        if self.preserves_host || proxy.headers.contains_key("Host") {
            return;
        }
        // One value of `Host` cannot name each server of a group.
        let [server] = &proxy.servers[..] else { return };
        let host = server.url.split_once("://").map_or("", |(_, host)| host).to_owned();
        let name = host.split(':').next().unwrap_or_default();
        // `127.0.0.1` or `localhost` would name no site of the upstream, so such a host is not set.
        if name.contains('.') && name.contains(|c: char| c.is_ascii_alphabetic()) {
            proxy.headers.insert("Host".to_owned(), host);
        } else {
            let message = "RockNet forwards the client's `Host`, as with `ProxyPreserveHost On`";
            site.differs(directive, message);
        }
    }
}

/// Translates the directives that apply to all proxies of a host.
fn common(others: &[Directive], site: &mut Site) -> ProxySettings {
    let mut common = ProxySettings::default();
    for directive in others {
        let words = directive.words();
        match (directive.name.to_ascii_lowercase().as_str(), &words[..]) {
            ("proxytimeout", [time]) if units::seconds(time).is_some() => {
                let time = Value::Text(units::duration_of(time).unwrap_or_default());
                common.set("first_byte", time.clone());
                common.set("idle", time);
            }
            ("requestheader", ["set", name, value]) if !value.contains('%') => {
                if name.to_ascii_lowercase().starts_with("x-forwarded-") {
                    site.unneeded(directive, "RockNet sends X-Forwarded-For, -Proto and -Host");
                } else {
                    common.headers.insert((*name).to_owned(), (*value).to_owned());
                }
            }
            // An empty value removes the field.
            ("requestheader", ["unset", name]) => {
                common.headers.insert((*name).to_owned(), String::new());
            }
            ("proxyrequests", ["Off" | "off"]) => site.unneeded(directive, "RockNet is never a forward proxy"),
            // An empty value removes the field of the client, and RockNet adds none.
            ("proxyvia", [word]) if word.eq_ignore_ascii_case("block") => {
                common.headers.insert("Via".to_owned(), String::new());
            }
            ("proxyvia", [word]) if word.eq_ignore_ascii_case("off") => {
                let message = "RockNet adds `Via` to each request that it forwards: `Via = \"\"` in `headers` of the proxy \
                               removes it";
                site.differs(directive, message);
            }
            ("proxyvia", _) => site.unneeded(directive, "RockNet adds `Via` to each request that it forwards"),
            ("proxybadheader", [word]) if !word.eq_ignore_ascii_case("iserror") => {
                site.differs(directive, "a response with an invalid header field becomes 502");
            }
            ("proxybadheader", _) => {
                site.unneeded(directive, "a response with an invalid header field becomes 502");
            }
            // `ProxyDirectives::reverse` translates it for its proxy.
            ("proxypassreverse", _) => {}
            ("proxypassreversecookiepath", [from, to]) if from.starts_with('/') && to.starts_with('/') => {
                common.add_pair("cookie_paths", from, to);
            }
            ("proxypassreversecookiedomain", [from, to]) => common.add_pair("cookie_domains", from, to),
            _ => site.skip(directive, "see docs/proxy.md for the settings of `proxy`"),
        }
    }
    common
}

/// Returns the proxy of a URL, and the path of the URL; `None` if the URL has no known form.
fn target(url: &str, context: &ServerContext) -> Option<(ProxySettings, String)> {
    if let Some((group, path)) = context.balancer(url) {
        return Some((group, path.to_owned()));
    }
    // `unix:/run/app.sock|http://localhost/path`
    if let Some(rest) = url.strip_prefix("unix:") {
        let (socket, rest) = rest.split_once('|').unwrap_or((rest, ""));
        let mut proxy = ProxySettings::default();
        proxy.servers.push(ProxyServer::new(format!("unix:{socket}")));
        let path = rest
            .split_once("://")
            .and_then(|(_, rest)| rest.find('/').map(|at| rest[at..].to_owned()));
        return rest.starts_with("http").then(|| (proxy, path.unwrap_or_default()));
    }
    let (scheme, rest) = url.split_once("://")?;
    if !matches!(scheme, "http" | "https" | "ws" | "wss" | "h2" | "h2c") || url.contains('$') {
        return None;
    }
    let mut proxy = ProxySettings::default();
    let server = server_url(url);
    if let Some(rest) = server.strip_prefix("h2://") {
        proxy.servers.push(ProxyServer::new(format!("https://{rest}")));
        proxy.set("http2", Value::Flag(true));
    } else {
        proxy.servers.push(ProxyServer::new(server));
    }
    Some((
        proxy,
        rest.find('/').map_or_else(String::new, |at| rest[at..].to_owned()),
    ))
}

/// Translates the parameters of a `ProxyPass`, such as `timeout=30`.
fn parameters(directive: &Directive, proxy: &mut ProxySettings, site: &mut Site) {
    for parameter in directive
        .arguments
        .iter()
        .skip(1)
        .filter(|argument| argument.contains('='))
    {
        match parameter.split_once('=') {
            Some(("timeout", time)) if units::seconds(time).is_some() => {
                let time = Value::Text(units::duration_of(time).unwrap_or_default());
                proxy.set("first_byte", time.clone());
                proxy.set("idle", time);
            }
            Some(("connectiontimeout", time)) if units::seconds(time).is_some() => {
                // RockNet accepts 0.1 to 60 seconds for `connect`; only whole seconds are written here.
                let time = units::seconds(time).unwrap_or(1).clamp(1, 60);
                proxy.set("connect", Value::Text(units::duration(time)));
            }
            // RockNet decides these itself.
            Some(("upgrade" | "keepalive" | "flushpackets" | "retry", _)) => {}
            // The URL itself may contain `=`.
            _ if parameter.contains("://") => {}
            _ => site.skip(directive, &format!("the parameter `{parameter}` has no counterpart")),
        }
    }
}

/// Translates the replacement of the path of a `ProxyPass` by the path of its URL. `ProxyPass /a http://b/` removes
/// `/a`, as `strip` does. Any other replacement, such as that by `/c` in `ProxyPass /a http://b/c`, gets a note.
fn strip(path: &str, url_path: &str, directive: &Directive, proxy: &mut ProxySettings, site: &mut Site) {
    let (path, url_path) = (path.trim_end_matches('/'), url_path.trim_end_matches('/'));
    match (path, url_path) {
        (path, url_path) if path == url_path => {}
        (path, "") => proxy.set("strip", Value::text(path)),
        _ => {
            let message =
                "the path is not replaced with that of the URL: RockNet forwards the path of the request unchanged";
            site.skip(directive, message);
        }
    }
}
