//! Files without a name: what they hold is read by the programs that get their descriptors.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::PathBuf;

#[cfg(target_os = "linux")]
#[path = "sealed_file/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "sealed_file/portable.rs"]
mod system;

/// Creates a file that holds `content` and is read from its beginning. Nobody can change it, where the system can seal files.
pub fn create(content: &[u8]) -> io::Result<File> {
    let mut file = system::create()?;
    file.write_all(content)?;
    file.rewind()?;
    system::seal(&file)?;
    Ok(file)
}

/// Path by which a process opens a descriptor that it has.
pub fn path(file: BorrowedFd<'_>) -> PathBuf {
    system::path(file.as_raw_fd())
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_file_is_read_by_its_descriptor_and_by_its_path() {
        let mut file = create(b"content").unwrap();
        let mut text = String::new();
        File::open(path(file.as_fd()))
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, "content");
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "contentcontent");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn nobody_who_gets_a_file_can_change_it() {
        let mut file = create(b"content").unwrap();
        assert!(file.write_all(b"other").is_err());
        assert!(file.set_len(0).is_err());
        assert!(file.set_len(100).is_err());
        // By its path the same file, opened anew.
        if let Ok(mut again) = File::options().write(true).open(path(file.as_fd())) {
            assert!(again.write_all(b"other").is_err());
        }
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "content");
    }
}
