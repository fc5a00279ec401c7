//! Tests with hashes of other programs: openssl, PHP, Apache's htpasswd, and the reference implementation of argon2.

use super::*;

/// Asserts that the hash accepts this password and rejects others.
fn check(text: &str, password: &str) {
    let hash = PasswordHash::parse(text).unwrap_or_else(|error| panic!("{text} {error}"));
    assert!(verify(&hash, password), "{text}: {password:?}");
    for wrong in [
        format!("{password}x"),
        format!("x{password}"),
        "".to_owned(),
        "Password".to_owned(),
    ] {
        // Bcrypt ignores everything after 72 bytes.
        if wrong != password && !(text.starts_with("$2") && wrong.starts_with(password) && password.len() >= 72) {
            assert!(!verify(&hash, &wrong), "{text}: {wrong:?}");
        }
    }
}

/// Password of a test vector of the SHA-crypt specification. Its typing error is part of the vector.
const LONG: &str = "a very much longer text to encrypt.  This one even stretches over morethan one line.";

#[test]
fn hashes_of_argon2_are_verified() {
    check(
        "$argon2id$v=19$m=1024,t=2,p=2$WFdKMlNVekN4SDh4ckguLw$9WA9YbjoEtqoyxwE8cYHAzm4Vmkd+dJHYY8VCh+GTUQ",
        "päss",
    );
    check(
        "$argon2i$v=19$m=64,t=3,p=1$VUFpQ2JjdVBYWUJvT202Rg$HgDYl3BkgyEkpUq7+COci+CdZJ6MFO7FqnqgeVQr5E8",
        "p",
    );
    // The next two hashes are from the tests of github.com/P-H-C/phc-winner-argon2. The second has version 16 of
    // argon2.
    check(
        "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
        "password",
    );
    check(
        "$argon2i$m=65536,t=2,p=1$c29tZXNhbHQ$9sTbSlTio3Biev89thdrlKKiCaYsjjYVJxGAL3swxpQ",
        "password",
    );
}

#[test]
fn hashes_of_bcrypt_are_verified() {
    check(
        "$2y$04$R824y.S3Zs4v8v92dJwo2.jISAhiDep.BcUmDMJUggnYdJpeVglvS",
        "password",
    );
    check(
        "$2y$04$sVTNanLLHLC29oIGmOX.LutlIlN/L1jFKxdtI7ZwPovfliWIFgR1.",
        &"x".repeat(100),
    );
    check(
        "$2y$04$sVTNanLLHLC29oIGmOX.LutlIlN/L1jFKxdtI7ZwPovfliWIFgR1.",
        &"x".repeat(72),
    );
    check("$2y$05$iTHFVcrJFNJL6ZybaP.X7.JTb2KjJWQU0Zw6I4KPonnTZjVTFs8T.", "");
    // For every password that `Credentials` accepts, $2a$ and $2b$ give the same digest as $2y$.
    check(
        "$2a$04$R824y.S3Zs4v8v92dJwo2.jISAhiDep.BcUmDMJUggnYdJpeVglvS",
        "password",
    );
    check(
        "$2b$04$R824y.S3Zs4v8v92dJwo2.jISAhiDep.BcUmDMJUggnYdJpeVglvS",
        "password",
    );
}

#[test]
fn hashes_of_sha_crypt_are_verified() {
    check("$5$saltstring$OH4IDuTlsuTYPdED1gsuiRMyTAwNlRWyA6Xr3I4/dQ5", "password");
    check(
        "$5$rounds=10000$saltstringsaltst$vvdTL8VwZvf8mA8I3gN1qn2Mu90nA8aP/e/3BjAGGq8",
        &"p".repeat(100),
    );
    check(
        "$6$saltstring$adDbXsJjcDlq2662QPgd.tkSOVmnG9Tt3oXl4HR60SusC3AGjirnDenVZp3DGwLwqy6iYKCzannhaX9DR72nN1",
        "password",
    );
    check(
        "$6$rounds=1400$anotherlongsalts$POfYwTEok97VWcjxIiSOjiykti.o/pQs.wPvMxQ6Fm7I6IoYN3CmLs66x9t0oSwbtEW7o7UmJEiDwGqd8p4ur1",
        LONG,
    );
}

#[test]
fn hashes_of_apr1_are_verified() {
    check("$apr1$abcd$vOB3WbpdYWRuiO5Ne74Jb1", "password");
    check("$apr1$12345678$9pHAGSBYtlmFtid2xxNog0", "password");
    check("$apr1$12345678$sHuPAw7VA9xjRbJz7zKV7/", "");
    check("$apr1$xxxxxxxx$OvH6478i0sHACZ.pJ.YYR.", &"p".repeat(100));
    check("$apr1$a1$rLZw/6ct9qEV3UCM9zOWL1", "pässwörd with spaces");
}

#[test]
fn a_new_hash_matches_its_password() {
    let text = hash("correct horse", [7; SALT_BYTES]).unwrap();
    assert!(
        text.starts_with("$argon2id$v=19$m=19456,t=2,p=1$BwcHBwcHBwcHBwcHBwcHBw$"),
        "{text}"
    );
    check(&text, "correct horse");
    assert_ne!(hash("correct horse", [8; SALT_BYTES]).unwrap(), text);
}
