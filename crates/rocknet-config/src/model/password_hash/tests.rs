//! Tests of hashes of every scheme, valid and invalid.

use super::*;

/// Returns a bcrypt hash with this cost. Its salt and digest have the right lengths, but no password matches them.
fn bcrypt_text(cost: &str) -> String {
    format!("$2y${cost}${}", "a".repeat(53))
}

/// Returns a SHA-crypt hash. `id`: 5 for SHA-256, 6 for SHA-512. `rounds`: `rounds=N$`, or empty for the default.
fn sha(id: u32, rounds: &str) -> String {
    format!("${id}${rounds}saltstring${}", "x".repeat(if id == 5 { 43 } else { 86 }))
}

/// Returns an Argon2id hash with these parameters, such as `m=65536,t=2,p=1`, and a digest of 32 bytes.
fn argon(parameters: &str) -> String {
    format!("$argon2id$v=19${parameters}$c29tZXNhbHQ${}", "A".repeat(43))
}

#[test]
fn hashes_of_every_scheme_are_parsed() {
    let rows = [
        (
            argon("m=65536,t=2,p=1"),
            HashScheme::Argon2 {
                variant: Argon2Variant::Id,
                version: 0x13,
                memory: 65_536,
                passes: 2,
                lanes: 1,
            },
        ),
        (
            format!("$argon2i$m=8,t=1,p=1$c29tZXNhbHQ${}", "A".repeat(22)),
            HashScheme::Argon2 {
                variant: Argon2Variant::I,
                version: 0x10,
                memory: 8,
                passes: 1,
                lanes: 1,
            },
        ),
        (bcrypt_text("05"), HashScheme::Bcrypt { cost: 5 }),
        (bcrypt_text("14"), HashScheme::Bcrypt { cost: 14 }),
        (sha(5, ""), HashScheme::Sha256Crypt { rounds: 5_000 }),
        (sha(6, "rounds=500000$"), HashScheme::Sha512Crypt { rounds: 500_000 }),
        (format!("$apr1$salt$./{}", "z".repeat(20)), HashScheme::Apr1),
    ];
    for (text, scheme) in rows {
        let hash = PasswordHash::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!((hash.scheme(), hash.text()), (scheme, text.as_str()));
        assert!(!format!("{hash:?}").contains("salt"), "{hash:?}");
    }
}

#[test]
fn other_texts_are_refused() {
    for text in [
        "secret",
        "{PLAIN}secret",
        "pa$$word",
        "$",
        "$$",
        "$9$x$y",
        "hash with spaces",
        "pässword",
        &"x".repeat(MAX_TEXT_BYTES + 1),
    ] {
        assert_eq!(PasswordHash::parse(text), Err(HashError::PlainText), "{text}");
    }
    assert_eq!(PasswordHash::parse(""), Err(HashError::Empty));
    for text in [
        "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=",
        "$1$salt$x",
        "$y$j9T$x$y",
        "$2x$05$x",
        "$7$x",
    ] {
        assert!(
            matches!(PasswordHash::parse(text), Err(HashError::Refused(_))),
            "{text}"
        );
    }
}

#[test]
fn malformed_hashes_are_refused() {
    let whole = [
        argon("m=65536,t=2,p=1"),
        bcrypt_text("10"),
        sha(5, ""),
        sha(6, "rounds=5000$"),
        format!("$apr1$salt${}", "z".repeat(22)),
    ];
    for text in whole {
        let cut = &text[..text.len() - 1];
        assert!(
            matches!(PasswordHash::parse(cut), Err(HashError::Malformed(_))),
            "{cut}"
        );
        let long = format!("{text}.");
        assert!(
            matches!(PasswordHash::parse(&long), Err(HashError::Malformed(_))),
            "{long}"
        );
    }
    for text in [
        "$argon2id$v=20$m=65536,t=2,p=1$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAA".to_owned(),
        argon("t=2,m=65536,p=1"),
        argon("m=65536,t=2,p=1,keyid=AAAA"),
        argon("m=65536,t=0,p=1"),
        // Argon2 needs at least 8 KiB of memory for each lane.
        argon("m=8,t=1,p=2"),
        argon("m=+8,t=1,p=1"),
        argon("m=99999999999,t=1,p=1"),
        // Unused bits of the last Base64 digit are set.
        "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAB".to_owned(),
        bcrypt_text("3"),
        bcrypt_text("03"),
        sha(5, "rounds=999$"),
        sha(5, "rounds=$"),
        format!("$apr1$${}", "z".repeat(22)),
        format!("$apr1$123456789${}", "z".repeat(22)),
    ] {
        assert!(
            matches!(PasswordHash::parse(&text), Err(HashError::Malformed(_))),
            "{text}"
        );
    }
}

#[test]
fn costs_are_bounded() {
    // (hash, true if its cost is accepted). The bounds are a bcrypt cost of 14 and 500,000 rounds of SHA-crypt; for
    // Argon2, 256 MiB of memory (262,144 KiB), four times as much in all passes together, and 16 lanes.
    for (text, good) in [
        (bcrypt_text("14"), true),
        (bcrypt_text("15"), false),
        (bcrypt_text("31"), false),
        (sha(6, "rounds=500001$"), false),
        (sha(6, "rounds=4294967295$"), false),
        (argon("m=262144,t=4,p=1"), true),
        (argon("m=262145,t=1,p=1"), false),
        (argon("m=4194304,t=1,p=1"), false),
        (argon("m=262144,t=5,p=1"), false),
        (argon("m=8,t=131073,p=1"), false),
        (argon("m=1024,t=1,p=17"), false),
    ] {
        match PasswordHash::parse(&text) {
            Ok(_) => assert!(good, "{text}"),
            Err(error) => assert!(!good && matches!(error, HashError::TooCostly(_)), "{text}: {error}"),
        }
    }
}
