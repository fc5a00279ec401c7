//! Instructions from the view `Traffic`: bans, and purges of stored responses.

use rocknet_control::api::{ApiError, Request};
use rocknet_control::ban::{BannedAddress, NewBan, parse_ban_duration};
use rocknet_control::response_purge::ResponsePurge;

/// Parses the form that bans a client or network. `field` returns the text of a field that is not empty.
pub fn ban(field: impl Fn(&str) -> Option<String>) -> Result<Request, ApiError> {
    let seconds = match field("time") {
        Some(time) => {
            let time =
                parse_ban_duration(&time).map_err(|error| invalid(format!("\"{time}\" is no duration: {error}")))?;
            Some(time.as_secs())
        }
        None => None,
    };
    Ok(Request::AddBan(NewBan {
        address: address(&field)?,
        seconds,
        reason: field("reason").unwrap_or_default(),
    }))
}

/// Parses the form that lifts a ban.
pub fn lift(field: impl Fn(&str) -> Option<String>) -> Result<Request, ApiError> {
    let address = address(&field)?;
    Ok(Request::LiftBan(BannedAddress { address }))
}

fn address(field: impl Fn(&str) -> Option<String>) -> Result<String, ApiError> {
    field("address").ok_or_else(|| invalid("enter an address or network, such as 192.0.2.7 or 192.0.2.0/24"))
}

/// Parses the form that drops stored responses. An empty field never stands for all responses.
pub fn purge(field: impl Fn(&str) -> Option<String>) -> Result<Request, ApiError> {
    let purge = ResponsePurge {
        site: field("site"),
        ..ResponsePurge::default()
    };
    let text = field("text");
    let purge = match (field("what").as_deref(), text) {
        (Some("url"), url @ Some(_)) => ResponsePurge { url, ..purge },
        (Some("prefix"), prefix @ Some(_)) => ResponsePurge { prefix, ..purge },
        (Some("tag"), tag @ Some(_)) => ResponsePurge { tag, ..purge },
        (Some("url" | "prefix"), None) => return Err(invalid("enter a URL such as https://example.com/page")),
        (Some("tag"), None) => return Err(invalid("enter a tag of the responses to drop")),
        (Some("all"), None) => purge,
        (Some("all"), Some(text)) => {
            let message = format!("all responses would be dropped, but the form names \"{text}\": empty that field");
            return Err(invalid(message));
        }
        _ => return Err(invalid("choose the responses to drop")),
    };
    Ok(Request::PurgeResponses(purge))
}

fn invalid(message: impl Into<String>) -> ApiError {
    ApiError::new(400, message)
}

#[cfg(test)]
mod tests {
    use super::super::request;
    use super::*;
    use crate::dashboard::frame::PageKind;

    fn parsed(form: &str) -> Result<Request, u16> {
        request(PageKind::Traffic, form.as_bytes()).map_err(|error| error.status)
    }

    #[test]
    fn bans_are_parsed() {
        fn check(form: &str, seconds: Option<u64>, reason: &str) {
            let ban = NewBan {
                address: "192.0.2.7".to_owned(),
                seconds,
                reason: reason.to_owned(),
            };
            assert_eq!(
                parsed(&format!("do=ban&address=+192.0.2.7&{form}")),
                Ok(Request::AddBan(ban)),
                "{form}"
            );
        }
        check("", None, "");
        check("time=&reason=", None, "");
        check("time=7d&reason=a+b", Some(7 * 86_400), "a b");
        check("time=forever", Some(0), "");
        let address = "2001:db8::/64".to_owned();
        assert_eq!(
            parsed("do=lift&address=2001%3Adb8%3A%3A%2F64"),
            Ok(Request::LiftBan(BannedAddress { address }))
        );
        for form in [
            "do=ban",
            "do=ban&address=+",
            "do=ban&address=192.0.2.7&time=1",
            "do=ban&address=192.0.2.7&time=0s",
            "do=lift&time=1h",
        ] {
            assert_eq!(parsed(form), Err(400), "{form}");
        }
    }

    #[test]
    fn an_empty_field_does_not_drop_all_responses() {
        let purge = |form: &str| match parsed(&format!("do=purge&{form}")) {
            Ok(Request::PurgeResponses(purge)) => Ok(purge),
            other => Err(other.expect_err("another request")),
        };
        let text = || Some("https://a.test/b".to_owned());
        let site = || Some("a.test".to_owned());
        let none = ResponsePurge::default;
        assert_eq!(
            purge("what=url&text=https%3A%2F%2Fa.test%2Fb&site="),
            Ok(ResponsePurge { url: text(), ..none() })
        );
        assert_eq!(
            purge("what=prefix&text=https%3A%2F%2Fa.test%2Fb&site=a.test"),
            Ok(ResponsePurge {
                prefix: text(),
                site: site(),
                ..none()
            })
        );
        let tag = Some("product-42".to_owned());
        assert_eq!(purge("what=tag&text=product-42"), Ok(ResponsePurge { tag, ..none() }));
        assert_eq!(
            purge("what=all&text=+&site=a.test"),
            Ok(ResponsePurge { site: site(), ..none() })
        );
        assert_eq!(purge("what=all"), Ok(none()));
        for form in [
            "",
            "what=url",
            "what=url&site=a.test",
            "what=prefix&text=",
            "what=tag",
            "what=all&text=https%3A%2F%2Fa.test%2F",
            "what=site&text=a.test",
            "text=https%3A%2F%2Fa.test%2F",
        ] {
            assert_eq!(purge(form), Err(400), "{form}");
        }
    }
}
