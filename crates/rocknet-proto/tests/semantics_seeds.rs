//! Replays the seeds of the fuzz targets for HTTP semantics.

use std::path::Path;

use rocknet_proto::semantics::fuzzing;

/// Name and function of a fuzz target.
type Target = (&'static str, fn(&[u8]));

#[test]
fn seeds_pass() {
    let targets: [Target; 3] = [
        ("target_path", fuzzing::target_path),
        ("range", fuzzing::range),
        ("field_value", fuzzing::field_value),
    ];
    for (name, check) in targets {
        let seeds = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../fuzz/seeds")
            .join(name);
        let mut count = 0;
        for seed in std::fs::read_dir(&seeds).expect("seeds are part of the source tree") {
            let bytes = std::fs::read(seed.unwrap().path()).unwrap();
            // Every prefix and suffix of a seed is an input, too.
            for cut in 0..=bytes.len() {
                check(&bytes[..cut]);
                check(&bytes[cut..]);
            }
            count += 1;
        }
        assert!(count > 0, "{name} has no seeds");
    }
}
