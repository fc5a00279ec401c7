//! Content negotiation: selects the content coding and the media type of a response (RFC 9110 §12.5).

use super::list;
use super::weight::Weight;

/// A content coding that the server can send (RFC 9110 §8.4.1, RFC 7932, RFC 8878).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Coding {
    /// No coding.
    Identity,
    /// gzip (RFC 1952)
    Gzip,
    /// zstd (RFC 8878)
    Zstd,
    /// Brotli (RFC 7932)
    Br,
}

impl Coding {
    /// Order of preference among codings of equal weight: the coding with the smallest output comes first, as measured
    /// on text.
    pub const BY_PREFERENCE: [Coding; 4] = [Coding::Br, Coding::Zstd, Coding::Gzip, Coding::Identity];

    /// Returns the value of `Content-Encoding`. `identity` is valid only in `Accept-Encoding` and must not be sent.
    pub fn name(self) -> &'static str {
        match self {
            Coding::Identity => "identity",
            Coding::Gzip => "gzip",
            Coding::Zstd => "zstd",
            Coding::Br => "br",
        }
    }

    /// Returns the suffix of precompressed files, with its dot.
    pub fn file_suffix(self) -> &'static str {
        match self {
            Coding::Identity => "",
            Coding::Gzip => ".gz",
            Coding::Zstd => ".zst",
            Coding::Br => ".br",
        }
    }

    /// Returns the suffix that distinguishes the entity tag of this coded form from the tag of the uncompressed file.
    pub(super) fn tag_suffix(self) -> &'static [u8] {
        match self {
            Coding::Identity => b"",
            Coding::Gzip => b"-gz",
            Coding::Zstd => b"-zst",
            Coding::Br => b"-br",
        }
    }

    /// Returns the coding of a name in `Accept-Encoding`, in any case; `None` if the server cannot send the coding.
    fn from_name(name: &[u8]) -> Option<Coding> {
        // `x-gzip` is an alias of `gzip` (RFC 9110 §8.4.1.3).
        let names: [(&[u8], Coding); 5] = [
            (b"gzip", Coding::Gzip),
            (b"br", Coding::Br),
            (b"zstd", Coding::Zstd),
            (b"identity", Coding::Identity),
            (b"x-gzip", Coding::Gzip),
        ];
        names
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|&(_, coding)| coding)
    }
}

/// Weights that an `Accept-Encoding` field assigns to the codings of the server.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AcceptEncoding {
    /// Indexed by [`Coding`].
    weights: [Weight; 4],
}

impl AcceptEncoding {
    /// Weights that accept only identity, for a missing, empty or malformed field.
    pub const IDENTITY: AcceptEncoding = AcceptEncoding::only(&[]);

    /// Parses the field. The caller must join repeated fields with `, `.
    ///
    /// A client that sends no field accepts any coding (RFC 9110 §12.5.3). In practice only scripts and old tools omit
    /// the field, and they cannot decode codings, so the result is identity. A malformed field also yields identity.
    pub fn parse(field: Option<&[u8]>) -> AcceptEncoding {
        match field {
            None => AcceptEncoding::IDENTITY,
            // Nearly every request of a browser has exactly one of these values.
            Some(b"gzip, deflate, br, zstd") => {
                const { AcceptEncoding::only(&[Coding::Gzip, Coding::Br, Coding::Zstd]) }
            }
            Some(b"gzip, deflate, br") => const { AcceptEncoding::only(&[Coding::Gzip, Coding::Br]) },
            Some(b"gzip, deflate" | b"gzip") => const { AcceptEncoding::only(&[Coding::Gzip]) },
            Some(value) => AcceptEncoding::parse_list(value).unwrap_or(AcceptEncoding::IDENTITY),
        }
    }

    /// Creates weights that accept these codings with weight 1, tolerate identity, and refuse all other codings.
    const fn only(codings: &[Coding]) -> AcceptEncoding {
        let mut weights = [Weight::REFUSED; 4];
        weights[Coding::Identity as usize] = Weight::TOLERATED;
        let mut at = 0;
        while at < codings.len() {
            weights[codings[at] as usize] = Weight::ONE;
            at += 1;
        }
        AcceptEncoding { weights }
    }

