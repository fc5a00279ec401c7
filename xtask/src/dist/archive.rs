//! Archives whose bytes depend on their contents alone: tar, gzip, and the `ar` format of Debian packages.

use crate::Failure;
use aws_lc_rs::digest::{SHA256, digest};
use flate2::{Compression, GzBuilder};
use md5::Digest;
use std::collections::BTreeMap;
use std::io::Write;
use tar::{Builder, EntryType, Header};

/// Files of an archive by path, without a leading slash. They are sorted by path.
#[derive(Clone, Default)]
pub struct Files(BTreeMap<String, File>);

/// A file with its permissions. Its owner is root.
#[derive(Clone)]
pub struct File {
    pub mode: u32,
    pub bytes: Vec<u8>,
}

impl Files {
    pub fn add(&mut self, path: impl Into<String>, mode: u32, bytes: impl Into<Vec<u8>>) {
        let bytes = bytes.into();
        self.0.insert(path.into(), File { mode, bytes });
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &File)> {
        self.0.iter().map(|(path, file)| (path.as_str(), file))
    }

    /// Returns the sum of the file sizes in KiB, each rounded up, as Debian counts an installed package.
    pub fn kib(&self) -> u64 {
        self.0
            .values()
            .map(|file| (file.bytes.len() as u64).div_ceil(1024))
            .sum()
    }
}

/// Returns a tar archive compressed by gzip. Each path gets `prefix`, and each folder an entry before its files.
/// `time`: modification time of all entries, in seconds since 1970.
pub fn tar_gz(files: &Files, prefix: &str, time: u64) -> Result<Vec<u8>, Failure> {
    let mut builder = Builder::new(GzBuilder::new().write(Vec::new(), Compression::best()));
    let mut folders = Vec::new();
    for (path, file) in files.iter() {
        let path = format!("{prefix}{path}");
        for (end, _) in path.match_indices('/') {
            let folder = &path[..=end];
            if !folders.iter().any(|known| known == folder) {
                append(&mut builder, folder, EntryType::Directory, 0o755, &[], time)?;
                folders.push(folder.to_owned());
            }
        }
        append(&mut builder, &path, EntryType::Regular, file.mode, &file.bytes, time)?;
    }
    Ok(builder.into_inner()?.finish()?)
}

fn append(
    builder: &mut Builder<impl Write>,
    path: &str,
    kind: EntryType,
    mode: u32,
    bytes: &[u8],
    time: u64,
) -> Result<(), Failure> {
    let mut header = Header::new_gnu();
    // `set_path` drops the leading `./` that Debian packages have, so the name is written directly.
    let name = &mut header.as_old_mut().name;
    if path.len() >= name.len() {
        return Err(format!("{path}: the path is too long for a tar header").into());
    }
    name[..path.len()].copy_from_slice(path.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_username("root")?;
    header.set_groupname("root")?;
    header.set_mtime(time);
    header.set_size(bytes.len() as u64);
    header.set_cksum();
    builder.append(&header, bytes)?;
    Ok(())
}

/// Compresses a single file by gzip, without a name or a time.
pub fn gzip(bytes: &[u8]) -> Result<Vec<u8>, Failure> {
    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

/// Returns an `ar` archive in the form that `deb(5)` requires: names without a slash, members at even offsets.
pub fn ar(members: &[(&str, Vec<u8>)], time: u64) -> Vec<u8> {
    let mut archive = b"!<arch>\n".to_vec();
    for (name, bytes) in members {
        let header = format!(
            "{name:<16}{time:<12}{:<6}{:<6}{:<8}{:<10}`\n",
            0,
            0,
            "100644",
            bytes.len()
        );
        archive.extend_from_slice(header.as_bytes());
        archive.extend_from_slice(bytes);
        if bytes.len() % 2 == 1 {
            archive.push(b'\n');
        }
    }
    archive
}

/// Returns the SHA-256 digest in hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    hexadecimal(digest(&SHA256, bytes).as_ref())
}

/// Returns the MD5 digest in hexadecimal digits. dpkg knows no other; it finds damage, not attacks.
pub fn md5(bytes: &[u8]) -> String {
    hexadecimal(&md5::Md5::digest(bytes))
}

fn hexadecimal(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_tar_archive_has_sorted_entries_of_root_with_one_time() {
        let mut files = Files::default();
        files.add("usr/bin/b", 0o755, "b");
        files.add("etc/a.toml", 0o644, "a = 1");
        let packed = tar_gz(&files, "./", 1_700_000_000).unwrap();
        assert_eq!(packed, tar_gz(&files, "./", 1_700_000_000).unwrap());
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(&packed[..]));
        let mut names = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let header = entry.header();
            assert_eq!((header.uid().unwrap(), header.mtime().unwrap()), (0, 1_700_000_000));
            names.push(String::from_utf8(entry.path_bytes().into_owned()).unwrap());
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
        }
        let expected = ["./", "./etc/", "./etc/a.toml", "./usr/", "./usr/bin/", "./usr/bin/b"];
        assert_eq!(names, expected);
    }

    #[test]
    fn members_of_ar_begin_at_even_offsets() {
        let archive = ar(&[("debian-binary", b"2.0".to_vec()), ("b", b"xy".to_vec())], 7);
        let text = String::from_utf8(archive).unwrap();
        assert!(text.starts_with("!<arch>\ndebian-binary   7           0     0     100644  3         `\n2.0\nb "));
        assert!(text.ends_with("`\nxy"));
    }

    #[test]
    fn digests_are_hexadecimal() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sha256(b""), empty);
        assert_eq!(md5(b""), "d41d8cd98f00b204e9800998ecf8427e");
    }
}
