//! Users of the system, looked up by name or number in `/etc/passwd` and `/etc/group`.

use std::fs;
use std::path::PathBuf;

use super::PrivilegeError;

/// A user account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Login name, or the number as given.
    pub name: String,
    /// User ID.
    pub uid: u32,
    /// ID of the primary group.
    pub gid: u32,
    /// IDs of all groups: the primary one first, then the supplementary ones.
    pub groups: Vec<u32>,
    /// Home directory; `None` if the account is not in `/etc/passwd`, or its line contains no absolute path.
    pub home: Option<PathBuf>,
}

impl User {
    /// Looks up `user` or `user:group`, each a name or a number. A given group replaces all groups of the user. Reads
    /// `/etc/passwd` and `/etc/group` only, because a query of a directory service would load third-party code into a
    /// process that runs as root.
    ///
    /// # Errors
    ///
    /// Fails if the user or group is unknown. A file that cannot be read is an error only if the IDs depend on it:
    /// without `/etc/group`, a user without a given group has only the primary group.
    pub fn find(spec: &str) -> Result<Self, PrivilegeError> {
        let read = |path: &'static str| fs::read_to_string(path).map_err(|error| PrivilegeError::File(path, error));
        // Read errors are reported only if the file is needed: a container may have none, and numeric IDs need none.
        let (passwd, group) = (read("/etc/passwd"), read("/etc/group"));
        let found = Self::look_up(
            spec,
            passwd.as_deref().unwrap_or_default(),
            group.as_deref().unwrap_or_default(),
        );
        match found {
            Err(PrivilegeError::UnknownUser(_) | PrivilegeError::NoGroup(_)) if passwd.is_err() => passwd.and(found),
            Err(PrivilegeError::UnknownGroup(_)) if group.is_err() => group.and(found),
            found => found,
        }
    }

    /// Looks up `spec` in the texts of `/etc/passwd` and `/etc/group`.
    fn look_up(spec: &str, passwd: &str, group: &str) -> Result<Self, PrivilegeError> {
        let (user, named_group) = match spec.split_once(':') {
            Some((user, named_group)) => (user, Some(named_group)),
            None => (spec, None),
        };
        let entries = || passwd.lines().filter_map(PasswdEntry::parse);
        // A user name that looks like a number has precedence over the user ID, as in other Unix programs.
        let entry = entries()
            .find(|entry| entry.name == user)
            .or_else(|| parse_id(user).and_then(|uid| entries().find(|entry| entry.uid == uid)));
        let uid = match &entry {
            Some(entry) => entry.uid,
            None => parse_id(user).ok_or_else(|| PrivilegeError::UnknownUser(user.to_owned()))?,
        };
        let gid = match (named_group, &entry) {
            (Some(name), _) => group_id(name, group).ok_or_else(|| PrivilegeError::UnknownGroup(name.to_owned()))?,
            (None, Some(entry)) => entry.gid,
            (None, None) => return Err(PrivilegeError::NoGroup(uid)),
        };
        let home = entry.as_ref().and_then(|entry| entry.home).map(PathBuf::from);
        let name = entry.map_or_else(|| user.to_owned(), |entry| entry.name.to_owned());
        let mut groups = vec![gid];
        // A given group replaces all other groups.
        if named_group.is_none() {
            let others = group
                .lines()
                .filter_map(GroupEntry::parse)
                .filter(|group| group.has(&name))
                .map(|group| group.gid);
            for other in others {
                if !groups.contains(&other) && groups.len() < MAX_GROUPS {
                    groups.push(other);
                }
            }
        }
        Ok(Self {
            name,
            uid,
            gid,
            groups,
            home,
        })
    }
}

/// A line of `/etc/passwd`: `name:password:uid:gid:comment:home:shell`.
struct PasswdEntry<'a> {
    name: &'a str,
    uid: u32,
    gid: u32,
    /// Home directory; `None` if it is missing or not an absolute path.
    home: Option<&'a str>,
}

impl<'a> PasswdEntry<'a> {
    /// Parses a line; `None` if it is invalid.
    fn parse(line: &'a str) -> Option<Self> {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        Some(Self {
            name,
            uid: parse_id(fields.nth(1)?)?,
            gid: parse_id(fields.next()?)?,
            home: fields.nth(1).filter(|home| home.starts_with('/')),
        })
    }
}

