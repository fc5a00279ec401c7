//! Translates `proxy_cache`, `fastcgi_cache` and the like to `cache`.

use rocknet_config::template::Scope;

use crate::directive::Directive;
use crate::document::Notes;
use crate::note::Note;
use crate::placeholder;
use crate::settings::Settings;
use crate::units;
use crate::value::Value;

/// Beginnings of the names, one for each protocol.
const FAMILIES: [&str; 4] = ["proxy_", "fastcgi_", "uwsgi_", "scgi_"];

/// Time in which a stale response is sent if the application fails, or while a new one is requested. nginx sends it as
/// long as it is stored.
const STALE: &str = "1d";

/// Returns the name of a directive of caches without the protocol, such as `cache_valid`; `None` for others.
pub(super) fn name(directive: &Directive) -> Option<&str> {
    let name = &directive.name;
    let rest = FAMILIES.iter().find_map(|family| name.strip_prefix(family))?;
    (rest == "cache" || rest.starts_with("cache_") || rest == "no_cache").then_some(rest)
}

/// Sets `cache` by the directives of a level: `http`, `server` or `location`. `inherited`: those of the outer level,
/// each of which applies unless `own` has a directive of this name.
pub(super) fn translate(inherited: &[&Directive], own: &[&Directive], settings: &mut Settings, notes: &mut Vec<Note>) {
    if own.is_empty() {
        // In RockNet, too, the level inherits `cache`.
        return;
    }
    let is_replaced = |directive: &&&Directive| own.iter().any(|other| other.name == directive.name);
    let all: Vec<&Directive> = inherited
        .iter()
        .filter(|d| !is_replaced(d))
        .chain(own)
        .copied()
        .collect();
    let Some(zone) = all.iter().rev().find(|directive| name(directive) == Some("cache")) else {
        // Without `proxy_cache`, they only apply to caches of inner levels, which inherit them.
        return;
    };
    if zone.argument(0) == "off" {
        return settings.set("cache", Value::Flag(false), zone.line);
    }
    let mut draft = CacheDraft::default();
    for directive in &all {
        if let Err(message) = draft.read(directive, notes) {
            notes.skip(directive, message);
            notes.skip(
                zone,
                "the cache stays off, because it would store or send more than that of nginx",
            );
            return settings.set("cache", Value::Flag(false), zone.line);
        }
    }
    settings.set("cache", draft.value(), zone.line);
}

/// Keys of `cache` while the directives are read.
#[derive(Default)]
struct CacheDraft {
    statuses: Vec<(String, Value)>,
    cookies: Vec<Value>,
    bypass: Vec<Value>,
    others: Vec<(String, Value)>,
}

