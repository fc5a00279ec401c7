//! Checks README.md and the pages in `docs/`: their configurations are valid, their commands exist, their links
//! resolve, and the program contains the messages of the troubleshooting page.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rocknet_config::environment::{Environment, FileKind};
use rocknet_config::{Report, check_text};

#[allow(dead_code)] // the tests of the command line use the rest of this shared module
#[path = "cli/program.rs"]
mod program;

use program::ProgramFolder;

/// Environment in which every file and folder that an example names exists.
struct AllFilesExist;

impl Environment for AllFilesExist {
    fn variable(&self, _: &str) -> Option<String> {
        Some("value".to_owned())
    }

    /// Returns a password hash for the file that an example names for one, otherwise a secret in Base64.
    fn read(&self, path: &Path) -> io::Result<String> {
        Ok(if path.ends_with("secrets/ann") {
            HASH
        } else {
            "c2VjcmV0"
        }
        .to_owned())
    }

    /// Returns no file for a pattern with `*`, so that an `include` in an example needs no contents.
    fn matching(&self, pattern: &Path) -> io::Result<Vec<PathBuf>> {
        let is_pattern = pattern.to_string_lossy().contains('*');
        Ok(if is_pattern {
            Vec::new()
        } else {
            vec![pattern.to_owned()]
        })
    }

    /// Returns no folder, so that a root with `{host}` adds no site.
    fn folders(&self, _: &Path) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// Guesses the kind from the name. In the examples, the name of a folder has no dot, is a host name, or ends with
    /// `.d`. The name of a file has an extension, except the two names in the list.
    fn kind(&self, path: &Path) -> Option<FileKind> {
        let name = path.file_name()?.to_string_lossy();
        let is_folder = !name.contains('.') || [".com", ".test", ".d"].iter().any(|end| name.ends_with(end));
        let is_file = !is_folder || ["htpasswd", "dns-hook"].contains(&&*name);
        Some(if is_file { FileKind::File } else { FileKind::Directory })
    }

    fn current_dir(&self) -> PathBuf {
        "/srv".into()
    }
}

#[test]
fn configurations_in_the_docs_are_valid() {
    let (mut checked, mut invalid) = (0, Vec::new());
    // `configuration.md` is generated from the descriptions of the keys in `rocknet-config`, whose tests check the
    // examples.
    for page in pages().iter().filter(|page| !page.ends_with("configuration.md")) {
        let text = read(page);
        for block in blocks(&text, "toml") {
            if let Err(report) = check_block(block) {
                invalid.push(format!("{}:\n{block}\n{:?}", page.display(), report.findings));
            }
            checked += 1;
        }
    }
    assert!(invalid.is_empty(), "{}", invalid.join("\n"));
    assert!(checked > 30, "{checked} blocks");
}

#[test]
fn an_invalid_configuration_is_detected() {
    for block in [
        "[site.\"example.com\"]\nrot = \"./site\"\n",
        "proxy = \"http//no\"\n",
        "[server]\nh2c = 1\n",
        "root = \"a\"\nno_key = 1\n",
    ] {
        assert!(check_block(block).is_err(), "{block}");
    }
}

#[test]
fn commands_in_the_docs_exist() {
    let dir = ProgramFolder::new(&[]);
    let mut commands = BTreeSet::new();
    for page in pages() {
        let text = read(&page);
        for block in blocks(&text, "console").chain(blocks(&text, "sh")) {
            let lines = block.lines().filter_map(|line| line.strip_prefix("$ rocknet "));
            commands.extend(lines.filter_map(|line| Some(line.split_whitespace().next()?.to_owned())));
        }
    }
    assert!(!commands.is_empty());
    for command in commands {
        let output = dir.run(&[&command, "--help"]);
        assert_eq!(output.code, Some(0), "rocknet {command}: {output:?}");
    }
}

#[test]
fn links_between_pages_lead_to_headings() {
    let mut checked = 0;
    for page in pages() {
        let text = read(&page);
        for link in links(&text).filter(|link| !link.contains("://")) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => page.clone(),
                file => page.parent().expect("a folder").join(file),
            };
            assert!(target.exists(), "{}: {link}", page.display());
            if !heading.is_empty() && target.extension().is_some_and(|extension| extension == "md") {
                let anchors = anchors(&read(&target));
                assert!(anchors.contains(heading), "{}: {link}: {anchors:?}", page.display());
            }
            checked += 1;
        }
    }
    assert!(checked > 50, "{checked} links");
}

#[test]
fn messages_of_the_troubleshooting_page_are_in_the_sources() {
    let sources: Vec<String> = source_files().iter().map(|file| literals(&read(file))).collect();
    let text = read(&repository().join("docs/troubleshooting.md"));
    let messages = messages(&text);
    assert!(messages.len() > 40, "{messages:?}");
    let missing: Vec<_> = messages
        .iter()
        .filter(|message| !sources.iter().any(|source| contains_message(source, message)))
        .collect();
    assert!(missing.is_empty(), "no source file has these messages: {missing:#?}");
}

#[test]
fn a_message_is_found_by_its_fixed_parts() {
    let source = literals("// a line of prose\nf(\"port {port} is in \\\n    use by \\\"x\\\"\");\n");
    for (message, expected) in [
        ("port … is in use by \"x\"", true),
        ("is in use by …", true),
        ("is in use by nginx", false),
        ("a line of prose", false),
        ("port …", false), // no fixed part is long enough
    ] {
        assert_eq!(contains_message(&source, message), expected, "{message}");
    }
    let text = "| `head` | x |\n|---|---|\n| ``key `…` in …`` | `no` |\ntext `no`\n";
    assert_eq!(messages(text), ["head", "key `…` in …"]);
}

