//! Private copies of controller libraries, as anonymous files in memory (`memfd_create`). A later change of the
//! library's file does not affect a copy.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{MemfdFlags, memfd_create};

/// Creates an empty file for a copy.
pub fn file() -> io::Result<File> {
    Ok(memfd_create("rocknet-controller", MemfdFlags::CLOEXEC)?.into())
}

/// Calls `load` with a name of `image` that was never used before. Never fails itself, unlike the function of
/// `portable.rs`.
pub fn named<T>(image: &File, load: impl FnOnce(&Path) -> T) -> io::Result<T> {
    Ok(load(&name(image)))
}

/// Returns a path to an open file, different at each call. `/proc/self/fd/N` is not enough, because descriptors are
/// reused: if the loader has seen a path before, it assumes that the path names the library loaded from it. A counter
/// is therefore encoded in the path by repeated slashes and `/.`, which do not change the file that the path leads to.
fn name(image: &File) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut name = String::from("/proc/self");
    for bit in 0..u32::BITS {
        name.push_str(if number >> bit & 1 == 1 { "//" } else { "/." });
    }
    name.push_str(&format!("/fd/{}", image.as_raw_fd()));
    name.into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn names_are_unique_and_lead_to_the_file() {
        let here = File::open("/proc/self/exe").expect("this program");
        let inode = here.metadata().expect("metadata").ino();
        let names: Vec<PathBuf> = (0..100).map(|_| name(&here)).collect();
        for (number, name) in names.iter().enumerate() {
            assert_eq!(
                std::fs::metadata(name).expect("a file").ino(),
                inode,
                "{}",
                name.display()
            );
            let text = name.as_os_str();
            assert!(
                names[..number].iter().all(|other| other.as_os_str() != text),
                "{}",
                name.display()
            );
        }
    }
}
