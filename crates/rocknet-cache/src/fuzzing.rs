//! Bodies shared by the fuzz targets and the test that replays their seeds.

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

/// Parses any bytes as a record of the responses on disk, and checks that accepted values can be written and read
/// again.
pub fn disk_record(bytes: &[u8]) {
    crate::disk::decode_any(bytes);
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
    fn seeds_of_the_fuzz_targets_pass() {
        for (target, run, least) in [
            ("cache_control", cache_control as fn(&[u8]), 8),
            ("disk_record", disk_record, 6),
        ] {
            let seeds = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../../fuzz/seeds")
                .join(target);
            let mut seen = 0;
            for entry in std::fs::read_dir(seeds).expect("the folder of the seeds") {
                run(&std::fs::read(entry.expect("an entry").path()).expect("a seed"));
                seen += 1;
            }
            assert!(seen >= least, "{target}: {seen} seeds");
        }
    }
}
