//! Context of a check: the source files, the environment, and the findings reported up to now.

use std::path::{Path, PathBuf};

use crate::environment::Environment;
use crate::file::Text;
use crate::finding::{Code, Finding, Related, Report, Severity};
use crate::message::short;
use crate::model::SourceSpan;
use crate::source::{Sources, Span};

/// Purpose for which a configuration is read. It decides whether an error of one site affects the other sites.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Start of a server: the other sites are served, because there is no older configuration to keep.
    Start,
    /// Check, or reload of a running server: the whole configuration is refused.
    Check,
}

/// Source files, environment, and findings reported up to now.
pub(crate) struct Check<'a> {
    pub sources: &'a Sources,
    pub env: &'a dyn Environment,
    pub report: &'a mut Report,
    /// Errors that keep a single site from being served; used only for [`Purpose::Start`].
    pub site_errors: Report,
    /// Number of site errors reported, including those that `report` omitted; counted only for [`Purpose::Check`].
    pub site_error_count: usize,
    pub purpose: Purpose,
}

impl Check<'_> {
    /// Reports a finding. An empty `help` stands for no help.
    fn finding(&mut self, severity: Severity, code: Code, span: Span, message: String, help: String) {
        if self.report.omit(severity) {
            return;
        }
        let location = Some(self.sources.locate(span));
        let help = Some(help).filter(|help| !help.is_empty());
        self.report.push(Finding {
            severity,
            code,
            message,
            help,
            location,
            related: Vec::new(),
        });
    }

    /// Reports an error.
    pub fn error(&mut self, code: Code, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.finding(Severity::Error, code, span, message.into(), help.into());
    }

    /// Reports an error that keeps a single site, or a part of it, from being served.
    pub fn site_error(&mut self, code: Code, span: Span, message: impl Into<String>, help: impl Into<String>) {
        if self.purpose == Purpose::Check {
            self.site_error_count += 1;
            return self.error(code, span, message, help);
        }
        let help: String = help.into();
        self.site_errors.push(Finding {
            severity: Severity::Error,
            code,
            message: message.into(),
            help: Some(help).filter(|help| !help.is_empty()),
            location: Some(self.sources.locate(span)),
            related: Vec::new(),
        });
    }

    /// Returns true if there are errors other than site errors. A full report stores no more errors, but site errors
    /// are still counted. The result may then be false although there are other errors. This does no harm: callers use
    /// the result only to decide whether to report one more finding, and a full report does not store it.
    pub fn has_other_errors(&self) -> bool {
        self.report.errors() > self.site_error_count
    }

    /// Reports a warning.
    pub fn warning(&mut self, code: Code, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.finding(Severity::Warning, code, span, message.into(), help.into());
    }

    /// Reports a string with an invalid value. `message` may quote the string. If the string contained variables,
    /// `message` and `help` are replaced, and only the string before expansion is quoted, because the value may be a
    /// secret.
    pub fn bad_text(&mut self, text: &Text, span: Span, message: impl Into<String>, help: impl Into<String>) {
        let Some(template) = &text.template else {
            return self.error(Code::BadValue, span, message, help);
        };
        let message = format!("the variables of \"{}\" expand to an invalid value", short(template));
        let help = "correct the environment variable, or the file that `${file:PATH}` reads; the value is not shown because it \
                    may be a secret";
        self.error(Code::BadValue, span, message, help);
    }

    /// Reports a conflict between two positions. `there`: label and span of the second position.
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

    /// Reports a key or word that only a later version supports.
    pub fn not_available(&mut self, what: &str, feature: &str, span: Span, help: &str) {
        let message = format!("`{what}` is not available yet: it comes with {feature} in a later version");
        self.error(Code::NotAvailable, span, message, help);
    }

    /// Returns the file and line of a span.
    pub fn source_span(&self, span: Span) -> SourceSpan {
        SourceSpan {
            file: self.sources.path(span.file).to_owned(),
            line: self.sources.line(span),
        }
    }

    /// Resolves a path: a relative path starts at the folder of the file that contains `span`.
    pub fn resolve(&self, span: Span, path: &str) -> PathBuf {
        let folder = self.sources.path(span.file).parent().unwrap_or(Path::new(""));
        // `components` leaves out repeated slashes, and every `.` except a leading one.
        folder.join(path).components().collect()
    }
}
