//! Finds the front controller of a path: the `index.php` of the application in whose folder the path lies.
//!
//! A root can contain several applications, such as WordPress in `/blog` and Laravel in `/shop/public`. Not every
//! `index.php` is a front controller: WordPress has empty ones in `/wp-content` and below, and some applications have
//! one in each folder that only redirects to the folder above. The front controller is therefore in the nearest folder
//! that is recognized as an application, or in the root if there is no such folder.

use std::sync::Arc;

use rocknet_io::confined_fs::{FileKind, OpenedFile, Root};
use rocknet_proto::semantics::safe_path::SafePath;

use crate::disk_lookup::DiskLookup;
use crate::tree::Tree;

/// Path of the front controller in the folder of an application.
const INDEX: &str = "/index.php";
/// Maximum depth of an application below the root. Each level costs accesses to the disk, and clients choose the path.
const MAX_DEPTH: usize = 4;
/// Maximum size of a `.htaccess` that is read, in bytes. Those of applications have a few kilobytes.
const MAX_HTACCESS: u64 = 64 * 1024;
/// Names of public folders of projects with a `composer.json` beside them.
const PUBLIC_FOLDERS: [&str; 5] = ["public", "web", "webroot", "public_html", "htdocs"];

/// Returns the front controller for `path`; both are paths of the site. The front controller at the root need not
/// exist.
pub fn find(lookup: &DiskLookup, root: &Arc<Root>, tree: &Tree, path: &str) -> String {
    let inside = tree.inside(path).unwrap_or_default();
    let disk = Disk { lookup, root, tree };
    let folders = inside
        .match_indices('/')
        .skip(1)
        .take(MAX_DEPTH)
        .map(|(end, _)| &inside[..end]);
    let mut found = "";
    for folder in folders {
        // RockNet never opens unsafe names, such as `Talk:Main` in `/wiki/Talk:Main/edit`, which is a stream name of
        // Windows. The search ends at such a name, but `/wiki` may still be an application.
        let is_safe = SafePath::from_decoded(folder).is_ok_and(|folder| !folder.has_dot_segment());
        if !is_safe || !disk.is_folder(folder) {
            break;
        }
        if disk.is_application(folder) {
            found = folder;
        }
    }
    tree.of_site(&[found, INDEX].concat())
}

/// Access to the folders below the root of a tree. Paths have a leading slash.
struct Disk<'d> {
    lookup: &'d DiskLookup,
    root: &'d Arc<Root>,
    tree: &'d Tree,
}

impl Disk<'_> {
    fn is_folder(&self, path: &str) -> bool {
        let opened = self.lookup.open(self.root, path.as_bytes(), self.tree.symlinks);
        opened.is_ok_and(|opened| opened.meta.kind == FileKind::Directory)
    }

    fn file(&self, folder: &str, name: &str) -> Option<OpenedFile> {
        let path = [folder, "/", name].concat();
        let opened = self
            .lookup
            .open_if_exists(self.root, path.as_bytes(), self.tree.symlinks)?;
        (opened.meta.kind == FileKind::File).then_some(opened)
    }

    /// Returns true if the `index.php` of a folder is a front controller: the folder is that of WordPress, the public
    /// folder of a project, or has a `.htaccess` that leads requests to this `index.php`.
    fn is_application(&self, folder: &str) -> bool {
        if self.file(folder, &INDEX[1..]).is_none() {
            return false;
        }
        let (parent, name) = folder.rsplit_once('/').unwrap_or_default();
        let is_public = || PUBLIC_FOLDERS.contains(&name) && self.file(parent, "composer.json").is_some();
        self.file(folder, "wp-load.php").is_some() || is_public() || self.has_rewriting(folder)
    }

    fn has_rewriting(&self, folder: &str) -> bool {
        let Some(opened) = self
            .file(folder, ".htaccess")
            .filter(|opened| opened.meta.size <= MAX_HTACCESS)
        else {
            return false;
        };
        let content = self.lookup.read(opened).unwrap_or_default();
        leads_to_index(&String::from_utf8_lossy(&content), &self.tree.of_site(folder))
    }
}

