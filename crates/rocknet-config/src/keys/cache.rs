//! Keys of `[cache]`: files kept in memory.

use super::target::Target;
use super::{Key, Kind, Section};
use crate::binding::field;

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "max_file",
        &[Section::Cache],
        // Past 16 MiB sendfile wins over any copy in memory.
        Kind::Size {
            min: 0,
            max: 16 * 1024 * 1024,
        },
        "Largest file kept in memory. Larger ones are sent from the kernel's own cache.",
    )
    .sets(&[Target::Cache(field!(max_file))])
    .example("max_file = \"100KiB\""),
    Key::new(
        "memory",
        &[Section::Cache],
        Kind::Size { min: 0, max: 1 << 44 },
        "Memory of all that is kept: content, rendered heads, paths, and tables. What was not asked for longest goes first. `0` keeps no content.",
    )
    .sets(&[Target::Cache(field!(memory))])
    .example("memory = \"1GiB\"")
    .elsewhere(&["open_file_cache", "CacheSize"]),
];
