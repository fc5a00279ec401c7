//! Tests that no input makes the check panic or take long. The inputs are random texts, random edits and hostile texts.

use std::path::Path;

use proptest::prelude::*;
use rocknet_config::fuzzing::{config, config_text};

/// Replays the seeds of the fuzz target.
#[test]
fn fuzz_seeds_pass() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/config");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        config(&std::fs::read(entry.unwrap().path()).unwrap());
        seen += 1;
    }
    // A smaller number would mean that seeds were lost.
    assert!(seen >= 15, "{seen} seeds");
}

/// Returns the files that random edits start from.
fn seeds() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    let toml = paths
        .iter()
        .filter(|path| path.extension().is_some_and(|e| e == "toml"));
    toml.map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn random_texts_do_not_panic(text in "\\PC{0,200}") {
        let _ = config_text(&text);
    }

    // An edit removes `cut` characters of the file `seed` from the position `at`, and inserts `put` there.
    #[test]
    fn random_edits_do_not_panic(seed in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(),
                                 cut in 0_usize..20, put in prop_oneof!["\\PC{0,6}", "[\\[\\]{}=.,\"'#\n\\\\$*/:]{0,6}"]) {
        let seeds = seeds();
        let mut chars: Vec<char> = seed.get(&seeds).chars().collect();
        let from = at.index(chars.len() + 1);
        let to = (from + cut).min(chars.len());
        chars.splice(from..to, put.chars());
        let _ = config_text(&chars.into_iter().collect::<String>());
    }
}

#[test]
fn hostile_texts_are_checked_in_bounded_time() {
    let repetitions = 100_000;
    // (name, text, true if the text is accepted)
    let rows: Vec<(&str, String, bool)> = vec![
        ("lists in lists", "a = ".to_owned() + &"[".repeat(repetitions), false),
        (
            "tables in tables",
            "a = ".to_owned() + &"{a=".repeat(repetitions),
            false,
        ),
        (
            "a long dotted key",
            "a".to_owned() + &".a".repeat(repetitions) + " = 1",
            false,
        ),
        ("a long header", format!("[a{}]", ".a".repeat(repetitions)), false),
        (
            "dotted keys in tables in tables",
            "a = ".to_owned() + &"{a.a.a.a.a.a.a.a=".repeat(repetitions),
            false,
        ),
        // One level less than the maximum nesting of 16, each with a key of the maximum of 8 parts.
        (
            "almost the maximum depth",
            "[a.a.a.a.a.a.a.a]\na = ".to_owned() + &"{a.a.a.a.a.a.a.a=".repeat(15) + "1" + &"}".repeat(15) + "\n",
            false,
        ),
        ("many headers", "[site.\"a.test\"]\n".repeat(repetitions), false),
        ("many errors", "x\n".repeat(repetitions), false),
        ("one long line", format!("a = \"{}\"", "x".repeat(repetitions)), false),
        ("many quotes", "\"".repeat(repetitions), false),
        ("many closing brackets", "]".repeat(repetitions), false),
        ("many commas", format!("a = [{}]", ",".repeat(repetitions)), false),
        ("many unclosed lists", "a = [\n".repeat(1000), false),
        (
            "many variables",
            format!("include = \"{}\"", "${A}".repeat(repetitions)),
            false,
        ),
        (
            "many unknown keys",
            (0..repetitions).map(|i| format!("k{i} = 1\n")).collect(),
            false,
        ),
        (
            "a tower of arrays of tables",
            "[[a]]\n[[a.b]]\n".repeat(repetitions / 10),
            false,
        ),
        (
            "ten thousand sites",
            (0..10_000)
                .map(|i| format!("[site.\"s{i}.test\"]\nroot = \"/w\"\naliases = \"w.s{i}.test\"\n"))
                .collect(),
            true,
        ),
        (
            "ten thousand routes",
            "[site.\"a.test\"]\nroot = \"/w\"\n".to_owned()
                + &(0..10_000)
                    .map(|i| format!("[site.\"a.test\".route.\"/r{i}/*\"]\nbrowse = true\n"))
                    .collect::<String>(),
            true,
        ),
    ];
    for (name, text, good) in rows {
        let start = std::time::Instant::now();
        let got = config_text(&text);
        assert_eq!(got.is_ok(), good, "{name}: {:?}", got.map_err(|r| r.to_string()));
        // Even on a busy machine, each of these texts takes far less time than this. A quadratic algorithm would take
        // far more.
        assert!(start.elapsed().as_secs() < 60, "{name}: {:?}", start.elapsed());
        println!("{name}: {:?}", start.elapsed());
    }
}
