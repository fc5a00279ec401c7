//! Hashes the password of a new user that was entered in a form.

use aws_lc_rs::rand;
use form_urlencoded::parse;
use rocknet_access::credentials::MAX_PASSWORD_BYTES;
use rocknet_access::password::{SALT_BYTES, hash};
use rocknet_config::model::{MAX_USER_BYTES, Priority, is_user_name};
use rocknet_handler::exchange::Exchange;

/// Returns the hash of the password in a form that is saved, or the reason why the user cannot be added. `None` if the
/// form adds no user, or is only checked. A hash takes tens of milliseconds.
pub async fn hash_of_password(body: &[u8], exchange: &Exchange) -> Option<Result<String, String>> {
    let password = match credentials(body)? {
        Ok((_, password)) => password,
        Err(message) => return Some(Err(message)),
    };
    let mut salt = [0; SALT_BYTES];
    if rand::fill(&mut salt).is_err() {
        return Some(Err("the system provides no random numbers".to_owned()));
    }
    let job = exchange
        .services
        .pool
        .spawn(Priority::Low, move || hash(&password, salt));
    Some(match job.await {
        Ok(Ok(hash)) => Ok(hash),
        Ok(Err(error)) => Err(format!("the hash cannot be computed: {error}")),
        Err(_) => Err("too many passwords are being verified; try again".to_owned()),
    })
}

/// Returns the name and the password of a new user in a form that is saved, or the reason why they cannot be used.
/// `None` if the form adds no user, or is only checked.
fn credentials(body: &[u8]) -> Option<Result<(String, String), String>> {
    let field = |wanted: &str| parse(body).find_map(|(key, value)| (key == wanted).then(|| value.into_owned()));
    // Without `do=save`, the form is only checked.
    if field("do").as_deref() != Some("save") {
        return None;
    }
    let user = field("new-user").unwrap_or_default().trim().to_owned();
    let password = field("new-password").unwrap_or_default();
    if user.is_empty() && password.is_empty() {
        return None;
    }
    // The form keeps users as lines `name = hash`, so a name cannot contain `=`.
    let problem = if !is_user_name(&user) || user.contains('=') {
        format!("a user name has 1 to {MAX_USER_BYTES} bytes without a colon, an equals sign or a control character")
    } else if password.is_empty() {
        "the password is empty".to_owned()
    } else if password.len() > MAX_PASSWORD_BYTES {
        format!("the password is longer than {MAX_PASSWORD_BYTES} bytes")
    } else if password.contains(|c: char| c.is_control()) {
        "the password contains a control character".to_owned()
    } else {
        return Some(Ok((user, password)));
    };
    Some(Err(problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_passwords_are_checked() {
        for (body, expected) in [
            ("do=check&new-user=ann&new-password=x", None),
            ("do=save", None),
            ("do=save&new-user=&new-password=", None),
            ("do=save&new-user=+ann+&new-password=x+y", Some(Ok(("ann", "x y")))),
            ("do=save&new-user=ann", Some(Err("the password is empty"))),
            ("do=save&new-password=x", Some(Err("a user name has"))),
            ("do=save&new-user=a%3Ab&new-password=x", Some(Err("a user name has"))),
            ("do=save&new-user=a%3Db&new-password=x", Some(Err("a user name has"))),
            (
                "do=save&new-user=ann&new-password=%00",
                Some(Err("contains a control character")),
            ),
        ] {
            match (credentials(body.as_bytes()), expected) {
                (None, None) => {}
                (Some(Ok((user, password))), Some(Ok(wanted))) => assert_eq!((&*user, &*password), wanted, "{body}"),
                (Some(Err(message)), Some(Err(wanted))) => assert!(message.contains(wanted), "{body}: {message}"),
                (found, _) => panic!("{body}: {found:?}"),
            }
        }
        let long = format!(
            "do=save&new-user=ann&new-password={}",
            "x".repeat(MAX_PASSWORD_BYTES + 1)
        );
        assert!(credentials(long.as_bytes()).is_some_and(|found| found.is_err()));
    }
}
