//! Directives that are valid in `http`, `server` and `location`, translated to settings.

mod access;
mod back_end;
mod global;
mod log;
mod named;
mod response;
mod unneeded;

use crate::directive::Directive;
use crate::document::Notes;
use crate::note::{MAY_RESTRICT_ACCESS, Note};
use crate::settings::Settings;
use crate::units;
use crate::value::Value;

use super::effective_access::EffectiveAccess;
use super::includes::is_covered;
use super::named_access::NamedAccess;
use super::restriction::is_unknown_restriction;
use super::upstream::Upstreams;
use super::{cache, limit, params};

/// Level of the configuration that contains a directive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConfigLevel {
    Http,
    Server,
    Location,
}

/// Settings of one level while its directives are read.
pub(super) struct Scope<'a> {
    level: ConfigLevel,
    pub settings: Settings,
    pub notes: Vec<Note>,
    /// Value of `Strict-Transport-Security`, with its directive, if there is one.
    pub hsts: Option<(String, &'a Directive)>,
    /// Directives `allow` and `deny`, in their order. After [`Scope::finish`], those of an outer level if this one has
    /// none.
    access: Vec<&'a Directive>,
    /// True if [`Scope::finish`] has changed the lists for `satisfy any` with authentication. For example, `allow all`
    /// then becomes the ranges of all addresses, because RockNet ignores `satisfy` beside `allow = "all"`.
    is_adapted_to_any: bool,
    /// Directives `proxy_…` that have no other field here, unlike `proxy_pass` and `proxy_cache`, and `mirror`. They
    /// apply to the `proxy_pass` of this level and below.
    pub proxy: Vec<&'a Directive>,
    /// Directive that names the back end, such as `proxy_pass` or `fastcgi_pass`, if there is one.
    pub pass: Option<&'a Directive>,
    /// Path that replaces the prefix of the location in forwarded requests; `None` if the paths are not changed.
    pub pass_path: Option<String>,
    /// Fields of `add_header`, also those that are not translated. They end the inheritance of such fields.
    pub added: Vec<String>,
    /// Fields of `proxy_hide_header`, `fastcgi_hide_header` and `uwsgi_hide_header`, with their lines.
    pub hidden: Vec<(String, usize)>,
    /// Directives `auth_basic` and `auth_basic_user_file`.
    auth: (Option<&'a Directive>, Option<&'a Directive>),
    /// The directive `auth_request`, if it is off or has a counterpart. In the latter case, `forward_auth::resolve` has
    /// appended further arguments, such as the URL of the authorization service.
    forward: Option<&'a Directive>,
    /// The named location to which `try_files` leads.
    named: Option<NamedAccess<'a>>,
    /// Access control without that of a named location. Set by [`Scope::finish`].
    effective: EffectiveAccess<'a>,
    /// The first flag is true if clients need a password, the second one if an authorization service has to admit them.
    /// Set by [`Scope::finish`].
    authentication: (bool, bool),
    /// True if `satisfy any` is in effect. Set by [`Scope::finish`].
    is_any_enough: bool,
    /// Settings of global tables: table, key, value and line.
    globals: Vec<(&'static str, &'static str, Value, usize)>,
    /// Directives of response caches, such as `proxy_cache`.
    pub caches: Vec<&'a Directive>,
    /// Directives that [`limit::finish`] applies to the limits of their level, such as `limit_rate_after`.
    limits: Vec<&'a Directive>,
    /// Directives `fastcgi_param`, `uwsgi_param` and `scgi_param`, and each `include` of a file of distributions that
    /// contains them, such as `fastcgi_params`.
    pub params: Vec<&'a Directive>,
    /// The same directives of the outer levels. This level inherits them if it has none for the same back end.
    pub outer_params: Vec<&'a Directive>,
}