/// Returns true if a `.htaccess` leads requests without a file to the `index.php` beside it, and not to that of another
/// folder. `folder`: path of its folder on the site.
fn leads_to_index(htaccess: &str, folder: &str) -> bool {
    let lines = || htaccess.lines().map(|line| line.split_ascii_whitespace());
    // The folder that relative targets of rules begin with.
    let mut bases = lines().filter_map(|mut words| {
        let is_base = words.next()?.eq_ignore_ascii_case("RewriteBase");
        words.next().filter(|_| is_base)
    });
    let base = bases
        .next_back()
        .map_or(folder, |base| unquoted(base).trim_end_matches('/'));
    lines().any(|mut words| {
        let directive = words.next().unwrap_or_default().to_ascii_lowercase();
        match directive.as_str() {
            "rewriterule" => {
                let target = words.nth(1).unwrap_or_default();
                let flags = words.collect::<String>();
                !has_response(&flags) && is_index(unquoted(target), base, folder)
            }
            "fallbackresource" => is_index(unquoted(words.next().unwrap_or_default()), folder, folder),
            _ => false,
        }
    })
}

/// Returns true if a target is the `index.php` of the folder. Relative targets begin at `base`.
fn is_index(target: &str, base: &str, folder: &str) -> bool {
    let absolute = if let Some(rest) = target.strip_prefix("%{DOCUMENT_ROOT}") {
        rest.to_owned()
    } else if let Some((_, rest)) = target.strip_prefix("%{ENV:").and_then(|rest| rest.split_once('}')) {
        // Rules of Symfony and others store the path of the folder itself in an environment variable.
        [folder, "/", rest.trim_start_matches('/')].concat()
    } else if target.starts_with('/') {
        target.to_owned()
    } else {
        [base, "/", target.strip_prefix("./").unwrap_or(target)].concat()
    };
    let rest = absolute
        .strip_prefix(folder)
        .and_then(|inside| inside.strip_prefix(INDEX));
    // `$` and `%` begin back-references and variables of rules, as in `index.php$1`.
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?', '#', '$', '%']))
}

/// Returns true if the flags of a rule end a request with a response of their own: a redirect, 403 or 410.
fn has_response(flags: &str) -> bool {
    let names = flags.trim_matches(['[', ']']).split(',');
    let mut names = names.map(|flag| flag.split('=').next().unwrap_or_default().to_ascii_lowercase());
    names.any(|name| matches!(name.as_str(), "r" | "redirect" | "f" | "forbidden" | "g" | "gone"))
}

fn unquoted(word: &str) -> &str {
    word.trim_matches('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rewriting_to_the_index_is_recognized() {
        for (htaccess, expected) in [
            (
                "RewriteEngine On\nRewriteRule ^index\\.php$ - [L]\nRewriteRule . /blog/index.php [L]\n",
                true,
            ),
            ("  rewriterule ^ index.php [L]", true),
            ("RewriteRule ^(.*)$ index.php?q=$1 [L,QSA]", true),
            ("RewriteRule ^(.*)$ index.php/$1 [L]", true),
            ("RewriteRule \"^\" \"./index.php\" [L]", true),
            ("RewriteRule ^ %{ENV:BASE}/index.php [L]", true),
            ("RewriteRule . %{ENV:CWD}index.php [L]", true),
            ("RewriteRule ^ %{DOCUMENT_ROOT}/blog/index.php [L]", true),
            ("RewriteBase /blog/\nRewriteRule . index.php [L]", true),
            ("FallbackResource /blog/index.php", true),
            ("FallbackResource index.php", true),
            ("# RewriteRule . /blog/index.php", false),
            ("Order deny,allow\nDeny from all", false),
            ("RewriteRule ^index.php$ - [F]", false),
            ("", false),
            // They lead to another folder.
            ("FallbackResource /index.php", false),
            ("FallbackResource disabled", false),
            ("RewriteRule . /index.php [L]", false),
            ("RewriteRule ^(.*)$ ../index.php [L]", false),
            ("RewriteRule ^(.*)$ public/index.php [L]", false),
            ("RewriteRule ^(.*)$ /shop/index.php [L]", false),
            ("RewriteRule ^(.*)$ /shop/blog/index.php [L]", false),
            ("RewriteRule ^(.*)$ /blog/public/index.php [L]", false),
            ("RewriteRule ^(.*)$ https://other.test/blog/index.php [L]", false),
            ("RewriteRule ^ %{DOCUMENT_ROOT}/index.php [L]", false),
            ("RewriteBase /\nRewriteRule . index.php [L]", false),
            ("RewriteRule ^ index.php5 [L]", false),
            // A redirect and a refusal.
            ("RewriteRule ^old$ /blog/index.php [L,R=301]", false),
            ("RewriteRule ^old$ /blog/index.php [L, R]", false),
            ("RewriteRule ^old$ index.php [F]", false),
        ] {
            assert_eq!(leads_to_index(htaccess, "/blog"), expected, "{htaccess}");
        }
    }
}
