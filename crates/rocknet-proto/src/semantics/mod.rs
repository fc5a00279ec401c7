//! What requests and answers mean, whatever wire they came on (RFC 9110).
