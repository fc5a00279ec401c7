//! Navigation to the dashboard by a link of another site.
//!
//! The cookie of a session is `SameSite=Strict`, so a browser does not send it along with such a navigation, nor with a
//! redirect of it. The response is a page of the dashboard that leads to the same address, and the browser sends the
//! cookie with this second request.

use rocknet_proto::Method;
use rocknet_proto::request::Request;

use crate::guard::is_from_other_site;

/// Parameter of the query that marks the second request, so that a browser without a session is not led there again.
const MARK: &[u8] = b"from=link";

/// Returns the address to which a request without a session is led once more; `None` if no other site has led to it.
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
