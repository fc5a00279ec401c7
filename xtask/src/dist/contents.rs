//! Parts that several packages contain: manual pages, completions, and the files of `packaging`.

use super::release::Release;
use super::sbom;
use crate::command::output;
use crate::{Failure, repository};
use std::fs;
use std::process::Command;

pub struct Contents {
    /// Manual pages by file name, such as `rocknet-run.1`.
    pub pages: Vec<(String, String)>,
    /// Completion scripts: shell, and text.
    pub completions: Vec<(&'static str, String)>,
    /// List of the libraries in the program, in the format CycloneDX.
    pub sbom: Vec<u8>,
}

/// Shells with a completion script in the packages.
pub const SHELLS: [&str; 3] = ["bash", "fish", "zsh"];

impl Contents {
    /// Generates the parts with the program of the release.
    pub fn new(release: &Release) -> Result<Self, Failure> {
        let printed = |arguments: &[&str]| output(Command::new(&release.program).args(arguments));
        let main = printed(&["man"])?;
        let mut pages = Vec::new();
        for command in commands(&main) {
            pages.push((format!("rocknet-{command}.1"), printed(&["man", &command])?));
        }
        if pages.is_empty() {
            return Err("the manual page of the program names no command".into());
        }
        pages.push((String::from("rocknet.1"), main));
        let mut completions = Vec::new();
        for shell in SHELLS {
            completions.push((shell, printed(&["completions", shell])?));
        }
        Ok(Self {
            pages,
            completions,
            sbom: sbom::sbom(release)?,
        })
    }
}

/// Returns the commands that the manual page refers to, as `rocknet\-run(1)`.
fn commands(page: &str) -> Vec<String> {
    let references = page
        .lines()
        .filter_map(|line| line.strip_prefix("rocknet\\-")?.strip_suffix("(1)"));
    references
        .map(|name| name.replace('\\', ""))
        // `help` has no page of its own.
        .filter(|name| name != "help")
        .collect()
}

/// Reads a file of the checkout.
pub fn source(path: &str) -> Result<Vec<u8>, Failure> {
    let full = repository::root().join(path);
    Ok(fs::read(&full).map_err(|error| format!("{}: {error}", full.display()))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_are_the_references_of_the_page() {
        let page = ".SH SUBCOMMANDS\n.TP\nrocknet\\-run(1)\nServe\n.TP\nrocknet\\-log\\-level(1)\nrocknet\\-help(1)\n";
        assert_eq!(commands(page), ["run", "log-level"]);
    }
}
