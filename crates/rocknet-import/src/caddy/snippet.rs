//! Inserts snippets with their arguments in the place of `import`.

use std::collections::HashMap;

use crate::directive::Directive;
use crate::include::size;

/// Maximum of `count` in [`insert`]. Without this limit, snippets that import each other several times could multiply a
/// short file.
const MAX_DIRECTIVES: usize = 100_000;

/// Maximum depth of snippets in snippets, as for included files. It also ends a snippet that imports itself.
const MAX_DEPTH: usize = 8;

/// Replaces `import NAME` by the directives of the snippet, and `invoke NAME` by those of the named route. A directive
/// with a block, with an unknown name, or beyond the limits is kept. `depth`: number of snippets that contain the
/// directives. `count`: number of directives that have been inserted or read up to now. An inserted directive counts
/// twice: when it is inserted, and when it is read to find more snippets in it.
pub(super) fn insert(
    directives: Vec<Directive>,
    snippets: &HashMap<&str, &[Directive]>,
    depth: usize,
    count: &mut usize,
) -> Vec<Directive> {
    let mut all = Vec::with_capacity(directives.len());
    for mut directive in directives {
        *count += 1;
        let snippet = match (directive.name.as_str(), &directive.block) {
            ("import", None) => snippets.get(directive.argument(0)),
            ("invoke", None) => snippets.get(format!("&({})", directive.argument(0)).as_str()),
            _ => None,
        };
        let size = snippet.map_or(0, |snippet| size(snippet));
        match snippet {
            Some(snippet) if *count + size <= MAX_DIRECTIVES && depth < MAX_DEPTH => {
                *count += size;
                let arguments = directive.arguments.get(1..).unwrap_or_default();
                let inner = with_arguments(snippet.to_vec(), arguments);
                all.extend(insert(inner, snippets, depth + 1, count));
            }
            _ => {
                if let Some(block) = directive.block.take() {
                    directive.block = Some(insert(block, snippets, depth, count));
                }
                all.push(directive);
            }
        }
    }
    all
}

/// Maximum length of a word after its placeholders are replaced, in bytes. A replacement that would exceed it is left
/// out, because nested snippets could multiply the length of a word at each level.
const MAX_WORD: usize = 4096;

/// Replaces placeholders such as `{args[0]}` by the arguments of `import`, and `{args[:]}` by all arguments.
pub(super) fn with_arguments(directives: Vec<Directive>, arguments: &[String]) -> Vec<Directive> {
    let replace = |word: String| {
        if !word.contains("{args") {
            return word;
        }
        arguments.iter().enumerate().fold(word, |word, (at, argument)| {
            let replaced = word
                .replace(&format!("{{args[{at}]}}"), argument)
                .replace(&format!("{{args.{at}}}"), argument);
            if replaced.len() <= MAX_WORD { replaced } else { word }
        })
    };
    let adapt = |mut directive: Directive| {
        directive.name = replace(directive.name);
        let words = std::mem::take(&mut directive.arguments).into_iter();
        let words = words.flat_map(|word| match word.as_str() {
            "{args[:]}" | "{args.*}" => arguments.to_vec(),
            _ => vec![replace(word)],
        });
        directive.arguments = words.collect();
        directive.block = directive.block.map(|block| with_arguments(block, arguments));
        directive
    };
    directives.into_iter().map(adapt).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snippets_are_inserted_with_arguments() {
        let text =
            "(a) {\nroot * {args[0]}\nimport b x\n}\n(b) {\nheader X {args.0} {args[1]}\n}\n(c) {\nimport c\n}\n";
        let tree = super::super::read(text).unwrap();
        let name = |directive: &Directive| directive.name.trim_matches(['(', ')']).to_owned();
        let names: Vec<String> = tree.iter().map(name).collect();
        let snippets = names
            .iter()
            .map(String::as_str)
            .zip(tree.iter().map(Directive::children))
            .collect();
        let site = super::super::read("import a /srv\nimport none\n").unwrap();
        let inserted = insert(site, &snippets, 0, &mut 0);
        let texts: Vec<String> = inserted.iter().map(Directive::text).collect();
        assert_eq!(texts, ["root * /srv", "header X x {args[1]}", "import none"]);
        // A snippet that contains itself ends at the maximum depth.
        let site = super::super::read("import c\n").unwrap();
        assert_eq!(insert(site, &snippets, 0, &mut 0).len(), 1);
    }
}
