//! Tests that each keyword is listed only once, and that the advice names existing keys.

use super::*;
use crate::keys;

#[test]
fn keywords_are_unique_and_found_in_any_case() {
    let mut seen = std::collections::HashSet::new();
    for word in WORDS.iter().flat_map(|(words, _)| *words) {
        assert!(seen.insert(word.to_ascii_lowercase()), "{word} is listed twice");
    }
    for word in ["alias", "ALIAS", "allowoverride"] {
        assert!(find(word).is_some(), "{word}");
    }
    // Both are keys of RockNet. `aliases` begins with the keyword `alias`, but `find` compares whole words.
    assert_eq!((find("aliases"), find("root")), (None, None));
    assert_eq!(find_prefix("ssl_ciphers"), find_prefix("SSLCipherSuite"));
    // `ss` is shorter than `ssl_`. The length of a prefix can be an index inside the bytes of `é`.
    assert_eq!((find_prefix("ss"), find_prefix("é")), (None, None));
}

#[test]
fn advice_names_existing_keys() {
    let all = WORDS.iter().chain(PREFIXES).map(|(_, advice)| advice);
    for advice in all {
        let (Equivalent(text) | Unsupported(text) | Later(text)) = advice;
        for quoted in text.split('`').skip(1).step_by(2) {
            assert!(keys::all().any(|key| key.name == quoted), "`{quoted}` in: {text}");
        }
        // Help texts of findings have no full stop.
        assert!(!text.ends_with('.'), "{text}");
    }
}
