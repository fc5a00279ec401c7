//! Properties of a connection that are queried with the state of its server: its permission, and whether the files of
//! the configuration are loaded.

use rocknet_control::ClientError;
use rocknet_control::api::{GrantedPermission, Permission, Request};
use rocknet_control::config::ConfigState;

use super::connection::ServerLink;

impl ServerLink {
    /// Queries the permission of the connection; `None` if an older server does not name it.
    pub(super) fn permission(&mut self) -> Result<Option<Permission>, ClientError> {
        let granted = self.client.call::<GrantedPermission>(&Request::Permission);
        Ok(known(granted)?.map(|granted| granted.permission))
    }

    /// Compares the files of the configuration with what the server has loaded. `None` if the server has no such file,
    /// may not read it, or is too old for the query.
    pub(super) fn config_state(&mut self) -> Result<Option<ConfigState>, ClientError> {
        if self.lacks_config_state {
            return Ok(None);
        }
        let result = self.client.call::<ConfigState>(&Request::ConfigState);
        self.lacks_config_state = matches!(&result, Err(ClientError::Api(error)) if error.status == 404);
        known(result)
    }
}

/// Returns the reply; `None` if the server refuses or does not know the query. Other errors are of the connection.
fn known<T>(result: Result<T, ClientError>) -> Result<Option<T>, ClientError> {
    match result {
        Ok(reply) => Ok(Some(reply)),
        Err(ClientError::Api(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
