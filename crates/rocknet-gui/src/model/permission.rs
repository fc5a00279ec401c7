//! Permission of the window's connection: a reading token admits no change.

use rocknet_control::api::Permission;

use super::Model;
use crate::act::{Act, PageName};

impl Model {
    /// Returns true unless the connection is known to permit only reading.
    pub fn may_change(&self) -> bool {
        self.permission != Some(Permission::Read)
    }

    /// Returns true if the server permits the act, as far as it is known.
    pub fn permits(&self, act: &Act) -> bool {
        self.may_change() || !self.needs_full_permission(act)
    }

    /// Takes the permission of the connection.
    pub(super) fn take_permission(&mut self, permission: Permission) {
        self.permission = Some(permission);
    }

    /// Returns true for an act that changes something on the server, or that reads what may contain secrets.
    fn needs_full_permission(&self, act: &Act) -> bool {
        match act {
            Act::StopServer
            | Act::RestartServer
            | Act::ReloadServer
            | Act::AddSite
            | Act::Drop(_)
            | Act::EditSite
            | Act::EditText
            | Act::EditServer
            | Act::UpgradeServer
            | Act::DuplicateSite
            | Act::RemoveSite
            | Act::ToggleSite
            | Act::Undo
            | Act::UndoNewest
            | Act::GoBack
            | Act::DiscardEdits
            | Act::SetLevel(_)
            | Act::StopService => true,
            // The databases are those of this computer.
            Act::SwitchService(switch) => switch.page() != PageName::Databases,
            // The settings belong to the window.
            Act::Submit => self.page != PageName::Settings,
            _ => false,
        }
    }
}
