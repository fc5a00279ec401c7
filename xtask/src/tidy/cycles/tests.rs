//! Tests of the rule about import cycles, on small crates with and without cycles.

use super::super::tree::sources;
use super::*;

const NONE: &[Known] = &[];

/// Returns the members of module cycles and of file cycles in a crate of `rows`.
fn found(rows: &[(&str, &str)]) -> (String, String) {
    let sources = sources(rows);
    let tree = Tree::new(&sources);
    let imports = imports(&tree);
    let members = |edges: Edges| {
        let graph: Graph = edges
            .iter()
            .map(|(from, to)| (from.clone(), to.keys().cloned().collect()))
            .collect();
        let groups = cycles(&graph).into_iter();
        let shown: Vec<String> = groups
            .map(|group| group.into_iter().collect::<Vec<_>>().join(" "))
            .collect();
        shown.join("; ")
    };
    (
        members(between_modules(&tree, &imports)),
        members(between_files(&tree, &imports)),
    )
}

#[test]
fn cycles_between_modules_are_found() {
    let rows: [(&str, &str, &str); 16] = [
        ("use crate::b::B;", "", ""),
        ("use crate::b::B;", "use crate::a::A;", "a b"),
        ("pub use crate::b::B;", "pub(crate) use super::a::A;", "a b"),
        ("use crate::{b::{B, C}};", "fn f(a: crate::a::A) {}", "a b"),
        ("use super::b;\nfn f() { b::g() }", "use crate::a::*;", "a b"),
        ("use crate::b;", "use crate::a;", "a b"),
        ("fn f() { super::b::g::<u8>() }", "impl crate::a::A for B {}", "a b"),
        (
            "macro_rules! m { () => { $crate::b::g() } }",
            "use self::super::a::A;",
            "a b",
        ),
        (
            "use crate::b::B; // use crate::c",
            "// use crate::a::A;\n/* crate::a::A */",
            "",
        ),
        (
            "use crate::b::B;",
            "/// [`crate::a::A`]\nfn f() { g(\"crate::a::A\") }",
            "",
        ),
        ("use crate::b::B;", "#[cfg(test)]\nmod tests { use crate::a::A; }", ""),
        ("use crate::b::B;", "#[cfg(test)]\nmod tests;", ""),
        ("use crate::b::B;", "#[cfg(test)]\nuse crate::a::A;", ""),
        ("use crate::b::B;", "mod inner { use super::super::a::A; }", "a b"),
        ("use crate::b::B;", "mod inner { use super::a::A; }", ""),
        ("use std::b::B;", "use b::B; use crate::a::A;", ""),
    ];
    for (a, b, expected) in rows {
        let tree = [
            ("lib.rs", "mod a;\nmod b;\npub use a::A;\npub use b::B;"),
            ("a.rs", a),
            ("b.rs", b),
            ("b/tests.rs", "use crate::a::A;"),
        ];
        let (modules, files) = found(&tree);
        assert_eq!(modules, expected, "{a} | {b}");
        assert_eq!(files, expected.replace('a', "a.rs").replace('b', "b.rs"), "{a} | {b}");
    }
}

#[test]
fn cycles_between_parents_and_children_are_found() {
    let rows = [
        // A type of the parent and a function of the child.
        ("mod c; fn f() { c::g() }", "use super::T;", "p.rs p/c.rs"),
        ("mod c; use c::G; fn f(g: G) {}", "use super::T;", "p.rs p/c.rs"),
        ("mod c; pub use c::G; pub struct T(G);", "use super::T;", "p.rs p/c.rs"),
        (
            "mod c; pub use c::*; pub struct T(G);",
            "use super::T; pub struct G;",
            "p.rs p/c.rs",
        ),
        ("mod c; fn f() { self::c::g() }", "fn f(t: super::T) {}", "p.rs p/c.rs"),
        // A parent that only re-exports names.
        ("mod c; pub use c::G; pub struct T;", "use super::T;", ""),
        (
            "mod c; pub use c::G; impl T { fn a(b: B) { b.G() } }",
            "use super::T;",
            "",
        ),
        ("mod c; pub use c::*; pub struct T;", "use super::T; pub struct G;", ""),
        ("mod c; pub struct T;", "use super::*;", ""),
        ("mod c; fn f() { c::g() }", "", ""),
        // A child that uses its sibling through the parent.
        (
            "mod c; mod d; pub use d::{D, T}; fn f() { c::g() }",
            "use super::D;",
            "",
        ),
        ("mod c; mod d; use d::{D, T}; fn f() { c::g() }", "use super::d::D;", ""),
        ("mod c; mod d; pub use d::*; fn f() { c::g() }", "use crate::p::D;", ""),
        (
            "mod c; mod d; pub use d::*; fn f() { c::g() }",
            "use crate::p::E;",
            "p.rs p/c.rs",
        ),
    ];
    for (p, c, expected) in rows {
        let tree = [
            ("lib.rs", "mod p;"),
            ("p.rs", p),
            ("p/c.rs", c),
            ("p/d.rs", "pub struct D; pub struct T;"),
        ];
        let mut text = found(&tree).1;
        if !p.contains("mod d;") {
            text = text.replace("p/d.rs", "");
        }
        assert_eq!(text, expected, "{p} | {c}");
    }
}

