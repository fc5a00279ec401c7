//! The seeds of the fuzz targets over semantics, run through the same laws.

use std::path::Path;

use rocknet_proto::semantics::fuzzing;

/// A target by name, and what must hold for any bytes it is given.
type Target = (&'static str, fn(&[u8]));

#[test]
fn seeds_keep_the_laws() {
    let targets: [Target; 2] = [("target_path", fuzzing::target_path), ("range", fuzzing::range)];
    for (target, law) in targets {
        let seeds = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../fuzz/seeds")
            .join(target);
        let mut count = 0;
        for seed in std::fs::read_dir(&seeds).expect("seeds are part of the source tree") {
            law(&std::fs::read(seed.unwrap().path()).unwrap());
            count += 1;
        }
        assert!(count > 0, "{target} has seeds");
    }
}
