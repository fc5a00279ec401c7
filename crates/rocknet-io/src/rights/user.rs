//! A user of the system, looked up by name or number in the system's own tables.

use std::fs;
use std::path::PathBuf;

use super::RightsError;

/// Whom a process can become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
    /// All groups it is in, the main one included.
    pub groups: Vec<u32>,
    /// Home directory; `None` for a number that is in no table.
    pub home: Option<PathBuf>,
}

impl User {
    /// Finds `name`, `uid`, `name:group` or `uid:gid`. Only `/etc/passwd` and `/etc/group` are read: asking a directory
    /// service would load foreign code into a process that is root.
    pub fn find(written: &str) -> Result<Self, RightsError> {
        let read = |path: &'static str| fs::read_to_string(path).map_err(|error| RightsError::System(path, error));
        // A container may have no tables; numbers do without.
        let (passwd, group) = (read("/etc/passwd"), read("/etc/group"));
        let found = Self::look_up(
            written,
            passwd.as_deref().unwrap_or_default(),
            group.as_deref().unwrap_or_default(),
        );
        match found {
            Err(RightsError::UnknownUser(_) | RightsError::NoGroup(_)) if passwd.is_err() => passwd.and(found),
            Err(RightsError::UnknownGroup(_)) if group.is_err() => group.and(found),
            found => found,
        }
    }

    fn look_up(written: &str, passwd: &str, group: &str) -> Result<Self, RightsError> {
        let (who, of_group) = match written.split_once(':') {
            Some((who, of_group)) => (who, Some(of_group)),
            None => (written, None),
        };
        let entries = || passwd.lines().filter_map(Entry::parse);
        // A name that looks like a number goes first, as everywhere on Unix.
        let entry = entries()
            .find(|entry| entry.name == who)
            .or_else(|| number(who).and_then(|uid| entries().find(|entry| entry.uid == uid)));
        let uid = match &entry {
            Some(entry) => entry.uid,
            None => number(who).ok_or_else(|| RightsError::UnknownUser(who.to_owned()))?,
        };
        let gid = match (of_group, &entry) {
            (Some(name), _) => group_number(name, group).ok_or_else(|| RightsError::UnknownGroup(name.to_owned()))?,
            (None, Some(entry)) => entry.gid,
            (None, None) => return Err(RightsError::NoGroup(uid)),
        };
        let home = entry.as_ref().and_then(|entry| entry.home).map(PathBuf::from);
        let name = entry.map_or_else(|| who.to_owned(), |entry| entry.name.to_owned());
        let mut groups = vec![gid];
        // Who names the group means that group alone.
        if of_group.is_none() {
            let others = group
                .lines()
                .filter_map(Group::parse)
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
struct Entry<'a> {
    name: &'a str,
    uid: u32,
    gid: u32,
    home: Option<&'a str>,
}

impl<'a> Entry<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        Some(Self {
            name,
            uid: number(fields.nth(1)?)?,
            gid: number(fields.next()?)?,
            home: fields.nth(1).filter(|home| home.starts_with('/')),
        })
    }
}

/// A line of `/etc/group`: `name:password:gid:member,member`.
struct Group<'a> {
    name: &'a str,
    gid: u32,
    members: &'a str,
}

impl<'a> Group<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        Some(Self {
            name,
            gid: number(fields.nth(1)?)?,
            members: fields.next().unwrap_or_default(),
        })
    }

    fn has(&self, user: &str) -> bool {
        self.members.split(',').any(|member| member.trim() == user)
    }
}

fn group_number(written: &str, group: &str) -> Option<u32> {
    let named = group
        .lines()
        .filter_map(Group::parse)
        .find(|group| group.name == written);
    named.map(|group| group.gid).or_else(|| number(written))
}

/// Digits only; and not the number by which system calls mean "leave as it is", which would keep root.
fn number(written: &str) -> Option<u32> {
    let digits = written.bytes().all(|byte| byte.is_ascii_digit());
    written.parse().ok().filter(|&number| digits && number != u32::MAX)
}

/// As many as Linux allows a process (`NGROUPS_MAX`).
const MAX_GROUPS: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nwww-data:x:33:33:w:/var/www:/bin/false\n\nbroken:x:\n:x:7:7::/:\n\
        +nis\nweb:x:1001:100:a:b:c\n2000:x:2001:2001::/:\nkeeps:x:4294967295:5::/:\n";
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
        for (written, expected) in [
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
            let found = User::look_up(written, PASSWD, GROUP).map_err(|error| format!("{error:?}"));
            assert_eq!(found, expected.map_err(str::to_owned), "{written:?}");
        }
    }

    #[test]
    fn finds_the_real_ones() {
        let found = User::find("0:0").unwrap();
        assert_eq!((found.uid, found.gid, found.groups), (0, 0, vec![0]));
        assert!(matches!(
            User::find("no such user"),
            Err(RightsError::UnknownUser(_) | RightsError::System(..))
        ));
    }
}
