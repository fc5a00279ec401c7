//! Files of a Caddy site: the places that serve them, and hidden names.

use crate::condition::escaped;
use crate::directive::Directive;
use crate::document::{Notes, Site};
use crate::file_rules;
use crate::settings::Settings;
use crate::value::Value;

use super::super::place::BlockPlace;

/// Maximum number of patterns in the condition of a rule, as in the check of the configuration.
const MAX_PATTERNS: usize = 64;

/// Places whose files are served. Without `file_server`, Caddy does not serve the files of `root`.
#[derive(Default)]
pub struct BlockContent {
    /// Patterns of the places, each with the line of its `file_server`.
    pub files: Vec<(String, usize)>,
    /// True if one of the places is the whole site.
    pub serves_all: bool,
}

impl BlockContent {
    /// Moves `root` of the site to the places whose files are served, unless the whole site needs it.
    pub fn finish(&self, site: &mut Site) {
        let has_handler = site.settings.has("php") || site.settings.has("proxy");
        if self.serves_all || has_handler || !site.settings.has("root") {
            return;
        }
        let Some(root) = site.settings.remove("root") else {
            return;
        };
        for (pattern, line) in &self.files {
            let route = site.route(pattern, *line);
            if !route.has("alias") {
                route.set_default("root", root.value.clone(), root.line);
            }
        }
        if self.files.is_empty() {
            let directive = Directive::new("root", Vec::new(), root.line);
            site.skip(
                &directive,
                "without `file_server` or `php_fastcgi`, the root is not used",
            );
        }
    }
}

/// Translates `hide` to rules for the names of files and folders.
pub(super) fn hide(directive: &Directive, names: &[&str], patterns: &[String], site: &mut Site) {
    let mut paths = Vec::new();
    for name in names {
        let name = name.strip_prefix("./").unwrap_or(name);
        if name.contains(['/', '{', '[', '?']) || name.starts_with("**") || name.is_empty() {
            site.skip_restriction(
                directive,
                &format!("`{name}` cannot be translated: write a route with `deny`"),
            );
        } else if name.starts_with('.') {
            site.unneeded(
                directive,
                "names that begin with a dot are never served (404), except /.well-known",
            );
        } else {
            paths.push(if name.starts_with('*') {
                name.to_owned()
            } else {
                format!("*/{name}")
            });
            // The name may be that of a folder, whose files are then hidden, too. Only an expression matches them in
            // folders of any depth, because the last `*` of `*/name/*` matches no slash.
            paths.push(format!("~/{}/", escaped(name).replace("\\*", "[^/]*")));
        }
    }
    if paths.is_empty() {
        return;
    }
    if !patterns.iter().any(|pattern| pattern == "/*") {
        site.differs(directive, "the names are hidden in the whole site");
    }
    // The keys of `refusal` include `resolved = true`, so that a hidden file is not served as the index of a folder.
    for paths in paths.chunks(MAX_PATTERNS) {
        let mut keys = vec![("path", Value::texts(paths))];
        keys.extend(file_rules::refusal(404));
        site.rule(directive, keys);
    }
}

/// Notes that the prefix of a path is not removed before a file is looked up.
pub(super) fn note_strip(
    directive: &Directive,
    patterns: &[String],
    place: &BlockPlace,
    settings: &Settings,
    site: &mut Site,
) {
    // If the block has a root, the function `root` has taken the prefix into account.
    if let Some(prefix) = &place.strip
        && !settings.has("root")
        && !settings.has("alias")
        && !site.has_root(patterns)
    {
        let message = format!("`{prefix}` is not removed from the paths of files: write a route with `alias`");
        site.skip(directive, &message);
    }
}

impl Site {
    /// Returns true if a route for one of these patterns has a root or an alias.
    pub(super) fn has_root(&self, patterns: &[String]) -> bool {
        self.routes.iter().any(|route| {
            patterns.contains(&route.pattern) && (route.settings.has("root") || route.settings.has("alias"))
        })
    }
}
