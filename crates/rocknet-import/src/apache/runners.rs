//! Finds the directives of a host that run scripts in spite of a `SetHandler` in a `<Files>` section.

use crate::directive::Directive;

use super::handler::{self, NamedFiles, ScriptRunners};
use super::pcre::normalized;
use super::section::name_expression;

/// A `SetHandler` of a section.
struct SectionHandler<'d> {
    directive: &'d Directive,
    /// True if it runs every script of the folder, or of the host, that contains the section.
    runs_every_script: bool,
}

/// Returns the directives of a host that run scripts. `sections`: its sections, in the order in which Apache applies
/// them. `global`: directives outside of hosts, which the host inherits.
pub(super) fn collect(directives: &[&Directive], sections: &[&Directive], global: &[&Directive]) -> ScriptRunners {
    let mut runners = ScriptRunners::default();
    let all = global.iter().chain(directives);
    all.for_each(|directive| mark(directive, false, &mut runners));
    // Each group has the `SetHandler` directives of sections that Apache applies together. The groups are in order: the
    // `<Files>` sections of the host, then those inside each folder, then the `<Location>` sections.
    let is_files = |d: &&Directive| d.is("Files") || d.is("FilesMatch");
    let mut groups = vec![of_files(sections.iter().copied().filter(is_files))];
    let is_folder = |d: &&&Directive| d.is("Directory") || d.is("DirectoryMatch");
    for folder in sections.iter().filter(is_folder) {
        groups.push(of_files(folder.children().iter().filter(is_files)));
    }
    let is_last = |d: &&Directive| !is_files(d) && !is_folder(&d);
    let last = sections.iter().copied().filter(is_last);
    // A `<Location>` is for certain paths, so it may not contain every script.
    let has_every_script = false;
    groups.push(last.flat_map(|section| handlers(section, has_every_script)).collect());
    for (at, group) in groups.iter().enumerate() {
        for (own, handler) in group.iter().enumerate() {
            let siblings = &group[own + 1..];
            let mut later = siblings.iter().chain(groups[at + 1..].iter().flatten());
            if later.any(|other| handler::runs(other.directive)) {
                // A later group is for a folder or a path, so it may not contain every script of this group.
                let runs_every_script = siblings.iter().any(|other| other.runs_every_script);
                runners.later.insert(handler.directive.line, runs_every_script);
            }
        }
    }
    runners
}

/// Sets the flags of the directives that run scripts, also in sections. Of the `SetHandler` directives, only those in
/// `<If>` count here, because Apache applies these sections last. `is_in_if`: true in such a section.
fn mark(directive: &Directive, is_in_if: bool, runners: &mut ScriptRunners) {
    runners.by_path |= is_forwarding(directive);
    if handler::runs(directive) {
        match directive.name.to_ascii_lowercase().as_str() {
            "sethandler" => runners.by_path |= is_in_if,
            "proxypassmatch" => runners.by_path = true,
            _ => runners.by_type = true,
        }
    }
    let is_if = ["If", "ElseIf", "Else"].iter().any(|name| directive.is(name));
    let children = directive.children().iter();
    children.for_each(|child| mark(child, is_in_if || is_if, runners));
}

/// Returns true for a `RewriteRule` that passes requests to PHP or sets a handler, and for a `ProxyPass` to php-fpm.
fn is_forwarding(directive: &Directive) -> bool {
    let is_php_fpm = directive
        .arguments
        .iter()
        .any(|word| word.to_ascii_lowercase().contains("fcgi:"));
    if !directive.is("RewriteRule") {
        return directive.is("ProxyPass") && is_php_fpm;
    }
    let flags = directive.argument(2).trim_matches(['[', ']']).to_ascii_lowercase();
    let sets_handler = |flag: &str| flag.trim().starts_with("h=") || flag.trim().starts_with("handler=");
    is_php_fpm || flags.split(',').any(sets_handler)
}

/// Returns each `SetHandler` of `<Files>` sections.
fn of_files<'d>(sections: impl Iterator<Item = &'d Directive>) -> Vec<SectionHandler<'d>> {
    let in_section = |section: &'d Directive| {
        let runners = ScriptRunners::default();
        let expression = name_expression(section).map(|expression| normalized(&expression));
        let files = NamedFiles::new(&expression.unwrap_or_default(), Vec::new(), &runners);
        handlers(section, files.has_every_script())
    };
    sections.flat_map(in_section).collect()
}

/// Returns each `SetHandler` of a section. `has_every_script`: true if the section is for every script of the folder,
/// or of the host, that contains it.
fn handlers(section: &Directive, has_every_script: bool) -> Vec<SectionHandler<'_>> {
    let directives = section.children().iter().filter(|d| d.is("SetHandler"));
    let handlers = directives.map(|directive| SectionHandler {
        directive,
        runs_every_script: has_every_script && handler::runs(directive),
    });
    handlers.collect()
}
