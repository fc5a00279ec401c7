//! The table of filters. Each filter has a file of its own.

pub mod encode;

use crate::files::encode::EncoderLimit;
use crate::headers::Headers;
use rocknet_handler::bandwidth::Bandwidth;
use rocknet_handler::cors::CorsFields;
use rocknet_handler::filter::{Filter, Filters};
use rocknet_handler::harden::Harden;

/// Creates the filters of a server, sorted by phase. A new filter is added by one line here. `files` limits the
/// number of files that are encoded at the same time while they are sent.
pub fn all(files: &EncoderLimit) -> Filters {
    let mut all: Vec<Box<dyn Filter>> = vec![
        Box::new(encode::Encode::new(files.clone())),
        Box::new(CorsFields::default()),
        Box::new(Harden),
        Box::new(Headers),
        Box::new(Bandwidth),
    ];
    all.sort_by_key(|filter| filter.phase());
    all.into()
}
