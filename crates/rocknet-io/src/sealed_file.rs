//! Unnamed files whose contents are passed to other programs by descriptor. They are read-only where the system can
//! seal files.

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

/// Creates a file with this content, positioned at the start. On systems that can seal files, the content is final.
///
/// # Errors
///
/// Fails if the file cannot be created or written.
pub fn create(content: &[u8]) -> io::Result<File> {
    let mut file = system::create()?;
    file.write_all(content)?;
    file.rewind()?;
    system::seal(&file)?;
    Ok(file)
}

/// Returns the path by which a process can open the file. The process must have this descriptor under the same number.
pub fn path(file: BorrowedFd<'_>) -> PathBuf {
    system::path(file.as_raw_fd())
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_file_can_be_read_by_descriptor_and_by_path() {
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
    fn receivers_cannot_change_the_file() {
        let mut file = create(b"content").unwrap();
        assert!(file.write_all(b"other").is_err());
        assert!(file.set_len(0).is_err());
        assert!(file.set_len(100).is_err());
        // Opening the path may return another descriptor for writing, but the seals also apply to that descriptor.
        if let Ok(mut again) = File::options().write(true).open(path(file.as_fd())) {
            assert!(again.write_all(b"other").is_err());
        }
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "content");
    }
}