#[test]
fn imports_are_followed_through_reexports() {
    // Two re-exports lead to the file that defines the name. Their modules belong to the cycle, but their files do not.
    let tree = [
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "pub use crate::b::C as D;"),
        ("b.rs", "pub use crate::c::{self, C};"),
        ("c.rs", "use crate::a::D; pub struct C;"),
    ];
    assert_eq!(found(&tree), (String::from("a b c"), String::new()));
    let circle = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "pub use crate::b::X;"),
        ("b.rs", "pub use crate::a::X;"),
    ];
    assert_eq!(found(&circle).0, "a b");
}

#[test]
fn a_module_with_a_file_for_each_system_is_in_the_cycles_of_all_its_files() {
    let tree = [
        ("lib.rs", "mod a;"),
        (
            "a.rs",
            "#[path = \"a/x.rs\"] mod system; #[path = \"a/y.rs\"] mod system; pub struct T; fn f() { system::g() }",
        ),
        ("a/x.rs", "pub fn g() {}"),
        ("a/y.rs", "use super::T; pub fn g() {}"),
    ];
    assert_eq!(found(&tree).1, "a.rs a/y.rs");
}

#[test]
fn known_cycles_are_tolerated_and_differences_are_violations() {
    let tree = |extra: &'static str| {
        let b = format!("use crate::a::A; {extra}");
        sources(&[
            ("lib.rs", "mod a; mod b; mod c; mod d;"),
            ("a.rs", "use crate::b::B;"),
            ("b.rs", &b),
            ("c.rs", "use crate::d::D;"),
            ("d.rs", "use crate::c::C;"),
        ])
    };
    let rows: [(&str, &[&'static [&'static str]], &str); 7] = [
        ("", &[&["a", "b"], &["c", "d"]], ""),
        ("", &[&["a", "b", "c", "d"]], ""),
        ("", &[&["a", "b"]], "new members: c, d"),
        ("", &[&["a"], &["c", "d"]], "new members: b"),
        ("", &[&["a", "b", "e"], &["c", "d"]], "e is in no cycle"),
        (
            "use crate::c::C; mod x { use crate::c::C; }",
            &[&["a", "b"], &["c", "d"]],
            "",
        ),
        ("", &[&["a", "c"], &["b", "d"]], "two known cycles are joined"),
    ];
    for (extra, groups, expected) in rows {
        let sources = tree(extra);
        let tree = Tree::new(&sources);
        let known: Vec<Known> = groups
            .iter()
            .map(|members| Known {
                folder: "crates/c",
                members,
            })
            .collect();
        let violations = judge("crates/c", "modules", &between_modules(&tree, &imports(&tree)), &known).join("\n");
        assert_eq!(violations.is_empty(), expected.is_empty(), "{groups:?}: {violations}");
        assert!(violations.contains(expected), "{groups:?}: {violations}");
    }
}

#[test]
fn a_violation_shows_a_shortest_cycle_with_positions() {
    let sources = sources(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "use crate::b::B;\nuse crate::c::C;\n"),
        ("b.rs", "\nuse crate::c::C;"),
        ("c.rs", "//! A noun.\n\nfn f() { crate::a::g() }"),
        ("left.rs", ""),
    ]);
    let tree = Tree::new(&sources);
    let violations = judge("crates/c", "files", &between_files(&tree, &imports(&tree)), NONE);
    assert_eq!(
        violations,
        [
            "crates/c: 3 files import each other in a cycle (new members: a.rs, b.rs, c.rs), \
         such as a.rs -> c.rs (a.rs:2), c.rs -> a.rs (c.rs:3)"
        ]
    );
    // The cycle of modules, the cycle of files, and the stray file.
    assert_eq!(check("crates/c", &tree).len(), 3);
}
