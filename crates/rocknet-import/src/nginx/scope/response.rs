//! Translates the directives of responses: header fields, caching times and pages of errors.

use rocknet_config::template;

use super::{ConfigLevel, Scope};
use crate::directive::Directive;
use crate::document::Notes;
use crate::error_page;
use crate::placeholder;
use crate::settings::Settings;
use crate::units;
use crate::value::Value;

impl<'a> Scope<'a> {
    /// Removes the fields of `proxy_hide_header` from the responses of a server. A server without this directive
    /// inherits those of `http`. A field that the server adds stays, because it replaces that of the upstream.
    pub fn remove_hidden(&mut self, shared: &Scope<'_>) {
        let own = std::mem::take(&mut self.hidden);
        let names = if own.is_empty() { &shared.hidden } else { &own };
        for (name, line) in names {
            if !self.settings.has_entry("headers", name) {
                self.settings.set_entry("headers", name, Value::text(""), *line);
            }
        }
    }

    /// Removes the fields of `proxy_hide_header` of a location from its responses. A field that the site or location
    /// adds stays, because it replaces that of the upstream.
    pub fn remove_hidden_of_location(&mut self, site: &Settings) {
        for (name, line) in std::mem::take(&mut self.hidden) {
            let is_added = site.has_entry("headers", &name) || self.settings.has_entry("headers", &name);
            if !is_added {
                self.settings.set_entry("headers", &name, Value::text(""), line);
            }
        }
    }

    pub(super) fn add_header(&mut self, directive: &'a Directive, name: &str, value: &str, rest: &[&str]) {
        self.added.push(name.to_owned());
        let Some(translated) = placeholder::from_nginx(value, template::Scope::Response) else {
            let message = "a variable has no placeholder: docs/placeholders.md lists those that have";
            return self.notes.skip(directive, message);
        };
        if name.eq_ignore_ascii_case("strict-transport-security") && self.level != ConfigLevel::Location {
            self.hsts = Some((value.to_owned(), directive));
            return;
        }
        if rest != ["always"] {
            let message = "`headers` apply to responses of every status, as with `always`";
            self.notes.differs(directive, message);
        }
        self.settings
            .set_entry("headers", name, Value::Text(translated), directive.line);
    }

    pub(super) fn expires(&mut self, directive: &Directive, time: &str) {
        let value = match time {
            "off" => return,
            // Ten years, as in nginx.
            "max" => "max-age=315360000".to_owned(),
            "epoch" => "no-cache".to_owned(),
            time if time.starts_with('-') => "no-cache".to_owned(),
            time => match units::seconds(time) {
                Some(seconds) => format!("max-age={seconds}"),
                None => return self.notes.skip(directive, "write `headers` with Cache-Control"),
            },
        };
        self.settings
            .set_entry("headers", "Cache-Control", Value::Text(value), directive.line);
    }

    pub(super) fn error_page(&mut self, directive: &Directive, words: &[&str]) {
        let Some((page, statuses)) = words.split_last() else {
            return;
        };
        // The page is sent with its own status, as by a front controller.
        if let (["404", "=" | "=200"], true) = (statuses, page.starts_with('/') && !page.contains(['$', '?'])) {
            return self
                .settings
                .set_default("fallback", Value::text(*page), directive.line);
        }
        if error_page::is_script(page) {
            return self.notes.skip(directive, error_page::MESSAGE);
        }
        let is_plain = statuses.iter().all(|status| status.parse::<u16>().is_ok());
        if statuses.is_empty() || !is_plain || !page.starts_with('/') || page.contains(['$', '?']) {
            let message = "`errors` takes statuses with paths of this site, and keeps the status";
            return self.notes.skip(directive, message);
        }
        for status in statuses {
            self.settings
                .set_entry("errors", status, Value::text(*page), directive.line);
        }
    }
}
