//! Permissions of clients.

use serde::{Deserialize, Serialize};

/// Permission of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Permission {
    /// Permits requests that change nothing and whose replies contain no secrets.
    Read,
    /// Permits every request.
    Full,
}

/// Permission that the credentials of a request give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GrantedPermission {
    /// Permission.
    pub permission: Permission,
}
