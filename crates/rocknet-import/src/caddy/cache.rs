//! Translates the directive `cache` of the plugin cache-handler (Souin) to the key `cache`.

use rocknet_config::model::RegexPattern;
use rocknet_config::template::Scope;

use crate::directive::Directive;
use crate::document::Notes;
use crate::note::Note;
use crate::placeholder;
use crate::settings::Settings;
use crate::units;
use crate::value::Value;

/// Lifetime of responses that state none, if no `ttl` is written: the default of Souin.
const DEFAULT_TTL: &str = "2m";

/// Sets the key `cache` of a site or route. `global`: global options of `cache`, each of which applies unless the
/// directive has an option with the same name.
pub(super) fn translate(directive: &Directive, global: &[Directive], settings: &mut Settings, notes: &mut Vec<Note>) {
    let own = directive.children();
    let is_replaced = |option: &&Directive| own.iter().any(|other| other.name == option.name);
    let mut draft = CacheDraft::default();
    for option in global.iter().filter(|option| !is_replaced(option)).chain(own) {
        if let Err(message) = draft.read(option, notes) {
            notes.skip(option, message);
            notes.skip(
                directive,
                "the cache stays off, because it would store or send more than that of Caddy",
            );
            return settings.set("cache", Value::Flag(false), directive.line);
        }
    }
    notes.differs(
        directive,
        "responses with `Set-Cookie` are never stored, and error responses without a lifetime are stored only if \
         `statuses` lists their status",
    );
    settings.set("cache", draft.value(), directive.line);
}

/// Keys of `cache` while the options are read.
#[derive(Default)]
struct CacheDraft {
    ttl: Option<String>,
    /// Lifetime in `default_cache_control`, which precedes `ttl`.
    default_lifetime: Option<String>,
    /// True if `default_cache_control` forbids storing a response without `Cache-Control`.
    is_forbidden: bool,
    /// Statuses in `allowed_additional_status_codes`, whose responses are stored too.
    statuses: Vec<String>,
    /// Text of `template`, with placeholders of RockNet.
    template: Option<String>,
    /// True if the query is no part of the key.
    has_no_query: bool,
    /// Request fields that are a part of the key.
    fields: Vec<String>,
    /// Conditions of `bypass`, the requests that the cache ignores.
    bypass: Vec<Value>,
    /// Other keys of `cache` with their values, such as `max_object`.
    others: Vec<(String, Value)>,
}