/// A line of `/etc/group`: `name:password:gid:member,member`.
struct GroupEntry<'a> {
    name: &'a str,
    gid: u32,
    /// Names of the members, separated by commas.
    members: &'a str,
}

impl<'a> GroupEntry<'a> {
    /// Parses a line; `None` if it is invalid.
    fn parse(line: &'a str) -> Option<Self> {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        Some(Self {
            name,
            gid: parse_id(fields.nth(1)?)?,
            members: fields.next().unwrap_or_default(),
        })
    }

    /// Returns whether `user` is a member of the group.
    fn has(&self, user: &str) -> bool {
        self.members.split(',').any(|member| member.trim() == user)
    }
}

/// Looks up a group by name or number in the text of `/etc/group`.
fn group_id(spec: &str, group: &str) -> Option<u32> {
    let named = group
        .lines()
        .filter_map(GroupEntry::parse)
        .find(|group| group.name == spec);
    named.map(|group| group.gid).or_else(|| parse_id(spec))
}

/// Parses an ID of digits only. Rejects the value that means "unchanged" in system calls, which would keep root.
fn parse_id(spec: &str) -> Option<u32> {
    // `parse` alone would also accept a leading `+`.
    let has_only_digits = spec.bytes().all(|byte| byte.is_ascii_digit());
    spec.parse()
        .ok()
        .filter(|&number| has_only_digits && number != u32::MAX)
}

/// Maximum number of groups of a process on Linux (`NGROUPS_MAX`).
const MAX_GROUPS: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::*;

    /// Text of `/etc/passwd`, with invalid lines among the valid ones.
    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nwww-data:x:33:33:w:/var/www:/bin/false\n\nbroken:x:\n:x:7:7::/:\n\
        +nis\nweb:x:1001:100:a:b:c\n2000:x:2001:2001::/:\nkeeps:x:4294967295:5::/:\n";
    /// Text of `/etc/group`, with spaces around a member and an invalid line.
    const GROUP: &str = "root:x:0:\nwww-data:x:33:\nusers:x:100:web\nssl:x:110:www-data,web\nlogs:x:4:x,web , y\n\
        www:x:111:www-datax\nbroken\n";

    #[test]
    fn finds_users_by_name_and_number() {
        let user = |name: &str, uid, gid, groups: &[u32]| {
            let home = match name {
                "www-data" => Some("/var/www".into()),
                "root" => Some("/root".into()),
                "2000" => Some("/".into()),
                _ => None,
            };
            Ok(User {
                name: name.into(),
                uid,
                gid,
                groups: groups.to_vec(),
                home,
            })
        };
        // Specification, and the user that is found, or the error.
        for (spec, expected) in [
            ("www-data", user("www-data", 33, 33, &[33, 110])),
            ("33", user("www-data", 33, 33, &[33, 110])),
            ("web", user("web", 1001, 100, &[100, 110, 4])),
            ("web:ssl", user("web", 1001, 110, &[110])),
            ("web:7", user("web", 1001, 7, &[7])),
            ("5000:6000", user("5000", 5000, 6000, &[6000])),
            ("2000", user("2000", 2001, 2001, &[2001])),
            ("root", user("root", 0, 0, &[0])),
            ("5000", Err("NoGroup(5000)")),
            ("nobody-such", Err("UnknownUser(\"nobody-such\")")),
            ("broken", Err("UnknownUser(\"broken\")")),
            ("", Err("UnknownUser(\"\")")),
            ("-1", Err("UnknownUser(\"-1\")")),
            ("+33", Err("UnknownUser(\"+33\")")),
            ("4294967295:33", Err("UnknownUser(\"4294967295\")")),
            ("keeps", Err("UnknownUser(\"keeps\")")),
            ("web:none", Err("UnknownGroup(\"none\")")),
            ("web:", Err("UnknownGroup(\"\")")),
            ("web:4294967295", Err("UnknownGroup(\"4294967295\")")),
        ] {
            let found = User::look_up(spec, PASSWD, GROUP).map_err(|error| format!("{error:?}"));
            assert_eq!(found, expected.map_err(str::to_owned), "{spec:?}");
        }
    }

    #[test]
    fn finds_users_of_this_system() {
        let found = User::find("0:0").unwrap();
        assert_eq!((found.uid, found.gid, found.groups), (0, 0, vec![0]));
        assert!(matches!(
            User::find("no such user"),
            Err(PrivilegeError::UnknownUser(_) | PrivilegeError::File(..))
        ));
    }
}