impl<'a> Scope<'a> {
    pub fn new(level: ConfigLevel) -> Scope<'a> {
        Scope {
            level,
            settings: Settings::default(),
            notes: Vec::new(),
            hsts: None,
            access: Vec::new(),
            is_adapted_to_any: false,
            proxy: Vec::new(),
            pass: None,
            pass_path: None,
            added: Vec::new(),
            hidden: Vec::new(),
            auth: (None, None),
            forward: None,
            named: None,
            effective: EffectiveAccess::default(),
            authentication: (false, false),
            is_any_enough: false,
            globals: Vec::new(),
            params: Vec::new(),
            outer_params: Vec::new(),
            caches: Vec::new(),
            limits: Vec::new(),
        }
    }

    /// Translates a directive, or notes that it is not translated.
    pub fn read(&mut self, directive: &'a Directive, upstreams: &Upstreams) {
        let line = directive.line;
        let words = directive.words();
        match (directive.name.as_str(), &words[..]) {
            ("root", [folder]) if constant(folder).is_some() => {
                self.settings.set("root", Value::text(*folder), line);
                if !folder.starts_with('/') {
                    let message = "the path is relative to the folder of the RockNet configuration";
                    self.notes.differs(directive, message);
                }
            }
            // `try_files` without `$uri/` has turned the index off.
            ("index", _) if self.settings.get("index") == Some(&Value::List(Vec::new())) => {}
            ("index", names) if !names.iter().any(|name| name.contains('$') || name.starts_with('/')) => {
                self.settings.set("index", Value::texts(names.iter().copied()), line);
            }
            ("index", [names @ .., last])
                if last.starts_with('/') && !names.iter().any(|name| name.contains(['$', '/'])) =>
            {
                if !names.is_empty() {
                    self.settings.set("index", Value::texts(names.iter().copied()), line);
                }
                self.notes.differs(
                    directive,
                    "a folder without an index file goes to `fallback` instead of the path",
                );
            }
            ("autoindex_exact_size" | "autoindex_localtime", [_]) => {
                self.notes
                    .differs(directive, "in listings, sizes have units and times are UTC");
            }
            ("autoindex_format", [_]) => {
                self.notes.differs(
                    directive,
                    "programs get a listing as JSON by `Accept: application/json`",
                );
            }
            ("if_modified_since", ["exact"]) => {
                self.notes
                    .unneeded(directive, "RockNet sends a file again if its time or `ETag` differs");
            }
            ("http3", ["on"]) => self.notes.unneeded(directive, "HTTP/3 is on for each port with TLS"),
            ("resolver" | "resolver_timeout", _) => {
                self.notes.unneeded(
                    directive,
                    "RockNet resolves names again by itself, by the resolver of the system",
                );
            }
            ("autoindex", ["on"]) => self.settings.set("browse", Value::Flag(true), line),
            ("autoindex", ["off"]) => self.settings.set("browse", Value::Flag(false), line),
            ("limit_req" | "limit_conn", _) => limit::read(directive, &mut self.settings, &mut self.notes),
            ("limit_rate" | "limit_rate_after" | "limit_req_dry_run" | "limit_conn_dry_run", [_]) => {
                self.limits.push(directive);
            }
            ("limit_req_status" | "limit_conn_status", [status]) => match *status {
                "429" => self
                    .notes
                    .unneeded(directive, "requests above a limit get 429 by default"),
                _ => self.notes.differs(directive, "requests above a limit get 429"),
            },
            ("limit_req_log_level" | "limit_conn_log_level", _) => {
                self.notes.unneeded(
                    directive,
                    "metrics count the requests above a limit: docs/rate-limits.md",
                );
            }
            _ if cache::name(directive).is_some() => self.caches.push(directive),
            ("client_max_body_size", [size]) => self.body_size(directive, size),
            ("add_header", [name, value, rest @ ..]) => self.add_header(directive, name, value, rest),
            ("expires", [time]) => self.expires(directive, time),
            ("error_page", [_, ..]) => self.error_page(directive, &words),
            ("access_log" | "error_log", _) => self.log(directive, &words),
            ("auth_basic", [_]) => self.auth.0 = Some(directive),
            ("auth_basic_user_file", [_]) => self.auth.1 = Some(directive),
            ("allow" | "deny", [_]) => self.access.push(directive),
            ("satisfy", [word @ ("all" | "any")]) => {
                self.settings.set("satisfy", Value::text(*word), line);
            }
            ("auth_request", ["off"] | [_, _, ..]) if self.level != ConfigLevel::Http => {
                self.forward = Some(directive);
            }
            (name, ["off"]) if is_unknown_restriction(name) => {
                let message =
                    "if the site has `deny = \"all\"` for this restriction, so does this block: write `deny = []`";
                self.notes.skip(directive, message);
            }
            (name, _) if is_unknown_restriction(name) => {
                self.settings.close(line);
                let message = match name {
                    "auth_request" => {
                        "the authorization service is not translated, so `deny = \"all\"` denies every client \
                         here; write auth = { forward = \"http://127.0.0.1:9091/verify\" } in its place: docs/forward-auth.md"
                    }
                    _ => {
                        "this restriction has no counterpart, so `deny = \"all\"` denies every client here; write `allow` \
                         and `auth`: docs/access.md"
                    }
                };
                self.notes.skip(directive, message);
            }
            ("proxy_pass" | "grpc_pass" | "fastcgi_pass" | "uwsgi_pass" | "scgi_pass", [_]) => {
                self.pass(directive, upstreams);
            }
            ("gzip" | "brotli", ["on"]) => {
                // `on` ends the inheritance of `gzip off`: see `inherit` and `remove_compression`.
                if self.level != ConfigLevel::Http {
                    self.settings.set_default("compress", Value::Flag(true), line);
                }
                self.notes
                    .unneeded(directive, "compression (Brotli, Zstandard, gzip) is on by default");
            }
            ("gzip", ["off"]) => self.settings.set("compress", Value::Flag(false), line),
            ("internal", []) => self
                .notes
                .skip_restriction(directive, "clients can request these paths themselves"),
            // An empty value removes the field.
            ("etag", ["off"]) => self.settings.set_entry("headers", "ETag", Value::text(""), line),
            ("default_type", [kind]) if *kind != "application/octet-stream" && !kind.contains('$') => {
                self.settings.set_entry("types", "*", Value::text(*kind), line);
            }
            ("types", []) if directive.children().is_empty() => {
                let message = "the built-in types remain: for one type for all files, write Content-Type in `headers`";
                self.notes.skip(directive, message);
            }
            ("types", _) if !directive.children().iter().all(|inner| inner.is("include")) => {
                let (includes, types): (Vec<_>, Vec<_>) =
                    directive.children().iter().partition(|inner| inner.is("include"));
                includes
                    .into_iter()
                    .for_each(|inner| self.include(inner, inner.argument(0)));
                for inner in types {
                    for extension in &inner.arguments {
                        let value = Value::text(&inner.name);
                        self.settings.set_entry("types", &format!(".{extension}"), value, line);
                    }
                }
                self.notes
                    .differs(directive, "the types are added to the built-in ones");
            }
            ("disable_symlinks", ["off"]) => self.settings.set("symlinks", Value::text("all"), line),
            ("disable_symlinks", ["if_not_owner", ..]) => {
                self.settings.set("symlinks", Value::text("owner"), line);
            }
            ("disable_symlinks", _) => {
                self.settings.set("symlinks", Value::text("owner"), line);
                self.notes.weakens(
                    directive,
                    "links are followed if they and their targets have the same owner",
                );
            }
            ("include", [file]) => self.include(directive, file),
            ("proxy_hide_header" | "fastcgi_hide_header" | "uwsgi_hide_header", [name]) => {
                self.hidden.push(((*name).to_owned(), line));
            }
            ("proxy_pass_header" | "fastcgi_pass_header" | "uwsgi_pass_header", [_]) => {
                self.notes.unneeded(
                    directive,
                    "RockNet sends the fields of applications, except `Server` and `Date`",
                );
            }
            ("fastcgi_param" | "uwsgi_param" | "scgi_param", [_, _, ..]) => self.param(directive),
            ("fastcgi_read_timeout" | "uwsgi_read_timeout" | "scgi_read_timeout", [time]) => {
                match units::duration_of(time) {
                    Some(time) => self
                        .settings
                        .set_entry("limits", "answer_timeout", Value::Text(time), line),
                    None => self.notes.skip(directive, "write `limits.answer_timeout`"),
                }
            }
            ("mirror", ["off"]) => {}
            (name, _) if name.starts_with("proxy_") || name == "mirror" => self.proxy.push(directive),
            ("client_body_buffer_size", [size]) if units::size(size).is_some() => {
                let size = Value::Text(units::size(size).unwrap_or_default());
                self.settings.set_entry("limits", "body_memory", size, line);
            }
            _ if self.read_global(directive, &words) => {}
            (name, _) if unneeded::contains(name) => {
                self.notes.unneeded(directive, "RockNet selects this itself");
            }
            _ => self.notes.skip_unknown(directive),
        }
    }

    /// Adds the limits that this level inherits, once [`Scope::finish`] has read its own ones. `outer`: settings of the
    /// level that contains it.
    pub fn inherit_limits(&mut self, outer: &Settings, line: usize) {
        limit::inherit(&self.limits, &mut self.settings, outer, line);
    }

    /// Removes `compress = true` of a location unless the server turns compression off. `site`: settings of the server.
    pub fn remove_compression(&mut self, site: &Settings) {
        let is_default = site.get("compress") != Some(&Value::Flag(false));
        if is_default && self.settings.get("compress") == Some(&Value::Flag(true)) {
            self.settings.remove("compress");
        }
    }

    fn body_size(&mut self, directive: &Directive, size: &str) {
        let value = match size {
            // In nginx, 0 means no limit. RockNet always has a limit, so the size is one that no body reaches.
            "0" => Some("1024TiB".to_owned()),
            size => units::size(size),
        };
        match value {
            Some(size) => self
                .settings
                .set_entry("limits", "body_size", Value::Text(size), directive.line),
            None => self.notes.skip(directive, "write `limits.body_size`"),
        }
    }

    fn include(&mut self, directive: &'a Directive, file: &str) {
        if params::pass_of(directive).is_some() {
            self.params.push(directive);
        }
        if is_covered(file) {
            self.notes.unneeded(directive, "RockNet selects these settings itself");
        } else {
            self.notes
                .skip(directive, &format!("{MAY_RESTRICT_ACCESS}: the file was not read"));
        }
    }
}

