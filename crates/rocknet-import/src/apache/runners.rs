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
/// them. `global`: directives outside of hosts, which the host inherits.
pub(super) fn collect(directives: &[&Directive], sections: &[&Directive], global: &[&Directive]) -> ScriptRunners {
    let mut runners = ScriptRunners::default();
    let all = global.iter().chain(directives);
    all.for_each(|directive| mark(directive, false, &mut runners));
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
