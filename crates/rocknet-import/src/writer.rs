//! Renders a document as TOML, and removes each value that the check of the configuration refuses.
//!
//! Each value has a line of its own, so the line of a finding identifies the value. A refused value is removed with a
//! note, and the rest is checked again.

use std::path::Path;

use rocknet_config::environment::MemoryEnvironment;
use rocknet_config::{Code, Finding, Report};

use crate::document::Document;
use crate::imported::{Import, ImportError};
use crate::note::{Note, NoteKind, shown};
use crate::settings::Settings;
use crate::value::{bare_or_quoted, quoted_key};

/// Maximum number of checks. A report has up to 200 findings, so this is enough for 10,000 refused values.
const MAX_ROUNDS: usize = 50;

/// Origin of a line of the result.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Origin {
    Comment,
    Global(&'static str, String),
    Site(usize),
    SiteKey(usize, String),
    Route(usize, usize),
    RouteKey(usize, usize, String),
    Rule(usize, usize),
}

/// Renders a document. `name`: name of the source file.
pub(crate) fn write(mut document: Document, name: &str) -> Result<Import, ImportError> {
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
                return Err(failure(&format!(
                    "the translation is not a valid configuration: {message}"
                )));
            }
        }
    }
    Err(failure("the file has too many values that RockNet does not accept"))
}

fn failure(message: &str) -> ImportError {
    ImportError {
        line: None,
        message: shown(message),
    }
}

/// Text of a document, with the origin of each line.
struct Rendered {
    text: String,
    origins: Vec<Origin>,
    /// Number of lines with a value.
    settings: usize,
}

impl Rendered {
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

    fn notes(&mut self, notes: &[Note], name: &str) {
        for note in notes {
            let (line, directive, label) = (note.line, &note.directive, note.kind.label());
            match note.kind {
                NoteKind::NotTranslated => self.comment(&format!("{label}: {name}:{line}: {directive}")),
                NoteKind::Differs => {
                    self.comment(&format!("{label}: {name}:{line}: {directive}: {}", note.message));
                }
                NoteKind::NotNeeded => {}
            }
        }
    }

    fn settings(&mut self, settings: &Settings, origin: impl Fn(String) -> Origin) {
        for (key, setting) in settings.in_order() {
            let mut line = format!("{key} = ");
            setting.value.write(&mut line);
            self.line(&line, origin(key.to_owned()));
        }
    }
}

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
    out.notes(&document.notes, name);
    for (table, settings) in document.tables.iter().filter(|(_, settings)| !settings.is_empty()) {
        out.blank();
        out.line(&format!("[{table}]"), Origin::Comment);
        out.settings(settings, |key| Origin::Global(table, key));
    }
    for (at, site) in document.sites.iter().enumerate() {
        let site_name = bare_or_quoted(&site.name);
        let site_name = if site.name == "default" {
            site_name
        } else {
            quoted_key(&site.name)
        };
        out.blank();
        out.notes(&site.notes, name);
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

/// Removes the values that a report refuses. Returns false if no finding concerns a value.
fn refuse(document: &mut Document, origins: &[Origin], report: &Report) -> bool {
    let mut refused: Vec<(Origin, String)> = Vec::new();
    // Files of the configuration need not exist on this machine.
    let is_about_file = |finding: &&Finding| finding.code == Code::Missing && finding.message.ends_with(" is a folder");
    for finding in report
        .findings
        .iter()
        .filter(|finding| finding.is_error() && !is_about_file(finding))
    {
        let line = finding.location.as_ref().map_or(0, |location| location.line);
        let origin = line.checked_sub(1).and_then(|line| origins.get(line));
        if let Some(origin) = origin.filter(|origin| **origin != Origin::Comment)
            && !refused.iter().any(|(other, _)| other == origin)
        {
            let help = finding.help.iter().flat_map(|help| ["; ", help]);
            let message: String = std::iter::once(finding.message.as_str()).chain(help).collect();
            refused.push((origin.clone(), message));
        }
    }
    // From the last to the first, so that the indices of the remaining values stay valid.
    refused.sort_by_key(|(origin, _)| std::cmp::Reverse(position(origin)));
    let mut removed = false;
    for (origin, message) in refused {
        removed |= remove(document, &origin, &message);
    }
    removed
}

/// Returns the position of an origin: site, whether it is the whole site, and the index of a route or rule.
fn position(origin: &Origin) -> (usize, u8, usize) {
    match origin {
        Origin::Comment | Origin::Global(..) => (0, 0, 0),
        Origin::Site(at) => (*at, 0, 0),
        Origin::SiteKey(at, _) => (*at, 1, 0),
        Origin::Route(at, index) => (*at, 2, 2 * index),
        Origin::RouteKey(at, index, _) => (*at, 2, 2 * index + 1),
        Origin::Rule(at, index) => (*at, 3, *index),
    }
}

fn remove(document: &mut Document, origin: &Origin, message: &str) -> bool {
    let note = |line: usize, directive: String| Note {
        kind: NoteKind::NotTranslated,
        line,
        directive: shown(&directive),
        message: message.to_owned(),
    };
    let Document {
        sites, tables, notes, ..
    } = document;
    match origin {
        Origin::Comment => return false,
        Origin::Global(table, key) => {
            let Some(removed) = tables.get_mut(table).and_then(|table| table.refuse(key)) else {
                return false;
            };
            notes.push(note(removed.line, key.clone()));
        }
        Origin::Site(at) => {
            let site = sites.remove(*at);
            notes.extend(site.notes);
            notes.push(note(site.line, format!("site {}", site.name)));
        }
        Origin::SiteKey(at, key) => {
            let site = &mut sites[*at];
            let Some(removed) = site.settings.refuse(key) else {
                return false;
            };
            site.notes.push(note(removed.line, key.clone()));
        }
        Origin::Route(at, index) => {
            let site = &mut sites[*at];
            let route = site.remove_route(*index);
            site.notes.push(note(route.line, format!("route {}", route.pattern)));
        }
        Origin::RouteKey(at, index, key) => {
            let site = &mut sites[*at];
            let Some(removed) = site.routes[*index].settings.refuse(key) else {
                return false;
            };
            site.notes.push(note(removed.line, key.clone()));
        }
        Origin::Rule(at, index) => {
            let site = &mut sites[*at];
            let rule = site.rules.remove(*index);
            site.notes.push(note(rule.line, rule.directive));
        }
    }
    true
}
