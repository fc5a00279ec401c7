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
    Key::new(
        "responses_disk",
        &[Section::Cache],
        Kind::Size { min: 0, max: 1 << 46 },
        "Maximum size of the responses on disk. Responses that sites and routes with `cache` store are also written \
         there, and are sent again after a restart. Responses that have not been used since they were written are \
         dropped first, beginning with the oldest. Each response takes about 70 bytes of memory. With `0`, no response \
         is written to disk.",
    )
    .sets(&[Target::Cache(field!(responses_disk))])
    .example("responses_disk = \"10GiB\"")
    .foreign_names(&["proxy_cache_path", "fastcgi_cache_path", "CacheRoot", "cache_dir"]),
    Key::new(
        "responses_folder",
        &[Section::Cache],
        Kind::Text("folder"),
        "Folder below which the responses on disk are stored, in a folder `responses` that only the server's user \
         can read. It must exist and be writable by this user. Without the key: the state folder.",
    )
    .example("responses_folder = \"/var/cache/rocknet\"")
    .foreign_names(&["proxy_cache_path", "fastcgi_cache_path", "CacheRoot", "cache_dir"]),
];