    /// Parses any field value; `None` if it is malformed.
    fn parse_list(value: &[u8]) -> Option<AcceptEncoding> {
        let mut named: [Option<Weight>; 4] = [None; 4];
        // Weight of `*`, which stands for all codings that the field does not name.
        let mut others: Option<Weight> = None;
        for part in list::parts(value, b',') {
            let (name, weight) = match memchr::memchr(b';', part) {
                None => (part, Weight::ONE),
                Some(end) => (
                    list::trim(&part[..end]),
                    Weight::parse_parameter(list::trim(&part[end + 1..]))?,
                ),
            };
            if !super::fields::is_token(name) {
                return None;
            }
            let slot = match Coding::from_name(name) {
                Some(coding) => &mut named[coding as usize],
                None if name == b"*" => &mut others,
                None => continue,
            };
            // If a coding is repeated, its smallest weight applies, so that a refusal is never overridden.
            *slot = Some(slot.map_or(weight, |before| before.min(weight)));
        }
        let mut weights = [Weight::REFUSED; 4];
        for coding in Coding::BY_PREFERENCE {
            // Identity is acceptable even if it is not listed.
            let unnamed = if coding == Coding::Identity {
                Weight::TOLERATED
            } else {
                Weight::REFUSED
            };
            weights[coding as usize] = named[coding as usize].or(others).unwrap_or(unnamed);
        }
        Some(AcceptEncoding { weights })
    }

    /// Returns true if a body in this coding may be sent. For identity, the result is false only after `identity;q=0`
    /// or `*;q=0`.
    pub fn accepts(&self, coding: Coding) -> bool {
        self.weights[coding as usize] != Weight::REFUSED
    }
}

/// Returns the coding of greatest weight among those `offered`. Among equal weights, [`Coding::BY_PREFERENCE`] decides.
///
/// Identity is always available and need not be offered. It is also the result if the client refuses all offered
/// codings and identity. RFC 9110 §12.5.3 allows 406 in that case, but a readable response is more helpful than an
/// error.
pub fn choose_coding(accepted: AcceptEncoding, offered: &[Coding]) -> Coding {
    let (mut chosen, mut greatest) = (Coding::Identity, accepted.weights[Coding::Identity as usize]);
    // In ascending order of preference, so that a later coding of equal weight wins.
    for coding in Coding::BY_PREFERENCE.into_iter().rev() {
        let weight = accepted.weights[coding as usize];
        if weight != Weight::REFUSED && weight >= greatest && offered.contains(&coding) {
            (chosen, greatest) = (coding, weight);
        }
    }
    chosen
}

/// Returns the index of the offer that an `Accept` field prefers; `None` if the field accepts no offer. Among equal
/// weights, the offer that a more specific range matches wins, then the earlier offer: `application/json, */*` requests
/// JSON.
///
/// Offers are media types without parameters, such as `application/json`. An empty field accepts any type, like a
/// missing field. Parameters of a range other than its weight are ignored: `application/json;charset=utf-8` requests
/// JSON. Invalid elements are skipped.
pub fn preferred_media_type(accept: &[u8], offers: &[&str]) -> Option<usize> {
    if list::trim(accept).is_empty() {
        return (!offers.is_empty()).then_some(0);
    }
    // Compared by the weight first, and then by the specificity.
    let mut best: Option<((Weight, Specificity), usize)> = None;
    for (index, offer) in offers.iter().enumerate() {
        let (weight, specificity) = weight_of(accept, offer.as_bytes());
        let rank = (weight, specificity);
        if weight != Weight::REFUSED && best.is_none_or(|(before, _)| rank > before) {
            best = Some((rank, index));
        }
    }
    best.map(|(_, index)| index)
}

/// Specificity of a media range. The most specific matching range has precedence (RFC 9110 §12.5.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Specificity {
    /// No range matches.
    Nothing,
    /// A range such as `*/*`.
    Anything,
    /// A range such as `text/*`.
    Type,
    /// A range such as `text/html`.
    Subtype,
}

