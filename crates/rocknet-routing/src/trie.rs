//! Trie of the routes of a site. Without globs and regular expressions, the time of a lookup depends only on the path.

use std::fmt;
use std::ops::Range;

use rocknet_config::model::{Pattern, RegexPattern};

use super::glob::Glob;

/// Maps the paths of a site to values.
///
/// Patterns are ranked by how specific they are, not by the order in which they were added:
/// 1. an exact pattern that equals the path;
/// 2. the longest prefix of the path: `/api/*` matches `/api/` and everything below, but not `/api` itself;
/// 3. the matching glob with the most literal characters; of globs with equally many, the first in alphabetical order;
/// 4. the longest regular expression that matches; of equally long ones, the first in alphabetical order.
///
/// Matching is case-sensitive. The structure is a compressed trie over bytes, so a lookup visits the root and at most
/// one further node for each byte of the path. Globs are attached to the node where their literal prefix ends. A path
/// is compared with globs only if no exact or prefix pattern matched, and only with globs whose literal prefix begins
/// the path. The nodes along the path are then visited a second time, and the cost is the number of compared globs
/// times the length of the path. A glob without a leading `/` (`*.zip`) is attached to the root, so every path without
/// an exact or prefix match can be compared with it.
#[derive(Debug, Clone)]
pub struct RouteTrie<T> {
    nodes: Vec<Node>,
    values: Vec<T>,
    /// Regular expressions in order of rank, each with the index of its value. A path is compared with them only if no
    /// other pattern matched.
    regexes: Vec<(RegexPattern, usize)>,
}

/// Kind of a match, and the part of the path that the star matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteMatch {
    /// Kind of the pattern.
    pub kind: MatchKind,
    /// Range of the path that the first `*` of the pattern matched; without a `*`, the empty range at the end.
    pub star: Range<usize>,
}

/// The kind of a pattern, in order of rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatchKind {
    /// The pattern equals the path.
    Exact,
    /// The path begins with the pattern. In the configuration, such a pattern ends with `/*`.
    Prefix,
    /// The pattern contains stars in other positions.
    Glob,
    /// The pattern is a regular expression.
    Regex,
}

/// Error of [`RouteTrie::insert`]: the pattern is already in the trie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuplicatePattern(pub Pattern);

impl<T> RouteTrie<T> {
    /// Creates an empty trie.
    pub fn new() -> RouteTrie<T> {
        RouteTrie {
            nodes: vec![Node::new(b"")],
            values: Vec::new(),
            regexes: Vec::new(),
        }
    }

    /// Adds a pattern.
    ///
    /// # Errors
    /// Returns the pattern if it is already in the trie, which is then unchanged.
    pub fn insert(&mut self, pattern: &Pattern, value: T) -> Result<(), DuplicatePattern> {
        let index = self.values.len();
        let new = match pattern {
            Pattern::Exact(path) => set_if_empty(&mut self.node_at(path).exact, index),
            Pattern::Prefix(path) => set_if_empty(&mut self.node_at(path).prefix, index),
            Pattern::Glob(text) => {
                let glob = Glob::new(text);
                self.node_at(glob.literal_prefix()).put_glob(glob, index)
            }
            Pattern::Regex(regex) => match self.regexes.binary_search_by(|(other, _)| other.cmp(regex)) {
                Ok(_) => false,
                Err(place) => {
                    self.regexes.insert(place, (regex.clone(), index));
                    true
                }
            },
        };
        if !new {
            return Err(DuplicatePattern(pattern.clone()));
        }
        self.values.push(value);
        Ok(())
    }

    /// Returns the value of the most specific pattern that matches the path, with the match; `None` if no pattern
    /// matches.
    pub fn find(&self, path: &str) -> Option<(&T, RouteMatch)> {
        if self.values.is_empty() {
            return None;
        }
        let mut prefix = None;
        let mut globs = false;
        for (node, depth) in self.descend(path) {
            if let (true, Some(index)) = (depth == path.len(), node.exact) {
                return self.found(index, MatchKind::Exact, depth..depth);
            }
            if let Some(index) = node.prefix {
                prefix = Some((index, depth));
            }
            globs |= !node.globs.is_empty();
        }
        match prefix {
            Some((index, depth)) => self.found(index, MatchKind::Prefix, depth..path.len()),
            None if globs => self.find_glob(path).or_else(|| self.find_regex(path)),
            None => self.find_regex(path),
        }
    }

    /// Returns the value of the first regular expression that matches the path.
    fn find_regex(&self, path: &str) -> Option<(&T, RouteMatch)> {
        let mut regexes = self.regexes.iter();
        let (_, index) = regexes.find(|(regex, _)| regex.matches(path.as_bytes()))?;
        self.found(*index, MatchKind::Regex, path.len()..path.len())
    }

    /// Returns the value of the glob that has the highest rank among those that match the path.
    fn find_glob(&self, path: &str) -> Option<(&T, RouteMatch)> {
        let mut best: Option<(&RankedGlob, Range<usize>)> = None;
        for (node, _) in self.descend(path) {
            // Globs of one node are in order of rank. The search of a node ends at the first match, or at a glob that
            // ranks lower than the best match of the earlier nodes.
            let mut better = node
                .globs
                .iter()
                .take_while(|glob| best.as_ref().is_none_or(|(best, _)| glob.rank() < best.rank()));
            if let Some(found) = better.find_map(|glob| Some((glob, glob.matches(path)?))) {
                best = Some(found);
            }
        }
        let (glob, star) = best?;
        self.found(glob.index, MatchKind::Glob, star)
    }

