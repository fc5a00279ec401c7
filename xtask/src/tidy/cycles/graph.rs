//! Finds cycles of a directed graph: strongly connected components by Tarjan's algorithm, and a shortest cycle of each.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Targets of each node. Every node has an entry.
pub type Graph = BTreeMap<String, BTreeSet<String>>;

/// Returns the groups of two or more nodes that reach each other, sorted by name.
pub fn cycles(graph: &Graph) -> Vec<BTreeSet<String>> {
    let mut search = Tarjan {
        graph,
        numbers: BTreeMap::new(),
        lowest: BTreeMap::new(),
        stack: Vec::new(),
        found: Vec::new(),
    };
    for node in graph.keys() {
        if !search.numbers.contains_key(node.as_str()) {
            search.visit(node);
        }
    }
    search.found.sort();
    search.found
}

/// Returns a shortest path within `members` from a node back to itself, with the node at both ends. Of several shortest
/// paths, the first by name is returned.
pub fn shortest(graph: &Graph, members: &BTreeSet<String>) -> Vec<String> {
    let paths = members.iter().filter_map(|start| shortest_from(graph, members, start));
    paths.min_by_key(Vec::len).unwrap_or_default()
}

struct Tarjan<'g> {
    graph: &'g Graph,
    /// Numbers of the visited nodes, in the order of the visits.
    numbers: BTreeMap<&'g str, usize>,
    /// Lowest number of a node on the stack that each node reaches.
    lowest: BTreeMap<&'g str, usize>,
    stack: Vec<&'g str>,
    found: Vec<BTreeSet<String>>,
}

impl<'g> Tarjan<'g> {
    /// Visits `node` and all nodes that it reaches. The recursion is as deep as the longest chain of imports: some
    /// hundreds of files.
    fn visit(&mut self, node: &'g str) {
        let number = self.numbers.len();
        self.numbers.insert(node, number);
        self.lowest.insert(node, number);
        self.stack.push(node);
        for next in self.graph.get(node).into_iter().flatten() {
            let reached = match self.numbers.get(next.as_str()) {
                None => {
                    self.visit(next);
                    self.lowest[next.as_str()]
                }
                Some(&number) if self.stack.contains(&next.as_str()) => number,
                Some(_) => continue,
            };
            if let Some(lowest) = self.lowest.get_mut(node) {
                *lowest = reached.min(*lowest);
            }
        }
        if self.lowest[node] == number {
            let start = self.stack.iter().rposition(|one| *one == node).unwrap_or_default();
            let group: BTreeSet<String> = self.stack.drain(start..).map(str::to_owned).collect();
            if group.len() > 1 {
                self.found.push(group);
            }
        }
    }
}

/// Returns the shortest path from `start` back to it within `members`, by breadth-first search.
fn shortest_from(graph: &Graph, members: &BTreeSet<String>, start: &String) -> Option<Vec<String>> {
    let mut from: BTreeMap<&String, &String> = BTreeMap::new();
    let mut open = VecDeque::from([start]);
    while let Some(node) = open.pop_front() {
        for next in graph.get(node).into_iter().flatten() {
            if next == start {
                let mut path = vec![start.clone(), node.clone()];
                let mut at = node;
                while let Some(&before) = from.get(at) {
                    path.push(before.clone());
                    at = before;
                }
                path.reverse();
                return Some(path);
            }
            if members.contains(next) && !from.contains_key(next) {
                from.insert(next, node);
                open.push_back(next);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a graph from text such as "ab bc": a points to b, and b to c.
    fn graph(edges: &str) -> Graph {
        let mut graph = Graph::new();
        for edge in edges.split_whitespace() {
            let (from, to) = edge.split_at(1);
            graph.entry(from.to_owned()).or_default().insert(to.to_owned());
            graph.entry(to.to_owned()).or_default();
        }
        graph
    }

    #[test]
    fn cycles_are_found_with_a_shortest_path() {
        let rows: [(&str, &[&str], &str); 8] = [
            ("", &[], ""),
            ("ab bc ac", &[], ""),
            ("ab ba", &["ab"], "aba"),
            ("ab bc ca", &["abc"], "abca"),
            ("ab ba bc cd dc", &["ab", "cd"], "aba"),
            ("ab bc cd da bd dc", &["abcd"], "cdc"),
            ("xa ab ba ay", &["ab"], "aba"),
            ("ad dc cb ba bd", &["abcd"], "bdcb"),
        ];
        for (edges, expected, example) in rows {
            let graph = graph(edges);
            let found = cycles(&graph);
            let shown: Vec<String> = found.iter().map(|group| group.iter().cloned().collect()).collect();
            assert_eq!(shown, expected, "{edges}");
            let first = found.first().map(|group| shortest(&graph, group).concat());
            assert_eq!(first.unwrap_or_default(), example, "{edges}");
        }
    }
}
