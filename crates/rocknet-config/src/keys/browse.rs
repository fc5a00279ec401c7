//! Keys of folder listings.
//!
//! A minimum or maximum without a comment only rejects values that are surely mistakes.

use super::target::Target;
use super::{Key, Kind, Section};
use crate::binding::{Rendered, SettingGroup, bound, field};
use crate::choice::Choice;
use crate::model::ListingView;
use crate::value::settings;

/// Sections of the keys that sites and routes accept.
const BOTH: &[Section] = &[Section::Site, Section::Route];

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "browse",
        BOTH,
        Kind::Either(&[Kind::Boolean, Kind::Table(Section::Browse)]),
        "Lists the files of folders without an index file, as a page, or as JSON for programs that prefer it (`Accept: \
         application/json`). Names that begin with a dot are left out. The page has a box that filters the names, and \
         links to the views, which also work without scripts: `?filter=TEXT`, `?view=grid`, `?sort=name|size|time` and \
         `?order=asc|desc`. A table turns listings on and accepts more settings. In a route, `false` turns them off.",
    )
    .group(SettingGroup::Files)
    .sets(&[Target::Settings(bound!(
        read: settings::browse,
        render: |settings, _| Rendered::Value(settings.browse.is_some().to_string()),
        nested: |settings, rows| {
            if let Some(browse) = &settings.browse {
                rows.table(Section::Browse, "browse", browse);
            }
        }
    ))])
    .example("browse = true")
    .foreign_names(&[
        "autoindex",
        "dirlisting",
        "file.dirlisting",
        "dir-listing.activate",
        "Indexes",
        "list",
    ]),
    Key::new(
        "view",
        &[Section::Browse],
        Kind::Choice(ListingView::WORDS),
        "View that is shown if the address names none. The grid shows the original pictures of the folder, not smaller \
         copies; browsers load those that come into view.",
    )
    .sets(&[Target::Browse(field!(view))])
    .example("view = \"grid\""),
    Key::new(
        "readme",
        &[Section::Browse],
        Kind::Boolean,
        "Shows the first 64 KiB of `README.md`, `README.txt` or `README` below the list, in this order of preference \
         and without regard to case. Markdown is rendered; HTML in it is shown as text.",
    )
    .sets(&[Target::Browse(field!(readme))])
    .example("readme = false")
    .foreign_names(&["ReadmeName", "dir-listing.show-readme", "show-readme"]),
    Key::new(
        "zip",
        &[Section::Browse],
        Kind::Either(&[Kind::Boolean, Kind::Table(Section::Zip)]),
        "Sends a listed folder as a zip archive if the address ends in `?zip`; the page has a link to it. The archive \
         contains the files that can be reached through the listings of the folder and its subfolders. Hidden files, \
         scripts, and files that a rule or redirect applies to are left out; so are the files of a route that has \
         another folder, other access restrictions, or no archives. Of a subfolder with an index file, the archive \
         contains only that file. It is made while it is sent, without files on disk. A table turns archives on and \
         accepts their limits. A server makes at most 32 archives at the same time, and responds to further requests \
         with 503.",
    )
    .sets(&[Target::Browse(bound!(
        render: |browse, _| Rendered::Value(browse.zip.is_some().to_string()),
        nested: |browse, rows| {
            if let Some(zip) = &browse.zip {
                rows.table(Section::Zip, "zip", zip);
            }
        }
    ))])
    .example("zip = true")
    .foreign_names(&["mod_zip", "archive"]),
    Key::new(
        "entries",
        &[Section::Zip],
        // The list of entries is in memory while an archive is sent.
        Kind::Integer { min: 1, max: 100_000 },
        "Maximum number of files and folders in an archive. A request for a larger folder gets 403.",
    )
    .sets(&[Target::ZipLimits(field!(entries))])
    .example("entries = 2000"),
    Key::new(
        "depth",
        &[Section::Zip],
        Kind::Integer { min: 1, max: 128 },
        "Maximum nesting depth of the folders in an archive. The listed folder itself does not count: with 1, its \
         subfolders must not contain folders. A request for a deeper folder gets 403.",
    )
    .sets(&[Target::ZipLimits(field!(depth))])
    .example("depth = 8"),
    Key::new(
        "size",
        &[Section::Zip],
        Kind::Size { min: 1, max: 1 << 50 },
        "Maximum size of all files of an archive together. A request for a larger folder gets 403. Archives and files \
         above 4 GiB use the 64-bit form (zip64).",
    )
    .sets(&[Target::ZipLimits(field!(size))])
    .example("size = \"50GiB\""),
    Key::new(
        "per_client",
        &[Section::Zip],
        Kind::Integer { min: 1, max: 32 },
        "Maximum number of archives that one client downloads at the same time. A further request gets 429. An IPv6 \
         network of 64 bits counts as one client. Clients of a Unix socket without a known address are not limited.",
    )
    .sets(&[Target::ZipLimits(field!(per_client))])
    .example("per_client = 8"),
    Key::new(
        "compress",
        &[Section::Zip],
        Kind::Boolean,
        "Compresses files whose type is text. By default files are stored, so that the archive costs little CPU time \
         and the browser knows its length.",
    )
    .sets(&[Target::ZipLimits(field!(compress))])
    .example("compress = true"),
];
