//! Bounds on the messages that the old process of an upgrade sends, one for each kind of message.

use rocknet_gateway::accounts::MAX_ACCOUNTS;

use super::message::{MAX_SOCKETS, ToNew};

/// Maximum number of channels to older processes. Each older process still serves QUIC connections, and ends within
/// `limits.upgrade_drain`.
pub(super) const MAX_RELAYS: usize = 1024;

/// Maximum number of optional messages before [`ToNew::End`]. This version sends two, and a later one may send more.
const MAX_OPTIONAL: usize = 1024;

/// Number of messages of each kind that the old process has sent so far.
#[derive(Debug, Default)]
pub(super) struct MessageBounds {
    sockets: usize,
    relays: usize,
    helpers: usize,
    accounts: usize,
    optional: usize,
}

impl MessageBounds {
    /// Counts a message that the old process has sent after its state folder. The list of these messages ends with
    /// [`ToNew::End`], which is not counted. The caller refuses the other messages that are not counted.
    ///
    /// # Errors
    ///
    /// Returns a message for the operator if there are too many messages of this kind.
    pub fn count(&mut self, message: &ToNew) -> Result<(), String> {
        let (count, max, what) = match message {
            ToNew::Socket { .. } => (&mut self.sockets, MAX_SOCKETS, "sockets"),
            ToNew::Relay { .. } => (&mut self.relays, MAX_RELAYS, "channels to older processes"),
            ToNew::Helper { accounts, .. } if *accounts > MAX_ACCOUNTS => {
                return Err(format!(
                    "the old process has passed more than {MAX_ACCOUNTS} accounts of scripts"
                ));
            }
            ToNew::Helper { .. } => (&mut self.helpers, 1, "account helper"),
            ToNew::Account { .. } => (&mut self.accounts, MAX_ACCOUNTS, "accounts of scripts"),
            ToNew::Optional(_) => (&mut self.optional, MAX_OPTIONAL, "optional messages"),
            ToNew::Begin { .. } | ToNew::StateFolder(_) | ToNew::End | ToNew::Go => return Ok(()),
        };
        *count += 1;
        if *count > max {
            return Err(format!("the old process has passed more than {max} {what}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rocknet_io::socket::Address;

    use super::super::message::{SocketGroup, SocketKind};
    use super::*;

    #[test]
    fn each_kind_has_a_bound_of_its_own() {
        let kinds = [
            (
                ToNew::Socket {
                    group: SocketGroup::Sites,
                    kind: SocketKind::Stream,
                    address: Address::Tcp { ip: None, port: 80 },
                },
                MAX_SOCKETS,
            ),
            (ToNew::Relay { generation: 1 }, MAX_RELAYS),
            (
                ToNew::Helper {
                    version: 1,
                    accounts: MAX_ACCOUNTS,
                    default: None,
                },
                1,
            ),
            (
                ToNew::Account {
                    uid: 1,
                    gid: 1,
                    name: "a".to_owned(),
                },
                MAX_ACCOUNTS,
            ),
            (ToNew::Optional(None), MAX_OPTIONAL),
        ];
        let mut bounds = MessageBounds::default();
        // The maximum number of sockets does not use up the bounds of the other kinds.
        for (message, max) in &kinds {
            for number in 0..*max {
                assert_eq!(bounds.count(message), Ok(()), "{number} of {message:?}");
            }
        }
        assert_eq!(bounds.count(&ToNew::End), Ok(()));
        for (message, max) in &kinds {
            let error = bounds.count(message).expect_err("one too many");
            assert!(error.contains(&format!("more than {max} ")), "{error}");
        }
        let many = ToNew::Helper {
            version: 1,
            accounts: MAX_ACCOUNTS + 1,
            default: None,
        };
        assert!(MessageBounds::default().count(&many).is_err());
    }
}
