//! Identity of a user who has logged in, as header fields of the request.

use std::sync::Arc;

use rocknet_config::model::Oidc;
use rocknet_handler::guard::{Admitted, Identity};
use rocknet_oidc::LoginSession;

use crate::response::FieldList;

/// Returns the names of the fields by which applications recognize users.
pub fn names() -> Vec<Box<str>> {
    Oidc::FIELDS.map(Into::into).to_vec()
}

/// Returns the identity of a client that has not logged in.
pub(super) fn anonymous() -> Identity {
    Identity {
        names: names().into(),
        ..Identity::default()
    }
}

/// Returns the admission of a user. `cookies`: `Set-Cookie` fields of a renewed session.
pub(super) fn admitted(session: &LoginSession, cookies: Vec<String>) -> Admitted {
    let [user, groups, name, email] = Oidc::FIELDS;
    let mut identity = Identity {
        identifies_client: true,
        ..anonymous()
    };
    let mut add = |field: &str, value: &str| identity.fields.push((field.into(), value.as_bytes().into()));
    add(user, &session.user);
    if !session.groups.is_empty() {
        add(groups, &session.groups.join(","));
    }
    for (field, value) in [(name, &session.name), (email, &session.email)] {
        if let Some(value) = value {
            add(field, value);
        }
    }
    let mut fields = FieldList::default();
    for cookie in cookies {
        fields.add("Set-Cookie", cookie);
    }
    identity.cookies = fields;
    Admitted {
        user: Some(session.user.as_str().into()),
        identity: Some(Arc::new(identity)),
    }
}
