//! Body shared by the fuzz target and the test that replays its seeds.

use crate::cache_control::{Directives, MAX_SECONDS};

/// Parses any bytes as `Cache-Control` and as a targeted field, and checks that all times are within their limit.
/// No line may hide the directives of the next.
pub fn cache_control(value: &[u8]) {
    let all = Directives::parse([value]);
    check(&all);
    if let Some(targeted) = Directives::parse_targeted([value]) {
        check(&targeted);
    }
    assert!(
        Directives::parse([value, b"no-store"]).no_store,
        "a line of its own is always read"
    );
}

fn check(directives: &Directives) {
    let times = [
        directives.max_age,
        directives.s_maxage,
        directives.stale_while_revalidate,
        directives.stale_if_error,
        directives.min_fresh,
        directives.max_stale,
    ];
    assert!(times.into_iter().flatten().all(|seconds| seconds <= MAX_SECONDS));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_of_the_fuzz_target_pass() {
        let seeds = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/cache_control");
        let mut seen = 0;
        for entry in std::fs::read_dir(seeds).expect("the folder of the seeds") {
            cache_control(&std::fs::read(entry.expect("an entry").path()).expect("a seed"));
            seen += 1;
        }
        assert!(seen >= 8, "{seen} seeds");
    }
}