/// Checks a block as `rocknet check` does. A block without a table header shows keys of a site. It must be valid for a
/// site without a root, or for one with a root. If a key occurs twice, the statements of the block are alternatives,
/// and each is checked separately.
fn check_block(block: &str) -> Result<(), Report> {
    // The docs abbreviate password hashes.
    let block = block
        .replace("$argon2id$v=19$m=19456,t=2,p=1$…$…", HASH)
        .replace("$argon2id$…", HASH);
    let starts_with_table = block.lines().find(|line| is_text(line)).is_some_and(|line| {
        ["[", "site.", "include", "ban"]
            .iter()
            .any(|start| line.starts_with(start))
    });
    if starts_with_table {
        return check(&block, "");
    }
    check(&block, SITE).or_else(|_| check(&block, SITE_WITH_ROOT))
}

/// Checks a block that follows the text `before`. If a key occurs twice, checks each statement of the block separately.
fn check(block: &str, before: &str) -> Result<(), Report> {
    let name = Path::new("/srv/rocknet.toml");
    let Err(report) = check_text(&format!("{before}{block}"), name, &AllFilesExist) else {
        return Ok(());
    };
    if !report.findings.iter().any(|finding| finding.message.contains("twice")) {
        return Err(report);
    }
    for alternative in statements(block) {
        check_text(&format!("{before}{alternative}"), name, &AllFilesExist)?;
    }
    Ok(())
}

/// A valid password hash.
const HASH: &str = "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$RdescudvJCsgt3ub+b9dWRWJTmaaJObG";
const SITE: &str = "[site.\":8080\"]\n";
const SITE_WITH_ROOT: &str = "[site.\":8080\"]\nroot = \"/var/www\"\n";

/// Returns true if the line is neither empty nor a comment.
fn is_text(line: &str) -> bool {
    !line.trim().is_empty() && !line.trim_start().starts_with('#')
}

/// Returns each statement of a block with the table header above it.
fn statements(block: &str) -> Vec<String> {
    let (mut header, mut found, mut open) = (String::new(), Vec::new(), String::new());
    for line in block.lines().filter(|line| is_text(line)) {
        if open.is_empty() && line.starts_with('[') {
            header = format!("{}\n", line.split('#').next().unwrap_or(line));
            continue;
        }
        open.push_str(line);
        open.push('\n');
        let is_balanced = |opening, closing| open.matches(opening).count() == open.matches(closing).count();
        if is_balanced('[', ']') && is_balanced('{', '}') {
            found.push(format!("{header}{}", std::mem::take(&mut open)));
        }
    }
    assert!(open.is_empty(), "{block}");
    found
}

/// Returns the code spans in the first cells of the tables of a page.
fn messages(text: &str) -> Vec<&str> {
    let cells = text.lines().filter_map(|line| line.strip_prefix("| `"));
    cells
        .map(|cell| {
            let ticks = 1 + cell.len() - cell.trim_start_matches('`').len();
            let (message, _) = cell[ticks - 1..]
                .split_once(&"`".repeat(ticks))
                .expect("a closed code span");
            message.trim()
        })
        .collect()
}

/// Returns true if the source file contains every fixed part of the message that has at least 8 bytes. Returns false if
/// the message has no such part.
fn contains_message(source: &str, message: &str) -> bool {
    let mut parts = message
        .split('…')
        .map(str::trim)
        .filter(|part| part.len() >= 8)
        .peekable();
    parts.peek().is_some() && parts.all(|part| source.contains(part))
}

/// Returns a source file without comment lines and unit tests, and with its string literals unescaped and joined.
fn literals(source: &str) -> String {
    let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    let text = lines.collect::<Vec<_>>().join("\n").replace("\\\"", "\"");
    let mut pieces = text.split("\\\n");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |joined, piece| joined + piece.trim_start())
}

/// Returns the files in `crates/*/src`, except those of tests.
fn source_files() -> Vec<PathBuf> {
    let crates = fs::read_dir(repository().join("crates")).expect("crates");
    let mut folders: Vec<PathBuf> = crates.map(|entry| entry.expect("a crate").path().join("src")).collect();
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            if path.file_stem().is_some_and(|stem| stem == "tests") {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    assert!(files.len() > 100, "{} files", files.len());
    files
}

/// Returns the targets of all links.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

/// Returns the anchors that GitHub generates for the headings of a page.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ' '));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

/// Returns the fenced blocks of a language.
fn blocks<'a>(text: &'a str, language: &str) -> impl Iterator<Item = &'a str> {
    let fence = format!("```{language}\n");
    let starts: Vec<usize> = text.match_indices(&fence).map(|(at, _)| at + fence.len()).collect();
    starts.into_iter().filter_map(|start| text[start..].split("```").next())
}

/// Returns README.md and the pages of `docs/`.
fn pages() -> Vec<PathBuf> {
    let docs = repository().join("docs");
    let entries = fs::read_dir(&docs).expect("docs").filter_map(Result::ok);
    let mut pages: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    pages.push(repository().join("README.md"));
    pages.sort();
    assert!(pages.len() > 8, "{pages:?}");
    pages
}

fn read(page: &Path) -> String {
    // A checkout on Windows may have converted the line ends.
    fs::read_to_string(page).expect("a page").replace("\r\n", "\n")
}

fn repository() -> PathBuf {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    above.expect("a crate below the repository").to_owned()
}
