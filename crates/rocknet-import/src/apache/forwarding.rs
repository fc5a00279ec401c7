//! Finds the directives by which upstreams and programs get requests for names that begin with a dot.
//!
//! RockNet never serves files with such names, so a refusal of them is not needed. It is needed if a request can reach
//! something other than the file: an upstream, a script with a path after its name, or a rewritten path.

use crate::directive::Directive;

use super::flags::RewriteFlags;

/// Ways by which a host passes requests on.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Forwarding {
    /// True if `ProxyPass` or `RewriteRule` with the flag `P` passes requests to upstreams.
    upstreams: bool,
    /// True if a `RewriteRule` of a folder with the flag `P`, or `SetHandler proxy:…`, passes requests to upstreams.
    /// Apache applies the `<Files>` sections to these requests first.
    from_folders: bool,
    /// True if scripts may be run, or other handlers. They also get the path after the name of the script:
    /// `/index.php/.b`.
    scripts: bool,
    /// True if paths are rewritten.
    rewrites: bool,
}

impl Forwarding {
    /// Returns the ways in which the directives of a host pass requests on, with those in its sections. The caller has
    /// replaced each `<IfModule>` by its directives. `is_folder`: true if the directives outside of sections are those
    /// of a folder, as in an `.htaccess`.
    pub fn of<'d>(directives: impl IntoIterator<Item = &'d Directive>, is_folder: bool) -> Forwarding {
        let mut found = Forwarding::default();
        directives
            .into_iter()
            .for_each(|directive| found.add(directive, is_folder));
        found
    }

    fn add(&mut self, directive: &Directive, is_folder: bool) {
        let words: Vec<String> = directive
            .arguments
            .iter()
            .map(|word| word.to_ascii_lowercase())
            .collect();
        // An argument with `php` indicates scripts, as in `DirectoryIndex index.php`. If it is only the name of a
        // folder, the import keeps refusals that are not needed, which does no harm.
        self.scripts |= words.iter().any(|word| word.contains("php"));
        match directive.name.to_ascii_lowercase().as_str() {
            "proxypass" | "proxypassmatch" => self.upstreams |= !words.iter().any(|word| word == "!"),
            "sethandler" | "addhandler" => {
                let is_upstream = words.iter().any(|word| word.starts_with("proxy:"));
                // For PHP, names with a leading dot are not passed on: RockNet runs no files with such names.
                let is_php = words.iter().any(|word| word.contains("php") || word.contains("fcgi:"));
                self.from_folders |= is_upstream && !is_php;
                // Any handler may get a path after the name of its file, as a script does: `/a.php/.b`.
                self.scripts = true;
            }
            "scriptalias" | "scriptaliasmatch" | "action" | "wsgiscriptalias" => self.scripts = true,
            "rewriterule" => {
                let flags = RewriteFlags::read(directive.argument(2));
                self.from_folders |= flags.is_proxy && is_folder;
                self.upstreams |= flags.is_proxy;
                self.rewrites |= directive.argument(1) != "-" && !flags.is_proxy && flags.redirect.is_none();
            }
            _ => {}
        }
        // Apache applies the rules of any remaining section, such as `<Directory>` or `<Location>`, as those of a
        // folder.
        for inner in directive.children() {
            self.add(inner, true);
        }
    }

    /// Returns true if requests for files with a leading dot may be passed on after the `<Files>` sections. A refusal
    /// in such a section is then needed.
    pub fn reaches_names(self) -> bool {
        self.from_folders || self.rewrites
    }

    /// Returns true if requests for paths with a leading dot may be passed on. `is_first`: true if the dot is that of
    /// the first name in the path, which follows no script.
    pub fn reaches_paths(self, is_first: bool) -> bool {
        self.upstreams || self.from_folders || self.rewrites || self.scripts && !is_first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_that_pass_requests_on_are_found_in_sections() {
        for (text, names, paths, first) in [
            ("DirectoryIndex index.html", false, false, false),
            ("DirectoryIndex index.php", false, true, false),
            ("ProxyPass /a http://a.test/", false, true, true),
            ("ProxyPass /a !", false, false, false),
            (
                "<Location /a>\nProxyPass http://a.test/\n</Location>",
                false,
                true,
                true,
            ),
            (
                "<Directory /srv>\n<Files a>\nRewriteRule ^ http://a.test/ [P]\n</Files>\n</Directory>",
                true,
                true,
                true,
            ),
            ("RewriteRule ^/a http://a.test/ [P]", false, true, true),
            ("RewriteRule ^ /b [R]", false, false, false),
            ("RewriteRule ^ /b", true, true, true),
            (
                "<Files a>\nSetHandler \"proxy:http://a.test/\"\n</Files>",
                true,
                true,
                true,
            ),
            (
                "<FilesMatch \\.php$>\nSetHandler \"proxy:unix:/a|fcgi://a\"\n</FilesMatch>",
                false,
                true,
                false,
            ),
        ] {
            let found = Forwarding::of(&super::super::read(text).unwrap(), false);
            assert_eq!(
                (
                    found.reaches_names(),
                    found.reaches_paths(false),
                    found.reaches_paths(true)
                ),
                (names, paths, first),
                "{text}"
            );
        }
    }
}
