//! Translates directives of Apache that are valid in hosts and in sections.

use crate::directive::Directive;
use crate::document::{Notes, Site};
use crate::error_page;
use crate::note::{MAY_RESTRICT_ACCESS, Note};
use crate::settings::Settings;
use crate::units;
use crate::value::Value;

use super::access::AccessDraft;
use super::context::ServerContext;
use super::expires::{self, TypeExpiry};
use super::php;
use super::traffic::{self, BandwidthDraft};

/// Settings of a host or section while its directives are read.
pub(super) struct ApacheScope<'c> {
    pub settings: Settings,
    pub notes: Vec<Note>,
    access: AccessDraft,
    context: &'c ServerContext,
    expiry: Vec<TypeExpiry>,
    bandwidth: BandwidthDraft,
}

impl<'c> ApacheScope<'c> {
    pub fn new(context: &'c ServerContext) -> ApacheScope<'c> {
        ApacheScope {
            settings: Settings::default(),
            notes: Vec::new(),
            access: AccessDraft::default(),
            context,
            expiry: Vec::new(),
            bandwidth: BandwidthDraft::default(),
        }
    }

    /// Translates a directive, or notes that it is not translated.
    pub fn read(&mut self, directive: &Directive) {
        let line = directive.line;
        if self.access.read(directive, self.context.expand(directive.argument(0))) || self.bandwidth.read(directive) {
            return;
        }
        if let Some(advice) = traffic::advice(directive) {
            return self.notes.skip(directive, advice);
        }
        let words = directive.words();
        match (directive.name.to_ascii_lowercase().as_str(), &words[..]) {
            ("documentroot", [folder]) => match self.context.expand(folder) {
                Some(folder) => self.settings.set("root", Value::Text(folder), line),
                None => self
                    .notes
                    .skip(directive, "the variable is not defined in this file: write `root`"),
            },
            ("directoryindex", names) if names.iter().all(|name| !name.contains(['/', '%'])) => {
                self.settings.set("index", Value::texts(names.iter().copied()), line);
            }
            ("fallbackresource", ["disabled"]) => self.settings.set("fallback", Value::Flag(false), line),
            ("fallbackresource", [path]) => self.settings.set("fallback", Value::text(*path), line),
            ("errordocument", [status, page]) => self.error_document(directive, status, page),
            ("options", options) => self.options(directive, options),
            ("header", words) => self.header(directive, words),
            ("limitrequestbody", [size]) => match size.parse::<u64>() {
                // In Apache, 0 means no limit. The value is the maximum of `body_size`.
                Ok(0) => self
                    .settings
                    .set_entry("limits", "body_size", Value::text("1024TiB"), line),
                Ok(size) => self
                    .settings
                    .set_entry("limits", "body_size", Value::Text(format!("{size}B")), line),
                Err(_) => self.notes.skip(directive, "write `limits.body_size`"),
            },
            ("expiresdefault", [time]) => match expires(time) {
                Some(age) => expires::set_default(age, line, &mut self.settings),
                None => self.notes.skip(directive, "write `headers` with Cache-Control"),
            },
            ("expiresbytype", [_, time]) => match expires(time) {
                Some(age) => self.expiry.push((directive.clone(), age)),
                None => self
                    .notes
                    .skip(directive, "write a route such as \"*.css\" with `headers`"),
            },
            ("expiresactive", [off]) if off.eq_ignore_ascii_case("off") => self
                .notes
                .differs(directive, "`max-age` of the whole site applies here too"),
            ("expiresactive", _) => {}
            ("addtype", [kind, endings @ ..]) if kind.contains('/') => {
                for ending in endings {
                    let ending = format!(".{}", ending.trim_start_matches('.'));
                    self.settings.set_entry("types", &ending, Value::text(*kind), line);
                }
            }
            ("allowoverride" | "allowoverridelist" | "accessfilename", ["None" | "none"]) => {
                self.notes.unneeded(directive, "`.htaccess` files have no effect");
            }
            ("allowoverride" | "allowoverridelist" | "accessfilename", _) => {
                let message = "`.htaccess` files have no effect: run `rocknet import apache` on each";
                self.notes.skip(directive, message);
            }
            ("include" | "includeoptional", _) => {
                self.notes
                    .skip(directive, &format!("{MAY_RESTRICT_ACCESS}: the file was not read"));
            }
            ("errorlog" | "loglevel" | "customlog" | "transferlog", _) => {
                let mut site = Site::default();
                log(directive, &mut site, self.context);
                self.settings.merge(site.settings);
                self.notes.append(&mut site.notes);
            }
            ("sslverifyclient" | "sslcarevocationfile" | "sslcarevocationpath", _) => {
                self.notes
                    .skip_restriction(directive, "write `client_ca` and `client` of `tls`");
            }
            ("redirect" | "redirectmatch" | "redirectpermanent" | "redirecttemp", _) => {
                self.notes
                    .skip(directive, "write `redirects` of the site, with whole paths");
            }
            ("php_value" | "php_admin_value", [name, value]) => {
                php::set(&mut self.settings, "php_ini", name, value, line);
            }
            ("php_flag" | "php_admin_flag", [name, value]) => {
                let value = if matches!(value.to_ascii_lowercase().as_str(), "on" | "1" | "true" | "yes") {
                    "1"
                } else {
                    "0"
                };
                php::set(&mut self.settings, "php_ini", name, value, line);
            }
            ("setenv", [name, value]) if is_variable(name) => {
                php::set(&mut self.settings, "php_env", name, value, line);
            }
            ("setenvif" | "setenvifnocase", ["Authorization", ..]) => {
                self.notes
                    .unneeded(directive, "applications get every header field, Authorization included");
            }
            ("cgipassauth", ["On" | "on"]) => {
                let message =
                    "PHP and applications get `Authorization` by themselves, and CGI programs by `cgi.authorization`";
                self.notes.differs(directive, message);
            }
            ("addcharset", ["utf-8" | "UTF-8" | "utf8", ..]) => {
                self.notes.unneeded(directive, "texts are sent as UTF-8");
            }
            ("acceptpathinfo", _) => self.notes.unneeded(directive, "scripts get the path after their name"),
            ("setoutputfilter", ["DEFLATE" | "BROTLI_COMPRESS"]) => {
                self.notes
                    .unneeded(directive, "compression (Brotli, Zstandard, gzip) is on by default");
            }
            ("adddefaultcharset", _) => self.notes.unneeded(directive, "texts are sent as UTF-8"),
            ("timeout", _) => self
                .notes
                .skip(directive, "write `limits.answer_timeout`, `body_idle` or `send_stall`"),
            ("define", _) => {}
            _ if is_unneeded(directive) => {
                self.notes
                    .unneeded(directive, "RockNet does this by default, or selects it itself");
            }
            _ => self.notes.skip_unknown(directive),
        }
    }

    /// Translates the directives whose meaning depends on others, such as `Require`. Returns the settings, the notes,
    /// and true if the section decides which clients have access.
    pub fn finish(mut self) -> (Settings, Vec<Note>, bool) {
        let decides = self.access.decides();
        self.access.finish(&mut self.settings, &mut self.notes);
        self.bandwidth.finish(&mut self.settings, &mut self.notes);
        (self.settings, self.notes, decides)
    }

    /// Removes the ages of `ExpiresByType`, and returns them.
    pub fn take_expiry(&mut self) -> Vec<TypeExpiry> {
        std::mem::take(&mut self.expiry)
    }

    fn error_document(&mut self, directive: &Directive, status: &str, page: &str) {
        if error_page::is_script(page) {
            self.notes.skip(directive, error_page::MESSAGE);
        } else if page.starts_with('/') && !page.contains('?') {
            self.settings
                .set_entry("errors", status, Value::text(page), directive.line);
        } else {
            let message = "`errors` takes the path of a page of this site";
            self.notes.skip(directive, message);
        }
    }

    fn options(&mut self, directive: &Directive, options: &[&str]) {
        let line = directive.line;
        let has = |name: &str| options.iter().any(|option| option.eq_ignore_ascii_case(name));
        // Options without a sign replace all inherited ones.
        let replaces = options.iter().any(|option| !option.starts_with(['+', '-']));
        if has("-indexes") {
            self.settings.set("browse", Value::Flag(false), line);
        } else if has("indexes") || has("+indexes") || has("all") {
            self.settings.set("browse", Value::Flag(true), line);
        } else if replaces {
            self.settings.set("browse", Value::Flag(false), line);
        }
        for option in options {
            match option.to_ascii_lowercase().as_str() {
                "indexes" | "+indexes" | "-indexes" | "none" | "multiviews" | "+multiviews" | "-multiviews"
                | "-execcgi" | "-includes" => {}
                "followsymlinks" | "+followsymlinks" => {
                    let message =
                        "links inside the root are followed; `symlinks = \"all\"` follows those that leave it";
                    self.notes.differs(directive, message);
                }
                "symlinksifownermatch" | "+symlinksifownermatch" => {
                    self.settings.set("symlinks", Value::text("owner"), line);
                }
                "-followsymlinks" | "-symlinksifownermatch" => {
                    self.notes.differs(directive, "links inside the root are followed");
                }
                _ => self.notes.skip(
                    directive,
                    &format!("`{option}` has no counterpart; write `cgi` for programs"),
                ),
            }
        }
        if options.iter().any(|option| {
            option
                .strip_prefix('+')
                .unwrap_or(option)
                .eq_ignore_ascii_case("multiviews")
        }) {
            self.notes.skip(
                directive,
                "files are not searched by language: write `try` for further endings",
            );
        }
    }

    fn header(&mut self, directive: &Directive, words: &[&str]) {
        let words = match words {
            ["always" | "onsuccess", rest @ ..] => rest,
            words => words,
        };
        let (name, value) = match words {
            ["set" | "add" | "setifempty", name, value] if !value.contains('%') => (*name, *value),
            ["append" | "merge", name, value] if !value.contains('%') => {
                self.notes
                    .differs(directive, "the field is set, and an earlier value is replaced");
                (*name, *value)
            }
            // An empty value removes the field.
            ["unset", name] => (*name, ""),
            _ => {
                return self
                    .notes
                    .skip(directive, "`headers` take constant values without conditions");
            }
        };
        self.settings
            .set_entry("headers", name, Value::text(value), directive.line);
    }
}

/// Returns true for a variable of scripts, and false for those that modules of Apache read.
fn is_variable(name: &str) -> bool {
    const MODULES: [&str; 6] = [
        "no-gzip",
        "nokeepalive",
        "downgrade-1.0",
        "force-response-1.0",
        "dont-vary",
        "rate-limit",
    ];
    !MODULES.contains(&name) && !name.starts_with("proxy-") && !name.starts_with("rate-")
}

/// Translates the directives of logs. The caller moves the keys `error_log` and `error_level`, which are no keys of a
/// site, to the global table `log`.
pub(super) fn log(directive: &Directive, site: &mut Site, context: &ServerContext) {
    let line = directive.line;
    let words: Option<Vec<String>> = directive.arguments.iter().map(|word| context.expand(word)).collect();
    let words = words.unwrap_or_default();
    let Some(first) = words
        .first()
        .filter(|first| !first.starts_with(['|', '%']) && !first.starts_with("syslog"))
    else {
        return site.skip(
            directive,
            "logs are written to a file, \"stdout\" or \"stderr\": docs/logs.md",
        );
    };
    match directive.name.to_ascii_lowercase().as_str() {
        "errorlog" => site.settings.set("error_log", Value::text(first), line),
        "loglevel" => {
            let level = match first.to_ascii_lowercase().as_str() {
                "debug" => "debug",
                "info" | "notice" => "info",
                "warn" => "warn",
                level if level.starts_with("trace") => "trace",
                _ => "error",
            };
            site.settings.set("error_level", Value::text(level), line);
        }
        _ => match words.get(1).map_or("common", String::as_str) {
            "combined" => site.settings.set("log", Value::text(first), line),
            "common" => {
                let log = vec![
                    ("access".to_owned(), Value::text(first)),
                    ("format".to_owned(), Value::text("common")),
                ];
                site.settings.set("log", Value::Table(log), line);
            }
            _ => {
                site.settings.set("log", Value::text(first), line);
                site.differs(
                    directive,
                    "the format of this log is not translated: write `log.format`, which takes a line with placeholders (docs/logs.md)",
                );
            }
        },
    }
    if directive
        .arguments
        .iter()
        .any(|word| word.contains("${APACHE_LOG_DIR}"))
    {
        site.differs(
            directive,
            "${APACHE_LOG_DIR} is taken as /var/log/apache2, as on Debian",
        );
    }
}

/// Returns the seconds of a time such as `access plus 1 month` or `A3600`; `None` for other forms.
fn expires(text: &str) -> Option<u64> {
    if let Some(seconds) = text.strip_prefix('A') {
        return seconds.parse().ok();
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let words = match &words[..] {
        ["access" | "now", "plus", rest @ ..] | ["access" | "now", rest @ ..] => rest,
        _ => return None,
    };
    let mut total = 0_u64;
    for pair in words.chunks(2) {
        let [number, unit] = pair else { return None };
        let number: u64 = number.parse().ok()?;
        let unit = match unit.trim_end_matches('s') {
            "second" => "s",
            "minute" => "m",
            "hour" => "h",
            "day" => "d",
            "week" => "w",
            "month" => "M",
            "year" => "y",
            _ => return None,
        };
        total = total.checked_add(units::seconds(&format!("{number}{unit}"))?)?;
    }
    Some(total)
}

/// Returns true for directives that RockNet does not need.
pub(super) fn is_unneeded(directive: &Directive) -> bool {
    const UNNEEDED: [&str; 28] = [
        "ServerAdmin",
        "ServerTokens",
        "ServerSignature",
        "KeepAlive",
        "KeepAliveTimeout",
        "MaxKeepAliveRequests",
        "LoadModule",
        "Mutex",
        "PidFile",
        "User",
        "Group",
        "HostnameLookups",
        "LogFormat",
        "TypesConfig",
        "EnableSendfile",
        "EnableMMAP",
        "FileETag",
        "TraceEnable",
        "AddOutputFilterByType",
        "DeflateCompressionLevel",
        "UseCanonicalName",
        "Protocols",
        "ServerRoot",
        "DefaultRuntimeDir",
        "AddEncoding",
        "BrowserMatch",
        "DirectorySlash",
        "Listen",
    ];
    UNNEEDED.iter().any(|name| directive.is(name))
}
