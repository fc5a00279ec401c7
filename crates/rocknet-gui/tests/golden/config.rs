//! Parts of a configuration file, as far as the test needs them: blocks that begin with a header.

use std::collections::BTreeMap;

use rocknet_config::form::{FIELDS, Field};

/// A header with the lines below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Comments and empty lines above the header, which follow no entry of the same block.
    pub before: Vec<String>,
    pub header: String,
    /// Name of the website; `None` for other tables.
    pub site: Option<String>,
    pub lines: Vec<String>,
}

/// Blocks of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocks {
    /// Entries above the first header.
    pub top: Vec<String>,
    pub all: Vec<Block>,
    /// Comments and empty lines at the end.
    pub end: Vec<String>,
}

impl Blocks {
    /// Removes the blocks of a website. The comments directly above a header belong to the block, and comments above
    /// them, after which a line is empty, to the rest of the file. Empty lines are left out.
    pub fn without(mut self, site: &str) -> Blocks {
        let mut kept: Vec<String> = Vec::new();
        let mut others = Vec::new();
        for mut block in self.all {
            if block.site.as_deref() == Some(site) {
                let end = block.before.iter().rposition(|line| line.trim().is_empty());
                kept.extend(block.before.drain(..end.unwrap_or(0)));
            } else {
                kept.append(&mut block.before);
                block.before = std::mem::take(&mut kept);
                others.push(block);
            }
        }
        self.all = others;
        kept.append(&mut self.end);
        self.end = kept;
        let loose = self
            .all
            .iter_mut()
            .map(|block| &mut block.before)
            .chain([&mut self.end]);
        loose.for_each(|lines| lines.retain(|line| !line.trim().is_empty()));
        self
    }
}

/// Splits a file.
pub fn blocks(text: &str) -> Blocks {
    let mut parts: Vec<(String, Vec<String>)> = vec![(String::new(), Vec::new())];
    for line in text.lines() {
        match line.starts_with('[') {
            true => parts.push((line.to_owned(), Vec::new())),
            false => parts.last_mut().unwrap().1.push(line.to_owned()),
        }
    }
    let mut loose = Vec::new();
    let mut blocks = Blocks {
        top: Vec::new(),
        all: Vec::new(),
        end: Vec::new(),
    };
    for (header, mut lines) in parts {
        let entries = lines.iter().rposition(|line| !is_loose(line)).map_or(0, |at| at + 1);
        let after = lines.split_off(entries);
        let before = std::mem::replace(&mut loose, after);
        match header.is_empty() {
            true => blocks.top = lines,
            false => blocks.all.push(Block {
                before,
                site: site(&header),
                header,
                lines,
            }),
        }
    }
    blocks.end = loose;
    blocks
}

/// Returns true for comments and empty lines.
fn is_loose(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with('#')
}

fn site(header: &str) -> Option<String> {
    let name = header.trim_start_matches('[').strip_prefix("site.\"")?;
    Some(name.split('"').next()?.to_owned())
}

fn key(line: &str) -> &str {
    line.split(['=', '.']).next().unwrap_or_default().trim()
}

/// Returns true if the form has a field for an entry below a header.
fn is_of_form(header: &str, line: &str) -> bool {
    let is_inner = |field: &Field| field.path.len() == 2 && header.ends_with(&format!(".{}]", field.path[0]));
    FIELDS
        .iter()
        .any(|field| field.path[0] == key(line) || is_inner(field) && field.path[1] == key(line))
}

impl Block {
    /// Returns the entries whose keys the form does not know.
    pub fn foreign(&self) -> Vec<&String> {
        let entries = self.lines.iter().filter(|line| !is_loose(line));
        entries.filter(|line| !is_of_form(&self.header, line)).collect()
    }
}

/// Returns the comments in lines of their own.
pub fn comments(text: &str) -> Vec<&str> {
    let all = text.lines().map(str::trim);
    all.filter(|line| line.starts_with('#')).collect()
}

/// Returns the comments beside entries, by key.
pub fn beside(lines: &[String]) -> BTreeMap<&str, &str> {
    let entries = lines.iter().filter(|line| !is_loose(line));
    entries
        .filter_map(|line| Some((key(line), line.split_once('#')?.1)))
        .collect()
}