/// Returns the weight and specificity of the most specific range that matches `offer`. Among equally specific ranges,
/// the greatest weight applies.
fn weight_of(accept: &[u8], offer: &[u8]) -> (Weight, Specificity) {
    // Compared by the specificity first, and then by the weight.
    let mut best = (Specificity::Nothing, Weight::REFUSED);
    for element in list::parts(accept, b',') {
        let mut parts = list::parts(element, b';');
        let Some(range) = parts.next() else { continue };
        let specificity = match range.strip_suffix(b"*") {
            _ if range.eq_ignore_ascii_case(offer) => Specificity::Subtype,
            Some(b"*/") => Specificity::Anything,
            Some(prefix) if prefix.ends_with(b"/") && begins_with(offer, prefix) => Specificity::Type,
            _ => continue,
        };
        let weight = match parts.find(|part| begins_with(part, b"q=")) {
            None => Weight::ONE,
            Some(parameter) => match Weight::parse_parameter(parameter) {
                Some(weight) => weight,
                None => continue,
            },
        };
        best = best.max((specificity, weight));
    }
    let (specificity, weight) = best;
    (weight, specificity)
}

/// Returns true if a value begins with `prefix`, ignoring case.
fn begins_with(value: &[u8], prefix: &[u8]) -> bool {
    value
        .get(..prefix.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

#[cfg(test)]
mod tests {
    use super::Coding::{Br, Gzip, Identity, Zstd};
    use super::*;
    use proptest::prelude::*;

    const ALL: &[Coding] = &[Identity, Gzip, Zstd, Br];

    #[test]
    fn chooses_codings() {
        // Value of Accept-Encoding, offered codings, and the expected choice.
        let rows: &[(Option<&str>, &[Coding], Coding)] = &[
            (None, ALL, Identity),
            (Some(""), ALL, Identity),
            (Some("gzip, deflate, br, zstd"), ALL, Br),
            (Some("gzip, deflate, br, zstd"), &[Gzip, Zstd], Zstd),
            (Some("gzip, deflate, br, zstd"), &[], Identity),
            (Some("gzip, deflate, br"), &[Zstd, Gzip], Gzip),
            (Some("gzip, deflate"), ALL, Gzip),
            (Some("deflate"), ALL, Identity),
            (Some("GZip"), ALL, Gzip),
            (Some("x-gzip"), ALL, Gzip),
            (Some("br;q=1.0, gzip;q=0.8, *;q=0.1"), ALL, Br),
            (Some("br;q=0.5, gzip;q=0.8"), ALL, Gzip),
            (Some("gzip;q=0.5, zstd;q=0.5, br;q=0.5"), ALL, Br),
            (Some("gzip;q=0.001"), ALL, Gzip),
            (Some("gzip;q=0.000"), ALL, Identity),
            (Some("gzip;q=0"), ALL, Identity),
            (Some("gzip ; Q=0.3 , br\t;\tq=0.2"), ALL, Gzip),
            (Some("gzip, gzip;q=0"), ALL, Identity),
            (Some("gzip;q=0, gzip"), ALL, Identity),
            (Some("*"), ALL, Br),
            (Some("*, br;q=0"), ALL, Zstd),
            (Some("*;q=0"), ALL, Identity),
            (Some("*;q=0, gzip"), ALL, Gzip),
            (Some("*;q=0.5, identity;q=0.6"), ALL, Identity),
            (Some("identity, gzip;q=0.5"), ALL, Identity),
            (Some("identity;q=0.5, gzip;q=0.5"), ALL, Gzip),
            (Some("identity;q=0"), ALL, Identity),
            (Some("identity;q=0, br;q=0.1"), ALL, Br),
            (Some("identity;q=0, br;q=0.1"), &[Gzip], Identity),
            // Malformed fields yield identity.
            (Some("gzip;q=2"), ALL, Identity),
            (Some("gzip;q=1.001"), ALL, Identity),
            (Some("gzip;q=0.1234"), ALL, Identity),
            (Some("gzip;q=-1"), ALL, Identity),
            (Some("gzip;q="), ALL, Identity),
            (Some("gzip;q"), ALL, Identity),
            (Some("gzip;level=9"), ALL, Identity),
            (Some("gzip br"), ALL, Identity),
            (Some("gzip, b\"r"), ALL, Identity),
            (Some(";q=1"), ALL, Identity),
            (Some("gzip;q=1.000"), ALL, Gzip),
            (Some("gzip;q=1."), ALL, Gzip), // the grammar allows it
            (Some(", ,gzip,,"), ALL, Gzip),
        ];
        for &(field, offered, expected) in rows {
            let accepted = AcceptEncoding::parse(field.map(str::as_bytes));
            assert_eq!(choose_coding(accepted, offered), expected, "{field:?} of {offered:?}");
        }
    }

    #[test]
    fn the_fast_path_agrees_with_the_grammar() {
        for field in ["gzip, deflate, br, zstd", "gzip, deflate, br", "gzip, deflate", "gzip"] {
            let value = field.as_bytes();
            assert_eq!(
                Some(AcceptEncoding::parse(Some(value))),
                AcceptEncoding::parse_list(value),
                "{field}"
            );
        }
    }

    #[test]
    fn prefers_media_types() {
        const OFFERS: &[&str] = &["text/html", "application/json"];
        // Value of Accept, and the index of the preferred offer.
        let rows: &[(&str, Option<usize>)] = &[
            ("", Some(0)),
            ("*/*", Some(0)),
            ("application/json", Some(1)),
            ("Application/JSON", Some(1)),
            ("application/json;charset=utf-8", Some(1)),
            ("application/*", Some(1)),
            (
                "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
                Some(0),
            ),
            ("application/json, text/plain, */*", Some(1)), // the default of the JavaScript client axios
            ("text/html;q=0.5, application/json", Some(1)),
            ("text/html;q=0.5, application/json;q=0.5", Some(0)),
            ("*/*;q=0.1, application/json;q=0.2", Some(1)),
            ("text/*, text/html;q=0", None),
            ("text/html;q=0, */*", Some(1)),
            ("image/png", None),
            ("*/*;q=0", None),
            ("application/json;q=nonsense", None),
            ("application/json;q=nonsense, text/html;q=0.1", Some(0)),
            ("application/json;p=\"a,b;q=0\";q=0.7, text/html;q=0.6", Some(1)),
            ("*", None),
            ("tex*", None),
            (";;,=", None),
        ];
        for &(accept, expected) in rows {
            assert_eq!(preferred_media_type(accept.as_bytes(), OFFERS), expected, "{accept}");
        }
        assert_eq!(preferred_media_type(b"", &[]), None);
    }

    /// The example of RFC 9110 §12.5.1, without its rows for `text/plain`, whose weights depend on parameters.
    #[test]
    fn the_rfc_9110_example_yields_its_weights_for_ranges_without_parameters() {
        let accept =
            b"text/*;q=0.3, text/plain;q=0.7, text/plain;format=flowed, text/plain;format=fixed;q=0.4, */*;q=0.5";
        // Offer, and its expected weight in thousandths.
        let rows: &[(&str, u16)] = &[("text/html", 300), ("image/jpeg", 500)];
        for &(offer, thousandths) in rows {
            assert_eq!(
                weight_of(accept, offer.as_bytes()).0,
                Weight::of_thousandths(thousandths),
                "{offer}"
            );
        }
    }

    /// Generates a weight in thousandths, and its text.
    fn weight_text() -> impl Strategy<Value = (u16, String)> {
        (0u16..=1000).prop_map(|thousandths| {
            let text = if thousandths == 1000 {
                "1".to_owned()
            } else {
                format!("0.{thousandths:03}")
            };
            (thousandths, text)
        })
    }

    proptest! {
        #[test]
        fn a_refused_coding_is_never_chosen(
            gzip in weight_text(), zstd in weight_text(), br in weight_text(),
            offered in prop::sample::subsequence(ALL.to_vec(), 0..=4),
        ) {
            let field = format!("gzip;q={}, zstd;q={}, br;q={}", gzip.1, zstd.1, br.1);
            let chosen = choose_coding(AcceptEncoding::parse(Some(field.as_bytes())), &offered);
            let given = [(Gzip, gzip.0), (Zstd, zstd.0), (Br, br.0)];
            let best = given.iter().filter(|(coding, _)| offered.contains(coding)).map(|&(_, weight)| weight).max();
            match given.iter().find(|(coding, _)| *coding == chosen) {
                Some(&(coding, weight)) => {
                    prop_assert!(weight > 0 && offered.contains(&coding));
                    prop_assert_eq!(Some(weight), best);
                }
                None => prop_assert_eq!(best.unwrap_or(0), 0),
            }
        }

        #[test]
        fn any_bytes_do_not_panic(field in prop::collection::vec(any::<u8>(), 0..60)) {
            let accepted = AcceptEncoding::parse(Some(&field));
            let chosen = choose_coding(accepted, ALL);
            prop_assert!(chosen == Identity || accepted.accepts(chosen));
            prop_assert!(preferred_media_type(&field, &["text/html"]).is_none_or(|index| index == 0));
        }
    }
}
