//! Maintainer of the Debian package: `maintainer` of `[workspace.metadata.dist]` in `Cargo.toml`, or `--maintainer`.

use crate::Failure;
use crate::command::{cargo, output_alone};
use serde::Deserialize;
use std::fmt;
use std::str::FromStr;

/// End of an address that receives no mail (RFC 2606).
const NO_MAIL: &str = ".invalid>";

/// Name and mail address in the form `NAME <ADDRESS>`, which Debian requires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Maintainer(String);

/// Output of `cargo metadata`, as far as it is used.
#[derive(Deserialize)]
struct Metadata {
    metadata: WorkspaceMetadata,
}

#[derive(Deserialize)]
struct WorkspaceMetadata {
    dist: Dist,
}

#[derive(Deserialize)]
struct Dist {
    maintainer: String,
}

impl Maintainer {
    /// Reads the maintainer that `Cargo.toml` names.
    pub fn configured() -> Result<Self, Failure> {
        let mut metadata = cargo();
        metadata.args(["metadata", "--locked", "--no-deps", "--format-version", "1"]);
        let metadata: Metadata = serde_json::from_str(&output_alone(&mut metadata)?)
            .map_err(|error| format!("Cargo.toml: [workspace.metadata.dist] has no `maintainer`: {error}"))?;
        Ok(metadata.metadata.dist.maintainer.parse()?)
    }

    /// Returns true if the address receives no mail, so that packages with it must not be published.
    pub fn is_placeholder(&self) -> bool {
        self.0.ends_with(NO_MAIL)
    }
}

impl FromStr for Maintainer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.strip_suffix('>').and_then(|rest| rest.split_once(" <"));
        let is_valid = parts.is_some_and(|(name, address)| {
            let has_host = address
                .split_once('@')
                .is_some_and(|(user, host)| !user.is_empty() && !host.is_empty());
            let has_mark = |text: &str| text.contains(|letter: char| letter.is_control() || "<>".contains(letter));
            !name.trim().is_empty() && has_host && !has_mark(name) && !has_mark(address) && !address.contains(' ')
        });
        if is_valid {
            Ok(Self(text.to_owned()))
        } else {
            Err(format!(
                "the maintainer is `{text}`: write `NAME <ADDRESS>`, such as `Ann Lee <ann@example.com>`"
            ))
        }
    }
}

impl fmt::Display for Maintainer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maintainer_has_a_name_and_an_address() {
        for good in [
            "Ann Lee <ann@example.com>",
            "RockNet maintainers <maintainers@rocknet.invalid>",
        ] {
            assert_eq!(good.parse::<Maintainer>().unwrap().to_string(), good);
        }
        // A line feed would begin another field of the package.
        for bad in [
            "",
            "Ann",
            "ann@example.com",
            " <a@b>",
            "Ann <a>",
            "Ann <@b>",
            "Ann <a@b",
            "Ann <a@b>\nDepends: x",
            "A\nB <a@b>",
        ] {
            assert!(bad.parse::<Maintainer>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_configured_maintainer_is_valid() {
        let placeholder: Maintainer = "A <a@b.invalid>".parse().unwrap();
        assert!(placeholder.is_placeholder());
        Maintainer::configured().unwrap();
    }
}
