//! Finds the directives of a host that run scripts in spite of a `SetHandler` in a `<Files>` section.

use crate::directive::Directive;

use super::handler::{self, NamedFiles, ScriptRunners};
use super::pcre::normalized;
use super::section::name_expression;

/// A `SetHandler` of a section.
struct SectionHandler<'d> {
    directive: &'d Directive,
    /// True if it runs every script in the files of its group.
    runs_every_script: bool,
}

/// Returns the directives of a host that run scripts. `sections`: its sections, in the order in which Apache applies
/// them.
pub(super) fn collect(directives: &[&Directive], sections: &[&Directive]) -> ScriptRunners {
    let mut runners = ScriptRunners::default();
    directives.iter().for_each(|directive| mark(directive, &mut runners));
    // Apache applies the `<Files>` sections of the host, then those inside folders, then the `<Location>` sections.
    let is_files = |d: &&Directive| d.is("Files") || d.is("FilesMatch");
    let mut groups = vec![handlers(sections.iter().copied().filter(is_files))];
    let is_folder = |d: &&&Directive| d.is("Directory") || d.is("DirectoryMatch");
    for folder in sections.iter().filter(is_folder) {
        groups.push(handlers(folder.children().iter().filter(is_files)));
    }
    let is_last = |d: &&Directive| !is_files(d) && !is_folder(&d);
    groups.push(plain(sections.iter().copied().filter(is_last)));
    for (at, group) in groups.iter().enumerate() {
        for (own, handler) in group.iter().enumerate() {
            let siblings = &group[own + 1..];
            let others = siblings.iter().chain(groups[at + 1..].iter().flatten());
            if others.into_iter().any(|other| handler::runs(other.directive)) {
                let is_every = siblings.iter().any(|other| other.runs_every_script);
                runners.later.insert(handler.directive.line, is_every);
            }
        }
    }
    runners
}

/// Sets the flags of the directives that run scripts without a `SetHandler`, also in sections.
fn mark(directive: &Directive, runners: &mut ScriptRunners) {
    if handler::runs(directive) && !directive.is("SetHandler") {
        match directive.is("ProxyPassMatch") {
            true => runners.by_path = true,
            false => runners.by_type = true,
        }
    }
    directive.children().iter().for_each(|child| mark(child, runners));
}

/// Returns each `SetHandler` of `<Files>` sections.
fn handlers<'d>(sections: impl Iterator<Item = &'d Directive>) -> Vec<SectionHandler<'d>> {
    let mut found = Vec::new();
    for section in sections {
        let runners = ScriptRunners::default();
        let expression = name_expression(section).map(|expression| normalized(&expression));
        let files = NamedFiles::new(&expression.unwrap_or_default(), Vec::new(), &runners);
        let is_every = files.has_every_script();
        found.extend(
            plain(std::iter::once(section))
                .into_iter()
                .map(|handler| SectionHandler {
                    runs_every_script: is_every && handler::runs(handler.directive),
                    ..handler
                }),
        );
    }
    found
}

/// Returns each `SetHandler` of other sections, which are for unknown files.
fn plain<'d>(sections: impl Iterator<Item = &'d Directive>) -> Vec<SectionHandler<'d>> {
    let directives = sections.flat_map(|section| section.children());
    let handlers = directives.filter(|d| d.is("SetHandler"));
    let handlers = handlers.map(|directive| SectionHandler {
        directive,
        runs_every_script: false,
    });
    handlers.collect()
}
