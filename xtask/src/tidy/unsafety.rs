//! Checks that `unsafe` code is only in the crates at the boundary to the system and to loaded libraries.

use super::token::Token;
use std::path::Path;

/// Crates that may contain `unsafe` code.
const CRATES: &[&str] = &["rocknet-io", "rocknet-controller"];

/// Files outside of [`CRATES`] that may contain `unsafe` code. A test that counts allocations implements an allocator,
/// which is an `unsafe` trait; a bare io_uring loop shares memory with the kernel; a TUN device is attached by an
/// `ioctl` for which rustix has no safe function.
const FILES: &[&str] = &[
    "crates/rocknet/tests/allocations.rs",
    "crates/rocknet-gui/tests/one_day.rs",
    "bench/floor/src/bin/floor-uring.rs",
    "xtask/src/bench/slow_network/tun.rs",
];

/// Returns the violations in the file `shown`.
pub fn check(shown: &str, code: &[Token<'_>]) -> Vec<String> {
    let path = Path::new(shown);
    let free = CRATES
        .iter()
        .any(|name| path.starts_with(Path::new("crates").join(name)));
    if free || FILES.contains(&shown) {
        return Vec::new();
    }
    let opens = |pair: &&[Token<'_>]| {
        let words = ["{", "fn", "impl", "trait", "extern"];
        pair[0].is("unsafe") && words.iter().any(|word| pair[1].is(word))
    };
    let violations = code.windows(2).filter(opens).map(|pair| {
        let line = pair[0].line;
        format!(
            "{shown}:{line}: `unsafe` code is allowed only in {}",
            CRATES.join(" and ")
        )
    });
    violations.collect()
}

#[cfg(test)]
mod tests {
    use super::super::token::tokens;
    use super::*;

    #[test]
    fn unsafe_code_elsewhere_is_a_violation() {
        let rows = [
            ("crates/rocknet/src/a.rs", "fn f() { unsafe { g() } }", 1),
            ("crates/rocknet/src/a.rs", "unsafe impl A for B {} unsafe fn f() {}", 2),
            ("crates/rocknet/src/a.rs", "// unsafe { } is far away", 0),
            ("crates/rocknet/src/a.rs", "f(\"unsafe {\")", 0),
            ("crates/rocknet-io/src/a.rs", "fn f() { unsafe { g() } }", 0),
            ("crates/rocknet/tests/allocations.rs", "fn f() { unsafe { g() } }", 0),
        ];
        for (path, text, expected) in rows {
            assert_eq!(check(path, &tokens(text)).len(), expected, "{path}: {text:?}");
        }
    }
}
