//! Software bill of materials: the libraries that the program is linked with, in the format CycloneDX 1.5.

use super::release::Release;
use crate::command::{cargo, output_alone};
use crate::{Failure, repository};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Output of `cargo metadata`, as far as it is used.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Library>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Library {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    /// `None` for the crates of this checkout.
    source: Option<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    /// `None` for a library that is linked, else `build` or `dev`.
    kind: Option<String>,
}

/// Returns the document as JSON. It has no serial number, so that the same release has the same bytes.
pub fn sbom(release: &Release) -> Result<Vec<u8>, Failure> {
    let mut metadata = cargo();
    metadata.args(["metadata", "--locked", "--format-version", "1"]);
    metadata.args(["--filter-platform", release.triple]);
    let metadata: Metadata = serde_json::from_str(&output_alone(&mut metadata)?)?;
    let lock = fs::read_to_string(repository::root().join("Cargo.lock"))?;
    let document = document(&metadata, &checksums(&lock), release)?;
    Ok(format!("{document:#}\n").into_bytes())
}

fn document(metadata: &Metadata, checksums: &Checksums<'_>, release: &Release) -> Result<Value, Failure> {
    let root = metadata
        .packages
        .iter()
        .find(|library| library.name == release.name)
        .ok_or_else(|| format!("cargo metadata has no package `{}`", release.name))?;
    let linked = linked(&metadata.resolve, &root.id);
    let by_id: BTreeMap<&str, &Library> = metadata
        .packages
        .iter()
        .map(|library| (library.id.as_str(), library))
        .collect();
    let reference = |id: &str| by_id.get(id).map(|library| library.reference());
    let mut components = BTreeMap::new();
    let mut dependencies = BTreeMap::new();
    for (id, needed) in &linked {
        let Some(library) = by_id.get(id) else { continue };
        if *id != root.id {
            components.insert(library.reference(), library.component(checksums));
        }
        let needed: BTreeSet<_> = needed.iter().filter_map(|id| reference(id)).collect();
        dependencies.insert(
            library.reference(),
            json!({ "ref": library.reference(), "dependsOn": needed }),
        );
    }
    let time = jiff::Timestamp::from_second(i64::try_from(release.time)?)?;
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": time.to_string(),
            "component": {
                "type": "application",
                "bom-ref": root.reference(),
                "name": release.name,
                "version": root.version,
                "licenses": root.licenses(),
                "properties": [{ "name": "target", "value": release.triple }],
            },
        },
        "components": components.into_values().collect::<Vec<_>>(),
        "dependencies": dependencies.into_values().collect::<Vec<_>>(),
    }))
}

impl Library {
    /// Returns the package URL: <https://github.com/package-url/purl-spec>.
    fn reference(&self) -> String {
        format!("pkg:cargo/{}@{}", self.name, self.version)
    }

    fn licenses(&self) -> Value {
        match &self.license {
            // Old crates write a slash, which is not an SPDX expression.
            Some(license) => json!([{ "expression": license.replace('/', " OR ") }]),
            None => json!([]),
        }
    }

    fn component(&self, checksums: &Checksums<'_>) -> Value {
        let mut component = json!({
            "type": "library",
            "bom-ref": self.reference(),
            "name": self.name,
            "version": self.version,
            "licenses": self.licenses(),
        });
        if self.source.is_some() {
            component["purl"] = json!(self.reference());
        }
        if let Some(checksum) = checksums.get(&(self.name.as_str(), self.version.as_str())) {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
        }
        component
    }
}

/// Returns the packages that are linked into `root`, each with those that it needs. Packages for builds and tests alone
/// are left out.
fn linked<'a>(resolve: &'a Resolve, root: &'a str) -> BTreeMap<&'a str, Vec<&'a str>> {
    let nodes: BTreeMap<&str, &Node> = resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let mut found = BTreeMap::new();
    let mut waiting = vec![root];
    while let Some(id) = waiting.pop() {
        if found.contains_key(id) {
            continue;
        }
        let deps = nodes.get(id).map(|node| node.deps.as_slice()).unwrap_or_default();
        let needed: Vec<&str> = deps
            .iter()
            .filter(|dependency| dependency.dep_kinds.iter().any(|kind| kind.kind.is_none()))
            .map(|dependency| dependency.pkg.as_str())
            .collect();
        waiting.extend(&needed);
        found.insert(id, needed);
    }
    found
}

/// Digests of the packages in `Cargo.lock`, by name and version.
type Checksums<'a> = BTreeMap<(&'a str, &'a str), &'a str>;

fn checksums(lock: &str) -> Checksums<'_> {
    let mut found = Checksums::new();
    for package in lock.split("[[package]]").skip(1) {
        let value = |key: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(key))?;
            line.strip_prefix(" = \"")?.strip_suffix('"')
        };
        if let (Some(name), Some(version), Some(checksum)) = (value("name"), value("version"), value("checksum")) {
            found.insert((name, version), checksum);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_of_builds_and_tests_are_left_out() {
        let text = r#"{"nodes": [
            {"id": "root", "deps": [
                {"pkg": "a", "dep_kinds": [{"kind": null}]},
                {"pkg": "b", "dep_kinds": [{"kind": "dev"}]},
                {"pkg": "c", "dep_kinds": [{"kind": "build"}, {"kind": null}]}]},
            {"id": "a", "deps": [{"pkg": "d", "dep_kinds": [{"kind": "build"}]}]},
            {"id": "c", "deps": []}]}"#;
        let resolve: Resolve = serde_json::from_str(text).unwrap();
        let found: Vec<_> = linked(&resolve, "root").into_keys().collect();
        assert_eq!(found, ["a", "c", "root"]);
    }

    #[test]
    fn checksums_are_read_from_the_lock_file() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0\"\nchecksum = \"12ab\"\n\n\
                    [[package]]\nname = \"own\"\nversion = \"0.1.0\"\n";
        let found = checksums(lock);
        assert_eq!(found.get(&("a", "1.0")), Some(&"12ab"));
        assert_eq!(found.len(), 1);
    }
}
