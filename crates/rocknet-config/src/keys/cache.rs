//! Keys of `[cache]`.
//!
//! A minimum or maximum without a comment only rejects values that are surely mistakes.

use super::target::Target;
use super::{Key, Kind, Section};
use crate::binding::field;

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "max_file",
        &[Section::Cache],
        // Above 16 MiB, sendfile is faster than a copy in memory.
        Kind::Size {
            min: 0,
            max: 16 * 1024 * 1024,
        },
        "Maximum size of a file that is cached in memory. Larger files are sent from the page cache of the kernel.",
    )
    .sets(&[Target::Cache(field!(max_file))])
    .example("max_file = \"100KiB\""),
    Key::new(
        "memory",
        &[Section::Cache],
        Kind::Size { min: 0, max: 1 << 44 },
        "Maximum memory of the cache: file content, rendered response heads, paths and tables. Entries that have not \
         been used recently are evicted first. With `0`, no file content is cached.",
    )
    .sets(&[Target::Cache(field!(memory))])
    .example("memory = \"1GiB\"")
    .foreign_names(&["open_file_cache", "CacheSize"]),
    Key::new(
        "responses",
        &[Section::Cache],
        Kind::Size { min: 0, max: 1 << 44 },
        "Maximum memory of the responses that sites and routes with `cache` store. Responses that have not been used \
         recently are dropped first. With `0`, no response is stored.",
    )
    .sets(&[Target::Cache(field!(responses))])
    .example("responses = \"1GiB\"")
    .foreign_names(&["proxy_cache_path", "fastcgi_cache_path"]),
];
