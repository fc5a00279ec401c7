//! Translates configurations of Apache: `httpd.conf`, files with `<VirtualHost>`, and `.htaccess`.

mod access;
mod accuracy;
mod alias;
mod context;
mod dot_names;
mod expires;
mod expression;
mod flags;
mod forwarding;
mod guard;
mod handler;
mod host;
mod https_redirect;
mod includes;
mod inherit;
mod limit;
mod order;
mod path;
mod pcre;
mod php;
mod proxy;
mod reader;
mod redirect;
mod requirement;
mod rewrite;
mod rule_path;
mod runners;
mod section;
mod setting;
mod test;
mod tls;
mod traffic;
mod variable;
mod version;

pub(crate) use includes::ApacheIncludes;
pub(crate) use reader::read;

use std::path::Path;

use crate::directive::Directive;
use crate::document::{Document, Notes};
use crate::hosts::{self, HostDraft};
use crate::source::SourceMap;
use crate::value::Value;
use context::ServerContext;

/// Differences between the defaults of Apache and RockNet, written at the top of the result.
const REMARKS: [&str; 2] = [
    "Defaults that differ from Apache: compression on, access log off, folders are not listed.",
    "Names that begin with a dot are never served, except /.well-known. `.htaccess` files have no effect: import each.",
];

/// Translates a configuration of Apache. `name`: name of its file.
pub(crate) fn translate(tree: &[Directive], name: &str, sources: &SourceMap) -> Document {
    let mut document = Document::new(&REMARKS, sources);
    let mut all = Vec::new();
    flatten(tree, &mut all, &mut document);
    let context = ServerContext::collect(&all);
    let (hosts, global): (Vec<&Directive>, Vec<&Directive>) = all.iter().partition(|d| d.is("VirtualHost"));
    let is_htaccess = Path::new(name).file_name().is_some_and(|name| name == ".htaccess");
    let mut drafts = Vec::new();
    if hosts.is_empty() {
        let draft = if is_htaccess {
            folder(&global, name, &context)
        } else {
            host::translate(&global, None, &context, &[])
        };
        drafts.push(draft);
    } else {
        let (shared, global): (Vec<&Directive>, Vec<&Directive>) = global.into_iter().partition(|d| is_shared(d));
        global_settings(&global, &mut document, &context);
        // True for each shared directive that a host uses. The others get a note below.
        let mut used = vec![false; shared.len()];
        for block in hosts {
            // Folders that the host serves.
            let folders = block.children().iter().chain(shared.iter().copied());
            let folders = folders.filter_map(|d| match d.arguments.len() {
                1 if d.is("DocumentRoot") => Some(d.argument(0)),
                2 if d.is("Alias") || d.is("ScriptAlias") => Some(d.argument(1)),
                _ => None,
            });
            let roots: Vec<String> = folders.filter_map(|folder| context.expand(folder)).collect();
            let mut directives = Vec::new();
            for (at, directive) in shared.iter().enumerate() {
                if !directive.is("Directory") || section::applies(directive, &roots, &context) {
                    used[at] = true;
                    directives.push(*directive);
                }
            }
            directives.extend(block.children());
            drafts.push(host::translate(&directives, Some(block), &context, &global));
        }
        for (directive, _) in shared.iter().zip(used).filter(|(_, used)| !used) {
            section::skip(directive, &mut document);
        }
    }
    for draft in &mut drafts {
        logs(draft, &mut document);
    }
    hosts::assemble(&mut document, drafts);
    document
}

/// Returns true for directives outside of virtual hosts that apply to each of them.
fn is_shared(directive: &Directive) -> bool {
    const SHARED: [&str; 16] = [
        "Alias",
        "CacheEnable",
        "CacheDisable",
        "ScriptAlias",
        "Directory",
        "DirectoryMatch",
        "Location",
        "LocationMatch",
        "Files",
        "FilesMatch",
        "SSLVerifyClient",
        "SSLCACertificateFile",
        "SSLCARevocationFile",
        "SSLCARevocationPath",
        "SSLCARevocationCheck",
        "SSLRequire",
    ];
    SHARED.iter().any(|name| directive.is(name))
}

