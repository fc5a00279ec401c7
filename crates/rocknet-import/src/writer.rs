//! Renders a document as TOML.
//!
//! Each value is on a separate line, so the line of a finding identifies the value. The module `refusal` removes each
//! value that the check of the configuration refuses, and the result is checked again.

use std::path::Path;

use rocknet_config::environment::MemoryEnvironment;

use crate::document::Document;
use crate::imported::{Import, ImportError};
use crate::note::{Note, NoteKind, shown};
use crate::refusal::{Origin, refuse};
use crate::settings::Settings;
use crate::source::SourceMap;
use crate::value::{bare_or_quoted, quoted_key};

/// Maximum number of checks. A report has up to 200 findings, so this is enough for 10,000 refused values.
const MAX_ROUNDS: usize = 50;

/// Renders a document. `name`: name of the source file.
pub(crate) fn write(mut document: Document, name: &str) -> Result<Import, ImportError> {
    // The paths in the configuration need not exist on this machine, so every path counts as an existing folder.
    let environment = MemoryEnvironment {
        any_directory: true,
        ..MemoryEnvironment::default()
    };
    for _ in 0..MAX_ROUNDS {
        let rendered = render(&document, name);
        let file = Path::new("/etc/rocknet/rocknet.toml");
        match rocknet_config::parse(&rendered.text, file, &environment) {
            Ok(_) => {
                let mut notes = document.notes;
                notes.extend(document.sites.into_iter().flat_map(|site| site.notes));
                notes.sort_by_key(|note| note.line);
                // A file that is included several times has the same notes several times.
                notes.dedup();
                for note in &mut notes {
                    let (file, line) = document.sources.position(note.line);
                    (note.file, note.line) = (file.to_owned(), line);
                }
                let toml = rocknet_config::format(&rendered.text).unwrap_or(rendered.text);
                return Ok(Import {
                    toml,
                    notes,
                    settings: rendered.settings,
                });
            }
            Err(report) if refuse(&mut document, &rendered.origins, &report) => {}
            Err(report) => {
                let message = report.findings.first().map_or("", |finding| finding.message.as_str());
                let message = format!("the translation is not a valid configuration: {message}");
                return Err(failure(name, &message));
            }
        }
    }
    Err(failure(
        name,
        "the file has too many values that RockNet does not accept",
    ))
}

/// Returns an error that concerns the whole file `name`.
fn failure(name: &str, message: &str) -> ImportError {
    ImportError {
        file: name.to_owned(),
        line: None,
        message: shown(message),
    }
}

/// Text of a document, with the origin of each line.
struct Rendered {
    text: String,
    origins: Vec<Origin>,
    /// Number of lines with a value, including the header of each rule.
    settings: usize,
}

impl Rendered {
    /// Appends a line with its origin.
    fn line(&mut self, line: &str, origin: Origin) {
        if !matches!(origin, Origin::Comment | Origin::Site(_) | Origin::Route(..)) {
            self.settings += 1;
        }
        self.text.push_str(line);
        self.text.push('\n');
        self.origins.push(origin);
    }

    fn comment(&mut self, text: &str) {
        let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        self.line(format!("# {clean}").trim_end(), Origin::Comment);
    }

    fn blank(&mut self) {
        self.line("", Origin::Comment);
    }

    /// Appends notes as comments, except notes about directives that are not needed.
    fn notes(&mut self, notes: &[Note], sources: &SourceMap) {
        for note in notes {
            let (name, line) = sources.position(note.line);
            let (directive, label) = (&note.directive, note.kind.label());
            if note.kind != NoteKind::NotNeeded {
                self.comment(&format!("{label}: {name}:{line}: {directive}: {}", note.message));
            }
        }
    }

    /// Appends a line for each setting. `origin` returns the origin of a line for its key.
    fn settings(&mut self, settings: &Settings, origin: impl Fn(String) -> Origin) {
        for (key, setting) in settings.in_order() {
            let mut line = format!("{key} = ");
            setting.value.write(&mut line);
            self.line(&line, origin(key.to_owned()));
        }
    }
}

/// Renders a document as text, with the origin of each line.
fn render(document: &Document, name: &str) -> Rendered {
    let mut out = Rendered {
        text: String::new(),
        origins: Vec::new(),
        settings: 0,
    };
    out.comment(&format!(
        "Translated from {name} by `rocknet import`. Check it with `rocknet check`."
    ));
    for remark in &document.remarks {
        out.comment(remark);
    }
    out.notes(&document.notes, &document.sources);
    for (table, settings) in document.tables.iter().filter(|(_, settings)| !settings.is_empty()) {
        out.blank();
        out.line(&format!("[{table}]"), Origin::Comment);
        out.settings(settings, |key| Origin::Global(table, key));
    }
    for (at, site) in document.sites.iter().enumerate() {
        let site_name = bare_or_quoted(&site.name);
        // Only `default`, which is not the name of a host, is written without quotes.
        let site_name = if site.name == "default" {
            site_name
        } else {
            quoted_key(&site.name)
        };
        out.blank();
        out.notes(&site.notes, &document.sources);
        out.line(&format!("[site.{site_name}]"), Origin::Site(at));
        out.settings(&site.settings, |key| Origin::SiteKey(at, key));
        for (index, route) in site.routes.iter().enumerate() {
            out.blank();
            let header = format!("[site.{site_name}.route.{}]", quoted_key(&route.pattern));
            out.line(&header, Origin::Route(at, index));
            out.settings(&route.settings, |key| Origin::RouteKey(at, index, key));
        }
        for (index, rule) in site.rules.iter().enumerate() {
            out.blank();
            out.line(&format!("[[site.{site_name}.rule]]"), Origin::Rule(at, index));
            for (key, value) in &rule.keys {
                let mut line = format!("{key} = ");
                value.write(&mut line);
                out.line(&line, Origin::Rule(at, index));
            }
        }
    }
    out
}
