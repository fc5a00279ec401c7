//! Rewriting of one kind of address in responses of upstreams.

/// Rewriting of addresses in responses: by pairs of the operator first, then by the address of the upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressRewrites {
    /// Beginnings of addresses and their replacements; the longest beginning is first.
    pub pairs: Vec<(String, String)>,
    /// True if addresses without a matching pair are rewritten too, by the origin of the upstream and the prefix of
    /// `strip`.
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
