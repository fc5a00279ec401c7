//! Translates `access_log` and `error_log`.

use super::super::log_format;
use super::{ConfigLevel, Scope};
use crate::directive::Directive;
use crate::document::Notes;
use crate::value::Value;

impl Scope<'_> {
    /// Translates `access_log` or `error_log`. The keys `error_log`, `error_level` and, for `http`, `log_format` are
    /// not keys of a site. Later steps move them to the global table `log`.
    pub(super) fn log(&mut self, directive: &Directive, words: &[&str]) {
        let line = directive.line;
        if self.level == ConfigLevel::Location {
            return self
                .notes
                .skip(directive, "logs belong to a site or to the whole server");
        }
        let Some((file, rest)) = words.split_first() else {
            return;
        };
        let target = match *file {
            "/dev/stdout" => "stdout",
            "/dev/stderr" | "stderr" => "stderr",
            file => file,
        };
        if target.contains('$') || target.starts_with("syslog:") {
            return self.notes.skip(
                directive,
                "logs are written to a file, \"stdout\" or \"stderr\": docs/logs.md",
            );
        }
        if directive.is("error_log") {
            self.settings.set("error_log", Value::text(target), line);
            let level = match rest.first().copied().unwrap_or("error") {
                "debug" => "debug",
                "info" | "notice" => "info",
                "warn" => "warn",
                _ => "error",
            };
            self.settings.set("error_level", Value::text(level), line);
            return;
        }
        // `log_format::resolve` has put the line of the format in the place of its name.
        if let Some(format) = rest.first().and_then(|word| log_format::line(word)) {
            if self.level == ConfigLevel::Http {
                self.settings.set("log_format", Value::text(format), line);
                return self.settings.set("log", Value::text(target), line);
            }
            let keys = [("access", target), ("format", format)];
            let log = keys.map(|(key, value)| (key.to_owned(), Value::text(value)));
            return self.settings.set("log", Value::Table(log.into()), line);
        }
        // The nginx packages define `main` in their `nginx.conf`: `combined` with one more field.
        if rest.iter().any(|word| !matches!(*word, "combined" | "main")) {
            let message = "the format of this log is not translated: write `log.format`, which takes a line with placeholders (docs/logs.md)";
            self.notes.differs(directive, message);
        }
        self.settings.set("log", Value::text(target), line);
    }
}
