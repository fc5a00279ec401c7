//! From the configuration as written to the configuration as meant: every finding with its place, in one pass.

mod acme;
mod address;
mod application;
mod cgi;
mod clash;
mod controller;
mod field;
mod foreign;
mod host;
mod keys;
mod listen;
mod network;
mod path;
mod pattern;
mod php;
mod proxy;
mod regex;
mod rule;
mod server;
pub(crate) mod settings;
mod site;
mod socket;
mod tls;
mod unknown;
mod upstream_tls;
mod value;
mod words;

use std::path::{Path, PathBuf};

use crate::environment::Environment;
use crate::file::{Table, Text};
use crate::finding::{Code, Finding, Related, Report, Severity};
use crate::model::{Config, Place};
use crate::source::{Sources, Span};

/// Why the configuration is read: decides what an error that concerns one site does to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To start a server: the site is not served and the others are, because there is no older configuration to keep.
    Start,
    /// To check it, or to replace the configuration of a running server: nothing of the file is used.
    Check,
}

/// What every part of the check works with.
pub(crate) struct Check<'a> {
    pub sources: &'a Sources,
    pub env: &'a dyn Environment,
    pub report: &'a mut Report,
    /// Errors that keep one site from being served and the others not; filled for [`Purpose::Start`] only.
    pub dark: Report,
    /// Errors of that kind that were reported with the others; counted for [`Purpose::Check`] only.
    pub dark_errors: usize,
    pub purpose: Purpose,
}

/// Checks a whole configuration. The result is meaningful only if the report has no errors.
pub(crate) fn check(root: &Table, check: &mut Check<'_>) -> Config {
    keys::check(check, root);
    let (server, limits, log, cache) = server::build(check, root);
    let tls = tls::build(check, root.table("tls"));
    let common = site::Common {
        user: server.user.as_deref(),
        mode: server.mode,
        log: &log,
        tls: &tls,
    };
    let sites = site::build(check, root, &common);
    let mut config = Config {
        server,
        limits,
        log,
        cache,
        tls,
        sites: Vec::new(),
        files: check.sources.paths(),
    };
    if sites.is_empty() && check.report.errors() == 0 {
        check.report.push(Finding {
            severity: Severity::Warning,
            code: Code::Useless,
            message: "no site is written, so nothing is served".to_owned(),
            help: Some("write [site.\"example.com\"] and below it root = \"/var/www\"".to_owned()),
            location: None,
            related: Vec::new(),
        });
    }
    clash::check(check, &sites);
    config.sites = sites.into_iter().map(|built| built.site).collect();
    config.sites.sort_by(|a, b| a.name.cmp(&b.name));
    server::spool_disk(check, root, &mut config);
    config
}

impl Check<'_> {
    pub fn tell(&mut self, severity: Severity, code: Code, span: Span, message: String, help: String) {
        if self.report.omit(severity) {
            return;
        }
        let location = Some(self.sources.locate(span));
        let help = Some(help).filter(|h| !h.is_empty());
        self.report.push(Finding {
            severity,
            code,
            message,
            help,
            location,
            related: Vec::new(),
        });
    }

    pub fn error(&mut self, code: Code, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.tell(Severity::Error, code, span, message.into(), help.into());
    }

    /// Reports what keeps one site, or a part of it, from being served.
    pub fn dark(&mut self, code: Code, span: Span, message: impl Into<String>, help: impl Into<String>) {
        if self.purpose == Purpose::Check {
            self.dark_errors += 1;
            return self.error(code, span, message, help);
        }
        self.dark.push(Finding {
            severity: Severity::Error,
            code,
            message: message.into(),
            help: Some(help.into()),
            location: Some(self.sources.locate(span)),
            related: Vec::new(),
        });
    }

    /// Returns true if there are errors other than those that only keep one site from being served.
    pub fn has_other_errors(&self) -> bool {
        self.report.errors() > self.dark_errors
    }

    pub fn warning(&mut self, code: Code, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.tell(Severity::Warning, code, span, message.into(), help.into());
    }

    /// A text that cannot stand where it does. The message may quote it; of one that variables filled in, perhaps with a
    /// secret, nothing is told but what is written.
    pub fn bad_text(&mut self, text: &Text, span: Span, message: impl Into<String>, help: impl Into<String>) {
        let Some(template) = &text.template else {
            return self.error(Code::BadValue, span, message, help);
        };
        let message = format!(
            "\"{}\" is filled in with a value that cannot stand here",
            words::short(template)
        );
        let help = "correct the variable or file; the value itself is not shown, as it may be a secret";
        self.error(Code::BadValue, span, message, help);
    }

    /// Two places that exclude each other.
    pub fn conflict(&mut self, span: Span, there: (&str, Span), message: String, help: &str) {
        if self.report.omit(Severity::Error) {
            return;
        }
        let related = vec![Related {
            message: there.0.to_owned(),
            location: self.sources.locate(there.1),
        }];
        self.report.push(Finding {
            severity: Severity::Error,
            code: Code::Conflict,
            message,
            help: Some(help.to_owned()),
            location: Some(self.sources.locate(span)),
            related,
        });
    }

    pub fn place(&self, span: Span) -> Place {
        Place {
            file: self.sources.path(span.file).to_owned(),
            line: self.sources.line(span),
        }
    }

    /// A path as written, made whole: relative to the file it stands in.
    pub fn resolve(&self, span: Span, path: &str) -> PathBuf {
        let folder = self.sources.path(span.file).parent().unwrap_or(Path::new(""));
        folder.join(path).components().collect()
    }
}

/// The nearest of some words to a mistyped one, if any is near enough to be meant.
pub(crate) fn nearest<'w>(word: &str, words: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let lower = word.to_ascii_lowercase();
    // One slip in three letters, three at most: beyond that a guess misleads more than it helps.
    let allowed = (lower.chars().count() / 3).clamp(1, 3);
    words
        .map(|candidate| {
            (
                strsim::damerau_levenshtein(&lower, &candidate.to_ascii_lowercase()),
                candidate,
            )
        })
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