impl CacheDraft {
    /// Reads an option. Returns a message if its effect is missing and the cache must therefore stay off.
    fn read(&mut self, option: &Directive, notes: &mut Vec<Note>) -> Result<(), &'static str> {
        match (option.name.as_str(), &option.words()[..]) {
            ("ttl", [time]) => {
                let time = units::duration_of(time).ok_or("the time has no counterpart: write `ttl` of `cache`")?;
                self.ttl = Some(time);
            }
            ("stale", [time]) if let Some(time) = units::duration_of(time) => {
                self.others.push(("stale_if_error".to_owned(), Value::Text(time)));
                notes.differs(
                    option,
                    "a stale response is sent for this time if the application fails; Caddy also demands \
                     `stale-if-error` of the response",
                );
            }
            ("stale", _) => notes.skip(option, "write `stale_if_error` of `cache`"),
            ("default_cache_control", words) => {
                self.default_control(&words.join(" ").to_ascii_lowercase())?;
                notes.differs(option, "the field is not added to responses");
            }
            ("key", []) => {
                for inner in option.children() {
                    self.key(inner, notes)?;
                }
            }
            ("headers", names) => self.fields(names)?,
            ("cache_keys", _) => return Err("keys of some paths have no counterpart: write `cache.key` of routes"),
            ("regex", []) => {
                for inner in option.children() {
                    self.exclude(inner, notes)?;
                }
            }
            ("allowed_http_verbs", verbs) => {
                if !verbs.is_empty() && !verbs.contains(&"GET") {
                    return Err("only responses to GET and HEAD are stored");
                }
                if verbs.iter().any(|verb| !matches!(*verb, "GET" | "HEAD")) {
                    notes.differs(option, "only responses to GET and HEAD are stored");
                }
            }
            ("allowed_additional_status_codes", codes) => {
                self.statuses.extend(codes.iter().map(|code| (*code).to_owned()));
            }
            ("max_cacheable_body_bytes", [bytes]) if bytes.parse::<u64>().is_ok() => {
                self.others
                    .push(("max_object".to_owned(), Value::Text(format!("{bytes}B"))));
            }
            ("mode", [mode]) if *mode != "strict" => {
                notes.differs(
                    option,
                    "requests and responses that forbid to store a response are obeyed",
                );
            }
            ("timeout", _) => notes.skip(option, "write `connect` and `first_byte` of `proxy`"),
            ("disable_coalescing", _) => {
                notes.differs(
                    option,
                    "requests for the same page wait for one response to all of them",
                );
            }
            ("cdn", _) => notes.skip(option, "purges are not passed on to other caches"),
            ("api", _) => notes.skip(option, "responses are purged by `rocknet purge`: docs/cache.md#purging"),
            ("badger" | "etcd" | "nats" | "nuts" | "olric" | "redis" | "simplefs", _) => {
                notes.differs(
                    option,
                    "responses are stored in memory; `responses_disk` in [cache] also stores them on disk",
                );
            }
            ("otter" | "storers" | "cache_name" | "log_level" | "mode" | "disable_surrogate_key", _) => {
                notes.unneeded(option, "the response cache does this itself: docs/cache.md");
            }
            _ => return Err("the option is not known: see docs/cache.md for the settings of `cache`"),
        }
        Ok(())
    }

    /// Reads `default_cache_control`, which applies to responses without `Cache-Control`. `control`: its value in lower
    /// case.
    fn default_control(&mut self, control: &str) -> Result<(), &'static str> {
        let directives: Vec<&str> = control.split(',').map(str::trim).collect();
        let find = |name: &str| directives.iter().find_map(|directive| directive.strip_prefix(name));
        if let Some(seconds) = find("s-maxage=").or_else(|| find("max-age=")) {
            let seconds = seconds.parse();
            let seconds = seconds.map_err(|_| "the lifetime is not a number: write `ttl` of `cache`")?;
            self.default_lifetime = Some(units::duration(seconds));
        }
        let forbids = |directive: &&str| matches!(*directive, "no-store" | "private" | "no-cache");
        self.is_forbidden = directives.iter().any(forbids);
        Ok(())
    }

    /// Reads an option of `key`.
    fn key(&mut self, option: &Directive, notes: &mut Vec<Note>) -> Result<(), &'static str> {
        match (option.name.as_str(), &option.words()[..]) {
            ("disable_query", _) => self.has_no_query = true,
            ("headers", names) => self.fields(names)?,
            ("template", [text]) => {
                // The key needs no method: only GET and HEAD are served from the store, both with the response to GET.
                let text = text.replace("{http.request.method}", "").replace("{method}", "");
                let template = placeholder::from_caddy(&text, Scope::Request).ok_or(
                    "a placeholder has no counterpart, so different responses would be mixed: write `key` of `cache`",
                )?;
                if !template.contains('{') {
                    return Err("all paths would have the same response: write `key` of `cache`");
                }
                self.template = Some(template);
            }
            ("disable_host" | "disable_scheme", _) => {
                notes.differs(
                    option,
                    "the key always contains the scheme, and the host unless `template` omits it",
                );
            }
            ("disable_vary", _) => notes.differs(option, "`Vary` of responses is obeyed"),
            ("disable_body" | "disable_method" | "hash" | "hide", _) => {
                notes.unneeded(option, "the response cache does this itself: docs/cache.md");
            }
            _ => return Err("a part of the key is not known: write `key` of `cache`"),
        }
        Ok(())
    }

    /// Adds request fields to the key.
    fn fields(&mut self, names: &[&str]) -> Result<(), &'static str> {
        let is_name = |name: &&str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if !names.iter().all(is_name) {
            return Err("a field has no placeholder, so different responses would be mixed: write `key` of `cache`");
        }
        for name in names {
            if !self.fields.iter().any(|known| known.eq_ignore_ascii_case(name)) {
                self.fields.push((*name).to_owned());
            }
        }
        Ok(())
    }

    /// Reads an option of `regex`.
    fn exclude(&mut self, option: &Directive, notes: &mut Vec<Note>) -> Result<(), &'static str> {
        const MESSAGE: &str = "the expression has no counterpart, so excluded responses would be stored: write `bypass` of \
                               `cache`";
        let ("exclude", [expression]) = (option.name.as_str(), &option.words()[..]) else {
            return Err(MESSAGE);
        };
        // Caddy compares the expression with the path and the query.
        if expression.contains(['=', '&']) || expression.contains("\\?") {
            return Err(MESSAGE);
        }
        let pattern = RegexPattern::new(expression, false).map_err(|_| MESSAGE)?;
        let path = ("path".to_owned(), Value::Text(pattern.to_string()));
        self.bypass.push(Value::Table(vec![path]));
        notes.differs(option, "the expression is compared with the path, without the query");
        Ok(())
    }

    /// Returns the value of the key `cache`.
    fn value(self) -> Value {
        let mut entries = Vec::new();
        // Without `ttl`, RockNet stores only responses that state a lifetime.
        if !self.is_forbidden {
            let ttl = self.default_lifetime.or(self.ttl);
            let ttl = ttl.unwrap_or_else(|| DEFAULT_TTL.to_owned());
            entries.push(("ttl".to_owned(), Value::text(&ttl)));
            if !self.statuses.is_empty() {
                let statuses = self.statuses.into_iter().map(|status| (status, Value::text(&ttl)));
                entries.push(("statuses".to_owned(), Value::Table(statuses.collect())));
            }
        }
        let fields = self.fields.iter().map(|name| format!("|{{request.header.{name}}}"));
        // RockNet adds site and scheme to every key. Without `key`, it also adds host, path and query. If `key` is
        // written, it replaces these three, so `{host}{target}` repeats them before the fields.
        let key = match (self.template, self.has_no_query) {
            (Some(template), _) => Some(template),
            (None, true) => Some("{host}{path}".to_owned()),
            (None, false) if fields.len() > 0 => Some("{host}{target}".to_owned()),
            (None, false) => None,
        };
        if let Some(key) = key {
            entries.push(("key".to_owned(), Value::Text(key + &fields.collect::<String>())));
        }
        if !self.bypass.is_empty() {
            entries.push(("bypass".to_owned(), Value::one_or_list(self.bypass)));
        }
        entries.extend(self.others);
        Value::enabled(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_translated_or_stay_off() {
        for (options, expected) in [
            ("", "{ ttl = \"2m\" }"),
            (
                "ttl 1000s\nstale 200s",
                "{ ttl = \"1000s\", stale_if_error = \"200s\" }",
            ),
            ("default_cache_control no-store", "true"),
            (
                "ttl 5m\ndefault_cache_control \"public, s-maxage=60\"",
                "{ ttl = \"1m\" }",
            ),
            ("ttl 5m\ndefault_cache_control public", "{ ttl = \"5m\" }"),
            (
                "key {\nheaders X-Token Accept-Language\ndisable_body\n}",
                "{ ttl = \"2m\", key = \"{host}{target}|{request.header.X-Token}|{request.header.Accept-Language}\" }",
            ),
            (
                "headers X-Token\nkey {\ndisable_query\n}",
                "{ ttl = \"2m\", key = \"{host}{path}|{request.header.X-Token}\" }",
            ),
            (
                "key {\ntemplate {http.request.method}-{http.request.host}-{http.request.uri.path}\n}",
                "{ ttl = \"2m\", key = \"-{host}-{path}\" }",
            ),
            ("key {\ndisable_host\ndisable_scheme\nhash\nhide\n}", "{ ttl = \"2m\" }"),
            (
                "regex {\nexclude ^/account/\n}",
                "{ ttl = \"2m\", bypass = { path = \"~^/account/\" } }",
            ),
            (
                "ttl 1h\nallowed_additional_status_codes 202 302\nmax_cacheable_body_bytes 1048576",
                "{ ttl = \"1h\", statuses = { 202 = \"1h\", 302 = \"1h\" }, max_object = \"1048576B\" }",
            ),
            (
                "allowed_http_verbs GET POST\nmode bypass\nnuts {\npath /tmp/nuts\n}",
                "{ ttl = \"2m\" }",
            ),
            // These would store or send more than Caddy.
            ("ttl 1.5h", "false"),
            ("cache_keys {\n.*\\.css {\ndisable_query\n}\n}", "false"),
            ("regex {\nexclude preview=1\n}", "false"),
            ("regex {\nexclude ^/(?!a)\n}", "false"),
            ("key {\ntemplate {http.request.uri.path}{http.vars.device}\n}", "false"),
            ("key {\ntemplate {http.request.method}\n}", "false"),
            ("key {\nheaders X-.*\n}", "false"),
            ("allowed_http_verbs POST", "false"),
            ("private_option", "false"),
        ] {
            let tree = super::super::read(&format!("cache {{\n{options}\n}}\n")).unwrap();
            let (mut settings, mut notes) = (Settings::default(), Vec::new());
            translate(&tree[0], &[], &mut settings, &mut notes);
            let mut out = String::new();
            settings.get("cache").unwrap().write(&mut out);
            assert_eq!(out, expected, "{options}");
            let is_off = notes.iter().any(|note| note.message.contains("the cache stays off"));
            assert_eq!(is_off, expected == "false", "{options}: {notes:?}");
        }
    }

    #[test]
    fn options_of_a_directive_replace_the_global_ones() {
        let tree = super::super::read("cache {\nttl 1m\nkey {\nheaders A\n}\n}\ncache {\nttl 2h\n}\n").unwrap();
        let mut settings = Settings::default();
        translate(&tree[1], tree[0].children(), &mut settings, &mut Vec::new());
        let mut out = String::new();
        settings.get("cache").unwrap().write(&mut out);
        assert_eq!(out, "{ ttl = \"2h\", key = \"{host}{target}|{request.header.A}\" }");
    }
}