    fn found(&self, index: usize, kind: MatchKind, star: Range<usize>) -> Option<(&T, RouteMatch)> {
        Some((self.values.get(index)?, RouteMatch { kind, star }))
    }

    /// Returns all values in the order in which they were added.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.values.iter()
    }

    /// Returns the number of patterns.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns true if there are no patterns.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the nodes that spell a prefix of the path, from the root down, each with the length of that prefix.
    fn descend<'a>(&'a self, path: &'a str) -> Descent<'a> {
        Descent {
            nodes: &self.nodes,
            path: path.as_bytes(),
            next: Some(ROOT),
            depth: 0,
        }
    }

    /// Returns the node that spells `path`, and creates it if necessary.
    fn node_at(&mut self, path: &str) -> &mut Node {
        let mut rest = path.as_bytes();
        let mut at = ROOT;
        while let Some(&first) = rest.first() {
            let child = match self.nodes[at].child_index(first) {
                Err(slot) => {
                    let child = self.add(Node::new(rest));
                    self.nodes[at].children.insert(slot, (first, child));
                    child
                }
                Ok(slot) => {
                    let (_, child) = self.nodes[at].children[slot];
                    let common = common_prefix_length(&self.nodes[child].label, rest);
                    if common < self.nodes[child].label.len() {
                        self.split(child, common);
                    }
                    child
                }
            };
            rest = &rest[self.nodes[child].label.len()..];
            at = child;
        }
        &mut self.nodes[at]
    }

    /// Splits a node's label at `length`. The second part of the label and the content of the node move to a new child.
    fn split(&mut self, node: usize, length: usize) {
        let lower = self.nodes[node].label[length..].to_vec();
        let upper = Node::new(&self.nodes[node].label[..length]);
        let first = lower[0];
        let mut moved = std::mem::replace(&mut self.nodes[node], upper);
        moved.label = lower.into();
        let moved = self.add(moved);
        self.nodes[node].children.push((first, moved));
    }

    fn add(&mut self, node: Node) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }
}

impl<T> Default for RouteTrie<T> {
    fn default() -> RouteTrie<T> {
        RouteTrie::new()
    }
}

impl fmt::Display for DuplicatePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the pattern `{}` appears twice", self.0)
    }
}

impl std::error::Error for DuplicatePattern {}

#[derive(Debug, Clone)]
struct Node {
    /// Bytes between the parent and this node; empty only for the root.
    label: Box<[u8]>,
    /// Children, each with the first byte of its label and its index in `nodes`, sorted by that byte. The bytes are
    /// distinct, so there are at most 256 children.
    children: Vec<(u8, usize)>,
    /// Index of the value of the exact pattern that ends at this node.
    exact: Option<usize>,
    /// Index of the value of the prefix pattern that ends at this node.
    prefix: Option<usize>,
    /// Globs whose literal prefix ends at this node, in order of rank.
    globs: Vec<RankedGlob>,
}

impl Node {
    fn new(label: &[u8]) -> Node {
        Node {
            label: label.into(),
            children: Vec::new(),
            exact: None,
            prefix: None,
            globs: Vec::new(),
        }
    }

    /// Returns the index in `children` of the child whose label begins with a byte. If no child has such a
    /// label, the error contains the index at which it has to be inserted.
    fn child_index(&self, first: u8) -> Result<usize, usize> {
        self.children.binary_search_by_key(&first, |&(byte, _)| byte)
    }

    /// Adds a glob in order of rank. Returns false if the glob is already there.
    fn put_glob(&mut self, glob: Glob, index: usize) -> bool {
        let glob = RankedGlob { glob, index };
        match self.globs.binary_search_by(|other| other.rank().cmp(&glob.rank())) {
            Ok(_) => false,
            Err(place) => {
                self.globs.insert(place, glob);
                true
            }
        }
    }
}

/// A glob with the index of its value.
#[derive(Debug, Clone)]
struct RankedGlob {
    glob: Glob,
    index: usize,
}

impl RankedGlob {
    /// Returns the sort key: smaller keys take precedence.
    fn rank(&self) -> (std::cmp::Reverse<usize>, &str) {
        (std::cmp::Reverse(self.glob.literals()), self.glob.text())
    }

    fn matches(&self, path: &str) -> Option<Range<usize>> {
        #[cfg(test)]
        tests::GLOBS.set(tests::GLOBS.get() + 1);
        self.glob.matches(path)
    }
}

/// Iterator over the nodes that spell a prefix of a path, from the root down.
struct Descent<'a> {
    nodes: &'a [Node],
    path: &'a [u8],
    next: Option<usize>,
    depth: usize,
}

impl<'a> Iterator for Descent<'a> {
    type Item = (&'a Node, usize);

    fn next(&mut self) -> Option<(&'a Node, usize)> {
        let node = self.nodes.get(self.next?)?;
        #[cfg(test)]
        tests::VISITS.set(tests::VISITS.get() + 1);
        let rest = &self.path[self.depth..];
        // The label is compared before the child is entered, so that every returned node is on the path.
        let child = rest
            .first()
            .and_then(|&first| node.child_index(first).ok())
            .map(|slot| node.children[slot].1);
        self.next = child.filter(|&child| rest.starts_with(&self.nodes[child].label));
        let depth = self.depth;
        self.depth += self.next.map_or(0, |child| self.nodes[child].label.len());
        Some((node, depth))
    }
}

/// Stores an index in a slot if the slot is empty. Returns true if the slot was empty.
fn set_if_empty(slot: &mut Option<usize>, index: usize) -> bool {
    let is_free = slot.is_none();
    slot.get_or_insert(index);
    is_free
}

fn common_prefix_length(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

const ROOT: usize = 0;

#[cfg(test)]
mod tests;
