//! Tags of responses, by which applications and operators purge them.

use std::sync::Arc;

use rocknet_handler::response::FieldList;

/// Maximum number of tags of a response. Further ones are ignored.
const MAX_TAGS: usize = 256;
/// Maximum length of a tag in bytes. Longer ones are ignored.
const MAX_TAG: usize = 256;

/// Returns the tags of a response: those of `Cache-Tag` and `X-LiteSpeed-Tag`, separated by commas, and those of
/// `Surrogate-Key`, separated by spaces.
pub fn of_response(fields: &FieldList) -> Arc<[Box<str>]> {
    let mut tags: Vec<Box<str>> = Vec::new();
    for (name, value) in fields.iter() {
        let separator = match name {
            _ if name.eq_ignore_ascii_case("Cache-Tag") || name.eq_ignore_ascii_case("X-LiteSpeed-Tag") => ',',
            _ if name.eq_ignore_ascii_case("Surrogate-Key") => ' ',
            _ => continue,
        };
        let all = value.split(separator).map(str::trim);
        tags.extend(all.filter(|tag| (1..=MAX_TAG).contains(&tag.len())).map(Box::from));
    }
    tags.truncate(MAX_TAGS);
    tags.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_split() {
        let mut fields = FieldList::default();
        assert!(of_response(&fields).is_empty());
        fields.add("Cache-Tag", "a, b c,,d");
        fields.add("surrogate-key", "e  f");
        fields.add("X-LiteSpeed-Tag", "g");
        fields.add("X-Tag", "h");
        fields.add("Cache-Tag", "x".repeat(MAX_TAG + 1));
        assert_eq!(
            of_response(&fields).iter().map(|tag| &**tag).collect::<Vec<_>>(),
            ["a", "b c", "d", "e", "f", "g"]
        );
        fields.add("Cache-Tag", "y,".repeat(2 * MAX_TAGS));
        assert_eq!(of_response(&fields).len(), MAX_TAGS);
    }
}
