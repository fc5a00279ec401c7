//! Query of a listing: order, view and filter, as it is read from a request and written into links.

use super::{Listing, SortKey, SortOrder, View};
use crate::text::push_segment;

/// Maximum length of a filter, in bytes. File names have at most 255 bytes.
pub const MAX_FILTER: usize = 255;

/// The parts of a query that a listing uses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Query {
    /// Key by which entries are sorted.
    pub sort: SortKey,
    /// Direction in which entries are sorted.
    pub order: SortOrder,
    /// View; `None` if the query names none.
    pub view: Option<View>,
    /// Text that the names contain, without regard to case. Empty: all names.
    pub filter: String,
    /// True if the folder is requested as a zip archive.
    pub zip: bool,
}

impl Query {
    /// Parses `sort=name|size|time`, `order=asc|desc`, `view=list|grid`, `filter=TEXT` and `zip` or `zip=1` from a
    /// query. If a key is repeated, its first value is used. Other keys are ignored, and an unknown value selects the
    /// default.
    pub fn parse(query: &[u8]) -> Query {
        let value = |key: &[u8]| {
            query
                .split(|&byte| byte == b'&')
                .find_map(|pair| pair.strip_prefix(key).and_then(|rest| rest.strip_prefix(b"=")))
        };
        Query {
            sort: match value(b"sort") {
                Some(b"size") => SortKey::Size,
                Some(b"time") => SortKey::Time,
                _ => SortKey::Name,
            },
            order: match value(b"order") {
                Some(b"desc") => SortOrder::Desc,
                _ => SortOrder::Asc,
            },
            view: match value(b"view") {
                Some(b"list") => Some(View::List),
                Some(b"grid") => Some(View::Grid),
                _ => None,
            },
            filter: value(b"filter").map(decoded).unwrap_or_default(),
            zip: query
                .split(|&byte| byte == b'&')
                .any(|pair| pair == b"zip" || pair == b"zip=1"),
        }
    }
}

/// Decodes a value of a form (`application/x-www-form-urlencoded`), and cuts it to [`MAX_FILTER`] bytes. Bytes that are
/// not UTF-8 become U+FFFD.
fn decoded(value: &[u8]) -> String {
    let hex = |byte: Option<&u8>| byte.and_then(|&byte| char::from(byte).to_digit(16));
    let mut bytes = Vec::with_capacity(value.len().min(MAX_FILTER));
    let mut at = 0;
    while at < value.len() && bytes.len() < MAX_FILTER {
        let (byte, length) = match (value[at], hex(value.get(at + 1)), hex(value.get(at + 2))) {
            (b'%', Some(high), Some(low)) => ((high << 4 | low) as u8, 3),
            (b'+', ..) => (b' ', 1),
            (byte, ..) => (byte, 1),
        };
        bytes.push(byte);
        at += length;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Writes the queries for the links of a page, escaped for HTML.
pub(super) struct Links<'a> {
    sort: SortKey,
    order: SortOrder,
    view: View,
    default_view: View,
    filter: &'a str,
}

impl<'a> Links<'a> {
    pub fn of(listing: &'a Listing<'_>) -> Links<'a> {
        Links {
            sort: listing.sort,
            order: listing.order,
            view: listing.view,
            default_view: listing.default_view,
            filter: listing.filter,
        }
    }

    /// Returns the query for links to other folders, such as `?view=grid`. It keeps order and view; empty if both are
    /// the defaults.
    pub fn to_folder(&self) -> String {
        joined(&self.order_and_view(self.view))
    }

    /// Returns the link to the same folder in another order.
    pub fn sorted(&self, sort: SortKey, order: SortOrder) -> String {
        let mut parameters = vec![("sort", sort.word().to_owned()), ("order", order.word().to_owned())];
        parameters.extend(self.view_parameter(self.view));
        parameters.extend(self.filter_parameter());
        joined(&parameters)
    }

    /// Returns the link to the same folder in another view.
    pub fn viewed(&self, view: View) -> String {
        let mut parameters = self.order_and_view(view);
        parameters.extend(self.filter_parameter());
        here(&parameters)
    }

    /// Returns the link to the same folder without a filter.
    pub fn unfiltered(&self) -> String {
        here(&self.order_and_view(self.view))
    }

    /// Returns the names and values that the form of the filter keeps.
    pub fn kept(&self) -> Vec<(&'static str, String)> {
        self.order_and_view(self.view)
    }

    fn order_and_view(&self, view: View) -> Vec<(&'static str, String)> {
        let mut parameters = Vec::new();
        if (self.sort, self.order) != Default::default() {
            parameters.push(("sort", self.sort.word().to_owned()));
            parameters.push(("order", self.order.word().to_owned()));
        }
        parameters.extend(self.view_parameter(view));
        parameters
    }

    fn view_parameter(&self, view: View) -> Option<(&'static str, String)> {
        (view != self.default_view).then(|| ("view", view.word().to_owned()))
    }

    fn filter_parameter(&self) -> Option<(&'static str, String)> {
        let mut encoded = Vec::new();
        push_segment(&mut encoded, self.filter);
        let encoded = String::from_utf8_lossy(&encoded).into_owned();
        (!encoded.is_empty()).then_some(("filter", encoded))
    }
}

/// Returns a link to the same folder. Without parameters it is `./`, because an empty link keeps the query of the page.
fn here(parameters: &[(&str, String)]) -> String {
    match joined(parameters) {
        query if query.is_empty() => "./".to_owned(),
        query => query,
    }
}

/// Returns the query with its `?`; empty without parameters.
fn joined(parameters: &[(&str, String)]) -> String {
    let mut query = String::new();
    for (name, value) in parameters {
        query.push_str(if query.is_empty() { "?" } else { "&amp;" });
        query.push_str(name);
        query.push('=');
        query.push_str(value);
    }
    query
}