/// Line of settings that no directive of the server causes.
const NO_LINE: usize = 0;

/// Adds the settings that a server inherits from `http`. Fields of `add_header` are inherited only if the server has no
/// such directive. Removes the settings with the default value of RockNet, which only end the inheritance.
pub(super) fn inherit(server: &mut Scope<'_>, http: &Scope<'_>) {
    let settings = &mut server.settings;
    let mut outer = http.settings.clone();
    match server.added.is_empty() {
        true => server.added.clone_from(&http.added),
        false => http.added.iter().for_each(|name| outer.remove_entry("headers", name)),
    }
    // In nginx, an `allow` or `deny` of the server replaces both lists of `http`.
    settings.cancel_inherited_lists(&outer, NO_LINE);
    for (key, setting) in outer.in_order() {
        settings.set_default(key, setting.value.clone(), setting.line);
    }
    if outer.is_locked() {
        settings.close(NO_LINE);
    }
    let defaults = [
        ("browse", Value::Flag(false)),
        ("compress", Value::Flag(true)),
        ("deny", Value::List(Vec::new())),
        ("limit", Value::Flag(false)),
        ("satisfy", Value::text("all")),
    ];
    for (key, default) in defaults {
        if settings.get(key) == Some(&default) {
            settings.remove(key);
        }
    }
}

/// Returns a text as a value; `None` if it contains variables.
pub(super) fn constant(text: &str) -> Option<Value> {
    (!text.contains('$')).then(|| Value::text(text))
}
