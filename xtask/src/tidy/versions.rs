//! Checks where HTTP versions are named: only where connections are served, where a version is selected, and in
//! upstream clients.

use super::paths::Paths;
use super::tree::Tree;

/// Crates to which the rule applies. `rocknet-proto` implements the versions, and `rocknet-proxy` is an upstream client
/// that selects its version. The other crates do not deal with HTTP versions.
const FOLDERS: &[&str] = &[
    "crates/rocknet",
    "crates/rocknet-files",
    "crates/rocknet-gateway",
    "crates/rocknet-handler",
];

/// Folders and files below `src` where versions may be named.
const PLACES: &[(&str, &str)] = &[
    ("protocol", "serves connections of each version"),
    ("transport", "chooses the version of a connection"),
];

/// Returns the violations in the crate at `folder`.
pub fn check(folder: &str, tree: &Tree<'_>) -> Vec<String> {
    if !FOLDERS.contains(&folder) {
        return Vec::new();
    }
    judge(folder, tree)
}

fn judge(folder: &str, tree: &Tree<'_>) -> Vec<String> {
    let mut violations = Vec::new();
    for part in tree.parts().filter(|part| !is_place(&part.file)) {
        let paths = Paths::read(&part.code);
        let uses = paths.uses.iter().map(|one| (&one.path, one.line));
        let written = paths.written.iter().map(|one| (&one.path, one.line));
        for (path, line) in uses.chain(written) {
            let file = format!("{folder}/src/{}", part.file);
            if path.iter().any(|name| is_version(name)) {
                violations.push(format!(
                    "{file}:{line}: `{}` names an HTTP version outside protocol, transport and upstream clients",
                    path.join("::")
                ));
            }
        }
    }
    violations
}

/// Returns true if `file` is in one of the places, or is the file of the place's module.
fn is_place(file: &str) -> bool {
    let below = |place: &str| {
        let rest = file.strip_prefix(place);
        rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
    };
    PLACES.iter().any(|(place, _)| below(place))
}

/// Returns true if `name` is the name of an HTTP version: `h2`, `http2`, `Http11`, `HTTP_2`.
fn is_version(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let number = lower.strip_prefix("http").or_else(|| lower.strip_prefix('h'));
    let number = number.map(|number| number.trim_start_matches('_'));
    number.is_some_and(|number| ["1", "2", "3", "10", "11", "1_0", "1_1"].contains(&number))
}

#[cfg(test)]
mod tests {
    use super::super::tree::sources;
    use super::*;

    #[test]
    fn versions_named_outside_their_places_are_violations() {
        let rows: [(&str, &str, usize); 9] = [
            ("a", "use rocknet_proto::h2::DecodedHead;", 1),
            ("a", "use rocknet_proto::{h1, h2};", 2),
            ("a", "fn f() { g(crate::protocol::h1::Block) }", 1),
            ("a", "fn f(v: Version) -> bool { v == Version::Http11 }", 1),
            ("a", "fn f() { let h2 = self.h1; \"use h2::a\" }", 0),
            ("a", "#[cfg(test)] mod tests { use rocknet_proto::h2; }", 0),
            ("protocol", "use rocknet_proto::h2;", 0),
            ("transport", "use rocknet_proto::h2;", 0),
            ("protocols", "use rocknet_proto::h2;", 1),
        ];
        for (module, text, expected) in rows {
            let root = format!("mod {module};");
            let sources = sources(&[("lib.rs", &root), (&format!("{module}.rs"), text)]);
            let found = judge("crates/rocknet", &Tree::new(&sources));
            assert_eq!(found.len(), expected, "{module}: {text}: {found:?}");
        }
    }

    #[test]
    fn places_are_folders_with_the_files_of_their_modules() {
        let rows = [
            ("protocol/h1/a.rs", true),
            ("transport.rs", true),
            ("transport/sniff.rs", true),
            ("transporting.rs", false),
            ("worker.rs", false),
        ];
        for (file, expected) in rows {
            assert_eq!(is_place(file), expected, "{file}");
        }
    }
}
