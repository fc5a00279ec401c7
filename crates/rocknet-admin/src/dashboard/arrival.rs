//! Navigation to the dashboard through a link on another site.
//!
//! The session cookie is `SameSite=Strict`, so browsers omit it when another site starts the navigation, even after a
//! redirect. The server therefore responds with a page of the dashboard that opens the same address again. The
//! browser sends the cookie with this second request.

use rocknet_proto::Method;
use rocknet_proto::request::Request;

use crate::guard::is_from_other_site;

/// Query parameter that marks the second request. It prevents a loop if the browser has no session.
const MARK: &[u8] = b"from=link";

/// Returns the address that a browser without a session opens next; `None` unless the request follows a link on
/// another site for the first time.
pub fn target(request: &Request<'_>) -> Option<String> {
    let query = request.query.unwrap_or_default();
    let is_repeated = query.split(|&byte| byte == b'&').any(|part| part == MARK);
    if is_repeated || !matches!(request.method, Method::Get | Method::Head) || !is_from_other_site(request) {
        return None;
    }
    // A path such as `//a.test` would be a URL of another host. Browsers read a backslash as a slash.
    if !matches!(request.path, [b'/'] | [b'/', b'!'..=b'.' | b'0'..=b'[' | b']'..=b'~', ..]) {
        return None;
    }
    let mut target = request.path.to_vec();
    target.push(b'?');
    if !query.is_empty() {
        target.extend([query, b"&"].concat());
    }
    target.extend(MARK);
    String::from_utf8(target).ok()
}
