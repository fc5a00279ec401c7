//! Tables of cases, in groups.

mod bodies;
mod control;
mod fields;
mod frames;
mod messages;
mod qpack;
mod streams;

use crate::case::Case;

/// Returns the groups with their names.
pub fn groups() -> Vec<(&'static str, Vec<Case>)> {
    vec![
        ("valid messages", messages::cases()),
        ("fields", fields::cases()),
        ("bodies and trailers", bodies::cases()),
        ("frames of requests", frames::cases()),
        ("control stream", control::cases()),
        ("unidirectional streams", streams::cases()),
        ("QPACK", qpack::cases()),
    ]
}
