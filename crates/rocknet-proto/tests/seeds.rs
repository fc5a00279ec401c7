//! Replays the seeds of this crate's fuzz targets, so that errors found earlier cannot return unnoticed.

use std::fs;
use std::path::Path;

use rocknet_proto::fuzzing;

/// Function of a fuzz target.
type Target = fn(&[u8]);

/// Names and functions of the fuzz targets.
const TARGETS: &[(&str, Target)] = &[
    ("h1_request", fuzzing::h1_request),
    ("h1_body", fuzzing::h1_body),
    ("h1_response", fuzzing::h1_response),
    ("h2_frames", fuzzing::h2_frames),
    ("h2_connection", fuzzing::h2_connection),
    ("h3_request", fuzzing::h3_request),
    ("h3_unidirectional", fuzzing::h3_unidirectional),
    ("hpack", fuzzing::hpack),
    ("qpack", fuzzing::qpack),
    ("fastcgi", fuzzing::fastcgi),
    ("cgi_head", fuzzing::cgi_head),
    ("scgi", fuzzing::scgi),
    ("uwsgi", fuzzing::uwsgi),
    ("proxy_protocol", fuzzing::proxy_protocol),
];

#[test]
fn seeds_pass() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    for (name, target) in TARGETS {
        let mut count = 0;
        for entry in fs::read_dir(seeds.join(name)).expect("each target has seeds") {
            let path = entry.expect("the directory of seeds can be listed").path();
            let bytes = fs::read(&path).expect("a seed can be read");
            target(&bytes);
            // Every prefix of a seed is an input, too.
            for length in 0..bytes.len() {
                target(&bytes[..length]);
            }
            count += 1;
        }
        // Every target has at least eight seeds, so a smaller number means that files are missing.
        assert!(count >= 8, "{name} has only {count} seeds");
    }
}
