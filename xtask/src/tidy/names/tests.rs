//! Tests of the rule of type names, on crates built from rows of text.

use super::super::tree::sources;
use super::*;

const ONE: &[Listed] = &[Listed {
    file: "crates/c",
    name: "State",
    reason: "of the past",
}];

fn check(rows: &[(&str, &str)], listed: &'static [Listed]) -> Vec<String> {
    let sources = sources(rows);
    let mut names = Names::with(listed);
    let mut found = names.check("crates/c", &Tree::new(&sources));
    found.extend(names.exceptions.left("rule"));
    found
}

#[test]
fn public_types_must_not_share_a_name() {
    let rows = [
        ("pub struct A;", "pub struct A;", 1),
        ("pub struct A;", "pub enum B {}", 0),
        ("pub struct A;", "struct A;", 0),
        ("pub struct A;", "pub(crate) struct A;", 0),
        ("pub struct A;", "pub unsafe trait A {}", 1),
        ("pub struct A;", "fn f() { pub struct A; }", 0),
        ("pub struct A;", "impl B for C { pub type A = u8; }", 0),
        ("pub struct A;", "#[cfg(test)] mod tests { pub struct A; }", 0),
        ("pub struct PoolState;", "pub type PoolState = u8;", 1),
    ];
    for (one, other, expected) in rows {
        let found = check(&[("lib.rs", "mod a; mod b;"), ("a.rs", one), ("b.rs", other)], &[]);
        assert_eq!(found.len(), expected, "{one} {other}: {found:?}");
    }
}

#[test]
fn a_short_name_may_be_in_two_modules() {
    let rows: [(&str, &str, &str, &'static [Listed], usize); 6] = [
        ("struct State;", "struct State;", "", &[], 0),
        ("struct State;", "enum State {}", "trait State {}", &[], 1),
        ("struct PoolState;", "struct PoolState;", "struct PoolState;", &[], 0),
        ("struct State;", "struct State;", "fn f() { struct State; }", &[], 0),
        ("struct State;", "struct State;", "struct State;", ONE, 0),
        ("struct State;", "", "", ONE, 1),
    ];
    for (a, b, c, listed, expected) in rows {
        let rows = [
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", a),
            ("b.rs", b),
            ("c.rs", c),
        ];
        let found = check(&rows, listed);
        assert_eq!(found.len(), expected, "{a} {b} {c}: {found:?}");
    }
}

#[test]
fn types_of_siblings_may_share_names() {
    let rows = [
        ("lib.rs", "mod h1; mod h2; mod file;"),
        ("h1.rs", "mod a; pub struct Head; pub struct State;"),
        ("h1/a.rs", "struct Flow;"),
        ("h2.rs", "mod b; mod c; pub struct Head; struct Flow;"),
        ("h2/b.rs", "pub struct State; struct Flow;"),
        ("h2/c.rs", "struct Flow;"),
        (
            "file.rs",
            "#[cfg(unix)] #[path = \"file/unix.rs\"] mod system; #[cfg(windows)] #[path = \"file/windows.rs\"] mod system; mod other;",
        ),
        ("file/unix.rs", "pub struct Handle;"),
        ("file/windows.rs", "pub struct Handle;"),
        ("file/other.rs", "pub struct Handle;"),
    ];
    let found = check(&rows, &[]);
    // `Head` and `State` are in siblings. But three modules of `h2` declare `Flow`, and two modules of `file` declare
    // `Handle`.
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].starts_with("type Flow: 3 modules use this short name"),
        "{found:?}"
    );
    assert!(found[1].starts_with("type Handle: 2 public types"), "{found:?}");
}
