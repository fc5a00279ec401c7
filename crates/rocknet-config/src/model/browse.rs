//! Settings of folder listings.

use super::with_defaults::with_defaults;
use crate::choice::choice;

choice! {
    /// View in which a listing is shown if the request names none.
    #[derive(Copy)]
    pub enum ListingView {
        List = "list", "a table with sizes and times";
        Grid = "grid", "tiles with the pictures of the folder";
    }
    default List
}

with_defaults! {
    /// Listings of folders without an index file.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Browse {
        /// View that is shown if the request names none.
        pub view: ListingView = ListingView::default(),
        /// Shows the readme file of the folder below the list.
        pub readme: bool = true,
        /// Limits of folders that are sent as zip archives; `None`: no archives.
        pub zip: Option<ZipLimits> = None,
    }
}

with_defaults! {
    /// Zip archives of folders, and their limits.
    #[derive(Debug, Clone, PartialEq)]
    pub struct ZipLimits {
        /// Maximum number of files and folders in an archive.
        pub entries: usize = 10_000,
        /// Maximum number of folders inside each other, counted from the folder of the archive.
        pub depth: usize = 32,
        /// Maximum size of all files of an archive, in bytes.
        pub size: u64 = 4 << 30,
        /// Maximum number of archives that one client downloads at the same time.
        pub per_client: usize = 4,
        /// Compresses text. The length of the archive is then unknown until it is complete.
        pub compress: bool = false,
    }
}
