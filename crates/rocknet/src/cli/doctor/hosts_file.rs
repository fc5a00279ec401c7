//! The hosts file: adds names with their address, and keeps all other lines.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::Path;

use rustix::io::Errno;

use super::super::config_file::{self, ReplaceError};

/// Path of the hosts file.
pub(super) const PATH: &str = "/etc/hosts";

/// Comment at the end of each line that the doctor adds.
const MARK: &str = "# added by `rocknet doctor`";

/// Returns the entry that maps names to an address, without the mark.
pub(super) fn entry(address: IpAddr, names: &[String]) -> String {
    format!("{address} {}", names.join(" "))
}

/// Adds names to a hosts file. The file is replaced atomically, and keeps its owner and mode. Lines of an earlier
/// repair lose these names. Returns a description of the change.
///
/// # Errors
///
/// A message with the remedy: the file cannot be written, or another line already maps one of the names.
pub(super) fn add(path: &Path, address: IpAddr, names: &[String]) -> Result<String, String> {
    let shown = path.display();
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::PermissionDenied => format!("{shown} cannot be written: run `sudo rocknet doctor --fix`"),
        _ => format!("{shown} cannot be written: {error}"),
    };
    let old = config_file::read(path).map_err(failed)?;
    let added = entry(address, names);
    let new = with_entry(&old, address, names).map_err(|line| {
        format!(
            "line {line} of {shown} maps one of these names to another address: change it to `{added}`, because the \
             first line with a name takes effect"
        )
    })?;
    match config_file::replace(path, &old, &new) {
        Ok(()) => {}
        Err(ReplaceError::Changed) => {
            return Err(format!("{shown} was changed by another program meanwhile: try again"));
        }
        // Containers mount the file itself, and a mount point cannot be replaced. One write at the end of the file
        // keeps the rest as well.
        Err(ReplaceError::Io(error)) if error.raw_os_error() == Some(Errno::BUSY.raw_os_error()) => {
            let Some(end) = new.strip_prefix(&*old) else {
                return Err(format!(
                    "{shown} is mounted and cannot be replaced: change the line with \"{MARK}\" by hand"
                ));
            };
            let file = OpenOptions::new().append(true).open(path);
            file.and_then(|mut file| file.write_all(end.as_bytes()))
                .map_err(failed)?;
        }
        Err(ReplaceError::Io(error)) => return Err(failed(error)),
    }
    Ok(format!("{shown} has the line `{added}`"))
}

/// Returns the text with an entry added at its end.
///
/// # Errors
///
/// The number of a line, counted from 1, that maps one of the names to another address.
fn with_entry(text: &str, address: IpAddr, names: &[String]) -> Result<String, usize> {
    let mut new = String::with_capacity(text.len() + 256);
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let (found, mapped) = parse(line);
        let is_named = |name: &&str| names.iter().any(|wanted| wanted.eq_ignore_ascii_case(name));
        if !mapped.iter().any(is_named) {
            new.push_str(line);
        } else if line.trim_end().ends_with(MARK) {
            let kept: Vec<String> = mapped
                .iter()
                .filter(|name| !is_named(name))
                .map(ToString::to_string)
                .collect();
            if let Some(found) = found.filter(|_| !kept.is_empty()) {
                new.push_str(&format!("{} {MARK}\n", entry(found, &kept)));
            }
        } else if found != Some(address) {
            // A second address of another IP version does not hide the first.
            if found.is_none_or(|found| found.is_ipv4() == address.is_ipv4()) {
                return Err(index + 1);
            }
            new.push_str(line);
        } else {
            new.push_str(line);
        }
    }
    if !new.is_empty() && !new.ends_with('\n') {
        new.push('\n');
    }
    new.push_str(&format!("{} {MARK}\n", entry(address, names)));
    Ok(new)
}

/// Returns the address and the names of a line; no names for a comment or an empty line.
fn parse(line: &str) -> (Option<IpAddr>, Vec<&str>) {
    let fields = line.split('#').next().unwrap_or_default();
    let mut fields = fields.split_ascii_whitespace();
    let address = fields.next().and_then(|address| address.parse().ok());
    (address, fields.collect())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::{fs, net::Ipv4Addr};

    use super::*;

    const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn entries_are_added_and_other_lines_are_kept() {
        let line = |names: &str| format!("127.0.0.1 {names} {MARK}\n");
        let stale = format!("10.0.0.9 a.test c.test {MARK}\n");
        // Text of the file, names, and the new text, or the line that is in the way.
        for (text, added, expected) in [
            ("", &["a.test"][..], Ok(line("a.test"))),
            (
                "127.0.0.1 localhost",
                &["a.test"],
                Ok(format!("127.0.0.1 localhost\n{}", line("a.test"))),
            ),
            (
                "# my\tcomment a.test\n\n::1 a.test\n",
                &["a.test", "b.test"],
                Ok(format!("# my\tcomment a.test\n\n::1 a.test\n{}", line("a.test b.test"))),
            ),
            ("127.0.0.1 x\n10.0.0.9 b A.TEST # mine\n", &["a.test"], Err(2)),
            ("not-an-address a.test\n", &["a.test"], Err(1)),
            (
                &*stale,
                &["a.test"],
                Ok(format!("10.0.0.9 c.test {MARK}\n{}", line("a.test"))),
            ),
            (&*stale, &["a.test", "c.test"], Ok(line("a.test c.test"))),
        ] {
            assert_eq!(with_entry(text, LOCAL, &names(added)), expected, "{text:?}");
        }
    }

    #[test]
    fn the_file_keeps_its_mode_and_a_conflict_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hosts");
        fs::write(&path, "127.0.0.1 localhost\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let done = add(&path, LOCAL, &names(&["a.test"])).unwrap();
        assert!(done.contains("127.0.0.1 a.test"), "{done}");
        let text = format!("127.0.0.1 localhost\n127.0.0.1 a.test {MARK}\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        // A second repair of the same names changes nothing.
        add(&path, LOCAL, &names(&["a.test"])).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);

        fs::write(&path, "10.0.0.9 a.test\n").unwrap();
        let error = add(&path, LOCAL, &names(&["a.test"])).unwrap_err();
        assert!(error.starts_with("line 1 of "), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "10.0.0.9 a.test\n");
        assert!(add(&folder.path().join("missing"), LOCAL, &names(&["a.test"])).is_err());
    }
}