/// Replaces `<IfModule>` and similar sections by their directives. A section for which [`is_applied_condition`] returns
/// false is left out with a note.
fn flatten(tree: &[Directive], all: &mut Vec<Directive>, notes: &mut dyn Notes) {
    for directive in tree {
        match (&directive.block, is_condition(directive)) {
            (Some(_), true) if directive.is("IfVersion") && version::is_other(directive) => {
                notes.unneeded(directive, "the section is for other versions than Apache 2.4");
            }
            (Some(_), true) if !is_applied_condition(directive) => {
                let message = "the section was left out: it is for servers without the module or of another version, or depends on a \
                     defined name";
                match section::restricts(directive) {
                    true => notes.skip_restriction(directive, message),
                    false => notes.skip(directive, message),
                }
            }
            (Some(block), true) => flatten(block, all, notes),
            (Some(block), false) => {
                let mut copy = Directive::new(&directive.name, directive.arguments.clone(), directive.line);
                let mut children = Vec::new();
                flatten(block, &mut children, notes);
                copy.block = Some(children);
                all.push(copy);
            }
            (None, _) => all.push(directive.clone()),
        }
    }
}

fn is_condition(directive: &Directive) -> bool {
    ["IfModule", "IfDefine", "IfVersion", "IfFile", "IfDirective"]
        .iter()
        .any(|name| directive.is(name))
}

/// Returns true for a conditional section whose directives count as if they stood outside of it. Its module or file is
/// assumed to exist, or it is for the last release of Apache 2.4. False for a negated section and for `<IfDefine>`.
fn is_applied_condition(directive: &Directive) -> bool {
    if directive.is("IfVersion") {
        return version::is_last(directive);
    }
    is_condition(directive) && !directive.argument(0).starts_with('!') && !directive.is("IfDefine")
}

/// Translates an `.htaccess`. Its folder is the root of the site, whose name is unknown.
fn folder(directives: &[&Directive], name: &str, context: &ServerContext) -> HostDraft {
    let mut draft = host::translate(directives, None, context, &[]);
    let root = Path::new(name)
        .parent()
        .map(|folder| folder.to_string_lossy().into_owned());
    let root = root.filter(|root| !root.is_empty()).unwrap_or_else(|| ".".to_owned());
    draft.site.settings.set_default("root", Value::Text(root), 1);
    let file = Directive::new(".htaccess", Vec::new(), 1);
    let message = "the file names no host and no root: write the name in place of `default`, and check `root`";
    draft.site.differs(&file, message);
    draft
}

/// Translates the directives outside of virtual hosts that concern the whole server.
fn global_settings(global: &[&Directive], document: &mut Document, context: &ServerContext) {
    for directive in global {
        if directive.is("ErrorLog") || directive.is("LogLevel") || directive.is("CustomLog") {
            let mut draft = HostDraft::default();
            setting::log(directive, &mut draft.site, context);
            document.notes.append(&mut draft.site.notes);
            let log = document.table("log");
            for (key, name) in [("error_log", "errors"), ("error_level", "level"), ("log", "access")] {
                if let Some(found) = draft.site.settings.remove(key) {
                    log.set(name, found.value, found.line);
                }
            }
        } else if directive.is("Proxy") {
            context.note_balancer(directive, document);
        } else if setting::is_unneeded(directive) {
            document.unneeded(directive, "RockNet does this by default, or selects it itself");
        } else if directive.block.is_some() {
            section::skip(directive, document);
        } else if !context.has_read(directive) {
            let advice = traffic::advice(directive);
            document.skip(
                directive,
                advice.unwrap_or("write it into each site, if there is a counterpart: docs/configuration.md"),
            );
        }
    }
}

/// Moves the error log of a site and its level to the global table, because RockNet has one error log.
fn logs(draft: &mut HostDraft, document: &mut Document) {
    let level = draft.site.settings.remove("error_level");
    if let Some(file) = draft.site.settings.remove("error_log") {
        let directive = Directive::new("ErrorLog", Vec::new(), file.line);
        let log = document.table("log");
        match log.get("errors") {
            Some(known) if *known == file.value => {}
            Some(_) => draft
                .site
                .skip(&directive, "the whole server has one error log: `log.errors`"),
            None => {
                log.set("errors", file.value, file.line);
                draft
                    .site
                    .differs(&directive, "the error log is that of the whole server");
            }
        }
    }
    if let Some(level) = level {
        document.table("log").set_default("level", level.value, level.line);
    }
}
