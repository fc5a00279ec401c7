//! Collects the directives of `mod_rewrite`: each `RewriteRule` with the conditions before it.

use crate::directive::Directive;

/// Directives of `mod_rewrite` of one host or `.htaccess`.
///
/// They may also stand in a section for the root: one that applies to the whole site, such as
/// `<Directory "/var/www">` with the `DocumentRoot` `/var/www`.
#[derive(Default)]
pub struct RewriteBlock {
    pub rules: Vec<RewriteRule>,
    /// Conditions that have been read since the last rule.
    pub conditions: Vec<Directive>,
    /// `RewriteMap` and `RewriteOptions`, which are not translated.
    pub others: Vec<Directive>,
    /// Path of `RewriteBase`, without the slash at its end.
    pub base: String,
    /// True after `RewriteEngine off` outside of sections.
    is_off: bool,
    /// True after `RewriteEngine off` in a section for the root. It does not turn off the rules of the host.
    is_off_in_section: bool,
    /// True while the rules of a folder are read: those of an `.htaccess` or `<Directory>`.
    pub is_in_folder: bool,
    /// True while the rules of a section for the root are read.
    is_in_section: bool,
}

/// A rule with its conditions.
pub struct RewriteRule {
    pub conditions: Vec<Directive>,
    pub directive: Directive,
    /// True for a rule of a folder, which matches paths without the slash at their beginning.
    pub is_in_folder: bool,
    is_in_section: bool,
}

impl RewriteBlock {
    /// Reads a directive of a section for the root, whose rules are those of a folder. Returns false if it does not
    /// concern rewriting.
    pub fn read_in_section(&mut self, directive: &Directive) -> bool {
        let is_in_folder = std::mem::replace(&mut self.is_in_folder, true);
        self.is_in_section = true;
        let is_read = self.read(directive);
        self.is_in_section = false;
        self.is_in_folder = is_in_folder;
        is_read
    }

    /// Returns true if `RewriteEngine off` turns the rule off.
    pub fn is_off(&self, rule: &RewriteRule) -> bool {
        match rule.is_in_section {
            true => self.is_off_in_section,
            false => self.is_off,
        }
    }

    /// Reads a directive. Returns false if it does not concern rewriting.
    pub fn read(&mut self, directive: &Directive) -> bool {
        match directive.name.to_ascii_lowercase().as_str() {
            "rewriteengine" => {
                let is_off = directive.argument(0).eq_ignore_ascii_case("off");
                match self.is_in_section {
                    true => self.is_off_in_section = is_off,
                    false => self.is_off = is_off,
                }
            }
            "rewritebase" => self.base = directive.argument(0).trim_end_matches('/').to_owned(),
            "rewritecond" => self.conditions.push(directive.clone()),
            "rewriterule" => self.rules.push(RewriteRule {
                conditions: std::mem::take(&mut self.conditions),
                directive: directive.clone(),
                is_in_folder: self.is_in_folder,
                is_in_section: self.is_in_section,
            }),
            "rewritemap" | "rewriteoptions" => self.others.push(directive.clone()),
            _ => return false,
        }
        true
    }
}

/// Returns true if a condition tests for an existing file, folder or link.
pub fn is_about_files(condition: &Directive) -> bool {
    let subject = condition.argument(0);
    let files = [
        "%{REQUEST_FILENAME}",
        "%{DOCUMENT_ROOT}%{REQUEST_URI}",
        "%{DOCUMENT_ROOT}/%{REQUEST_URI}",
    ];
    let is_file = files.contains(&subject);
    is_file && matches!(condition.argument(1), "!-f" | "!-d" | "!-l" | "-f" | "-d" | "-s" | "-l")
}