impl CacheDraft {
    /// Reads a directive. Returns a message if its effect is missing and the cache must therefore stay off.
    fn read(&mut self, directive: &Directive, notes: &mut Vec<Note>) -> Result<(), &'static str> {
        let words = directive.words();
        match (name(directive).unwrap_or_default(), &words[..]) {
            ("cache", _) => {}
            ("cache_valid", words) => self.valid(directive, words, notes),
            ("cache_bypass" | "no_cache", variables) => {
                for word in variables {
                    // A word with several variables, such as `$arg_a$arg_b`, is not empty if one of them is not.
                    for variable in word.strip_prefix('$').unwrap_or_default().split('$') {
                        self.bypass(variable)?;
                    }
                }
            }
            ("cache_key", [key]) => self.key(key)?,
            ("cache_use_stale", words) => {
                if words
                    .iter()
                    .any(|word| word.starts_with("http_5") || matches!(*word, "error" | "timeout"))
                {
                    self.others.push(("stale_if_error".to_owned(), Value::text(STALE)));
                    notes.differs(
                        directive,
                        "stale responses are sent for up to a day; nginx has no such limit",
                    );
                }
                if words.contains(&"updating") {
                    self.others
                        .push(("stale_while_revalidate".to_owned(), Value::text(STALE)));
                }
            }
            ("cache_methods", methods) if methods.iter().any(|method| !matches!(*method, "GET" | "HEAD")) => {
                notes.skip(directive, "responses to GET and HEAD are stored");
            }
            _ => notes.unneeded(directive, "the response cache does this itself: docs/cache.md"),
        }
        Ok(())
    }

    /// Reads `cache_valid`: lifetimes of responses that state none.
    fn valid(&mut self, directive: &Directive, words: &[&str], notes: &mut Vec<Note>) {
        let Some((Some(time), codes)) = words
            .split_last()
            .map(|(time, codes)| (units::duration_of(time), codes))
        else {
            return notes.skip(directive, "write `ttl` or `statuses` of `cache`");
        };
        let codes = if codes.is_empty() {
            &["200", "301", "302"][..]
        } else {
            codes
        };
        for code in codes {
            if *code == "any" {
                notes.differs(
                    directive,
                    "`statuses` names each status: errors other than 404 are not stored",
                );
            }
            let codes = if *code == "any" {
                &["200", "301", "302", "404"][..]
            } else {
                std::slice::from_ref(code)
            };
            for code in codes {
                if !self.statuses.iter().any(|(known, _)| known == code) {
                    self.statuses.push(((*code).to_owned(), Value::text(&time)));
                }
            }
        }
    }

    /// Reads the name of a variable. A request for which it is not empty does not use the cache. In nginx, the request
    /// also uses the cache if the variable is `0`.
    fn bypass(&mut self, variable: &str) -> Result<(), &'static str> {
        let condition = |map: &str, name: String| {
            let entry = Value::Table(vec![(name, Value::text("~."))]);
            Value::Table(vec![(map.to_owned(), entry)])
        };
        // Any other character ends the name and begins a constant text, with which the word is never empty.
        let is_name = variable
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let parts = variable.split_once('_').filter(|(_, rest)| is_name && !rest.is_empty());
        match parts {
            Some(("cookie", cookie)) => self.cookies.push(Value::text(cookie)),
            Some(("http", field)) => self.bypass.push(condition("header", field.replace('_', "-"))),
            Some(("arg", parameter)) => self.bypass.push(condition("query", parameter.to_owned())),
            _ => return Err("the variable has no counterpart: write `bypass` or `bypass_cookies` of `cache`"),
        }
        Ok(())
    }

    /// Reads `cache_key`. Sets no key if the default of RockNet distinguishes the same responses.
    fn key(&mut self, key: &str) -> Result<(), &'static str> {
        // Scheme, site and upstream distinguish responses in any case, and HEAD is answered by the response to GET.
        let mut rest = key.to_owned();
        for part in ["$scheme", "$proxy_host", "$request_method", "$server_name"] {
            rest = rest.replace(part, "");
        }
        let plain = rest.strip_prefix("://").unwrap_or(&rest);
        let target = ["$request_uri", "$uri$is_args$args"];
        let is_default = ["", "$host", "$http_host"]
            .iter()
            .any(|host| plain.strip_prefix(host).is_some_and(|rest| target.contains(&rest)));
        if is_default {
            return Ok(());
        }
        if rest.is_empty() {
            return Err("all paths would have the same response: write `key` of `cache`");
        }
        let key = placeholder::from_nginx(&rest, Scope::Request)
            .ok_or("a variable has no placeholder, so different responses would be mixed: write `key` of `cache`")?;
        self.others.push(("key".to_owned(), Value::Text(key)));
        Ok(())
    }

    fn value(self) -> Value {
        let mut entries = Vec::new();
        if !self.statuses.is_empty() {
            entries.push(("statuses".to_owned(), Value::Table(self.statuses)));
        }
        if !self.cookies.is_empty() {
            entries.push(("bypass_cookies".to_owned(), Value::one_or_list(self.cookies)));
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
        for (text, expected) in [
            ("proxy_cache a;", "true"),
            ("proxy_cache off;", "false"),
            (
                "proxy_cache a; proxy_cache_valid 200 302 10m; proxy_cache_valid 404 1m;",
                "{ statuses = { 200 = \"10m\", 302 = \"10m\", 404 = \"1m\" } }",
            ),
            (
                "fastcgi_cache a; fastcgi_cache_valid 5m; fastcgi_no_cache $cookie_session $arg_preview;",
                "{ statuses = { 200 = \"5m\", 301 = \"5m\", 302 = \"5m\" }, bypass_cookies = \"session\", bypass = { query = { \
                 preview = \"~.\" } } }",
            ),
            (
                "proxy_cache a; proxy_cache_use_stale error updating; proxy_cache_lock on;",
                "{ stale_if_error = \"1d\", stale_while_revalidate = \"1d\" }",
            ),
            (
                "proxy_cache a; proxy_cache_key \"$scheme$proxy_host$request_uri\";",
                "true",
            ),
            (
                "proxy_cache a; proxy_cache_key \"$scheme://$host$request_uri\";",
                "true",
            ),
            (
                "proxy_cache a; proxy_cache_key $host$uri$cookie_lang;",
                "{ key = \"{host}{path}{request.cookie.lang}\" }",
            ),
            (
                "proxy_cache a; proxy_cache_bypass $cookie_nocache $arg_nocache$arg_comment;",
                "{ bypass_cookies = \"nocache\", bypass = [{ query = { nocache = \"~.\" } }, { query = { comment = \"~.\" } }] }",
            ),
            ("proxy_cache a; proxy_cache_bypass $arg_a-$arg_b;", "false"),
            // A missing condition would store pages of users.
            ("fastcgi_cache a; fastcgi_no_cache $skip_cache;", "false"),
            ("proxy_cache a; proxy_cache_key $uri$device;", "false"),
        ] {
            let tree = super::super::read(text).unwrap();
            let own: Vec<&Directive> = tree.iter().collect();
            let mut settings = Settings::default();
            translate(&[], &own, &mut settings, &mut Vec::new());
            let mut out = String::new();
            settings.get("cache").unwrap().write(&mut out);
            assert_eq!(out, expected, "{text}");
        }
    }
}
