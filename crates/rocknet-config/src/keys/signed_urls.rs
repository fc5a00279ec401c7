//! Keys of signed URLs.

use super::{Key, Kind, Section};

pub(super) const KEYS: &[Key] = &[Key::new(
    "signed",
    &[Section::Auth],
    Kind::Either(&[Kind::Boolean, Kind::Text("file with keys")]),
    "Admits only URLs with a signature that has not expired, as `rocknet sign` and applications make them; other requests \
     get 403, and 410 after the end. `true`: the server generates a key and keeps it in its state folder. A file has \
     `id:secret` on each line, as `rocknet sign --new-key` prints it; all keys are accepted, and the first one signs. \
     docs/signed-urls.md has examples for applications.",
)
.example("signed = \"/etc/rocknet/url.keys\"")
.foreign_names(&["secure_link", "secure_link_md5", "secure_link_secret", "signed_urls", "presigned"])];
