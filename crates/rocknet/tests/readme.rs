//! Checks the README: its sessions match the program's output, its configurations are valid, and its links resolve.

use std::fs;
use std::path::{Path, PathBuf};

use rocknet_config::ProcessEnvironment;

#[allow(dead_code)] // the tests of the command line use the rest of this shared module
#[path = "cli/program.rs"]
mod program;

use program::ProgramFolder;

/// Home folder in the README's sessions.
const HOME: &str = "/home/me";

#[test]
fn serving_a_folder_prints_what_the_readme_shows() {
    let session = session("$ rocknet serve ./site\n");
    let dir = ProgramFolder::new(&[("site/index.html", "home")]);
    // A pipe replaces the terminal. The kernel chooses the port, because the documented port may be in use.
    let server = dir.serve(&["serve", "./site", "--listen", "127.0.0.1:0", "--console"]);
    let port = server.authority().rsplit_once(':').map_or("", |(_, port)| port);
    let shown = server.banner.replace(&format!(":{port}/"), ":8080/");
    assert_eq!(at_home(&shown, &dir), session);
}

#[test]
fn an_error_message_matches_the_readme() {
    let session = session("$ cat rocknet.toml\n");
    let (settings, message) = session
        .split_once("$ rocknet check\n")
        .expect("the command after the file");
    let dir = ProgramFolder::new(&[("rocknet.toml", settings)]);
    let output = dir.run(&["check"]);
    // 78 is the exit code for an invalid configuration.
    assert_eq!(output.code, Some(78), "{output:?}");
    assert_eq!(at_home(&output.err, &dir), message);
}

#[test]
fn configurations_in_the_readme_are_valid_and_formatted() {
    let readme = readme();
    let blocks: Vec<&str> = blocks(&readme, "toml").collect();
    assert!(blocks.len() >= 2, "{blocks:?}");
    for block in blocks {
        let report = rocknet_config::parse(block, Path::new("/srv/rocknet.toml"), &ProcessEnvironment);
        assert!(report.is_ok(), "{block}\n{report:?}");
        assert_eq!(rocknet_config::format(block).as_deref().ok(), Some(block));
    }
}

/// Covers every form of a site name that the README quotes.
#[test]
fn names_in_the_readme_are_valid() {
    let readme = readme();
    for name in [":8080", "example.com", "*.example.com", "10.0.0.1"] {
        assert!(readme.contains(&format!("`\"{name}\"`")), "{name}");
        let text = format!("[site.\"{name}\"]\nroot = \"./site\"\n");
        let report = rocknet_config::parse(&text, Path::new("/srv/rocknet.toml"), &ProcessEnvironment);
        assert!(report.is_ok(), "{text}\n{report:?}");
    }
}

#[test]
fn links_in_the_readme_resolve() {
    let readme = readme();
    let links: Vec<&str> = readme
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter(|link| !link.contains("://"))
        .collect();
    assert!(links.len() > 10, "{links:?}");
    for link in links {
        assert!(
            repository().join(link).exists(),
            "README.md links to {link}, which does not exist"
        );
    }
}

/// Returns output of the program with the folder of the test replaced by the one in the README.
fn at_home(text: &str, dir: &ProgramFolder) -> String {
    let folder = fs::canonicalize(dir.path()).expect("a folder");
    text.replace(&*folder.to_string_lossy(), HOME)
}

/// Returns the text after `first` in the console session that begins with `first`.
fn session(first: &str) -> String {
    let readme = readme();
    let mut found = blocks(&readme, "console").filter_map(|block| block.strip_prefix(first));
    let session = found.next();
    session
        .unwrap_or_else(|| panic!("no session begins with {first}"))
        .to_owned()
}

/// Returns the fenced blocks of a language.
fn blocks<'a>(text: &'a str, language: &str) -> impl Iterator<Item = &'a str> {
    let fence = format!("```{language}\n");
    let starts: Vec<usize> = text.match_indices(&fence).map(|(at, _)| at + fence.len()).collect();
    starts.into_iter().filter_map(|start| text[start..].split("```").next())
}

fn readme() -> String {
    // A checkout on Windows may have converted the line ends.
    let text = fs::read_to_string(repository().join("README.md")).expect("the README");
    text.replace("\r\n", "\n")
}

fn repository() -> PathBuf {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    above.expect("a crate below the repository").to_owned()
}
