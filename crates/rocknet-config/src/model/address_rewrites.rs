//! Rewriting of one kind of address in responses of upstreams: URLs of redirects, paths of cookies or domains of
//! cookies.

/// Rewriting of addresses in responses: by pairs of the operator first, then by the address of the upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressRewrites {
    /// Beginnings of addresses and their replacements, such as `http://app.internal/two` and `/two`; the longest
    /// beginning is first. Domains are compared as a whole.
    pub pairs: Vec<(String, String)>,
    /// True if addresses without a matching pair are rewritten too. URLs at the upstream become paths of the site,
    /// paths get the prefix of `strip`, and the domain of the upstream is removed from cookies.
    pub is_automatic: bool,
}

impl AddressRewrites {
    /// Changes nothing.
    pub const OFF: AddressRewrites = AddressRewrites {
        pairs: Vec::new(),
        is_automatic: false,
    };
}

impl Default for AddressRewrites {
    fn default() -> AddressRewrites {
        AddressRewrites {
            pairs: Vec::new(),
            is_automatic: true,
        }
    }
}
