//! Anonymous files in memory (`memfd_create`).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{MemfdFlags, memfd_create};

pub fn file() -> io::Result<File> {
    Ok(memfd_create("rocknet-controller", MemfdFlags::CLOEXEC)?.into())
}

pub fn named<T>(image: &File, load: impl FnOnce(&Path) -> T) -> io::Result<T> {
    Ok(load(&name(image)))
}

/// Returns a name for an open file under which no other file was ever loaded. Descriptors are reused, and the loader
/// takes one name for one library. The number is encoded as repeated slashes and `/.`, which do not change the path.
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
    fn no_name_is_given_twice_and_each_leads_to_the_file() {
        let here = File::open("/proc/self/exe").expect("this program");
        let inode = here.metadata().expect("its state").ino();
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
